"""The primitives, by family. Each stands whole, with all its rules, in one place."""

# what stands here is what the package offers:
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from typing import TYPE_CHECKING

from phalanx.base.lazily import later
from phalanx.ops.barrier import optimization_barrier, rounded_apart
from phalanx.ops.basis import (
    add,
    broadcast,
    convert,
    full,
    move,
    mul,
    neg,
    random_unwrap,
    random_wrap,
    reduce_sum,
    reshape,
    sub,
    transpose,
)
from phalanx.ops.bits import (
    and_,
    bitcast,
    clz,
    not_,
    or_,
    population_count,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    xor,
)
from phalanx.ops.compare import clamp, eq, ge, gt, le, lt, max, min, ne, select
from phalanx.ops.complex import complex, conj, imag, real
from phalanx.ops.contract import dot_general
from phalanx.ops.conv import ConvDimensionNumbers, conv_general_dilated
from phalanx.ops.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from phalanx.ops.dynamic import dynamic_slice, dynamic_update_slice
from phalanx.ops.elementwise import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    cos,
    cosh,
    div,
    exp,
    exp2,
    expm1,
    floor,
    integer_pow,
    is_finite,
    log,
    log1p,
    logaddexp,
    logistic,
    nextafter,
    one_minus_square,
    pow,
    reduce_precision,
    rem,
    round,
    rsqrt,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    stop_gradient,
    tan,
    tanh,
)
from phalanx.ops.fft import fft
from phalanx.ops.gamma import digamma, lgamma
from phalanx.ops.generators import rng_bit_generator, rng_uniform
from phalanx.ops.index import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from phalanx.ops.length import constant_like, length, need_numbers, value_of
from phalanx.ops.naming import named
from phalanx.ops.precision import Precision, canonical_precision
from phalanx.ops.ragged import ragged_dot, ragged_sums
from phalanx.ops.random_bits import threefry2x32
from phalanx.ops.reduce import (
    argmax,
    argmin,
    highest,
    lowest,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_xor,
)
from phalanx.ops.shape import (
    broadcast_to,
    concatenate,
    dimension,
    dimensions,
    expand_dims,
    iota,
    merge_dims,
    pad,
    reorder,
    reverse,
    slice,
    slice_dim,
    split,
    squeeze,
    stack,
    zeros_like,
)
from phalanx.ops.sort import approx_top_k, sort, top_k
from phalanx.ops.special import erf, erf_inv, erfc
from phalanx.ops.window import (
    reduce_window_max,
    reduce_window_min,
    reduce_window_sum,
    select_and_gather_add,
    select_and_scatter_add,
)

if TYPE_CHECKING:  # the face puts them here, for users
    from phalanx.numpy.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

later(__name__)
