"""Reductions: over dimensions, along a dimension, and over sliding windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx import ops
from phalanx.base import dtypes
from phalanx.base import tree as trees
from phalanx.core.axes import Axis
from phalanx.core.primitive import Primitive
from phalanx.core.trace import Tracer
from phalanx.core.types import Array, ArrayType, typeof
from phalanx.lax.convolution import padtype_to_pads
from phalanx.lax.operands import accept, elementwise, integers
from phalanx.ops.conv import dilated
from phalanx.ops.reduce import highest, lowest
from phalanx.ops.shape import dimension, dimensions, slice_dim
from phalanx.transforms.batch import batch, place_lanes
from phalanx.transforms.stage import stage

# ---- over dimensions ------------------------------------------------------------------------


def _reduced(who: str, prim: Primitive, x: Any, axes: Any) -> Array:
    dims = dimensions(f"lax.{who}", axes, typeof(accept(who, x)).ndim)
    return prim(x, dims=dims)


def reduce_sum(operand: Any, axes: Sequence[int]) -> Array:
    """The sum over dimensions ``axes``.

    >>> lax.reduce_sum(np.int32([[1, 2], [3, 4]]), (0,))
    Array([4, 6], dtype=int32)
    """
    return _reduced("reduce_sum", ops.reduce_sum, operand, axes)


def reduce_prod(operand: Any, axes: Sequence[int]) -> Array:
    """The product over dimensions ``axes``.

    >>> lax.reduce_prod(np.int32([[1, 2], [3, 4]]), (0,))
    Array([3, 8], dtype=int32)
    """
    return _reduced("reduce_prod", ops.reduce_prod, operand, axes)


def reduce_max(operand: Any, axes: Sequence[int]) -> Array:
    """The greatest element over dimensions ``axes``.

    >>> lax.reduce_max(np.int32([[1, 2], [3, 4]]), (0,))
    Array([3, 4], dtype=int32)
    """
    return _reduced("reduce_max", ops.reduce_max, operand, axes)


def reduce_min(operand: Any, axes: Sequence[int]) -> Array:
    """The smallest element over dimensions ``axes``.

    >>> lax.reduce_min(np.int32([[1, 2], [3, 4]]), (0,))
    Array([1, 2], dtype=int32)
    """
    return _reduced("reduce_min", ops.reduce_min, operand, axes)


def reduce_and(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise and over dimensions ``axes``; of booleans, whether all are true.

    >>> lax.reduce_and(np.array([True, False]), (0,))
    Array(False, dtype=bool)
    """
    return _reduced("reduce_and", ops.reduce_and, operand, axes)


