"""Reading and writing parts of arrays: ``x[index]``, ``x.at[index]``, take, put.

An index is worked off in three steps, each of which has an inverse that writes: slices with
strides; one window, whose start may be data, for all other slices and single integers; a
gather for arrays of integers. Integers become starts, not shapes, so that reading row after
row runs one and the same executable.

Outside the array, reading yields the nearest element and writing does nothing, unless
``mode`` says otherwise; there is no way to raise an error from a running program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from msgspec import Struct, field

from phalanx import primitives as ops
from phalanx.base import dtypes, jax_arrays, lattice, tree
from phalanx.base.broadcasting import check_fills, common_shape
from phalanx.base.errors import NonConcreteBooleanIndexError, coded
from phalanx.base.extended import is_key
from phalanx.base.kinds import LIST, SEQUENCE, SLICE, TUPLE
from phalanx.base.lengths import Length, larger, slice_of, smaller
from phalanx.base.lengths import length as as_length
from phalanx.base.numpy_kinds import GENERIC, NDARRAY, is_ndarray
from phalanx.base.plain import brief
from phalanx.base.source import warn_user
from phalanx.control.one_program import staged
from phalanx.core.trace import ROOT, current, describe, is_known
from phalanx.core.types import Array, ArrayType
from phalanx.numpy.creation import array
from phalanx.numpy.promotion import (
    as_array,
    convert,
    from_host,
    is_python_scalar,
    kind_of,
    literal,
    operand,
)
from phalanx.primitives.basis import zeros

_I32 = np.dtype("int32")

# ---- the parts of an index ------------------------------------------------------------------


class IndexPlan(Struct):
    """What an index does to each dimension of an array, and how the result is laid out.

    Attributes:
        slices: the dimensions that are cut out by a slice: (start, step, count).
        points: the dimensions at which one position is taken, and it: a number or an array.
        lookups: the dimensions at which arrays of positions are looked up, and they.
        layout: in order, per dimension of the result, what it is: a dimension of the array,
            None for a new one, or "lookup" for all dimensions of the lookups' common shape.
    """

    shape: tuple[int, ...]
    slices: dict[int, tuple[int, int, int]] = field(default_factory=dict[int, tuple[int, int, int]])
    points: dict[int, Any] = field(default_factory=dict[int, Any])
    lookups: dict[int, Any] = field(default_factory=dict[int, Any])
    layout: list[Any] = field(default_factory=list[Any])

    def sizes(self) -> tuple[int, ...]:
        """The lengths of the dimensions once slices are cut out and points taken."""
        return tuple(
            1 if d in self.points else self.slices[d][2] if d in self.slices else n
            for d, n in enumerate(self.shape)
        )


def plan(x: Any, index: Any, from_end: bool = True) -> tuple[Any, IndexPlan]:
    """``index`` taken apart, and ``x`` with the dimensions that boolean scalars add.

    Without ``from_end`` negative positions lie outside, and do not count from the end.

    Raises:
        IndexError: it has too many entries, a mask of the wrong shape, or takes one element
            along a dimension of length 0.
        TypeError: an entry is none of integer, slice, None, ..., array or list of integers or
            bools; or the index is a list, and no tuple of entries.
        NonConcreteBooleanIndexError: a mask is traced.
    """
    entries = _entries(index)
    x, entries = _with_masks(x, entries)
    entries = _filled(x, entries)
    out = IndexPlan(x.aval.shape)
    has_arrays = any(isinstance(e, (Array, np.ndarray)) and e.ndim for e in entries)
    dim = 0
    for e in entries:
        if e is None or e is Ellipsis:
            out.layout.append(e)
            continue
        length = out.shape[dim]
        if not length and not isinstance(e, SLICE) and not getattr(e, "ndim", 0):
            raise IndexError(
                f"an index selects one element of dimension {dim} of an array {x.aval}, which has "
                "none there"
            )
        if isinstance(e, SLICE):
            out.slices[dim] = _slice(e, length)
            out.layout.append(dim)
        elif has_arrays:
            out.lookups[dim] = _position(e, length, from_end)
            out.layout.append("lookup")
        else:
            out.points[dim] = _position(e, length, from_end)
        dim += 1
    out.layout = _with_one_lookup(out.layout)
    return x, out


def _with_one_lookup(layout: list[Any]) -> list[Any]:
    """Lookups beside each other stay in place; those with others between them come first.

    An ellipsis stands between them, too, even one that stands for no dimension.
    """
    rest = [e for e in layout if e != "lookup" and e is not Ellipsis]
    if "lookup" not in layout:
        return rest
    first = layout.index("lookup")
    count = layout.count("lookup")
    if layout[first : first + count] != ["lookup"] * count:
        return ["lookup", *rest]
    first -= layout[:first].count(Ellipsis)
    return [*rest[:first], "lookup", *rest[first:]]


def _entries(index: Any) -> list[Any]:
    if isinstance(index, (LIST, range)):
        raise TypeError(
            f"a {type(index).__name__} alone cannot index an array; convert it, as in "
            f"x[jnp.array({index})], or use a tuple for one entry per dimension"
        )
    entries = index if isinstance(index, TUPLE) else (index,)
    return [_entry(e) for e in entries]


_PLAIN: tuple[type, ...] = (slice, int, np.bool_)


def _entry(e: Any) -> Any:
    if e is None or e is Ellipsis or isinstance(e, _PLAIN):
        return e
    if isinstance(e, (Array, NDARRAY, GENERIC)):
        dtypes.refuse_masked(e)
        if dtypes.is_integer(e.dtype) or e.dtype == np.bool_:
            return e if isinstance(e, Array) or e.ndim else np.asarray(e)[()]
        raise TypeError(
            f"an index must be made of integers or booleans, got {_described(e)}; convert it "
            "with .astype(int)"
        )
    if isinstance(e, (LIST, TUPLE, range)):
        return _entry(_of_sequence(e))
    of_many = getattr(e, "ndim", 0)  # an array of another library, which is no one integer
    if not of_many and not isinstance(e, (str, float, complex)) and hasattr(e, "__index__"):
        return as_length(e)
    advice = jax_arrays.advice_on(e) or ("; convert it with np.asarray" if of_many else "")
    raise TypeError(
        f"an index must be made of integers, slices, None, ... and arrays, got {brief(e)} of type "
        f"{type(e).__name__}{advice}"
    )


def _of_sequence(e: Any) -> Any:
    """A list or tuple within an index, of numbers and arrays, as the array that it stands for."""
    if any(isinstance(leaf, Array) for leaf in tree.leaves(e)):
        return array(e)
    out = np.asarray(e)
    if not out.size:
        return out.astype(_I32)
    # as beyond the array as it was, where indices have 32 bits
    return np.clip(out, -(2**31), 2**31 - 1) if out.dtype == np.int64 else out


def _described(e: Any) -> str:
    return str(e.aval) if isinstance(e, Array) else f"an array of {e.dtype}"


def _is_mask(e: Any) -> bool:
    return isinstance(e, (bool, np.bool_)) or getattr(e, "dtype", None) == np.bool_


def _with_masks(x: Any, entries: list[Any]) -> tuple[Any, list[Any]]:
    """Masks as the positions where they hold; one without dimensions adds a dimension."""
    if not any(map(_is_mask, entries)):
        return x, entries
    out: list[Any] = []
    dim = 0
    used = sum(_consumed(e) for e in entries)
    for e in entries:
        if e is Ellipsis:
            dim += x.aval.ndim - used
        if not _is_mask(e):
            out.append(e)
            dim += _consumed(e)
            continue
        mask = known_mask(e)
        if not mask.ndim:
            x = ops.expand_dims(x, (dim,))
            mask = mask.reshape(1)
            used += 1
        lengths = x.aval.shape[dim : dim + mask.ndim]
        if len(lengths) < mask.ndim or any(map(_misfits, mask.shape, lengths)):
            raise IndexError(
                f"a mask of shape {mask.shape} does not fit dimension {dim} and following of an "
                f"array {x.aval}"
            )
        out += [i.astype(_I32) for i in np.nonzero(mask)]
        dim += mask.ndim
    return x, out


def _misfits(mask: int, length: int) -> bool:
    """Whether a mask cannot be of that length along a dimension; one without elements can."""
    return mask not in (0, length)


def _consumed(e: Any) -> int:
    """How many dimensions of the array an entry is about."""
    if e is None or e is Ellipsis or isinstance(e, (bool, np.bool_)):
        return 0
    return e.ndim if _is_mask(e) else 1


def known_mask(e: Any) -> np.ndarray:
    """The mask ``e`` on the host.

    Raises:
        NonConcreteBooleanIndexError: it is traced.
    """
    if not is_known(e):
        error = NonConcreteBooleanIndexError(
            f"a mask, {describe(e)}, is used as an index, but which elements it selects, and so "
            "the shape of the result, is not known while tracing. Use jnp.where(mask, x, "
            "other), x.at[mask].set(value) with one value, or jnp.nonzero(mask, size=...)"
        )
        raise coded(error, "mask", type=str(e.aval))
    return np.asarray(e)


def _filled(x: Any, entries: list[Any]) -> list[Any]:
    """``entries`` with as many slices as are missing behind the ellipsis, or at the end."""
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can have one ellipsis (...), got several")
    used = sum(_consumed(e) for e in entries)
    missing = x.aval.ndim - used
    if missing < 0:
        raise IndexError(
            f"too many indices: an array {x.aval} has {x.aval.ndim} dimensions, got {used}"
        )
    at = dots[0] + 1 if dots else len(entries)
    return [*entries[:at], *[slice(None)] * missing, *entries[at:]]


def _slice(s: slice, length: int) -> tuple[int, int, int]:
    for part in (s.start, s.stop, s.step):
        if not is_known(part):
            raise IndexError(
                f"a slice needs bounds that are known while tracing, got {describe(part)}; for a "
                "window of fixed length at a traced start use lax.dynamic_slice, or index with "
                "start + jnp.arange(length)"
            )
    return slice_of(s, length)


def _position(e: Any, length: int, from_end: bool) -> Any:
    """Positions counted from the front: a Python int, a NumPy array, or an array."""
    if isinstance(e, (int, GENERIC, Length)):
        i = as_length(e)
        return i + length if from_end and i < 0 else i
    if is_ndarray(e):
        counted = np.where(e < 0, e.astype(np.int64) + length, e) if from_end else e
        return counted.astype(dtypes.default_int())
    return counted_from_front(e, length) if from_end else _wide(e)


def counted_from_front(i: Any, length: int) -> Any:
    """The array ``i`` of positions, negative ones counted from the end, in 32 bits or more."""
    wide = _wide(i)
    if dtypes.is_unsigned(i.aval.dtype):
        return wide
    return ops.select(
        ops.lt(wide, literal(wide, 0)), ops.add(wide, ops.constant_like(wide, length)), wide
    )


def _wide(i: Any) -> Any:
    return convert(i, i.aval.dtype if i.aval.dtype.itemsize >= 4 else _I32)


# ---- the three steps, reading and writing ---------------------------------------------------


def _strided(p: IndexPlan) -> dict[int, tuple[int, int, int]]:
    return {d: s for d, s in p.slices.items() if s[1] != 1 and s[2] != 1 and s[2] != 0}


def _read_strided(x: Any, strided: dict[int, tuple[int, int, int]]) -> Any:
    shape = x.aval.shape
    start, limit, strides = [0] * len(shape), list(shape), [1] * len(shape)
    for d, (first, step, count) in strided.items():
        last = first + (count - 1) * step
        start[d], limit[d] = last, first + 1
        if step > 0:
            start[d], limit[d] = first, smaller(first + count * step, shape[d])
        strides[d] = abs(step)
    x = ops.slice(x, start=tuple(start), limit=tuple(limit), strides=tuple(strides))
    return _turned(x, strided)


def _turned(x: Any, strided: dict[int, tuple[int, int, int]]) -> Any:
    backwards = tuple(d for d, (_, step, _) in strided.items() if step < 0)
    return ops.reverse(x, dims=backwards) if backwards else x


def _write_strided(x: Any, part: Any, strided: dict[int, tuple[int, int, int]]) -> Any:
    """``x`` with ``part`` where ``_read_strided`` reads: between its elements, those of ``x``."""
    shape = x.aval.shape
    config = [(0, 0, 0)] * len(shape)
    mask: Any = True
    for d, (first, step, count) in strided.items():
        gap, low = abs(step), first if step > 0 else first + (count - 1) * step
        config[d] = (low, shape[d] - low - (count - 1) * gap - 1, gap - 1)
        place = ops.iota(dtype=_I32, shape=shape, dim=d)
        past = ops.sub(place, literal(place, low))
        here = ops.and_(
            ops.and_(ops.ge(past, np.int32(0)), ops.le(past, literal(past, (count - 1) * gap))),
            ops.eq(ops.rem(past, np.int32(gap)), np.int32(0)),
        )
        mask = here if mask is True else ops.and_(mask, here)
    between = zeros(x.aval.update(shape=())) if is_key(x.aval.dtype) else literal(x, 0)
    dilated = ops.pad(_turned(part, strided), between, config=tuple(config))
    return ops.select(mask, dilated, x)


def _window(p: IndexPlan) -> tuple[list[Any], tuple[int, ...]] | None:
    """Where the window of slices and points starts, and its lengths; None if it is all."""
    strided = _strided(p)
    plain = {d: s for d, s in p.slices.items() if d not in strided}
    if not p.points and all(s[2] == p.shape[d] for d, s in plain.items()):
        return None
    starts: list[Any] = [np.int32(0)] * len(p.shape)
    for d, (first, _, count) in plain.items():
        starts[d] = ops.value_of(first if count else 0, _I32)
    for d, i in p.points.items():
        starts[d] = _start(i, p.shape[d])
    return starts, p.sizes()


def _start(i: Any, length: int) -> Any:
    if isinstance(i, (int, Length)):
        return ops.value_of(smaller(larger(i, 0), larger(length - 1, 0)), _I32)
    return _signed(i, _I32)


def _signed(i: Any, dtype: np.dtype) -> Any:
    """Positions in a dtype with signs: those beyond its last number are beyond all arrays."""
    if dtypes.is_unsigned(i.dtype) and i.dtype.itemsize >= dtype.itemsize:
        i = ops.min(i, ops.constant_like(i, np.iinfo(dtype).max))
    return convert(i, dtype)


def _outside(p: IndexPlan) -> Any:
    """Whether a point lies outside; a Python bool where that is known."""
    outside: Any = False
    for d, i in p.points.items():
        n = p.shape[d]
        if isinstance(i, (int, Length)):
            if not 0 <= i < n:
                return True
            continue
        beyond = ops.ge(i, literal(i, n))
        if not dtypes.is_unsigned(i.aval.dtype):
            beyond = ops.or_(ops.lt(i, literal(i, 0)), beyond)
        outside = beyond if outside is False else ops.or_(outside, beyond)
    return outside


class _Lookup(Struct, frozen=True):
    """A gather or scatter of ``IndexPlan.lookups``: its indices [..., k] and their arrangement."""

    indices: Any
    numbers: ops.GatherDimensionNumbers
    window: tuple[int, ...]
    inside: bool
    """Whether all positions are known to lie inside the array."""


def _lookup(p: IndexPlan) -> _Lookup:
    shape = common_shape("index", *(np.shape(i) for i in p.lookups.values()))
    known = all(isinstance(i, (int, np.ndarray)) for i in p.lookups.values())
    if known:
        columns = [np.broadcast_to(np.asarray(i), shape) for i in p.lookups.values()]
        indices: Any = from_host(np.stack(columns, -1).astype(dtypes.default_int()))
        inside = all(
            bool(np.all((np.asarray(i) >= 0) & (np.asarray(i) < p.shape[d])))
            for d, i in p.lookups.items()
        )
    else:
        indices, inside = _index_rows(list(p.lookups.values()), shape), False
    dims = tuple(p.lookups)
    sizes = p.sizes()
    before = p.layout[: p.layout.index("lookup")]
    first = sum(e is not None for e in before)
    rest = len(sizes) - len(dims)
    offset = tuple(i if i < first else i + len(shape) for i in range(rest))
    window = tuple(1 if d in dims else n for d, n in enumerate(sizes))
    return _Lookup(indices, ops.GatherDimensionNumbers(offset, dims, dims), window, inside)


def _index_rows(columns: list[Any], shape: tuple[int, ...]) -> Any:
    wide = any(getattr(c, "dtype", _I32).itemsize > 4 for c in columns if hasattr(c, "dtype"))
    dtype = np.dtype("int64") if wide else _I32
    out: list[Any] = []
    for c in columns:
        if isinstance(c, (int, Length)):
            out.append(ops.full(shape, ops.value_of(c, dtype), dtype))
        else:
            c = from_host(c) if isinstance(c, np.ndarray) else c
            out.append(ops.broadcast_to(_signed(c, dtype), shape))
    if len(out) == 1:
        return ops.reshape(out[0], shape=(*shape, 1))
    return ops.stack(out, len(shape))


def _result_shape(p: IndexPlan) -> tuple[int, ...]:
    sizes = p.sizes()
    out: list[int] = []
    for e in p.layout:
        if e == "lookup":
            out += common_shape("index", *(np.shape(i) for i in p.lookups.values()))
        else:
            out.append(1 if e is None else sizes[cast(int, e)])
    return tuple(out)


# ---- reading --------------------------------------------------------------------------------

READ_MODES = {
    None: "clip",
    "clip": "clip",
    "promise_in_bounds": "promise",
    "fill": "fill",
    "drop": "fill",
}


def getitem(x: Any, index: Any) -> Any:
    """``x[index]``."""
    if type(index) is int and current() is ROOT and x.aval.ndim:
        length = x.aval.shape[0]
        if -length <= index < length:
            return _row(x, np.int32(index % length))
    return read(x, index, "clip", None)


@staged
def _row(x: Any, index: Any) -> Any:
    """``x[index]`` outside transformations: one program for all rows."""
    shape = x.aval.shape
    starts = (index, *[np.int32(0)] * (len(shape) - 1))
    return ops.reshape(ops.dynamic_slice(x, *starts, sizes=(1, *shape[1:])), shape=shape[1:])


def mode_of(who: str, mode: Any, modes: dict[Any, Any]) -> str:
    """The gather or scatter mode that the user's ``mode`` means."""
    if mode not in modes:
        named = ", ".join(repr(m) for m in modes if m is not None)
        raise ValueError(f"{who}: mode must be one of {named}, got {mode!r}")
    return modes[mode]


