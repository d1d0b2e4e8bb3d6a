"""Operations on arrays as primitives are: explicit about dtypes, shapes and dimensions.

``phalanx.numpy`` is the friendlier face of most of them. Here nothing is promoted implicitly;
only scalars adapt to the arrays beside them.
"""

# ruff: noqa: F401, F403  (what stands here is what the package offers)

import typing

from phalanx.base.lazily import later as _later
from phalanx.lax.accuracy import AccuracyMode, Tolerance
from phalanx.lax.associative import associative_scan
from phalanx.lax.binary import (
    add,
    atan2,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    clamp,
    complex,
    div,
    eq,
    ge,
    gt,
    le,
    lt,
    max,
    min,
    mul,
    mulhi,
    ne,
    nextafter,
    pow,
    rem,
    select,
    select_n,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sub,
)
from phalanx.lax.branches import cond, switch
from phalanx.lax.collective import *
from phalanx.lax.contract import (
    DotAlgorithm,
    DotAlgorithmPreset,
    DotDimensionNumbers,
    Precision,
    PrecisionLike,
    batch_matmul,
    dot,
    dot_general,
    scaled_dot,
)
from phalanx.lax.convolution import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_transpose,
    conv_with_general_padding,
    padtype_to_pads,
)
from phalanx.lax.fourier import FftType, fft
from phalanx.lax.generators import RandomAlgorithm, rng_bit_generator, rng_uniform
from phalanx.lax.index import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    gather,
    index_take,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from phalanx.lax.layout import with_sharding_constraint
from phalanx.lax.loops import fori_loop, map, scan, while_loop
from phalanx.lax.reduce import (
    argmax,
    argmin,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from phalanx.lax.shape import (
    bitcast_convert_type,
    broadcast,
    broadcast_in_dim,
    broadcast_shapes,
    broadcast_to_rank,
    broadcasted_iota,
    collapse,
    concatenate,
    convert_element_type,
    empty,
    expand_dims,
    full,
    full_like,
    index_in_dim,
    iota,
    optimization_barrier,
    pad,
    reshape,
    rev,
    slice,
    slice_in_dim,
    split,
    squeeze,
    stack,
    stop_gradient,
    tile,
    transpose,
    unstack,
)
from phalanx.lax.sort import approx_max_k, approx_min_k, sort, sort_key_val, top_k
from phalanx.lax.special import (
    bessel_i0e,
    bessel_i1e,
    betainc,
    igamma,
    igamma_grad_a,
    igammac,
    polygamma,
    random_gamma_grad,
    zeta,
)
from phalanx.lax.unary import (
    RoundingMethod,
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_not,
    cbrt,
    ceil,
    clz,
    conj,
    cos,
    cosh,
    digamma,
    erf,
    erf_inv,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    imag,
    integer_pow,
    is_finite,
    lgamma,
    log,
    log1p,
    log2,
    logistic,
    neg,
    one_minus_square,
    population_count,
    real,
    reciprocal,
    reduce_precision,
    round,
    rsqrt,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
)
from phalanx.lax.values import broadcast_like, dtype, shape_as_value, stage
from phalanx.lax.window import reduce_window

_TOKENS = "effects are in order by themselves: ordered ones as a program calls them"
_REFUSED = {
    "*_p": "it is one of the operations of programs, which are no functions to call; "
    "phalanx.primitives declares further ones",
    "after_all": _TOKENS,
    "create_token": _TOKENS,
    "dce_sink": "what nothing needs is not computed; return it, or give it to debug.callback",
    "psum_scatter_start": "the compiler starts a collective as early as it can; use psum_scatter",
}

if typing.TYPE_CHECKING:
    from phalanx.lax import linalg
    from phalanx.lax.later import *
else:
    __getattr__, __dir__ = _later(
        __name__,
        "linalg",
        refused=_REFUSED,
        later=[
            "RaggedDotDimensionNumbers",
            "composite",
            "conv_general_dilated_local",
            "conv_general_dilated_patches",
            "conv_general_permutations",
            "conv_general_shape_tuple",
            "conv_shape_tuple",
            "conv_transpose_shape_tuple",
            "custom_linear_solve",
            "custom_root",
            "platform_dependent",
            "polynomial",
            "ragged_all_to_all",
            "ragged_dot",
            "ragged_dot_general",
            "reduce_window_shape_tuple",
            "scatter_apply",
        ],
    )
