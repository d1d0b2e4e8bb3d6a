"""Gather and scatter: reading and writing windows of an array at positions that are data.

Positions are rows of ``indices``: its last dimension holds one coordinate per entry of the
index map, its others are batch dimensions. ``mode`` says what a window is that does not lie
wholly inside the operand: with 'clip' its position is moved until it does; with 'fill' it
reads as a fill value and is not written; with 'promise' there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from msgspec.structs import replace

from phalanx.base import dtypes
from phalanx.base.choices import Choice
from phalanx.base.lengths import symbolic
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Combine
from phalanx.core.correspond import Dims, LeftSums, Whole
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Cotangents,
    Derivative,
    DimsRule,
    Elements,
    Example,
    LaneDims,
    Linear,
    LinearizeRule,
    NoRule,
    Operands,
    Primitive,
    Rule,
    TransposeRule,
)
from phalanx.core.types import ArrayType, Ints, Shape, typeof
from phalanx.primitives.barrier import rounded_apart
from phalanx.primitives.basis import (
    add,
    add_tangents,
    broadcast_lanes,
    convert,
    full,
    instantiate,
    move,
    mul,
    reshape,
    zeros,
)
from phalanx.primitives.compare import eq, greater_of, select, smaller_of
from phalanx.primitives.domains import (
    BOOL,
    I32,
    Domain,
    anything,
    check_domain,
    f32,
    i32,
    number_or_bool,
)
from phalanx.primitives.elementwise import div
from phalanx.primitives.shape import DimensionNumbers, iota, typeof_operand
from phalanx.primitives.sums import zeros_for

# ---- dimension numbers, named as in StableHLO -------------------------------------------------


class GatherDimensionNumbers(DimensionNumbers, frozen=True):
    """How the dimensions of operand, indices and result of a gather correspond.

    Attributes:
        offset_dims: of the result: those that run inside a window.
        collapsed_slice_dims: of the operand: windows have length 1 there, and no dimension.
        start_index_map: of the operand: the one that each coordinate counts in.
        operand_batching_dims: of the operand: those that the indices share.
        start_indices_batching_dims: of the indices: the same, in the same order.

    >>> from phalanx import lax
    >>> rows = lax.GatherDimensionNumbers((1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> print(lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), rows, (1, 2)))
    [[4 5]
     [0 1]]
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()

    def of_scatter(self) -> ScatterDimensionNumbers:
        """The numbers of the scatter that writes where this gather reads."""
        return ScatterDimensionNumbers(
            self.offset_dims,
            self.collapsed_slice_dims,
            self.start_index_map,
            self.operand_batching_dims,
            self.start_indices_batching_dims,
        )