def read(x: Any, index: Any, mode: str, fill: Any, *, from_end: bool = True, **hints: bool) -> Any:
    """``x[index]``, with ``mode`` for what is outside as a gather has it."""
    x, p = plan(x, index, from_end)
    if mode == "fill" and _outside(p) is not False:
        p = _points_looked_up(p)
    strided = _strided(p)
    if strided:
        x = _read_strided(x, strided)
    window = _window(p)
    if window is not None:
        starts, sizes = window
        x = ops.dynamic_slice(x, *starts, sizes=sizes)
    if p.lookups:
        x = _gathered(x, p, mode, fill, hints)
    shape = _result_shape(p)
    return x if x.aval.shape == shape else ops.reshape(x, shape=shape)


def _points_looked_up(p: IndexPlan) -> IndexPlan:
    """The same plan with single positions looked up, which can yield a fill value."""
    return IndexPlan(p.shape, p.slices, {}, p.points, ["lookup", *p.layout])


def _gathered(x: Any, p: IndexPlan, mode: str, fill: Any, hints: dict[str, bool]) -> Any:
    lookup = _lookup(p)
    return ops.gather(
        x,
        lookup.indices,
        numbers=lookup.numbers,
        slice_sizes=lookup.window,
        mode="promise" if lookup.inside else mode,
        fill=fill,
        **hints,
    )


