"""The names of ``phalanx.lax``, each with the module that has it."""

from phalanx.lax import linalg as linalg
from phalanx.lax.accuracy import (
    AccuracyMode as AccuracyMode,
    Tolerance as Tolerance,
)
from phalanx.lax.associative import associative_scan as associative_scan
from phalanx.lax.barriers import (
    optimization_barrier as optimization_barrier,
    stop_gradient as stop_gradient,
)
from phalanx.lax.binary import (
    add as add,
    atan2 as atan2,
    bitwise_and as bitwise_and,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    clamp as clamp,
    complex as complex,
    div as div,
    eq as eq,
    ge as ge,
    gt as gt,
    le as le,
    lt as lt,
    max as max,
    min as min,
    mul as mul,
    mulhi as mulhi,
    ne as ne,
    nextafter as nextafter,
    pow as pow,
    rem as rem,
    select as select,
    select_n as select_n,
    shift_left as shift_left,
    shift_right_arithmetic as shift_right_arithmetic,
    shift_right_logical as shift_right_logical,
    sub as sub,
)
from phalanx.lax.branches import (
    cond as cond,
    switch as switch,
)
from phalanx.lax.collective import (
    all_gather as all_gather,
    all_to_all as all_to_all,
    axis_index as axis_index,
    axis_size as axis_size,
    pbroadcast as pbroadcast,
    pcast as pcast,
    pmax as pmax,
    pmean as pmean,
    pmin as pmin,
    ppermute as ppermute,
    pshuffle as pshuffle,
    psum as psum,
    psum_scatter as psum_scatter,
    pswapaxes as pswapaxes,
    pvary as pvary,
)
from phalanx.lax.composites import composite as composite
from phalanx.lax.contract import (
    DotAlgorithm as DotAlgorithm,
    DotAlgorithmPreset as DotAlgorithmPreset,
    DotDimensionNumbers as DotDimensionNumbers,
    Precision as Precision,
    PrecisionLike as PrecisionLike,
    batch_matmul as batch_matmul,
    dot as dot,
    dot_general as dot_general,
    scaled_dot as scaled_dot,
)
from phalanx.lax.conversion import (
    bitcast_convert_type as bitcast_convert_type,
    convert_element_type as convert_element_type,
)
from phalanx.lax.convolution import (
    ConvDimensionNumbers as ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
    conv as conv,
    conv_dimension_numbers as conv_dimension_numbers,
    conv_general_dilated as conv_general_dilated,
    conv_transpose as conv_transpose,
    conv_with_general_padding as conv_with_general_padding,
    padtype_to_pads as padtype_to_pads,
)
from phalanx.lax.creation import (
    broadcasted_iota as broadcasted_iota,
    empty as empty,
    full as full,
    full_like as full_like,
    iota as iota,
)
from phalanx.lax.fourier import (
    FftType as FftType,
    fft as fft,
)
from phalanx.lax.gather_scatter import (
    GatherDimensionNumbers as GatherDimensionNumbers,
    GatherScatterMode as GatherScatterMode,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
    gather as gather,
    index_take as index_take,
    scatter as scatter,
    scatter_add as scatter_add,
    scatter_apply as scatter_apply,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
    scatter_sub as scatter_sub,
)
from phalanx.lax.generators import (
    RandomAlgorithm as RandomAlgorithm,
    rng_bit_generator as rng_bit_generator,
    rng_uniform as rng_uniform,
)
from phalanx.lax.layout import with_sharding_constraint as with_sharding_constraint
from phalanx.lax.loops import (
    fori_loop as fori_loop,
    map as map,
    scan as scan,
    while_loop as while_loop,
)
from phalanx.lax.patches import (
    conv_general_dilated_local as conv_general_dilated_local,
    conv_general_dilated_patches as conv_general_dilated_patches,
)
from phalanx.lax.platforms import platform_dependent as platform_dependent
from phalanx.lax.polynomials import polynomial as polynomial
from phalanx.lax.ragged import (
    RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
    ragged_dot as ragged_dot,
    ragged_dot_general as ragged_dot_general,
)
from phalanx.lax.ragged_exchange import ragged_all_to_all as ragged_all_to_all
from phalanx.lax.reductions import (
    argmax as argmax,
    argmin as argmin,
    cumlogsumexp as cumlogsumexp,
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
    reduce as reduce,
    reduce_and as reduce_and,
    reduce_max as reduce_max,
    reduce_min as reduce_min,
    reduce_or as reduce_or,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    reduce_xor as reduce_xor,
)
from phalanx.lax.shape import (
    broadcast as broadcast,
    broadcast_in_dim as broadcast_in_dim,
    broadcast_shapes as broadcast_shapes,
    broadcast_to_rank as broadcast_to_rank,
    collapse as collapse,
    concatenate as concatenate,
    expand_dims as expand_dims,
    pad as pad,
    reshape as reshape,
    rev as rev,
    split as split,
    squeeze as squeeze,
    stack as stack,
    tile as tile,
    transpose as transpose,
    unstack as unstack,
)
from phalanx.lax.shape_tuples import (
    conv_general_permutations as conv_general_permutations,
    conv_general_shape_tuple as conv_general_shape_tuple,
    conv_shape_tuple as conv_shape_tuple,
    conv_transpose_shape_tuple as conv_transpose_shape_tuple,
    reduce_window_shape_tuple as reduce_window_shape_tuple,
)
from phalanx.lax.slicing import (
    dynamic_index_in_dim as dynamic_index_in_dim,
    dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
    index_in_dim as index_in_dim,
    slice as slice,
    slice_in_dim as slice_in_dim,
)
from phalanx.lax.solvers import (
    custom_linear_solve as custom_linear_solve,
    custom_root as custom_root,
)
from phalanx.lax.sorting import (
    approx_max_k as approx_max_k,
    approx_min_k as approx_min_k,
    sort as sort,
    sort_key_val as sort_key_val,
    top_k as top_k,
)
from phalanx.lax.special import (
    bessel_i0e as bessel_i0e,
    bessel_i1e as bessel_i1e,
    betainc as betainc,
    igamma as igamma,
    igamma_grad_a as igamma_grad_a,
    igammac as igammac,
    polygamma as polygamma,
    random_gamma_grad as random_gamma_grad,
    zeta as zeta,
)
from phalanx.lax.unary import (
    RoundingMethod as RoundingMethod,
    abs as abs,
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atanh as atanh,
    bitwise_not as bitwise_not,
    cbrt as cbrt,
    ceil as ceil,
    clz as clz,
    conj as conj,
    cos as cos,
    cosh as cosh,
    digamma as digamma,
    erf as erf,
    erf_inv as erf_inv,
    erfc as erfc,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    floor as floor,
    imag as imag,
    integer_pow as integer_pow,
    is_finite as is_finite,
    lgamma as lgamma,
    log as log,
    log1p as log1p,
    log2 as log2,
    logistic as logistic,
    neg as neg,
    one_minus_square as one_minus_square,
    population_count as population_count,
    real as real,
    reciprocal as reciprocal,
    reduce_precision as reduce_precision,
    round as round,
    rsqrt as rsqrt,
    sign as sign,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    tan as tan,
    tanh as tanh,
)
from phalanx.lax.values import (
    broadcast_like as broadcast_like,
    dtype as dtype,
    shape_as_value as shape_as_value,
    stage as stage,
)
from phalanx.lax.window import reduce_window as reduce_window
