"""Primitives: the declaration that all of Phalanx is made of, its vocabulary, and the primitives.

Each is declared once, with every rule that it needs, in the file of its family; from then on it
works under every transformation. So does one of your own. ``phalanx.laws.check_primitive`` checks
the rules against what it computes.
"""

# what stands here is what the package offers:
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from phalanx.base.dtypes import is_bool, is_complex, is_floating, is_inexact, is_integer
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder
from phalanx.core.primitive import (
    ZERO,
    Effects,
    Elements,
    Example,
    Execution,
    Linear,
    NamedAxes,
    NoRule,
    Primitive,
    Zero,
    ZeroDerivative,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.barrier import optimization_barrier, rounded_apart
from phalanx.primitives.basis import (
    add,
    add_tangents,
    broadcast,
    broadcast_lanes,
    convert,
    full,
    instantiate,
    move,
    mul,
    neg,
    pointwise,
    random_unwrap,
    random_wrap,
    reduce_sum,
    reshape,
    structural,
    sub,
    transpose,
    zeros,
)
from phalanx.primitives.bits import (
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
from phalanx.primitives.compare import clamp, eq, ge, gt, le, lt, max, min, ne, select
from phalanx.primitives.complex import complex, conj, imag, real
from phalanx.primitives.contract import dot_general
from phalanx.primitives.conv import ConvDimensionNumbers, conv_general_dilated
from phalanx.primitives.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from phalanx.primitives.domains import bools, f32, i32
from phalanx.primitives.dynamic import dynamic_slice, dynamic_update_slice
from phalanx.primitives.elementwise import (
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
from phalanx.primitives.fft import fft
from phalanx.primitives.gamma import digamma, lgamma
from phalanx.primitives.generators import rng_bit_generator, rng_uniform
from phalanx.primitives.index import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from phalanx.primitives.length import constant_like, length, need_numbers, value_of
from phalanx.primitives.naming import named
from phalanx.primitives.precision import Precision, canonical_precision
from phalanx.primitives.ragged import ragged_dot, ragged_sums
from phalanx.primitives.random_bits import threefry2x32
from phalanx.primitives.reduce import (
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
from phalanx.primitives.shape import (
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
from phalanx.primitives.sort import approx_top_k, sort, top_k
from phalanx.primitives.special import erf, erf_inv, erfc
from phalanx.primitives.window import (
    reduce_window_max,
    reduce_window_min,
    reduce_window_sum,
    select_and_gather_add,
    select_and_scatter_add,
)

__all__ = [
    # the declaration, and what stands in place of rules and operands
    "Primitive",
    "Elements",
    "NamedAxes",
    "Effects",
    "Execution",
    "Example",
    "NoRule",
    "ZeroDerivative",
    "Linear",
    "ZERO",
    "Zero",
    # families
    "pointwise",
    "structural",
    # the dtypes that a member of a family takes
    "is_bool",
    "is_complex",
    "is_floating",
    "is_inexact",
    "is_integer",
    # what rules are given
    "ArrayType",
    "Axis",
    "Builder",
    # words for rules and examples
    "add_tangents",
    "broadcast_lanes",
    "instantiate",
    "move",
    "typeof",
    "zeros",
    "bools",
    "f32",
    "i32",
]