# ---- writing --------------------------------------------------------------------------------

WRITE_MODES = {
    None: "fill",
    "fill": "fill",
    "drop": "fill",
    "promise_in_bounds": "promise",
    "clip": "clip",
}
_COMBINE: dict[str, tuple[Callable[..., Any] | None, Any]] = {
    "set": (None, ops.scatter),
    "add": (ops.add, ops.scatter_add),
    "multiply": (ops.mul, ops.scatter_mul),
    "min": (ops.min, ops.scatter_min),
    "max": (ops.max, ops.scatter_max),
}


def write(
    x: Any,
    index: Any,
    how: str,
    values: Any,
    mode: str,
    hints: dict[str, bool],
    from_end: bool = True,
) -> Any:
    """``x`` with ``values`` combined into ``x[index]``; ``how`` is a key of the table above."""
    values = written(x, values)
    kind = x.aval
    out = _where_masked(x, index, how, values)
    if out is None:
        x, p = plan(x, index, from_end)
        out = _write_plan(x, p, how, fitted(values, _result_shape(p)), mode, hints)
    out = convert(out, kind.dtype, kind.weak)
    return out if out.aval.shape == kind.shape else ops.reshape(out, shape=kind.shape)


def written(x: Any, values: Any) -> Any:
    """``values`` in the dtype of ``x``, a number as a constant; the user is warned where that
    dtype cannot hold them: complex ones lose their imaginary part, fractions are cut off."""
    values = array(values) if isinstance(values, SEQUENCE) else operand("at", values)
    cast, kind, wanted = _cast(values, x.aval), kind_of(values), x.aval.dtype
    if not lattice.holds(wanted, kind):
        warn_user(
            "scatter inputs have incompatible types: "  # filters look for how it begins
            f"cannot safely cast values of {kind[0]} to {wanted}, the dtype of the array that "
            "they are written to; they are cast all the same. Convert them "
            "or the array with astype",
            FutureWarning,
        )
    return cast