class ScatterDimensionNumbers(DimensionNumbers, frozen=True):
    """How the dimensions of operand, indices and updates of a scatter correspond.

    Attributes:
        update_window_dims: of the updates: those that run inside a window.
        inserted_window_dims: of the operand: windows have length 1 there, and no dimension.
        scatter_dims_to_operand_dims: of the operand: the one that each coordinate counts in.
        operand_batching_dims: of the operand: those that the indices share.
        scatter_indices_batching_dims: of the indices: the same, in the same order.

    >>> from phalanx import lax
    >>> rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    >>> print(lax.scatter(jnp.zeros((3, 2)), jnp.array([[1]]), jnp.ones((1, 2)), rows))
    [[0. 0.]
     [1. 1.]
     [0. 0.]]
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()

    def of_gather(self) -> GatherDimensionNumbers:
        """The numbers of the gather that reads where this scatter writes."""
        return GatherDimensionNumbers(
            self.update_window_dims,
            self.inserted_window_dims,
            self.scatter_dims_to_operand_dims,
            self.operand_batching_dims,
            self.scatter_indices_batching_dims,
        )

    def window(self, operand: ArrayType, updates: ArrayType) -> tuple[int, ...]:
        """The lengths of a window in the dimensions of the operand.

        Args:
            operand: the type of the operand.
            updates: that of the updates.
        """
        lengths = iter(updates.shape[d] for d in self.update_window_dims)
        single = (*self.inserted_window_dims, *self.operand_batching_dims)
        return tuple(1 if d in single else next(lengths) for d in range(operand.ndim))


class GatherScatterMode(Choice):
    """What becomes of a window that does not lie wholly inside the operand.

    ``CLIP`` moves it inside, ``FILL_OR_DROP`` reads a fill value and writes nothing,
    ``PROMISE_IN_BOUNDS`` is the caller's word that there is none.

    >>> from phalanx import lax
    >>> rows = lax.GatherDimensionNumbers((1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> fill = lax.GatherScatterMode.FILL_OR_DROP
    >>> print(lax.gather(jnp.ones((3, 2)), jnp.array([[7]]), rows, (1, 2), mode=fill, fill_value=0))
    [[0. 0.]]
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise"


_MODES = {
    **{m: m.value for m in GatherScatterMode},
    **{m.value: m.value for m in GatherScatterMode},
    "drop": "fill",
    "promise_in_bounds": "promise",
}


def canonical_mode(who: str, mode: Any) -> str:
    """``mode``, a ``GatherScatterMode`` or its name, as 'clip', 'fill' or 'promise'.

    Raises:
        ValueError: there is no such mode.
    """
    canonical = _MODES.get(mode.lower() if isinstance(mode, str) else mode)
    if canonical is None:
        raise ValueError(
            f"{who}: mode must be 'clip', 'fill', 'drop', 'promise_in_bounds' or a "
            f"GatherScatterMode, got {mode!r}"
        )
    return canonical


# ---- checks that gather and scatter share ---------------------------------------------------


def _check_indices(
    who: str, x: ArrayType, indices: ArrayType, n: GatherDimensionNumbers, mode: str
) -> None:
    if mode not in ("clip", "fill", "promise"):
        raise ValueError(f"{who}: mode must be 'clip', 'fill' or 'promise', got {mode!r}")
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"{who}: indices must be integers, got {indices}")
    if indices.ndim == 0 or indices.shape[-1] != len(n.start_index_map):
        raise ValueError(
            f"{who}: the last dimension of indices {indices} must hold one coordinate for each "
            f"of the dimensions {n.start_index_map} of the operand {x}"
        )
    single = (*n.collapsed_slice_dims, *n.operand_batching_dims)
    _check_distinct(who, f"collapsed and batching dimensions {single}", single, x)
    mapped = (*n.start_index_map, *n.operand_batching_dims)
    _check_distinct(who, f"indexed and batching dimensions {mapped}", mapped, x)
    _check_batching(who, x, indices, n)


def _check_distinct(who: str, what: str, dims: Ints, x: ArrayType) -> None:
    if len(set(dims)) != len(dims) or any(not 0 <= d < x.ndim for d in dims):
        raise ValueError(f"{who}: {what} must be distinct dimensions of the operand {x}")


def _check_batching(who: str, x: ArrayType, indices: ArrayType, n: GatherDimensionNumbers) -> None:
    pairs = (n.operand_batching_dims, n.start_indices_batching_dims)
    if len(pairs[0]) != len(pairs[1]):
        raise ValueError(f"{who}: as many batching dimensions are needed on both sides, got {n}")
    for i, j in zip(*pairs, strict=True):
        if not 0 <= j < indices.ndim - 1 or x.shape[i] != indices.shape[j]:
            raise TypeError(
                f"{who}: batching dimension {i} of the operand {x} and {j} of the indices "
                f"{indices} must be equal"
            )


def _check_window(who: str, x: ArrayType, window: Ints, single: Ints, elements: int) -> None:
    """Check windows with so many ``elements`` in all; where they have none, any length fits."""
    fits = len(window) == x.ndim and all(
        w >= 0 and (w <= n or not elements) and (d not in single or w <= 1)
        for d, (w, n) in enumerate(zip(window, x.shape, strict=True))
    )
    if not fits:
        raise ValueError(
            f"{who}: windows of lengths {window} do not fit the operand {x}; each must be at most "
            f"the length there, and at most 1 in dimensions {single}"
        )


def _check_inside(ndim: int, inside: Ints) -> None:
    if sorted(inside) != list(inside) or any(not 0 <= d < ndim for d in inside):
        raise ValueError(f"window dimensions must be increasing and below {ndim}, got {inside}")


def _interleaved(ndim: int, inside: Ints, window: Sequence[int], batch: Sequence[int]) -> Shape:
    """A shape with the lengths ``window`` at the positions ``inside``, ``batch`` elsewhere."""
    _check_inside(ndim, inside)
    windows, batches = iter(window), iter(batch)
    return tuple(next(windows) if d in inside else next(batches) for d in range(ndim))


# ---- lowering -------------------------------------------------------------------------------


def _wide(b: Builder, indices: Any) -> Any:
    """Indices narrower than 32 bits may not even hold the length of a dimension."""
    return b.convert(indices, I32) if b.type(indices).dtype.itemsize < 4 else indices


def _limits(b: Builder, indices: Any, x: ArrayType, window: Ints, mapped: Ints) -> Any:
    """The last position of a window inside the operand, for each of the indices."""
    type = b.type(indices)
    last = [x.shape[d] - window[d] for d in mapped]
    if len(set(last)) == 1:
        return b.constant(last[0], type.dtype, type.shape)
    if symbolic(last):
        row = b.concatenate([b.constant(n, type.dtype, (1,)) for n in last], 0)
    else:
        row = b.constant(np.array(last, type.dtype), type.dtype)
    return b.broadcast_in_dim(row, type.shape, (type.ndim - 1,))


def _clipped(b: Builder, indices: Any, x: ArrayType, window: Ints, mapped: Ints) -> Any:
    if not mapped:
        return indices
    type = b.type(indices)
    zero = b.constant(0, type.dtype, type.shape)
    return b.clamp(zero, indices, _limits(b, indices, x, window, mapped))


def _inside(b: Builder, indices: Any, x: ArrayType, window: Ints, mapped: Ints) -> Any:
    """Whether the window of each row of the indices lies wholly inside the operand."""
    type = b.type(indices)
    low = b.compare(indices, b.constant(0, type.dtype, type.shape), "GE")
    high = b.compare(indices, _limits(b, indices, x, window, mapped), "LE")
    true = b.constant(True, BOOL)
    both = b.and_(low, high)
    return b.reduce([both], [true], (type.ndim - 1,), lambda b, x, y: [b.and_(x, y)])[0]


# ---- gather ---------------------------------------------------------------------------------


def fill_value(dtype: np.dtype) -> Any:
    """What a gather in mode 'fill' reads outside: NaN, the least or largest integer, True."""
    if dtypes.is_inexact(dtype):
        return np.nan
    if dtypes.is_integer(dtype):
        return dtypes.iinfo(dtype).min if dtypes.is_signed(dtype) else dtypes.iinfo(dtype).max
    return True


def fill_value_of(dtype: np.dtype, fill: Any) -> np.generic | None:
    """The parameter of operations for the user's ``fill``."""
    if fill is None:
        return None
    value = dtypes.scalar(fill, dtype)
    return None if value != value else value  # NaN is the default, and no key of a cache


class Hints(TypedDict, total=False):
    """What the user knows of indices."""

    indices_are_sorted: bool
    unique_indices: bool


class ScatterHints(Hints, LeftSums, total=False):
    """The same, and of sums."""


def _gather_type(
    x: ArrayType,
    indices: ArrayType,
    *,
    numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    mode: str,
    fill: Any = None,
    **hints: Unpack[Hints],
) -> ArrayType:
    _check_indices("gather", x, indices, numbers, mode)
    single = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    elements = math.prod(indices.shape[:-1]) * math.prod(slice_sizes)
    if elements and not x.size:
        raise IndexError(
            f"gather: the operand {x} has no elements to read; the indices {indices} must select "
            "none of it"
        )
    _check_window("gather", x, slice_sizes, single, elements)
    window = [n for d, n in enumerate(slice_sizes) if d not in single]
    if len(window) != len(numbers.offset_dims):
        raise ValueError(
            f"gather: windows {slice_sizes} of the operand {x} have {len(window)} dimensions "
            f"outside {single}; offset_dims must name as many, got {numbers.offset_dims}"
        )
    ndim = len(window) + indices.ndim - 1
    shape = _interleaved(ndim, numbers.offset_dims, window, indices.shape[:-1])
    return ArrayType(shape, x.dtype, x.weak)


def _gather_lower(
    b: Builder,
    x: Any,
    indices: Any,
    numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    mode: str,
    fill: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    indices = _wide(b, indices)
    gathered = b.gather(x, indices, numbers, slice_sizes, indices_are_sorted)
    mapped = numbers.start_index_map
    if mode != "fill" or not mapped:
        return gathered
    out = b.outs[0]
    inside = _inside(b, indices, b.ins[0], slice_sizes, mapped)
    batch = tuple(d for d in range(out.ndim) if d not in numbers.offset_dims)
    value = dtypes.scalar(fill_value(out.dtype) if fill is None else fill, out.dtype)
    filling = b.constant(value, out.dtype, out.shape)
    return b.select(b.broadcast_in_dim(inside, out.shape, batch), gathered, filling)


def _gather_linearize(active: Active, x: Any, indices: Any, **params: Any) -> Derivative:
    out = gather(x, indices, **params)
    return out, lambda t, _: gather(t, indices, **{**params, "fill": 0})


def _gather_transpose(
    ct: Any,
    x: Any,
    indices: Any,
    *,
    numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    mode: str,
    fill: Any = None,
    **hints: Any,
) -> Cotangents:
    empty = zeros_for(ct, x.type)
    return [scatter_add(empty, indices, ct, numbers=numbers.of_scatter(), mode=mode, **hints), None]


def _gather_batch(
    axis: Axis,
    values: Operands,
    dims: LaneDims,
    *,
    numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    **params: Any,
) -> Batched:
    (x, indices), (dx, di) = values, dims
    if di is None:  # the lanes are one more dimension of the windows
        x = move(x, dx, 0)
        numbers = replace(_behind_lanes(numbers), offset_dims=(0, *_behind(numbers.offset_dims)))
        slice_sizes = (axis.size, *slice_sizes)
        out = gather(x, indices, numbers=numbers, slice_sizes=slice_sizes, **params)
        return out, 0
    indices = move(indices, di, 0)
    params["indices_are_sorted"] = False
    in_indices = _behind(numbers.start_indices_batching_dims)
    numbers = replace(
        numbers,
        offset_dims=_behind(numbers.offset_dims),
        start_indices_batching_dims=in_indices,
    )
    if dx is not None:
        x = move(x, dx, 0)
        numbers = _behind_lanes(numbers)
        numbers = replace(
            numbers,
            operand_batching_dims=(0, *numbers.operand_batching_dims),
            start_indices_batching_dims=(0, *in_indices),
        )
        slice_sizes = (1, *slice_sizes)
    else:
        params["unique_indices"] = False
    return gather(x, indices, numbers=numbers, slice_sizes=slice_sizes, **params), 0


def _behind(dims: tuple[int, ...]) -> tuple[int, ...]:
    """``dims`` of a lane, in an array whose dimension 0 carries the lanes."""
    return tuple(d + 1 for d in dims)


def _behind_lanes(numbers: GatherDimensionNumbers) -> GatherDimensionNumbers:
    """``numbers`` for an operand whose dimension 0 carries the lanes."""
    return replace(
        numbers,
        collapsed_slice_dims=_behind(numbers.collapsed_slice_dims),
        start_index_map=_behind(numbers.start_index_map),
        operand_batching_dims=_behind(numbers.operand_batching_dims),
    )


def _gather_windows(
    x: Any, indices: Any, *, numbers: GatherDimensionNumbers, slice_sizes: Ints, **_: Any
) -> tuple[Any, Ints, Ints]:
    return indices, slice_sizes, numbers.start_index_map


_AT_INDICES = Whole("its elements are found by number")


def _operand_labels(x: ArrayType, window: Sequence[int], shared: Ints) -> list[Any]:
    """The labels of an operand that windows read or write: of dimensions that a window has whole,
    and of those that the indices have, too."""
    labels: list[Any] = [d if window[d] == n else _AT_INDICES for d, n in enumerate(x.shape)]
    for i, d in enumerate(shared):
        labels[d] = ("shared", i)
    return labels


def _index_labels(indices: ArrayType, shared: Ints) -> list[Any]:
    labels: list[Any] = [("index", d) for d in range(indices.ndim)]
    for i, d in enumerate(shared):
        labels[d] = ("shared", i)
    return labels


def _gather_dims(
    x: ArrayType,
    indices: ArrayType,
    *,
    numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    **_: Any,
) -> Dims:
    of_x = _operand_labels(x, slice_sizes, numbers.operand_batching_dims)
    of_indices = _index_labels(indices, numbers.start_indices_batching_dims)
    single = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window = [label for d, label in enumerate(of_x) if d not in single]
    ndim = len(window) + indices.ndim - 1
    result = _interleaved(ndim, numbers.offset_dims, window, of_indices[:-1])
    return Dims((tuple(of_x), tuple(of_indices)), (tuple(result),), beside_reduced=True)


_ROWS = {"numbers": GatherDimensionNumbers((1,), (0,), (0,)), "slice_sizes": (1, 4)}
_ROW_INDICES = np.array([[2], [0], [7], [2], [-1]], np.int32)

gather = Primitive(
    "gather",
    _gather_type,
    _gather_lower,
    linearize=_gather_linearize,
    transpose=_gather_transpose,
    batch=_gather_batch,
    dims=_gather_dims,
    elements=Elements(copied=True, windows=_gather_windows),
    doc="windows of x at the positions in indices; stablehlo.gather",
    examples=[
        Example((f32(3, 4), _ROW_INDICES), {**_ROWS, "mode": "clip"}),
        Example((f32(3, 4), _ROW_INDICES), {**_ROWS, "mode": "fill", "fill": 0.5}),
        Example(
            (f32(2, 5, 4), np.array([[[1, 0], [2, 3]], [[0, 1], [3, 3]]], np.int32)),
            {
                "numbers": GatherDimensionNumbers((2,), (2,), (1, 2), (0,), (0,)),
                "slice_sizes": (1, 2, 1),
                "mode": "promise",
            },
        ),
    ],
)


# ---- scatter --------------------------------------------------------------------------------


def _scatter_type(
    who: str,
    x: ArrayType,
    indices: ArrayType,
    updates: ArrayType,
    numbers: ScatterDimensionNumbers,
    mode: str,
) -> ArrayType:
    _check_indices(who, x, indices, numbers.of_gather(), mode)
    if updates.dtype != x.dtype:
        raise TypeError(f"{who}: the updates {updates} must have the dtype of the operand {x}")
    single = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    inside = numbers.update_window_dims
    if len(inside) != x.ndim - len(single) or updates.ndim != len(inside) + indices.ndim - 1:
        raise ValueError(
            f"{who}: updates {updates} must have a window dimension for each dimension of the "
            f"operand {x} outside {single}, beside the batch dimensions of the indices "
            f"{indices}; update_window_dims are {inside}"
        )
    _check_inside(updates.ndim, inside)
    window = numbers.window(x, updates)
    _check_window(who, x, window, single, x.size and updates.size)
    lengths = [updates.shape[d] for d in inside]
    if updates.shape != _interleaved(updates.ndim, inside, lengths, indices.shape[:-1]):
        raise TypeError(
            f"{who}: outside the window dimensions {inside}, updates {updates} must have the "
            f"shape {indices.shape[:-1]} of the indices' batch dimensions"
        )
    return ArrayType(x.shape, x.dtype, x.weak)


def _scatter_lower(combine: Combine) -> Rule:
    def rule(
        b: Builder,
        x: Any,
        indices: Any,
        updates: Any,
        numbers: ScatterDimensionNumbers,
        mode: str,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        **sums: Unpack[LeftSums],
    ) -> Any:
        if not b.ins[2].size:
            return x
        indices = _wide(b, indices)
        if mode == "clip":
            window = numbers.window(b.ins[0], b.ins[2])
            mapped = numbers.scatter_dims_to_operand_dims
            indices = _clipped(b, indices, b.ins[0], window, mapped)
        return b.scatter(x, indices, updates, numbers, combine, indices_are_sorted, unique_indices)

    return rule


def _scatter_batch(prim: Callable[[], Primitive]) -> Rule:
    def rule(
        axis: Axis,
        values: Operands,
        dims: LaneDims,
        *,
        numbers: ScatterDimensionNumbers,
        **params: Any,
    ) -> tuple[Any, int]:
        lanes = [
            broadcast_lanes(v, 0, axis.size) if d is None else move(v, d, 0)
            for v, d in zip(values, dims, strict=True)
        ]
        behind = replace(
            numbers,
            update_window_dims=_behind(numbers.update_window_dims),
            inserted_window_dims=_behind(numbers.inserted_window_dims),
            scatter_dims_to_operand_dims=_behind(numbers.scatter_dims_to_operand_dims),
            operand_batching_dims=_behind(numbers.operand_batching_dims),
        )
        if dims[1] is None:  # the lanes are one more dimension of the windows
            behind = replace(behind, update_window_dims=(0, *behind.update_window_dims))
            return prim()(lanes[0], values[1], lanes[2], numbers=behind, **params), 0
        shared = (0, *_behind(numbers.scatter_indices_batching_dims))
        behind = replace(
            behind,
            operand_batching_dims=(0, *behind.operand_batching_dims),
            scatter_indices_batching_dims=shared,
        )
        params["indices_are_sorted"] = False
        return prim()(*lanes, numbers=behind, **params), 0

    return rule


def _read(
    x: Any, indices: Any, u: ArrayType, *, numbers: ScatterDimensionNumbers, **params: Any
) -> Any:
    """What stands in ``x`` where updates of type ``u`` go; zero where they are dropped."""
    window = numbers.window(typeof(x), u)
    if not typeof(x).size:
        return zeros(u.update(dtype=typeof(x).dtype))
    return gather(x, indices, numbers=numbers.of_gather(), slice_sizes=window, fill=0, **params)


def _scatter(
    name: str,
    combine: Combine,
    *,
    on: Domain = number_or_bool,
    linearize: LinearizeRule,
    transpose: TransposeRule | NoRule,
    dims: DimsRule | None = None,
    linear: bool = False,
    leaves_sums: bool = False,
    copied: bool = False,
    doc: str,
    examples: Sequence[Example],
) -> Primitive:
    def type_rule(
        x: ArrayType,
        indices: ArrayType,
        updates: ArrayType,
        *,
        numbers: ScatterDimensionNumbers,
        mode: str,
        **hints: Unpack[ScatterHints],
    ) -> ArrayType:
        check_domain(name, x, on)
        return _scatter_type(name, x, indices, updates, numbers, mode)

    prim = Primitive(
        name,
        type_rule,
        _scatter_lower(combine),
        linearize=linearize,
        transpose=transpose,
        batch=_scatter_batch(lambda: prim),
        dims=dims or _scatter_dims,
        linear=((0, 2),) if linear else (),
        leaves_sums=leaves_sums,
        elements=Elements(
            copied=copied, windows=_scatter_windows, written=2, operations=_of_updates
        ),
        doc=doc,
        examples=examples,
    )
    return prim


def _of_updates(
    results: Sequence[ArrayType], x: ArrayType, indices: ArrayType, updates: ArrayType, **_: Any
) -> float:
    """One operation for each element that comes in."""
    return updates.size


def _scatter_dims(
    x: ArrayType,
    indices: ArrayType,
    updates: ArrayType,
    *,
    numbers: ScatterDimensionNumbers,
    **_: Any,
) -> Dims:
    of_x = _operand_labels(x, numbers.window(x, updates), numbers.operand_batching_dims)
    of_indices = _index_labels(indices, numbers.scatter_indices_batching_dims)
    single = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    window = [label for d, label in enumerate(of_x) if d not in single]
    written = _interleaved(updates.ndim, numbers.update_window_dims, window, of_indices[:-1])
    return Dims((tuple(of_x), tuple(of_indices), tuple(written)), (tuple(of_x),))


def _scatter_add_dims(*types: ArrayType, **params: Any) -> Dims:
    """The same: what is added at the same place is summed up."""
    unreduced = params.get("unreduced", ())
    return replace(_scatter_dims(*types, **params), product=True, unreduced=unreduced)


def _scatter_windows(
    x: Any, indices: Any, u: Any, *, numbers: ScatterDimensionNumbers, **_: Any
) -> tuple[Any, Ints, Ints]:
    sizes = numbers.window(typeof(x), typeof(u))
    return indices, sizes, numbers.scatter_dims_to_operand_dims


def _joint(prim: Callable[[], Primitive]) -> Rule:
    """The linearize rule where the result is linear in operand and updates together."""

    def rule(active: Active, x: Any, indices: Any, u: Any, **params: Any) -> Derivative:
        type_x, type_u = typeof(x), typeof(u)

        def linear(tx: Any, _: Any, tu: Any) -> Any:
            return prim()(instantiate(tx, type_x), indices, instantiate(tu, type_u), **params)

        return prim()(x, indices, u, **params), linear

    return rule


def _scatter_linearize(active: Active, x: Any, indices: Any, u: Any, **params: Any) -> Derivative:
    """Where several updates meet, one of them wins: mark which, and add up only the marked."""
    if params.get("unique_indices") or not active[2]:
        return _joint(lambda: scatter)(active, x, indices, u, **params)
    tx, tu = typeof(x), typeof(u)
    size = ArrayType((tu.size,), I32)
    ids = reshape(add(iota(dtype=I32, shape=size.shape, dim=0), np.int32(1)), shape=tu.shape)
    winners = scatter(full(tx.shape, 0, I32), indices, ids, **params)
    is_unwritten = eq(winners, np.int32(0))
    won = eq(_read(winners, indices, tu, **params), ids)

    def chosen(x: Any, u: Any) -> Any:
        unwritten = zeros(tx) if x is ZERO else select(is_unwritten, x, 0)
        return scatter_add(unwritten, indices, select(won, u, 0), **params)

    return chosen(x, u), lambda tx, _, tu: chosen(tx, tu)


def _scatter_transpose(ct: Any, x: Any, indices: Any, u: Any, **params: Any) -> Cotangents:
    type = typeof_operand(u).update(dtype=typeof(ct).dtype)
    ct_x = scatter(ct, indices, zeros(type), **params) if isinstance(x, Linear) else None
    return [ct_x, None, _read(ct, indices, type, **params) if isinstance(u, Linear) else None]


def _scatter_add_transpose(ct: Any, x: Any, indices: Any, u: Any, **params: Any) -> Cotangents:
    ct_x = ct if isinstance(x, Linear) else None
    params.pop("unreduced", None)
    return [ct_x, None, _read(ct, indices, u.type, **params) if isinstance(u, Linear) else None]


def _scatter_mul_linearize(
    active: Active, x: Any, indices: Any, u: Any, **params: Any
) -> Derivative:
    if active[2] and not params.get("unique_indices"):
        raise NotImplementedError(
            "scatter_mul: the derivative with respect to updates is known only where no two of "
            "them meet; pass unique_indices=True if so"
        )
    read = _read(x, indices, typeof(u), **params) if active[2] else None
    type = typeof(x)

    def linear(tx: Any, _: Any, tu: Any) -> Any:
        by_x = ZERO if tx is ZERO else scatter_mul(tx, indices, u, **params)
        if tu is ZERO:
            return by_x
        return add_tangents(by_x, scatter_add(zeros(type), indices, mul(tu, read), **params))

    return scatter_mul(x, indices, u, **params), linear


def _scatter_mul_transpose(ct: Any, x: Any, indices: Any, u: Any, **params: Any) -> Cotangents:
    return [scatter_mul(ct, indices, u, **params), None, None]


def _extremum_linearize(prim: Callable[[], Primitive]) -> LinearizeRule:
    """The tangent at an extremum is the mean over the operands that attain it."""

    def rule(active: Active, x: Any, indices: Any, u: Any, **params: Any) -> Derivative:
        x, u = rounded_apart(x), rounded_apart(u)  # as those that attain an extremum of a reduction
        out = prim()(x, indices, u, **params)
        type_x, type_u = typeof(x), typeof(u)
        at_x = convert(eq(x, out), dtype=type_x.dtype, weak=False)
        attained = eq(u, _read(out, indices, type_u, **params))
        at_u = convert(attained, dtype=type_x.dtype, weak=False)
        share = div(full(type_x.shape, 1, type_x.dtype), scatter_add(at_x, indices, at_u, **params))

        def linear(tx: Any, _: Any, tu: Any) -> Any:
            from_x = zeros(type_x) if tx is ZERO else mul(tx, at_x)
            if tu is ZERO:
                return mul(from_x, share)
            return mul(scatter_add(from_x, indices, mul(tu, at_u), **params), share)

        return out, linear

    return rule


def _scatter_examples(*more: Example, **hints: Any) -> list[Example]:
    numbers = ScatterDimensionNumbers((1,), (0,), (0,))
    unique = np.array([[2], [0]], np.int32)
    windows = ScatterDimensionNumbers((1, 2), (), (0, 1))
    return [
        Example((f32(3, 4), unique, f32(2, 4)), {"numbers": numbers, "mode": "clip", **hints}),
        Example(
            (f32(4, 5), np.array([[1, 3], [9, 0]], np.int32), f32(2, 2, 2)),
            {"numbers": windows, "mode": "fill", **hints},
        ),
        *more,
    ]


_REPEATED = Example(
    (f32(3, 4), np.array([[2], [0], [2]], np.int32), f32(3, 4)),
    {"numbers": ScatterDimensionNumbers((1,), (0,), (0,)), "mode": "promise"},
)
_INTEGERS = Example(
    (i32(3), np.array([[2], [0]], np.int32), i32(2)),
    {"numbers": ScatterDimensionNumbers((), (0,), (0,)), "mode": "clip"},
)

scatter = _scatter(
    "scatter",
    lambda b, x, u: u,
    on=anything,
    linearize=_scatter_linearize,
    transpose=_scatter_transpose,
    linear=True,
    copied=True,
    doc="x with windows replaced by updates, one of those that meet; stablehlo.scatter",
    examples=_scatter_examples(_INTEGERS, unique_indices=True),
)

scatter_add = _scatter(
    "scatter_add",
    lambda b, x, u: b.add(x, u),
    linearize=_joint(lambda: scatter_add),
    transpose=_scatter_add_transpose,
    dims=_scatter_add_dims,
    linear=True,
    leaves_sums=True,
    doc="x with updates added to windows of it; stablehlo.scatter with add",
    examples=_scatter_examples(_REPEATED, _INTEGERS),
)

scatter_mul = _scatter(
    "scatter_mul",
    lambda b, x, u: b.multiply(x, u),
    linearize=_scatter_mul_linearize,
    transpose=_scatter_mul_transpose,
    doc="x with windows of it multiplied by updates; stablehlo.scatter with multiply",
    examples=_scatter_examples(_INTEGERS, unique_indices=True),
)

scatter_min = _scatter(
    "scatter_min",
    smaller_of,
    linearize=_extremum_linearize(lambda: scatter_min),
    transpose=NoRule("it is not linear"),
    copied=True,
    doc="x with windows of it lowered to updates; stablehlo.scatter with minimum",
    examples=_scatter_examples(_REPEATED, _INTEGERS),
)

scatter_max = _scatter(
    "scatter_max",
    greater_of,
    linearize=_extremum_linearize(lambda: scatter_max),
    transpose=NoRule("it is not linear"),
    copied=True,
    doc="x with windows of it raised to updates; stablehlo.scatter with maximum",
    examples=_scatter_examples(_REPEATED, _INTEGERS),
)
