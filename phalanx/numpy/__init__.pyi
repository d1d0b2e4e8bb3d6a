"""The names of ``phalanx.numpy``, each with the module that has it."""

from numpy import (
    can_cast as can_cast,
    character as character,
    complexfloating as complexfloating,
    dtype as dtype,
    e as e,
    euler_gamma as euler_gamma,
    flexible as flexible,
    floating as floating,
    generic as generic,
    get_printoptions as get_printoptions,
    index_exp as index_exp,
    inexact as inexact,
    inf as inf,
    integer as integer,
    iterable as iterable,
    nan as nan,
    newaxis as newaxis,
    number as number,
    object_ as object_,
    pi as pi,
    printoptions as printoptions,
    s_ as s_,
    save as save,
    savez as savez,
    set_printoptions as set_printoptions,
    signedinteger as signedinteger,
    unsignedinteger as unsignedinteger,
)
from numpy.exceptions import ComplexWarning as ComplexWarning
from phalanx.base.dtypes import (
    ScalarType as ScalarType,
    bfloat16 as bfloat16,
    bool_ as bool_,
    cdouble as cdouble,
    complex128 as complex128,
    complex64 as complex64,
    complex_ as complex_,
    csingle as csingle,
    double as double,
    finfo as finfo,
    float16 as float16,
    float32 as float32,
    float4_e2m1fn as float4_e2m1fn,
    float64 as float64,
    float8_e3m4 as float8_e3m4,
    float8_e4m3 as float8_e4m3,
    float8_e4m3b11fnuz as float8_e4m3b11fnuz,
    float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz,
    float8_e8m0fnu as float8_e8m0fnu,
    float_ as float_,
    iinfo as iinfo,
    int16 as int16,
    int2 as int2,
    int32 as int32,
    int4 as int4,
    int64 as int64,
    int8 as int8,
    int_ as int_,
    isdtype as isdtype,
    issubdtype as issubdtype,
    single as single,
    uint as uint,
    uint16 as uint16,
    uint2 as uint2,
    uint32 as uint32,
    uint4 as uint4,
    uint64 as uint64,
    uint8 as uint8,
)
from phalanx.base.lattice import (
    promote_types as promote_types,
    result_type as result_type,
)
from phalanx.core.types import Array as Array
from phalanx.numpy import (
    fft as fft,
    linalg as linalg,
)
from phalanx.numpy.arithmetic import (
    abs as abs,
    absolute as absolute,
    add as add,
    cbrt as cbrt,
    divide as divide,
    divmod as divmod,
    fabs as fabs,
    float_power as float_power,
    floor_divide as floor_divide,
    fmod as fmod,
    gcd as gcd,
    lcm as lcm,
    mod as mod,
    multiply as multiply,
    negative as negative,
    positive as positive,
    pow as pow,
    power as power,
    reciprocal as reciprocal,
    remainder as remainder,
    sign as sign,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    true_divide as true_divide,
)
from phalanx.numpy.extrema import (
    clip as clip,
    fmax as fmax,
    fmin as fmin,
    maximum as maximum,
    minimum as minimum,
)
from phalanx.numpy.differences import (
    diff as diff,
    ediff1d as ediff1d,
    gradient as gradient,
    trapezoid as trapezoid,
)
from phalanx.numpy.convolution import convolve as convolve, correlate as correlate
from phalanx.numpy.interpolation import interp as interp
from phalanx.numpy.polynomials import polyadd as polyadd, polymul as polymul, polyval as polyval
from phalanx.numpy.trigonometric import unwrap as unwrap
from phalanx.numpy.searching import (
    argwhere as argwhere,
    flatnonzero as flatnonzero,
    nonzero as nonzero,
    where as where,
)
from phalanx.numpy.logic import (
    allclose as allclose,
    array_equal as array_equal,
    array_equiv as array_equiv,
    isclose as isclose,
)
from phalanx.numpy.arithmetic import heaviside as heaviside
from phalanx.numpy.floating_point import nan_to_num as nan_to_num
from phalanx.numpy.indexing import select as select
from phalanx.numpy.products import (
    cross as cross,
    dot as dot,
    inner as inner,
    kron as kron,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    vdot as vdot,
    vecdot as vecdot,
)
from phalanx.numpy.creation import (
    arange as arange,
    array as array,
    asarray as asarray,
    astype as astype,
    copy as copy,
    empty as empty,
    empty_like as empty_like,
    from_dlpack as from_dlpack,
    frombuffer as frombuffer,
    fromfile as fromfile,
    fromiter as fromiter,
    fromstring as fromstring,
    full as full,
    full_like as full_like,
    load as load,
    ones as ones,
    ones_like as ones_like,
    zeros as zeros,
    zeros_like as zeros_like,
)
from phalanx.numpy.cumulative import (
    cumprod as cumprod,
    cumsum as cumsum,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    nancumprod as nancumprod,
    nancumsum as nancumsum,
)
from phalanx.numpy.einsums import (
    einsum as einsum,
    einsum_path as einsum_path,
    matvec as matvec,
    vecmat as vecmat,
)
from phalanx.numpy.functional import (
    apply_along_axis as apply_along_axis,
    apply_over_axes as apply_over_axes,
    piecewise as piecewise,
    vectorize as vectorize,
)
from phalanx.numpy.gluing import (
    c_ as c_,
    r_ as r_,
)
from phalanx.numpy.histograms import (
    histogram2d as histogram2d,
    histogramdd as histogramdd,
)
from phalanx.numpy.joining import (
    append as append,
    array_split as array_split,
    block as block,
    column_stack as column_stack,
    concat as concat,
    concatenate as concatenate,
    delete as delete,
    dsplit as dsplit,
    dstack as dstack,
    hsplit as hsplit,
    hstack as hstack,
    insert as insert,
    repeat as repeat,
    split as split,
    stack as stack,
    tile as tile,
    trim_zeros as trim_zeros,
    unstack as unstack,
    vsplit as vsplit,
    vstack as vstack,
)
from phalanx.numpy.logic import (
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    iscomplex as iscomplex,
    iscomplexobj as iscomplexobj,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    isneginf as isneginf,
    isposinf as isposinf,
    isreal as isreal,
    isrealobj as isrealobj,
    isscalar as isscalar,
    less as less,
    less_equal as less_equal,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    not_equal as not_equal,
)
from phalanx.numpy.complex_numbers import (
    angle as angle,
    conj as conj,
    conjugate as conjugate,
    imag as imag,
    real as real,
)
from phalanx.numpy.bits import (
    bitwise_and as bitwise_and,
    bitwise_count as bitwise_count,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    invert as invert,
    left_shift as left_shift,
    right_shift as right_shift,
)
from phalanx.numpy.bits import (
    packbits as packbits,
    unpackbits as unpackbits,
)
from phalanx.numpy.padding import pad as pad
from phalanx.numpy.polynomials import (
    poly as poly,
    polyder as polyder,
    polydiv as polydiv,
    polyfit as polyfit,
    polyint as polyint,
    polysub as polysub,
    roots as roots,
)
from phalanx.numpy.printing import (
    array_repr as array_repr,
    array_str as array_str,
)
from phalanx.numpy.quantiles import (
    median as median,
    nanmedian as nanmedian,
    nanpercentile as nanpercentile,
    nanquantile as nanquantile,
    percentile as percentile,
    quantile as quantile,
)
from phalanx.numpy.reductions import (
    all as all,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    nanargmax as nanargmax,
    nanargmin as nanargmin,
    nanprod as nanprod,
    nansum as nansum,
    prod as prod,
    sum as sum,
)
from phalanx.numpy.extrema import (
    amax as amax,
    amin as amin,
    max as max,
    min as min,
    minmax as minmax,
    nanmax as nanmax,
    nanmin as nanmin,
)
from phalanx.numpy.rounding import (
    around as around,
    ceil as ceil,
    fix as fix,
    floor as floor,
    rint as rint,
    round as round,
    trunc as trunc,
)
from phalanx.numpy.floating_point import (
    copysign as copysign,
    frexp as frexp,
    ldexp as ldexp,
    modf as modf,
    nextafter as nextafter,
    signbit as signbit,
    spacing as spacing,
)
from phalanx.numpy.sorting import (
    argpartition as argpartition,
    argsort as argsort,
    lexsort as lexsort,
    partition as partition,
    searchsorted as searchsorted,
    sort as sort,
    sort_complex as sort_complex,
    top_k as top_k,
)
from phalanx.numpy.histograms import digitize as digitize
from phalanx.numpy.index_arrays import (
    ravel_multi_index as ravel_multi_index,
    unravel_index as unravel_index,
)
from phalanx.numpy.indexing import (
    choose as choose,
    compress as compress,
    fill_diagonal as fill_diagonal,
    place as place,
    put as put,
    put_along_axis as put_along_axis,
    take as take,
    take_along_axis as take_along_axis,
)
from phalanx.numpy.sorting import extract as extract
from phalanx.numpy.sets import (
    intersect1d as intersect1d,
    isin as isin,
    setdiff1d as setdiff1d,
    setxor1d as setxor1d,
    union1d as union1d,
    unique as unique,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from phalanx.numpy.manipulation import (
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays,
    broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to,
    expand_dims as expand_dims,
    flip as flip,
    fliplr as fliplr,
    flipud as flipud,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    ndim as ndim,
    permute_dims as permute_dims,
    ravel as ravel,
    reshape as reshape,
    resize as resize,
    roll as roll,
    rollaxis as rollaxis,
    rot90 as rot90,
    shape as shape,
    size as size,
    squeeze as squeeze,
    swapaxes as swapaxes,
    transpose as transpose,
)
from phalanx.numpy.ranges import (
    geomspace as geomspace,
    linspace as linspace,
    logspace as logspace,
)
from phalanx.numpy.standard import (
    __array_api_version__ as __array_api_version__,
    __array_namespace_info__ as __array_namespace_info__,
)
from phalanx.numpy.statistics import (
    ptp as ptp,
    average as average,
    corrcoef as corrcoef,
    cov as cov,
    mean as mean,
    nanmean as nanmean,
    nanstd as nanstd,
    nanvar as nanvar,
    std as std,
    var as var,
)
from phalanx.numpy.histograms import (
    bincount as bincount,
    histogram as histogram,
    histogram_bin_edges as histogram_bin_edges,
)
from phalanx.numpy.matrices import (
    diag as diag,
    diagflat as diagflat,
    diagonal as diagonal,
    eye as eye,
    identity as identity,
    trace as trace,
    tri as tri,
    tril as tril,
    triu as triu,
    vander as vander,
)
from phalanx.numpy.windows import (
    bartlett as bartlett,
    blackman as blackman,
    hamming as hamming,
    hanning as hanning,
    kaiser as kaiser,
)
from phalanx.numpy.index_arrays import (
    diag_indices as diag_indices,
    diag_indices_from as diag_indices_from,
    indices as indices,
    ix_ as ix_,
    mask_indices as mask_indices,
    tril_indices as tril_indices,
    tril_indices_from as tril_indices_from,
    triu_indices as triu_indices,
    triu_indices_from as triu_indices_from,
)
from phalanx.numpy.ranges import (
    fromfunction as fromfunction,
    meshgrid as meshgrid,
    mgrid as mgrid,
    ogrid as ogrid,
)
from phalanx.numpy.trigonometric import (
    acos as acos,
    acosh as acosh,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cos as cos,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    hypot as hypot,
    rad2deg as rad2deg,
    radians as radians,
    sin as sin,
    sinh as sinh,
    tan as tan,
    tanh as tanh,
)
from phalanx.numpy.exponents import (
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
)
from phalanx.numpy.special import i0 as i0, sinc as sinc
from phalanx.numpy.universal import (
    frompyfunc as frompyfunc,
    ufunc as ufunc,
)

ndarray = Array
bool = bool_