def _cast(values: Any, to: ArrayType) -> Any:
    if isinstance(values, Array):
        return convert(values, to.dtype, to.weak and values.aval.weak)
    kind = kind_of(values)[0]
    if dtypes.is_complex(kind) and not dtypes.is_complex(to.dtype):
        values = values.real
    if is_python_scalar(values) and dtypes.is_inexact(kind) and dtypes.is_integer(to.dtype):
        values = int(values)
    return dtypes.scalar(values, to.dtype)


def fitted(values: Any, target: tuple[int, ...]) -> Any:
    """``values`` broadcast to ``target``, the shape of the part that they are written to."""
    if isinstance(values, GENERIC):
        return ops.full(target, values, values.dtype)
    shape = values.aval.shape
    while len(shape) > len(target) and shape[0] == 1:
        shape = shape[1:]
    check_fills("a part that is written", "values", shape, target)
    if shape != values.aval.shape:
        values = ops.reshape(values, shape=shape)
    return ops.broadcast_to(values, target)


def _where_masked(x: Any, index: Any, how: str, values: Any) -> Any:
    """x.at[mask] with values that do not depend on which elements are selected, else None."""
    mask = index[0] if isinstance(index, TUPLE) and len(index) == 1 else index
    if not isinstance(mask, (Array, NDARRAY)) or mask.dtype != np.bool_ or not mask.ndim:
        return None
    shape = x.aval.shape
    if np.ndim(values) > len(shape) - mask.ndim or mask.shape != shape[: mask.ndim]:
        return None
    mask = as_array("at", mask)
    combine = _COMBINE[how][0]
    values = fitted(values, shape)
    new = values if combine is None else combine(x, values)
    mask = ops.broadcast(mask, shape=shape, dims=tuple(range(mask.ndim)))
    return ops.select(mask, new, x)


