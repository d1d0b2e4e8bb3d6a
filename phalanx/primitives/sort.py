"""Sorting along a dimension, and the k largest elements.

Floating-point numbers are ordered with all NaNs last; -0 and 0 are equal. XLA sorts fast what
it can compare with one instruction. So floats are mapped to integers of the same order, and on CPUs
a key with companions is packed, with its position, into one 64-bit integer; the companions are
then fetched from their positions. On GPUs XLA sorts keys with companions by itself, if it knows the
order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.lengths import smaller
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import alike_but
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Derivative,
    Elements,
    Example,
    LaneDims,
    NoRule,
    Operands,
    Primitive,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import align_lanes, move, reshape
from phalanx.primitives.compare import ordered
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import F32, I32, bools, check_domain, f32, i32, number_or_bool
from phalanx.primitives.index import GatherDimensionNumbers, gather
from phalanx.primitives.shape import iota

I64 = np.dtype("int64")
U8 = np.dtype("uint8")
U32 = np.dtype("uint32")


def _along(shape: tuple[int, ...], dim: int) -> dict[str, Any]:
    """The parameters of a gather of one element per index along ``dim``, beside the others."""
    others = tuple(d for d in range(len(shape)) if d != dim)
    return {
        "numbers": GatherDimensionNumbers((), (dim,), (dim,), others, others),
        "slice_sizes": tuple(smaller(n, 1) for n in shape),
    }


def take_along(x: Any, positions: Any, dim: int) -> Any:
    """x[.., positions[.., i, ..], ..] along ``dim``; no position may come twice."""
    shape = typeof(positions).shape
    rows = reshape(positions, shape=(*shape, 1))
    params = _along(typeof(x).shape, dim)
    return gather(x, rows, mode="promise", unique_indices=True, **params)


# ---- the order of keys ----------------------------------------------------------------------


def _sortable(b: Builder, x: Any, join_zeros: bool) -> Any:
    """Integers in the order of ``x``; the zeros become equal on demand."""
    type = b.type(x)
    if dtypes.is_floating(type.dtype):
        if type.dtype.itemsize == 1:  # their NaNs have all kinds of codes
            x, type = b.convert(x, F32), type.update(dtype=F32)
        return _ordered_bits(b, x, type, join_zeros)
    return b.convert(x, U8) if dtypes.is_bool(type.dtype) else x


def _ordered_bits(b: Builder, x: Any, type: ArrayType, join_zeros: bool) -> Any:
    nan = b.constant(np.nan, type.dtype, type.shape)
    x = b.select(b.compare(x, x, "NE"), nan, x)
    if join_zeros:
        zero = b.constant(0, type.dtype, type.shape)
        x = b.select(b.compare(x, zero, "EQ"), zero, x)
    return _mirrored(b, b.bitcast_convert(x, _bits_of(type.dtype), type.shape))


def _mirrored(b: Builder, bits: Any) -> Any:
    """Sign and magnitude to two's complement, and back."""
    type = b.type(bits)
    low = b.constant(dtypes.iinfo(type.dtype).max, type.dtype, type.shape)
    negative = b.compare(bits, b.constant(0, type.dtype, type.shape), "LT")
    return b.select(negative, b.xor(bits, low), bits)


def _bits_of(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"int{8 * dtype.itemsize}")


def _restored(b: Builder, keys: Any, type: ArrayType) -> Any:
    """The numbers of ``type`` that ``_sortable`` made ``keys`` of."""
    if not dtypes.is_floating(type.dtype):
        return b.convert(keys, type.dtype)
    wide = F32 if type.dtype.itemsize == 1 else type.dtype
    return b.convert(b.bitcast_convert(_mirrored(b, keys), wide, type.shape), type.dtype)


# ---- lowering -------------------------------------------------------------------------------


def _less(b: Builder, x: Any, y: Any, *_: Any) -> Any:
    return b.compare(x, y, "LT")


def _sort_one(b: Builder, x: Any, dim: int) -> Any:
    keys = b.sort([_sortable(b, x, join_zeros=False)], dim, False, _less)[0]
    return _restored(b, keys, b.outs[0])


def _sort_packed(b: Builder, xs: Sequence[Any], dim: int) -> list[Any]:
    """Sort pairs of the key, in the high 32 bits, and its position, in the low ones."""
    shape = b.outs[0].shape
    key = _sortable(b, xs[0], join_zeros=True)
    wide = b.convert(key, I64)
    if b.type(key).dtype == U32:
        wide = b.subtract(wide, b.constant(1 << 31, I64, shape))
    high = b.shift_left(wide, b.constant(32, I64, shape))
    packed = b.sort([b.or_(high, b.iota(I64, shape, dim))], dim, False, _less)[0]
    positions = b.convert(b.and_(packed, b.constant(0xFFFFFFFF, I64, shape)), I32)
    rows = b.reshape(positions, (*shape, 1))
    return [b.gather(x, rows, sorted=False, **_along(shape, dim)) for x in xs]