def reduce_or(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise or over dimensions ``axes``; of booleans, whether any is true.

    >>> lax.reduce_or(np.array([True, False]), (0,))
    Array(True, dtype=bool)
    """
    return _reduced("reduce_or", ops.reduce_or, operand, axes)


def reduce_xor(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise exclusive or over dimensions ``axes``; of booleans, whether an odd number is.

    >>> lax.reduce_xor(np.array([True, True]), (0,))
    Array(False, dtype=bool)
    """
    return _reduced("reduce_xor", ops.reduce_xor, operand, axes)


def _position(who: str, prim: Primitive, x: Any, axis: int, index_dtype: Any) -> Array:
    dim = dimension(f"lax.{who}", axis, typeof(accept(who, x)).ndim)
    return prim(x, dim=dim, index_dtype=dtypes.canonical(index_dtype))


def argmax(operand: Any, axis: int, index_dtype: Any) -> Array:
    """The first position of the greatest element along ``axis``; that of a NaN if there is one.

    >>> lax.argmax(np.float32([1, 3, 2]), 0, np.int32)
    Array(1, dtype=int32)
    """
    return _position("argmax", ops.argmax, operand, axis, index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Array:
    """The first position of the smallest element along ``axis``; that of a NaN if there is one.

    >>> lax.argmin(np.float32([1, 3, 2]), 0, np.int32)
    Array(0, dtype=int32)
    """
    return _position("argmin", ops.argmin, operand, axis, index_dtype)


# ---- along a dimension ----------------------------------------------------------------------


def _accumulated(who: str, prim: Primitive, x: Any, axis: int, reverse: bool) -> Array:
    dim = dimension(f"lax.{who}", axis, typeof(accept(who, x)).ndim)
    return prim(x, dim=dim, reverse=bool(reverse))


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The sums of the first 1, 2, ... elements along ``axis``, of the last with ``reverse``.

    >>> lax.cumsum(np.int32([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _accumulated("cumsum", ops.cumsum, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The products of the first 1, 2, ... elements along ``axis``.

    >>> lax.cumprod(np.int32([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _accumulated("cumprod", ops.cumprod, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The greatest of the first 1, 2, ... elements along ``axis``.

    >>> lax.cummax(np.int32([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _accumulated("cummax", ops.cummax, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest of the first 1, 2, ... elements along ``axis``.

    >>> lax.cummin(np.int32([3, 1, 2]))
    Array([3, 1, 1], dtype=int32)
    """
    return _accumulated("cummin", ops.cummin, operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The logarithms of the sums of exp of the first 1, 2, ... elements along ``axis``.

    >>> lax.cumlogsumexp(np.float32([0, 0]))
    Array([0.       , 0.6931472], dtype=float32)
    """
    return _accumulated("cumlogsumexp", ops.cumlogsumexp, operand, axis, reverse)


# ---- with a function of two scalars ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Monoid:
    """A reduction that has a primitive of its own."""

    combine: Primitive
    over_dims: Primitive
    identity: Callable[[np.dtype], Any]
    over_windows: Primitive | None = None


def _all_bits(dtype: np.dtype) -> Any:
    return ~dtype.type(0) if dtypes.is_integer(dtype) else True


_MONOIDS = {
    m.combine: m
    for m in (
        _Monoid(ops.add, ops.reduce_sum, lambda t: 0, ops.reduce_window_sum),
        _Monoid(ops.mul, ops.reduce_prod, lambda t: 1),
        _Monoid(ops.max, ops.reduce_max, lowest, ops.reduce_window_max),
        _Monoid(ops.min, ops.reduce_min, highest, ops.reduce_window_min),
        _Monoid(ops.and_, ops.reduce_and, _all_bits),
        _Monoid(ops.or_, ops.reduce_or, lambda t: 0),
        _Monoid(ops.xor, ops.reduce_xor, lambda t: 0),
    )
}


def _recognized(computation: Callable, dtype: np.dtype) -> _Monoid | None:
    """The known reduction that a function of two scalars of ``dtype`` stands for, if any."""
    scalar = ArrayType((), dtype)
    program, _ = stage(lambda x, y: [computation(x, y)], [scalar, scalar], "computation")
    if len(program.equations) != 1 or len(program.inputs) != 2:
        return None
    (equation,) = program.equations
    plain = set(equation.inputs) == set(program.inputs) and equation.outputs == program.outputs
    return _MONOIDS.get(equation.prim) if plain else None


def _is_identity(init: Any, monoid: _Monoid, dtype: np.dtype) -> bool:
    """Whether ``init`` is known now, and combining with it changes nothing."""
    return not isinstance(init, Tracer) and bool(np.asarray(init) == monoid.identity(dtype))


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
) -> Any:
    """Elements over ``dimensions`` combined in pairs by an associative function.

    Args:
        operands: an array, or a tree of arrays of one shape.
        init_values: scalars, combined with the result; a tree like ``operands``.
        computation: of two scalars, or two trees of scalars like ``operands``; such as
            ``lax.add``, ``lax.max``, or one of your own.
        dimensions: those that are reduced.

    Returns:
        A tree like ``operands``.

    >>> lax.reduce(np.int32([[1, 2], [3, 4]]), 0, lax.add, (0,))
    Array([4, 6], dtype=int32)
    """
    xs, treedef = trees.flatten(operands)
    inits = trees.leaves(init_values)
    if len(xs) != len(inits):
        raise ValueError(
            f"lax.reduce: as many init_values as operands are needed, got {len(inits)} and "
            f"{len(xs)}"
        )
    types = [typeof(accept("reduce", x)) for x in xs]
    dims = _dims_of_all("reduce", types, dimensions)
    if len(xs) == 1 and trees.is_leaf(operands):
        monoid = _recognized(computation, types[0].dtype)
        if monoid is not None:
            return _with_init(monoid, monoid.over_dims(xs[0], dims=dims), inits[0])

    def combine(pair: Sequence[Any]) -> list:
        half = len(pair) // 2
        first, second = treedef.unflatten(pair[:half]), treedef.unflatten(pair[half:])
        return trees.leaves(computation(first, second))

    return treedef.unflatten(_by_halves(combine, xs, inits, types, dims))


def _dims_of_all(who: str, types: Sequence[ArrayType], dims: Any) -> tuple[int, ...]:
    if any(t.shape != types[0].shape for t in types):
        listed = ", ".join(map(str, types))
        raise TypeError(f"lax.{who}: operands must have one shape, got {listed}")
    return dimensions(f"lax.{who}", dims, types[0].ndim)


def _with_init(monoid: _Monoid, out: Any, init: Any) -> Any:
    if _is_identity(init, monoid, typeof(out).dtype):
        return out
    return monoid.combine(*elementwise("reduce", out, init))


def _by_halves(
    combine: Callable, xs: list, inits: list, types: list[ArrayType], dims: tuple[int, ...]
) -> list:
    """Reduce by combining the first half with the second until one element is left."""
    kept = tuple(d for d in range(types[0].ndim) if d not in dims)
    shape = tuple(types[0].shape[d] for d in kept)
    order = (*dims, *kept)
    count, lanes = math.prod(types[0].shape[d] for d in dims), math.prod(shape)
    rows = [ops.reshape(ops.transpose(x, perm=order), shape=(count, lanes)) for x in xs]
    while (n := typeof(rows[0]).shape[0]) > 1:
        half = n // 2
        first = [slice_dim(r, 0, half, 0) for r in rows]
        second = [slice_dim(r, half, 2 * half, 0) for r in rows]
        odd = [slice_dim(r, 2 * half, n, 0) for r in rows]
        rows = _everywhere(combine, first, second)
        if n % 2:
            rows = [ops.concatenate(r, o, dim=0) for r, o in zip(rows, odd, strict=True)]
    start = [ops.full((1, lanes), i, t.dtype) for i, t in zip(inits, types, strict=True)]
    if typeof(rows[0]).shape[0]:
        start = _everywhere(combine, start, rows)
    return [ops.reshape(r, shape=shape) for r in start]


def _everywhere(combine: Callable, first: list, second: list) -> list:
    """``combine``, a function of scalars, applied to arrays element by element."""
    shape = typeof(first[0]).shape
    size = typeof(first[0]).size
    flat = [ops.reshape(x, shape=(size,)) for x in (*first, *second)]
    values, dims = batch(lambda *pair: combine(pair), Axis(None, size), flat, [0] * len(flat))
    out = [place_lanes(x, d, 0, size) for x, d in zip(values, dims, strict=True)]
    return [ops.reshape(x, shape=shape) for x in out]


# ---- over windows ---------------------------------------------------------------------------


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """The sum, maximum or minimum over a sliding window, as in pooling.

    Args:
        operand: an array.
        init_value: 0 for a sum; for an extremum, what it is combined with.
        computation: ``lax.add``, ``lax.max`` or ``lax.min``, or a function that does the same.
        window_dimensions: the lengths of the window, one per dimension of the operand.
        window_strides: the steps from window to window; default 1.
        padding: 'SAME', 'SAME_LOWER', 'VALID', or (low, high) per dimension.
        base_dilation: the distance of the elements of the operand.
        window_dilation: the distance of the elements of the window.

    Raises:
        NotImplementedError: the computation is another one.
        ValueError: a parameter does not fit the operand.

    >>> lax.reduce_window(np.float32([1, 3, 2, 4]), -np.inf, lax.max, (2,), (2,))
    Array([3., 4.], dtype=float32)
    """
    who = "reduce_window"
    x = typeof(accept(who, operand))
    monoid = _recognized(computation, x.dtype)
    if monoid is None or monoid.over_windows is None:
        raise NotImplementedError(
            "lax.reduce_window: the computation must be lax.add, lax.max or lax.min, or do the "
            f"same, got {computation!r}; gather the windows and reduce them instead"
        )
    ones = (1,) * x.ndim
    lengths = integers(who, "window_dimensions", window_dimensions)
    strides = ones if window_strides is None else integers(who, "window_strides", window_strides)
    base = ones if base_dilation is None else integers(who, "base_dilation", base_dilation)
    gaps = ones if window_dilation is None else integers(who, "window_dilation", window_dilation)
    for name, value in (("window_dimensions", lengths), ("window_strides", strides)):
        if len(value) != x.ndim:
            raise ValueError(
                f"lax.{who}: {name} must have one entry per dimension of {x}, got {value}"
            )
    reach = list(map(dilated, lengths, gaps))
    out = monoid.over_windows(
        operand,
        window=lengths,
        strides=strides,
        padding=padtype_to_pads(list(map(dilated, x.shape, base)), reach, strides, padding),
        base_dilation=base,
        window_dilation=gaps,
    )
    if monoid.combine is ops.add and not _is_identity(init_value, monoid, x.dtype):
        raise ValueError(f"lax.{who}: the init_value of a sum must be 0, got {init_value!r}")
    return _with_init(monoid, out, init_value)
