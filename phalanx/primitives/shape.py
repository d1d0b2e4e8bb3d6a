"""Operations that only place elements: reverse, join, pad, cut out; and iota, which counts.

All are linear in what they place, so each derivative is the operation itself and each
transpose puts the cotangents back where the elements came from.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr

from phalanx.base import dtypes
from phalanx.base.boundary import hiding
from phalanx.base.errors import AxisError, ConcretizationTypeError, ShapeError
from phalanx.base.lengths import count, larger
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import ALL, alike
from phalanx.core.mesh_spec import MeshSpec
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    LaneDims,
    Linear,
    NoRule,
    Operands,
    Primitive,
    R,
    ZeroDerivative,
)
from phalanx.core.types import ArrayType, Ints, LiteralType, Shape, typeof
from phalanx.primitives.basis import (
    align_lanes,
    broadcast,
    broadcast_lanes,
    check_lengths,
    full,
    instantiate,
    move,
    reduce_sum,
    reshape,
    structural,
    transpose,
    zeros,
)
from phalanx.primitives.compare import select
from phalanx.primitives.domains import BOOL, F32, I32, f32, i32, number
from phalanx.primitives.sums import zero_beside

# ---- positions of dimensions ----------------------------------------------------------------


class DimensionNumbers(Struct, frozen=True):
    """Records of dimensions: tuples of Python integers, whatever sequences they came as."""

    @hiding
    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            try:
                dims = tuple(operator.index(d) for d in value)
            except TypeError:
                raise TypeError(
                    f"{type(self).__name__}: {name} must be integers, as (0, 1), got {value!r}"
                ) from None
            force_setattr(self, name, dims)


def dimension(who: str, dim: Any, ndim: int) -> int:
    """``dim`` counted from the front; a negative one counts from the end of ``ndim``.

    Raises:
        TypeError: it is not an integer.
        AxisError: there is no such dimension.
    """
    try:
        position = operator.index(dim)
    except ConcretizationTypeError:  # says what is traced, and where
        raise
    except TypeError:
        raise TypeError(f"{who}: a dimension must be an integer, got {dim!r}") from None
    if dim is True or dim is False:
        raise TypeError(f"{who}: a dimension must be an integer, got {dim}")
    if not -ndim <= position < ndim:
        raise AxisError(
            f"{who}: dimension {position} is out of bounds for an array with {ndim} dimensions"
        )
    return position % ndim


def dimensions(who: str, dims: Any, ndim: int) -> tuple[int, ...]:
    """``dims``, one integer or several distinct ones, each counted from the front.

    Raises:
        TypeError: one is not an integer.
        ValueError: there is no such dimension, as an ``AxisError``, or one is given twice.
    """
    is_scalar = getattr(dims, "ndim", None) == 0  # an array that has no length
    several = isinstance(dims, Iterable) and not is_scalar
    values: list[Any] = [*dims] if several else [dims]
    normalized = tuple(dimension(who, d, ndim) for d in values)
    if len(set(normalized)) != len(normalized):
        raise ValueError(f"{who}: dimensions must be distinct, got {normalized}")
    return normalized


def _inserted(values: tuple[R, ...], position: int, value: R) -> tuple[R, ...]:
    return (*values[:position], value, *values[position:])


# ---- reverse --------------------------------------------------------------------------------


def _reverse_type(x: ArrayType, dims: Ints) -> ArrayType:
    if len(set(dims)) != len(dims) or any(not 0 <= d < x.ndim for d in dims):
        raise ValueError(f"reverse: {dims} are not distinct dimensions of an array {x}")
    return ArrayType(x.shape, x.dtype, x.weak)


def _reverse_batch(axis: Axis, x: Any, dim: int, dims: Ints) -> Batched:
    return reverse(x, dims=tuple(d + (d >= dim) for d in dims)), dim


reverse = structural(
    "reverse",
    _reverse_type,
    lambda b, x, dims: b.reverse(x, dims),
    transpose=lambda ct, x, dims: reverse(ct, dims=dims),
    batch=_reverse_batch,
    dims=alike,
    doc="out[.., i, ..] = x[.., n - 1 - i, ..] along dims; stablehlo.reverse",
    examples=[Example((f32(2, 3),), {"dims": (1,)}), Example((i32(2, 3),), {"dims": (0, 1)})],
)


# ---- concatenate ----------------------------------------------------------------------------


def _concatenate_type(*xs: ArrayType, dim: int) -> ArrayType:
    if not xs:
        raise ValueError("concatenate: at least one operand is needed, got none")
    first = xs[0]
    if not 0 <= dim < first.ndim:
        raise ValueError(f"concatenate: there is no dimension {dim} in an operand {first}")
    for x in xs[1:]:
        if x.dtype != first.dtype:
            raise TypeError(
                f"concatenate: operands must have one dtype, got {first} and {x}; convert one"
            )
        if _without(x.shape, dim) != _without(first.shape, dim) or x.ndim != first.ndim:
            raise ShapeError(
                f"concatenate: operands must have equal shapes but for dimension {dim}, "
                f"got {first} and {x}"
            )
    total = sum(x.shape[dim] for x in xs)
    shape = (*first.shape[:dim], total, *first.shape[dim + 1 :])
    return ArrayType(shape, first.dtype, all(x.weak for x in xs))


def _without(shape: Shape, dim: int) -> Shape:
    return shape[:dim] + shape[dim + 1 :]


def _concatenate_linearize(active: Active, *xs: Any, dim: int) -> Derivative:
    types = [typeof(x) for x in xs]

    def linear(*tangents: Any) -> Any:
        filled = [instantiate(t, type) for t, type in zip(tangents, types, strict=True)]
        return concatenate(*filled, dim=dim)

    return concatenate(*xs, dim=dim), linear


def _concatenate_transpose(ct: Any, *xs: Any, dim: int) -> Cotangents:
    out: list[Any] = []
    start = 0
    for x in xs:
        length = typeof_operand(x).shape[dim]
        part = slice_dim(ct, start, start + length, dim) if isinstance(x, Linear) else None
        out.append(part)
        start += length
    return out


def typeof_operand(x: Any) -> ArrayType:
    """The type of an operand of a transpose rule: a value or a ``Linear``."""
    return x.type if isinstance(x, Linear) else typeof(x)


def _concatenate_batch(axis: Axis, xs: Operands, dims: LaneDims, *, dim: int) -> Batched:
    aligned, lanes = align_lanes(axis, xs, dims)
    return concatenate(*aligned, dim=dim + (dim >= lanes)), lanes


def _concatenate_lower(b: Builder, *xs: Value, dim: int) -> Value:
    return b.concatenate(xs, dim)


concatenate = Primitive(
    "concatenate",
    _concatenate_type,
    _concatenate_lower,
    linearize=_concatenate_linearize,
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    dims=alike,
    linear=ALL,
    elements=Elements(copied=True),
    doc="the operands one after the other along dim; stablehlo.concatenate",
    examples=[
        Example((f32(2, 3), f32(2, 1), f32(2, 2)), {"dim": 1}),
        Example((i32(2), i32(3)), {"dim": 0}),
    ],
)


# ---- pad ------------------------------------------------------------------------------------

Padding = tuple[tuple[int, int, int], ...]  # of each dimension: low, high, interior


def _padded(n: int, low: int, high: int, interior: int) -> int:
    return low + high + n + (larger(n - 1, 0) * interior if interior else 0)


def _pad_type(x: ArrayType, value: ArrayType, *, config: Padding) -> ArrayType:
    if value.shape != () or value.dtype != x.dtype:
        raise TypeError(
            f"pad: the padding value of an operand {x} must be a scalar of its dtype, got {value}"
        )
    if len(config) != x.ndim:
        raise ValueError(
            f"pad: an operand {x} needs one (low, high, interior) per dimension, got {config}"
        )
    shape = tuple(_padded(n, *c) for n, c in zip(x.shape, config, strict=True))
    if any(interior < 0 for _, _, interior in config) or any(n < 0 for n in shape):
        raise ValueError(
            f"pad: padding {config} takes more from an operand {x} than it has; interior "
            "padding must not be negative, nor any length of the result"
        )
    return ArrayType(shape, x.dtype, x.weak and (value.weak or type(value) is LiteralType))


def _pad_lower(b: Builder, x: Any, value: Any, config: Padding) -> Any:
    if not any(map(any, config)):
        return x
    low, high, interior = (tuple(c[i] for c in config) for i in range(3))
    if b.parted:
        return _pad_parted(b, x, value, low, high, interior)
    return b.pad(x, value, low, high, interior)


def _pad_parted(b: Builder, x: Any, value: Any, low: Ints, high: Ints, interior: Ints) -> Any:
    """Holes first, then edges, and what is cut off last.

    XLA's partitioner puts holes to wrong places where it cuts what is padded, but not the operand,
    and negative edges end it, or let it stride wrong what follows.
    """
    out, none = b.outs[0], (0,) * len(low)
    for dim, holes in enumerate(interior):
        if holes and b.type(x).shape[dim] not in (0, 1):
            x = _with_holes(b, x, value, dim, holes)
    more, less = (tuple([max(n, 0) for n in edge]) for edge in (low, high))
    if any((*more, *less)):
        x = _summed(b, b.pad(x, value, more, less, none), out.spec)
    if b.type(x).shape == out.shape:
        return x
    start = tuple([max(-n, 0) for n in low])
    stop = tuple([s + n for s, n in zip(start, out.shape, strict=True)])
    return b.slice(x, start, stop, (1,) * len(start))


def _with_holes(b: Builder, x: Any, value: Any, dim: int, holes: int) -> Any:
    """``x`` with ``holes`` times ``value`` behind each element along ``dim``."""
    shape, spec = b.type(x).shape, b.outs[0].spec
    before, n, after = shape[:dim], shape[dim], shape[dim + 1 :]
    column = spec and spec.with_dim(dim + 1)
    x = _summed(b, b.reshape(x, (*before, n, 1, *after)), column)
    none = (0,) * b.type(x).ndim
    x = b.pad(x, value, none, (*none[: dim + 1], holes, *none[dim + 2 :]), none)
    x = b.whole_along(_summed(b, x, column), (dim + 1,))
    return _summed(b, b.reshape(x, (*before, n * (1 + holes), *after)), spec)


def _summed(b: Builder, x: Any, spec: MeshSpec | None) -> Any:
    return b.summed_as(b.outs[0].update(shape=b.type(x).shape, spec=spec), x)


def _pad_linearize(active: Active, x: Any, value: Any, *, config: Padding) -> Derivative:
    type = typeof(x)

    def linear(tx: Any, tv: Any) -> Any:
        filling = dtypes.scalar(0, type.dtype) if tv is ZERO else tv
        return pad(instantiate(tx, type), filling, config=config)

    return pad(x, value, config=config), linear


def _pad_transpose(ct: Any, x: Any, value: Any, *, config: Padding) -> Cotangents:
    ct_x = _unpad(ct, config) if isinstance(x, Linear) else None
    if not isinstance(value, Linear):
        return [ct_x, None]
    filled = _filling(typeof_operand(x).shape, config)
    all_dims = tuple(range(len(config)))
    return [ct_x, reduce_sum(select(filled, ct, zeros(typeof(ct))), dims=all_dims)]


def _unpad(ct: Any, config: Padding) -> Any:
    """The elements of ``ct`` at the places where ``pad`` with ``config`` puts its operand."""
    edges = tuple((-low, -high, 0) for low, high, _ in config)
    unpadded = pad(ct, dtypes.scalar(0, typeof(ct).dtype), config=edges)
    strides = tuple(interior + 1 for _, _, interior in config)
    if all(s == 1 for s in strides):
        return unpadded
    shape = typeof(unpadded).shape
    return slice(unpadded, start=(0,) * len(shape), limit=shape, strides=strides)


def _filling(shape: Shape, config: Padding) -> Any:
    """True where ``pad`` of an array of ``shape`` with ``config`` puts its padding value."""
    return pad(full(shape, False, BOOL), np.bool_(True), config=config)


def _pad_batch(axis: Axis, values: Operands, dims: LaneDims, *, config: Padding) -> Batched:
    (x, value), (dx, dv) = values, dims
    if dv is None:
        return pad(x, value, config=_inserted(config, dx, (0, 0, 0))), dx
    x = broadcast_lanes(x, 0, axis.size) if dx is None else move(x, dx, 0)
    config = ((0, 0, 0), *config)
    padded = pad(x, dtypes.scalar(0, typeof(x).dtype), config=config)
    shape = typeof(padded).shape
    fill = broadcast(value, shape=shape, dims=(0,))
    return select(_filling(typeof(x).shape, config), fill, padded), 0


pad = Primitive(
    "pad",
    _pad_type,
    _pad_lower,
    linearize=_pad_linearize,
    transpose=_pad_transpose,
    batch=_pad_batch,
    dims=alike,
    linear=((0, 1),),
    prepare=lambda args: (args[0], zero_beside(args[1], args[0], ())),
    elements=Elements(operations=0),
    doc="x with value around (negative: cut off) and between its elements; stablehlo.pad",
    examples=[
        Example((f32(2, 3), f32()), {"config": ((1, 0, 2), (0, 2, 0))}),
        Example((f32(4, 3), f32()), {"config": ((-1, 2, 1), (1, -2, 0))}),
        Example((f32(4), f32()), {"config": ((2, -8, 1),)}),
    ],
)


# ---- slice ----------------------------------------------------------------------------------


def _slice_type(x: ArrayType, start: Ints, limit: Ints, strides: Ints | None = None) -> ArrayType:
    steps = strides or (1,) * x.ndim
    if not len(start) == len(limit) == len(steps) == x.ndim:
        raise ValueError(
            f"slice: an operand {x} needs a start, a limit and a stride per dimension, "
            f"got {start}, {limit} and {strides}"
        )
    for i, (a, z, step, n) in enumerate(zip(start, limit, steps, x.shape, strict=True)):
        if not 0 <= a <= z <= n or step < 1:
            raise ValueError(
                f"slice: dimension {i} of an operand {x} has no part {a}:{z}:{step}; needed are "
                f"0 <= start <= limit <= {n} and a positive stride"
            )
    shape = tuple(count(*part) for part in zip(start, limit, steps, strict=True))
    return ArrayType(shape, x.dtype, x.weak)


def _slice_lower(b: Builder, x: Any, start: Ints, limit: Ints, strides: Ints | None = None) -> Any:
    whole = b.type(x).shape == b.outs[0].shape
    return x if whole else b.slice(x, start, limit, strides or (1,) * len(start))


def _slice_transpose(
    ct: Any, x: ArrayType, start: Ints, limit: Ints, strides: Ints | None = None
) -> Any:
    steps = strides or (1,) * x.ndim
    lengths = typeof(ct).shape
    config = tuple(
        (a, n - _padded(k, a, 0, step - 1), step - 1)
        for a, n, k, step in zip(start, x.shape, lengths, steps, strict=True)
    )
    return pad(ct, dtypes.scalar(0, typeof(ct).dtype), config=config)


def _slice_batch(
    axis: Axis, x: Any, dim: int, start: Ints, limit: Ints, strides: Ints | None = None
) -> Batched:
    out = slice(
        x,
        start=_inserted(start, dim, 0),
        limit=_inserted(limit, dim, axis.size),
        strides=_inserted(strides, dim, 1) if strides else None,
    )
    return out, dim


slice = structural(
    "slice",
    _slice_type,
    _slice_lower,
    transpose=_slice_transpose,
    batch=_slice_batch,
    dims=alike,
    doc="x[start:limit:strides] in every dimension; stablehlo.slice",
    examples=[
        Example((f32(3, 5),), {"start": (1, 0), "limit": (3, 4), "strides": (1, 2)}),
        Example((i32(5),), {"start": (2,), "limit": (2,), "strides": None}),
    ],
)


# ---- iota -----------------------------------------------------------------------------------


def _iota_type(*, dtype: np.dtype, shape: Shape, dim: int) -> ArrayType:
    if not 0 <= dim < len(shape):
        raise ValueError(f"iota: there is no dimension {dim} in shape {shape}")
    check_lengths("iota", shape)
    if not number(dtype):
        raise TypeError(f"iota: the dtype must be a number's, got {dtype}")
    return ArrayType(shape, dtype)


def _iota_lower(b: Builder, dtype: np.dtype, shape: Shape, dim: int) -> Value:
    return b.iota(dtype, shape, dim)


iota = Primitive(
    "iota",
    _iota_type,
    _iota_lower,
    linearize=ZeroDerivative("it has no operands"),
    transpose=NoRule("it has no operands"),
    batch=NoRule("it has no operands"),
    elements=Elements(operations=0),
    doc="out[.., i, ..] = i along dim; stablehlo.iota",
    examples=[
        Example((), {"dtype": I32, "shape": (4,), "dim": 0}),
        Example((), {"dtype": F32, "shape": (2, 3), "dim": 1}),
    ],
)


# ---- combinations ---------------------------------------------------------------------------


def expand_dims(x: Any, dims: Sequence[int]) -> Any:
    """``x`` with new dimensions of length 1 at the positions ``dims`` of the result."""
    rest = iter(typeof(x).shape)
    ndim = typeof(x).ndim + len(dims)
    return reshape(x, shape=tuple(1 if i in dims else next(rest) for i in range(ndim)))


def squeeze(x: Any, dims: Sequence[int]) -> Any:
    """``x`` without the dimensions ``dims``, each of length 1."""
    shape = typeof(x).shape
    return reshape(x, shape=tuple(n for i, n in enumerate(shape) if i not in dims))


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """``x`` repeated to ``shape``, its dimensions aligned with the last ones there."""
    type = typeof(x)
    if type.shape == shape:
        return x
    return broadcast(x, shape=shape, dims=tuple(range(len(shape) - type.ndim, len(shape))))


def zeros_like(x: Any) -> Any:
    """Zeros of the shape and dtype of ``x``."""
    return zeros(typeof(x))


def slice_dim(x: Any, start: int, limit: int, dim: int, stride: int = 1) -> Any:
    """``x[start:limit:stride]`` along dimension ``dim``, everything along the others."""
    shape = typeof(x).shape
    if (start, limit, stride) == (0, shape[dim], 1):
        return x
    return slice(
        x,
        start=tuple(start if i == dim else 0 for i in range(len(shape))),
        limit=tuple(limit if i == dim else n for i, n in enumerate(shape)),
        strides=tuple(stride if i == dim else 1 for i in range(len(shape))),
    )


def split(x: Any, sizes: Sequence[int], dim: int) -> list[Any]:
    """``x`` cut along ``dim`` into consecutive parts of the given ``sizes``."""
    ends = np.cumsum(sizes).tolist()
    return [slice_dim(x, end - n, end, dim) for n, end in zip(sizes, ends, strict=True)]


def stack(xs: Sequence[Any], dim: int) -> Any:
    """Arrays of one shape as the elements along a new dimension ``dim``."""
    return concatenate(*(expand_dims(x, (dim,)) for x in xs), dim=dim)


def split_dim(x: Any, dim: int, sizes: tuple[int, ...]) -> Any:
    """``x`` with dimension ``dim`` as several, row-major, of the given ``sizes``."""
    shape = typeof(x).shape
    return reshape(x, shape=(*shape[:dim], *sizes, *shape[dim + 1 :]))


def merge_dims(x: Any, dim: int, parts: int = 2) -> Any:
    """``x`` with the ``parts`` dimensions from ``dim`` on as one, row-major."""
    shape = typeof(x).shape
    merged = math.prod(shape[dim : dim + parts])
    return reshape(x, shape=(*shape[:dim], merged, *shape[dim + parts :]))


def reorder(x: Any, perm: Sequence[int]) -> Any:
    """``transpose``, or ``x`` itself where the permutation changes nothing."""
    perm = tuple(perm)
    return x if perm == tuple(range(len(perm))) else transpose(x, perm=perm)