def _sort_lexicographically(
    b: Builder, xs: Sequence[Any], dim: int, num_keys: int, stable: bool
) -> list[Any]:
    def comparator(b: Builder, *pairs: Any) -> Any:
        keys = zip(pairs[: 2 * num_keys : 2], pairs[1 : 2 * num_keys : 2], strict=True)
        parts = [p for x, y in keys for p in _real_pairs(b, x, y)]
        x, y = parts[-1]
        less = _number_less(b, x, y)
        for x, y in reversed(parts[:-1]):
            tied = b.and_(_number_equal(b, x, y), less)
            less = b.or_(_number_less(b, x, y), tied)
        return less

    return b.sort(xs, dim, stable, comparator)


def _real_pairs(b: Builder, x: Any, y: Any) -> list[tuple[Any, Any]]:
    if dtypes.is_complex(b.type(x).dtype):
        return [(b.real(x), b.real(y)), (b.imag(x), b.imag(y))]
    return [(x, y)]


def _number_less(b: Builder, x: Any, y: Any) -> Any:
    less = b.compare(x, y, "LT")
    if not dtypes.is_floating(b.type(x).dtype):
        return less
    return b.or_(less, b.and_(b.compare(x, x, "EQ"), b.compare(y, y, "NE")))


def _number_equal(b: Builder, x: Any, y: Any) -> Any:
    equal = b.compare(x, y, "EQ")
    if not dtypes.is_floating(b.type(x).dtype):
        return equal
    return b.or_(equal, b.and_(b.compare(x, x, "NE"), b.compare(y, y, "NE")))


def _total_less(b: Builder, x: Any, y: Any, *_: Any) -> Any:
    """NaNs are equal and last, zeros are equal: in the form that XLA sorts by radix on GPUs."""
    return b.compare(_canonical(b, x), _canonical(b, y), "LT", total=True)


def _canonical(b: Builder, x: Any) -> Any:
    dtype = b.type(x).dtype
    zero, nan = b.constant(0, dtype), b.constant(np.nan, dtype)
    joined = b.select(b.compare(x, zero, "EQ"), zero, x)
    return b.select(b.compare(x, x, "NE"), nan, joined)


def _sort_on_gpu(b: Builder, *xs: Value, dim: int, num_keys: int, stable: bool) -> list[Value]:
    if len(xs) > 1 and num_keys == 1 and dtypes.is_floating(b.ins[0].dtype):
        return b.sort(xs, dim, stable, _total_less)
    return _sort_unpacked(b, *xs, dim=dim, num_keys=num_keys, stable=stable)


def _sort_lower(b: Builder, *xs: Value, dim: int, num_keys: int, stable: bool) -> list[Value]:
    if len(xs) > 1 and num_keys == 1 and b.ins[0].dtype.itemsize <= 4:
        return _sort_packed(b, xs, dim)
    return _sort_unpacked(b, *xs, dim=dim, num_keys=num_keys, stable=stable)


def _sort_unpacked(b: Builder, *xs: Value, dim: int, num_keys: int, stable: bool) -> list[Value]:
    if len(xs) == 1 and not dtypes.is_complex(b.ins[0].dtype):
        return [_sort_one(b, xs[0], dim)]
    return _sort_lexicographically(b, xs, dim, num_keys, stable)


# ---- sort -----------------------------------------------------------------------------------


def _sort_type(*xs: ArrayType, dim: int, num_keys: int, stable: bool) -> tuple[ArrayType, ...]:
    if any(x.shape != xs[0].shape for x in xs):
        raise TypeError(f"sort: operands must have one shape, got {', '.join(map(str, xs))}")
    if not 0 <= dim < xs[0].ndim:
        raise ValueError(f"sort: there is no dimension {dim} in an operand {xs[0]}")
    if not 1 <= num_keys <= len(xs):
        raise ValueError(
            f"sort: num_keys must be at least 1 and at most the {len(xs)} operands, got {num_keys}"
        )
    for x in xs[:num_keys]:
        check_domain("sort", x, number_or_bool)
    return tuple(ArrayType(x.shape, x.dtype, x.weak) for x in xs)


def _sort_linearize(active: Active, *xs: Any, dim: int, **params: Any) -> Derivative:
    ids = iota(dtype=I32, shape=typeof(xs[0]).shape, dim=dim)
    *outs, positions = sort(*xs, ids, dim=dim, **params)

    def linear(*tangents: Any) -> Operands:
        return tuple(t if t is ZERO else take_along(t, positions, dim) for t in tangents)

    return tuple(outs), linear


def _sort_batch(
    axis: Axis, values: Operands, dims: LaneDims, *, dim: int, **params: Any
) -> Batched:
    aligned, lanes = align_lanes(axis, values, dims)
    outs = sort(*aligned, dim=dim + (dim >= lanes), **params)
    return outs, (lanes,) * len(outs)


def _sort_operations(results: Sequence[ArrayType], *types: ArrayType, dim: int, **_: Any) -> float:
    """5 n log2 n of n elements along ``dim``: comparisons, in which NaNs have a place, too."""
    return 5 * types[0].size * math.log2(max(types[0].shape[dim], 2))


