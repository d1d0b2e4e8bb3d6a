"""Reductions other than the sum, and the positions of extrema."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.lengths import symbolic
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Combine
from phalanx.core.correspond import Dims
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Derivative,
    Elements,
    Example,
    LaneDims,
    LinearizeRule,
    NoRule,
    Operands,
    Primitive,
    ZeroDerivative,
)
from phalanx.core.types import ArrayType, Ints, typeof
from phalanx.primitives.barrier import rounded_apart
from phalanx.primitives.basis import (
    add,
    broadcast,
    mul,
    reduce_sum,
    reduced_batch,
    reduced_dims,
    reduced_type,
    reshape,
    transpose,
)
from phalanx.primitives.compare import eq, greater_of, indicator, smaller_of
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import (
    I32,
    Domain,
    bools,
    check_domain,
    f32,
    i32,
    integral,
    number,
    number_or_bool,
)
from phalanx.primitives.elementwise import div
from phalanx.primitives.shape import concatenate, slice_dim

# ---- identities -----------------------------------------------------------------------------

Identity = Callable[[np.dtype], Any]  # of a reduction, as an element of a dtype


def lowest(dtype: np.dtype) -> Any:
    """What no element of ``dtype`` is smaller than: the identity of maximum."""
    return _extreme(dtype, -1)


def highest(dtype: np.dtype) -> Any:
    """What no element of ``dtype`` is greater than: the identity of minimum."""
    return _extreme(dtype, 1)


def _extreme(dtype: np.dtype, sign: int) -> Any:
    if dtypes.is_complex(dtype):
        return complex(sign * np.inf, sign * np.inf)
    if dtypes.is_floating(dtype):
        infinite = dtypes.scalar(sign * np.inf, dtype)
        limits = dtypes.finfo(dtype)
        return infinite if np.isinf(infinite) else limits.max if sign > 0 else limits.min
    if dtypes.is_integer(dtype):
        return dtypes.iinfo(dtype).max if sign > 0 else dtypes.iinfo(dtype).min
    return sign > 0


def _all_bits(dtype: np.dtype) -> Any:
    return -1 if dtypes.is_signed(dtype) else highest(dtype)


# ---- the family -----------------------------------------------------------------------------


Lower = Callable[[Builder, Any, Ints], Any]
Positions = Callable[[Builder, Any, int, np.dtype], Any]

# Where devices have parts of what is reduced, XLA exchanges sums, products and extrema of reals; of
# bools these are "or" and "and". It refuses bits and extrema of complex numbers, unless they are
# reduced in pairs: those of all parts it gathers.


def _fold(combine: Combine, identity: Identity) -> Lower:
    """A reduction as XLA has them."""

    def lower(b: Builder, x: Any, dims: Ints) -> Any:
        dtype = b.type(x).dtype
        init = b.constant(identity(dtype), dtype)
        return b.reduce([x], [init], dims, lambda b, x, y: [combine(b, x, y)])[0]

    return lower


def _fold_ordered(combine: Combine, identity: Identity) -> Lower:
    """The same of what is compared: complex numbers as pairs of their parts."""
    of_reals = _fold(combine, identity)

    def parts(b: Builder, z: Any) -> list[Any]:
        return [b.real(z), b.imag(z)]

    def body(b: Builder, *pairs: Any) -> list[Any]:
        return parts(b, combine(b, b.complex(*pairs[:2]), b.complex(*pairs[2:])))

    def lower(b: Builder, x: Any, dims: Ints) -> Any:
        dtype = b.type(x).dtype
        if not dtypes.is_complex(dtype):
            return of_reals(b, x, dims)
        init = b.constant(identity(dtype), dtype)
        return b.complex(*b.reduce(parts(b, x), parts(b, init), dims, body))

    return lower


def _set_and_odd(b: Builder, x: Any, dims: Ints) -> list[Any]:
    """The bits that are set somewhere, and those among them that are set an odd number of times.

    Each result needs the other, or the compiler would leave that out and see a reduction of bits.
    """
    none = b.constant(0, b.outs[0].dtype)
    pairs = b.reduce([x, x], [none] * 2, dims, lambda b, p, q, x, y: [b.or_(p, x), b.xor(q, y)])
    return [b.or_(*pairs), b.and_(*pairs)]


def _fold_bits(whole: Lower, of_pairs: Lower, *, exchanges_bools: bool) -> Lower:
    def lower(b: Builder, x: Any, dims: Ints) -> Any:
        exchanged = exchanges_bools and b.outs[0].dtype == bool
        return (of_pairs if b.parted and not exchanged else whole)(b, x, dims)

    return lower


def _reduction(
    name: str,
    lower: Lower,
    *,
    on: Domain,
    linearize: LinearizeRule | ZeroDerivative,
    copied: bool = False,
    doc: str,
    examples: Sequence[Example],
) -> Primitive:
    def type_rule(x: ArrayType, *, dims: Ints) -> ArrayType:
        check_domain(name, x, on)
        return reduced_type(name, x, dims)

    def batch(axis: Axis, values: Operands, dims_of: LaneDims, *, dims: Ints) -> Batched:
        shifted, out = reduced_batch(dims_of[0], dims)
        return prim(values[0], dims=shifted), out

    prim = Primitive(
        name,
        type_rule,
        lower,
        linearize=linearize,
        transpose=NoRule("it is not linear"),
        batch=batch,
        dims=reduced_dims,
        elements=Elements(copied=copied, operations=(1, 12) if copied else 1),
        doc=doc,
        examples=examples,
    )
    return prim


def _remaining_dims(x: Any, dims: Ints) -> tuple[int, ...]:
    return tuple(d for d in range(typeof(x).ndim) if d not in dims)


def _extremum_linearize(prim: Callable[[], Primitive]) -> LinearizeRule:
    """The tangent of an extremum is the mean of those of the elements that attain it."""

    def rule(active: Active, x: Any, *, dims: Ints) -> Derivative:
        x = rounded_apart(x)  # for what is made again may be rounded so that none attains it
        out = prim()(x, dims=dims)
        type, remaining_dims = typeof(x), _remaining_dims(x, dims)
        attained = eq(x, broadcast(out, shape=type.shape, dims=remaining_dims))
        ones = indicator(attained, type.dtype)
        count = broadcast(reduce_sum(ones, dims=dims), shape=type.shape, dims=remaining_dims)
        weight = div(ones, count)
        return out, lambda t: reduce_sum(mul(t, weight), dims=dims)

    return rule


def _prod_linearize(active: Active, x: Any, *, dims: Ints) -> Derivative:
    """Multiply halves until one element is left; no division, so zeros do no harm."""
    remaining_dims = _remaining_dims(x, dims)
    shape = tuple(typeof(x).shape[d] for d in remaining_dims)
    flat_shape = (*shape, math.prod(typeof(x).shape[d] for d in dims))

    def flat(v: Any) -> Any:
        return reshape(transpose(v, perm=(*remaining_dims, *dims)), shape=flat_shape)

    steps: list[tuple[Any, Any]] = []
    rest = flat(x)
    while typeof(rest).shape[-1] > 1:
        left, right, odd = _halves(rest)
        steps.append((left, right))
        rest = _joined(mul(left, right), odd)

    def linear(t: Any) -> Any:
        t = flat(t)
        for left, right in steps:
            t_left, t_right, odd = _halves(t)
            t = _joined(add(mul(t_left, right), mul(left, t_right)), odd)
        return reshape(t, shape=shape) if flat_shape[-1] else ZERO

    return reduce_prod(x, dims=dims), linear


def _halves(x: Any) -> tuple[Any, Any, Any]:
    """Two halves of the last dimension, and the element that is left over, or None."""
    dim = typeof(x).ndim - 1
    n = typeof(x).shape[dim]
    h = n // 2
    odd = slice_dim(x, 2 * h, n, dim) if n % 2 else None
    return slice_dim(x, 0, h, dim), slice_dim(x, h, 2 * h, dim), odd


def _joined(x: Any, odd: Any) -> Any:
    return x if odd is None else concatenate(x, odd, dim=typeof(x).ndim - 1)


_FLOATS = Example((f32(2, 3, 4),), {"dims": (0, 2)})
_INTS = Example((i32(5),), {"dims": (0,)})
_BOOLS = Example((bools(2, 3),), {"dims": (1,)})
_COMPLEX = Example((c64(3, 2),), {"dims": (0,)})
_NO_BITS = ZeroDerivative("its operand has no derivative")

reduce_prod = _reduction(
    "reduce_prod",
    _fold(lambda b, x, y: b.multiply(x, y), lambda dtype: 1),
    on=number,
    linearize=_prod_linearize,
    doc="the product over dims; stablehlo.reduce with multiply",
    examples=[_FLOATS, _INTS, _COMPLEX],
)

reduce_max = _reduction(
    "reduce_max",
    _fold_ordered(greater_of, lowest),
    on=number_or_bool,
    linearize=_extremum_linearize(lambda: reduce_max),
    copied=True,
    doc="the greatest element over dims; stablehlo.reduce with maximum",
    examples=[_FLOATS, _INTS, _BOOLS, _COMPLEX],
)

reduce_min = _reduction(
    "reduce_min",
    _fold_ordered(smaller_of, highest),
    on=number_or_bool,
    linearize=_extremum_linearize(lambda: reduce_min),
    copied=True,
    doc="the smallest element over dims; stablehlo.reduce with minimum",
    examples=[_FLOATS, _INTS, _BOOLS, _COMPLEX],
)

reduce_and = _reduction(
    "reduce_and",
    _fold_bits(
        _fold(lambda b, x, y: b.and_(x, y), _all_bits),
        lambda b, x, dims: b.not_(_set_and_odd(b, b.not_(x), dims)[0]),
        exchanges_bools=True,
    ),
    on=integral,
    linearize=_NO_BITS,
    doc="x ∧ y ∧ .. over dims; stablehlo.reduce with and",
    examples=[_BOOLS, _INTS],
)

reduce_or = _reduction(
    "reduce_or",
    _fold_bits(
        _fold(lambda b, x, y: b.or_(x, y), lambda dtype: 0),
        lambda b, x, dims: _set_and_odd(b, x, dims)[0],
        exchanges_bools=True,
    ),
    on=integral,
    linearize=_NO_BITS,
    doc="x ∨ y ∨ .. over dims; stablehlo.reduce with or",
    examples=[_BOOLS, _INTS],
)

reduce_xor = _reduction(
    "reduce_xor",
    _fold_bits(
        _fold(lambda b, x, y: b.xor(x, y), lambda dtype: 0),
        lambda b, x, dims: _set_and_odd(b, x, dims)[1],
        exchanges_bools=False,
    ),
    on=integral,
    linearize=_NO_BITS,
    doc="x ⊕ y ⊕ .. over dims; stablehlo.reduce with xor",
    examples=[_BOOLS, _INTS],
)


# ---- positions of extrema -------------------------------------------------------------------


def _in_two(extremum: Lower) -> Positions:
    """The least of the positions where the extremum is attained."""

    def lower(b: Builder, x: Any, dim: int, index_dtype: np.dtype) -> Any:
        shape, dtype = b.ins[0].shape, b.ins[0].dtype
        remaining_dims = tuple(d for d in range(len(shape)) if d != dim)
        best = extremum(b, x, (dim,))
        attained = b.compare(x, b.broadcast_in_dim(best, shape, remaining_dims), "EQ")
        if dtypes.is_inexact(dtype):
            attained = b.or_(attained, b.compare(x, x, "NE"))
        last = shape[dim] - 1
        places = b.select(
            attained, b.iota(index_dtype, shape, dim), b.constant(last, index_dtype, shape)
        )
        init = b.constant(last, index_dtype)
        return b.reduce([places], [init], (dim,), lambda b, x, y: [b.minimum(x, y)])[0]

    return lower


def _in_pairs(identity: Identity, direction: str, of_complex: Positions) -> Positions:
    """The second of the pairs (element, position) whose first is an extremum.

    Args:
        direction: "GT" or "LT", how the extremum compares with what is none.
    """

    def better(b: Builder, x: Any, i: Any, y: Any, j: Any) -> list[Any]:
        before = b.compare(i, j, "LT")
        wins = b.or_(b.compare(x, y, direction), b.and_(before, b.compare(x, y, "EQ")))
        if dtypes.is_floating(b.type(x).dtype):
            first_nan = b.or_(before, b.compare(y, y, "EQ"))
            wins = b.or_(wins, b.and_(first_nan, b.compare(x, x, "NE")))
        return [b.select(wins, x, y), b.select(wins, i, j)]

    def lower(b: Builder, x: Any, dim: int, index_dtype: np.dtype) -> Any:
        shape, dtype = b.ins[0].shape, b.ins[0].dtype
        if dtypes.is_complex(dtype):
            return of_complex(b, x, dim, index_dtype)
        inits = [b.constant(identity(dtype), dtype), b.constant(shape[dim] - 1, index_dtype)]
        return b.reduce([x, b.iota(index_dtype, shape, dim)], inits, (dim,), better)[1]

    return lower


def _require_places(name: str, x: ArrayType, dim: int, index_dtype: np.dtype) -> None:
    most = dtypes.iinfo(index_dtype).max
    if not symbolic(x.shape) and x.shape[dim] - 1 > most:
        raise ValueError(
            f"{name}: positions in dimension {dim} of {x} go up to {x.shape[dim] - 1}, but "
            f"index_dtype={index_dtype} ends at {most}; choose a wider one, such as int32"
        )


def _position(
    name: str, combine: Combine, identity: Identity, direction: str, doc: str
) -> Primitive:
    """The first position of an extremum.

    On CPUs two plain reductions run faster than one of pairs; on accelerators that reads less, and
    where CPUs have parts, the greatest of those is no NaN although one of them is.
    """
    in_two = _in_two(_fold_ordered(combine, identity))
    in_pairs = _in_pairs(identity, direction, in_two)

    def lower_on_cpu(b: Builder, x: Any, dim: int, index_dtype: np.dtype) -> Any:
        return (in_pairs if b.parted else in_two)(b, x, dim, index_dtype)

    def type_rule(x: ArrayType, *, dim: int, index_dtype: np.dtype) -> ArrayType:
        check_domain(name, x, number_or_bool)
        if not dtypes.is_integer(index_dtype):
            raise TypeError(f"{name}: index_dtype must be an integer dtype, got {index_dtype}")
        out = reduced_type(name, x, (dim,))
        if x.shape[dim] == 0:
            raise ValueError(f"{name}: dimension {dim} of {x} is empty; it has no extremum")
        _require_places(name, x, dim, index_dtype)
        return ArrayType(out.shape, index_dtype)

    def dims_rule(x: ArrayType, *, dim: int, index_dtype: np.dtype) -> Dims:
        return reduced_dims(x, (dim,))

    def batch(axis: Axis, values: Operands, dims: LaneDims, *, dim: int, **params: Any) -> Batched:
        (shifted,), out = reduced_batch(dims[0], (dim,))
        return prim(values[0], dim=shifted, **params), out

    prim = Primitive(
        name,
        type_rule,
        lower_on_cpu,
        lower_on=dict.fromkeys(("gpu", "tpu"), in_pairs),
        linearize=ZeroDerivative("positions are integers"),
        transpose=NoRule("it is not linear"),
        batch=batch,
        dims=dims_rule,
        elements=Elements(operations=(5, 20)),
        doc=doc,
        examples=[
            Example((f32(2, 3, 4),), {"dim": 1, "index_dtype": I32}),
            Example((i32(5),), {"dim": 0, "index_dtype": np.dtype("uint8")}),
            Example((bools(5),), {"dim": 0, "index_dtype": I32}),
            Example((c64(5),), {"dim": 0, "index_dtype": I32}),
        ],
    )
    return prim


argmax = _position(
    "argmax",
    greater_of,
    lowest,
    "GT",
    "the first position of the greatest element, or of a NaN; stablehlo.reduce, on a CPU alone two",
)
argmin = _position(
    "argmin",
    smaller_of,
    highest,
    "LT",
    "the first position of the smallest element, or of a NaN; stablehlo.reduce, on a CPU alone two",
)
