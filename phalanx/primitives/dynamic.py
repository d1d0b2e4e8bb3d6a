"""Slices whose start is data: read one, and write one.

A start that would let the slice reach outside the operand is moved until it fits. Where the
start differs between the lanes of a mapped axis, reading is a gather and writing a scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder
from phalanx.core.correspond import alike
from phalanx.core.primitive import (
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    LaneDims,
    Linear,
    Operands,
    Primitive,
)
from phalanx.core.types import SCALARS, ArrayType, Ints, typeof
from phalanx.primitives.basis import (
    broadcast_lanes,
    convert,
    full,
    instantiate,
    linear_in_first,
    move,
    reshape,
    zeros,
)
from phalanx.primitives.domains import I32, f32, i32
from phalanx.primitives.index import GatherDimensionNumbers, gather, scatter
from phalanx.primitives.shape import concatenate, stack, typeof_operand
from phalanx.primitives.sums import zeros_for


def _fit_starts(starts: Sequence[Any]) -> list[Any]:
    """Python integers among ``starts`` take the dtype of the others, or int32."""
    array_dtypes = [typeof(s).dtype for s in starts if not _is_python(s)]
    dtype = array_dtypes[0] if array_dtypes else I32
    return [dtypes.scalar(s, dtype) if _is_python(s) else s for s in starts]


def _is_python(x: Any) -> bool:
    return isinstance(x, SCALARS) and not isinstance(x, np.generic)


def _check(who: str, x: ArrayType, sizes: Ints, starts: Sequence[ArrayType]) -> None:
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise ValueError(
            f"{who}: an operand {x} needs a start and a length for each of its dimensions, got "
            f"{len(starts)} starts and lengths {sizes}"
        )
    for i, (size, n) in enumerate(zip(sizes, x.shape, strict=True)):
        if not 0 <= size <= n:
            raise ValueError(
                f"{who}: a slice of length {size} does not fit dimension {i} of the operand {x}"
            )
    for s in starts:
        if s.shape != () or not dtypes.is_integer(s.dtype) or s.dtype != starts[0].dtype:
            listed = ", ".join(map(str, starts))
            raise TypeError(f"{who}: starts must be integer scalars of one dtype, got {listed}")


def _wide(b: Builder, starts: Sequence[Any]) -> list[Any]:
    """Starts narrower than 32 bits may not even hold the length of a dimension."""
    return [b.convert(s, I32) if b.type(s).dtype.itemsize < 4 else s for s in starts]


def _start_rows(axis: Axis, starts: Sequence[Any], dims: Sequence[Any]) -> Any:
    """The starts of all lanes as indices [lanes, len(starts)]."""
    shape = (axis.size, 1)
    columns = [
        full(shape, s, typeof(s).dtype) if d is None else reshape(s, shape=shape)
        for s, d in zip(starts, dims, strict=True)
    ]
    return concatenate(*columns, dim=1)


def _numbers(ndim: int, shared: bool) -> GatherDimensionNumbers:
    """A window of ``ndim`` dimensions for each lane, from an array with or without lanes."""
    lanes = (0,) if shared else ()
    inside = tuple(range(1, ndim + 1))
    mapped = inside if shared else tuple(range(ndim))
    return GatherDimensionNumbers(inside, (), mapped, lanes, lanes)


def _zero_start(starts: Sequence[Any]) -> np.generic:
    return dtypes.scalar(0, typeof(starts[0]).dtype if starts else I32)


Windows = tuple[Any, Ints, Ints]


def _window(starts: Sequence[Any], sizes: Ints) -> Windows | None:
    """The one window of ``sizes`` at ``starts``; none without dimensions."""
    numbers = [convert(s, dtype=I32, weak=False) for s in starts]
    return (stack(numbers, 0), sizes, tuple(range(len(sizes)))) if starts else None


# ---- dynamic_slice --------------------------------------------------------------------------


def _slice_type(x: ArrayType, *starts: ArrayType, sizes: Ints) -> ArrayType:
    _check("dynamic_slice", x, sizes, starts)
    return ArrayType(sizes, x.dtype, x.weak)


def _slice_lower(b: Builder, x: Any, *starts: Any, sizes: Ints) -> Any:
    return b.dynamic_slice(x, _wide(b, starts), sizes) if starts else x


def _slice_windows(x: Any, *starts: Any, sizes: Ints) -> Windows | None:
    return _window(starts, sizes)


def _slice_transpose(ct: Any, x: Any, *starts: Any, sizes: Ints) -> Cotangents:
    empty = zeros_for(ct, x.type)
    return [dynamic_update_slice(empty, ct, *starts), *(None for _ in starts)]


def _slice_batch(axis: Axis, values: Operands, dims: LaneDims, *, sizes: Ints) -> Batched:
    (x, *starts), (dx, *ds) = values, dims
    if all(d is None for d in ds):
        starts.insert(dx, _zero_start(starts))
        sizes = (*sizes[:dx], axis.size, *sizes[dx:])
        return dynamic_slice(x, *starts, sizes=sizes), dx
    rows = _start_rows(axis, starts, ds)
    numbers = _numbers(len(sizes), shared=dx is not None)
    if dx is not None:
        x, sizes = move(x, dx, 0), (1, *sizes)
    return gather(x, rows, numbers=numbers, slice_sizes=sizes, mode="clip"), 0


dynamic_slice = Primitive(
    "dynamic_slice",
    _slice_type,
    _slice_lower,
    linearize=linear_in_first(lambda: dynamic_slice),
    transpose=_slice_transpose,
    batch=_slice_batch,
    dims=alike,
    linear=((0,),),
    prepare=lambda args: (args[0], *_fit_starts(args[1:])),
    elements=Elements(copied=True, windows=_slice_windows),
    doc="x[s : s + sizes], s moved inside; stablehlo.dynamic_slice",
    examples=[
        Example((f32(5, 4), np.int32(1), np.int32(3)), {"sizes": (2, 3)}),
        Example((i32(6), i32()), {"sizes": (2,)}, low=0, high=9),
    ],
)


# ---- dynamic_update_slice -------------------------------------------------------------------


def _update_type(x: ArrayType, update: ArrayType, *starts: ArrayType) -> ArrayType:
    if update.ndim != x.ndim or update.dtype != x.dtype:
        raise TypeError(
            f"dynamic_update_slice: the update {update} must have the rank and the dtype of the "
            f"operand {x}"
        )
    _check("dynamic_update_slice", x, update.shape, starts)
    return x.update(weak=x.weak and update.weak)


def _update_lower(b: Builder, x: Any, update: Any, *starts: Any) -> Any:
    return b.dynamic_update_slice(x, update, _wide(b, starts)) if starts else update


def _update_windows(x: Any, update: Any, *starts: Any) -> Windows | None:
    return _window(starts, typeof(update).shape)


def _update_linearize(active: Active, x: Any, update: Any, *starts: Any) -> Derivative:
    type_x, type_u = typeof(x), typeof(update)

    def linear(tx: Any, tu: Any, *_: Any) -> Any:
        return dynamic_update_slice(instantiate(tx, type_x), instantiate(tu, type_u), *starts)

    return dynamic_update_slice(x, update, *starts), linear


def _update_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> Cotangents:
    type = typeof_operand(update)
    ct_x = ct_u = None
    if isinstance(x, Linear):
        ct_x = dynamic_update_slice(ct, zeros(type.update(dtype=typeof(ct).dtype)), *starts)
    if isinstance(update, Linear):
        ct_u = dynamic_slice(ct, *starts, sizes=type.shape)
    return [ct_x, ct_u, *(None for _ in starts)]


def _update_batch(axis: Axis, values: Operands, dims: LaneDims) -> Batched:
    (x, update, *starts), (dx, du, *ds) = values, dims
    x = broadcast_lanes(x, 0, axis.size) if dx is None else move(x, dx, 0)
    update = broadcast_lanes(update, 0, axis.size) if du is None else move(update, du, 0)
    if all(d is None for d in ds):
        return dynamic_update_slice(x, update, _zero_start(starts), *starts), 0
    numbers = _numbers(typeof(x).ndim - 1, shared=True).of_scatter()
    rows = _start_rows(axis, starts, ds)
    return scatter(x, rows, update, numbers=numbers, mode="clip", unique_indices=True), 0


dynamic_update_slice = Primitive(
    "dynamic_update_slice",
    _update_type,
    _update_lower,
    linearize=_update_linearize,
    transpose=_update_transpose,
    batch=_update_batch,
    dims=alike,
    linear=((0, 1),),
    prepare=lambda args: (*args[:2], *_fit_starts(args[2:])),
    elements=Elements(copied=True, windows=_update_windows, written=1),
    doc="x with x[s : s + sizes] = update, s moved inside; stablehlo.dynamic_update_slice",
    examples=[
        Example((f32(5, 4), f32(2, 3), np.int32(1), np.int32(3))),
        Example((i32(6), i32(2), i32()), low=0, high=9),
    ],
)