def _write_plan(
    x: Any, p: IndexPlan, how: str, values: Any, mode: str, hints: dict[str, bool]
) -> Any:
    if not math.prod(values.aval.shape):
        return x
    strided = _strided(p)
    if strided:
        part = _write_window(_read_strided(x, strided), p, how, values, mode, hints)
        return _write_strided(x, part, strided)
    return _write_window(x, p, how, values, mode, hints)


def _write_window(
    x: Any, p: IndexPlan, how: str, values: Any, mode: str, hints: dict[str, bool]
) -> Any:
    window = _window(p)
    outside = _outside(p) if mode == "fill" else False
    if outside is True:
        return x
    if window is None:
        return _write_lookup(x, p, how, values, mode, hints)
    starts, sizes = window
    current = None
    if outside is not False or how != "set" or p.lookups:
        current = ops.dynamic_slice(x, *starts, sizes=sizes)
    new = _write_lookup(current, p, how, values, mode, hints)
    if outside is not False:
        new = ops.select(ops.broadcast_to(outside, sizes), current, new)
    return ops.dynamic_update_slice(x, new, *starts)


def _write_lookup(
    x: Any, p: IndexPlan, how: str, values: Any, mode: str, hints: dict[str, bool]
) -> Any:
    combine, scatter = _COMBINE[how]
    sizes = p.sizes()
    if not p.lookups:
        values = values if values.aval.shape == sizes else ops.reshape(values, shape=sizes)
        return values if combine is None else combine(x, values)
    lookup = _lookup(p)
    inner = tuple(
        n for e, n in zip(_flat_layout(p), values.aval.shape, strict=True) if e is not None
    )
    if inner != values.aval.shape:
        values = ops.reshape(values, shape=inner)
    mode = "promise" if lookup.inside else mode
    numbers = lookup.numbers.of_scatter()
    return scatter(x, lookup.indices, values, numbers=numbers, mode=mode, **hints)


def _flat_layout(p: IndexPlan) -> list[Any]:
    """``layout`` with one entry for every dimension of the lookups' common shape."""
    out: list[Any] = []
    for e in p.layout:
        if e == "lookup":
            out += [e] * len(common_shape("index", *(np.shape(i) for i in p.lookups.values())))
        else:
            out.append(e)
    return out