_PLAIN = {"num_keys": 1, "stable": True}

sort = Primitive(
    "sort",
    _sort_type,
    _sort_lower,
    lower_on={"gpu": _sort_on_gpu, "tpu": _sort_unpacked},  # TPUs have no 64-bit integers
    linearize=_sort_linearize,
    transpose=NoRule("it is not linear"),
    batch=_sort_batch,
    dims=alike_but("elements are put in order along it"),
    multi=True,
    elements=Elements(copied=True, operations=_sort_operations),
    doc="operands in the order of the first num_keys of them along dim; stablehlo.sort",
    examples=[
        Example((f32(3, 5),), {"dim": 1, **_PLAIN}),
        Example((f32(5, 3), f32(5, 3)), {"dim": 0, **_PLAIN}),
        Example((i32(5), bools(5), f32(5)), {"dim": 0, "num_keys": 2, "stable": True}),
        Example((c64(4),), {"dim": 0, **_PLAIN}),
    ],
)


_ranked = alike_but("elements are chosen along it")

# ---- top_k ----------------------------------------------------------------------------------


def _top_k_type(x: ArrayType, *, k: int) -> tuple[ArrayType, ArrayType]:
    check_domain("top_k", x, ordered)
    if x.ndim == 0 or not 0 <= k <= x.shape[-1]:
        raise ValueError(
            f"top_k: k must be between 0 and the length of the last dimension of {x}, got {k}"
        )
    shape = (*x.shape[:-1], k)
    return ArrayType(shape, x.dtype, x.weak), ArrayType(shape, I32)


def _top_k_linearize(active: Active, x: Any, *, k: int) -> Derivative:
    values, positions = top_k(x, k=k)
    dim = typeof(x).ndim - 1
    return (values, positions), lambda t: (take_along(t, positions, dim), ZERO)


def _top_k_batch(axis: Axis, values: Operands, dims: LaneDims, *, k: int) -> Batched:
    return top_k(move(values[0], dims[0], 0), k=k), (0, 0)


def _top_k_lower(b: Builder, x: Value, k: int) -> list[Value]:
    return b.top_k(x, k)


top_k = Primitive(
    "top_k",
    _top_k_type,
    _top_k_lower,
    linearize=_top_k_linearize,
    transpose=NoRule("it is not linear"),
    batch=_top_k_batch,
    dims=_ranked,
    multi=True,
    elements=Elements(copied=True, operations=3, short="places"),
    doc="the k greatest of the last dimension, descending, and their positions; chlo.top_k",
    examples=[Example((f32(3, 5),), {"k": 2}), Example((i32(5),), {"k": 5})],
)


# ---- approx_top_k ---------------------------------------------------------------------------


def _approx_top_k_type(
    x: ArrayType, *, k: int, recall: float, whole: int
) -> tuple[ArrayType, ArrayType]:
    return _top_k_type(x, k=k)


def _approx_top_k_linearize(active: Active, x: Any, **params: Any) -> Derivative:
    values, positions = approx_top_k(x, **params)
    dim = typeof(x).ndim - 1
    return (values, positions), lambda t: (take_along(t, positions, dim), ZERO)


def _approx_top_k_batch(axis: Axis, values: Operands, dims: LaneDims, **params: Any) -> Batched:
    return approx_top_k(move(values[0], dims[0], 0), **params), (0, 0)


def _approx_top_k_lower(b: Builder, x: Value, k: int, recall: float, whole: int) -> list[Value]:
    return b.top_k(x, k)


def _larger(b: Builder, x: Value, y: Value, i: Value, j: Value) -> Value:
    """Whether x comes before y: NaN is the largest, and what is nowhere comes last."""
    zero = b.constant(0, I32)
    alone = b.and_(b.compare(i, zero, "GE"), b.compare(j, zero, "LT"))
    return b.or_(_number_less(b, y, x), alone)


def _approx_top_k_on_tpu(b: Builder, x: Value, k: int, recall: float, whole: int) -> list[Value]:
    dtype = b.ins[0].dtype
    if dtypes.is_floating(dtype) and dtype.itemsize in (2, 4):
        return b.approx_top_k(x, k, recall, whole, _larger)
    return b.top_k(x, k)


approx_top_k = Primitive(
    "approx_top_k",
    _approx_top_k_type,
    _approx_top_k_lower,
    lower_on={"tpu": _approx_top_k_on_tpu},
    linearize=_approx_top_k_linearize,
    transpose=NoRule("it is not linear"),
    batch=_approx_top_k_batch,
    dims=_ranked,
    multi=True,
    elements=Elements(copied=True, operations=3, short="places"),
    doc="as top_k, of which a share of recall is right; chlo.top_k, ApproxTopK on TPUs (Chern et "
    "al. 2022)",
    examples=[
        Example((f32(3, 5),), {"k": 2, "recall": 0.95, "whole": -1}),
        Example((f32(300),), {"k": 2, "recall": 0.5, "whole": 500}),
    ],
)
