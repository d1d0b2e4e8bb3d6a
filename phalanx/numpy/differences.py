"""Differences, slopes and integrals of sampled functions."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from phalanx import primitives as ops
from phalanx.base.lengths import symbolic
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import add, multiply, subtract, true_divide
from phalanx.numpy.logic import isfinite
from phalanx.numpy.promotion import (
    ArrayLike,
    as_array,
    convert,
    dim,
    literal,
    promote_arrays,
    promote_inexact,
)
from phalanx.numpy.reductions import sum
from phalanx.numpy.searching import where


@one_program
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """The differences of neighbours a[i + 1] - a[i] along ``axis``, taken n times.

    ``prepend`` and ``append`` are put before and behind the elements first.

    Args:
        a: an array, or a number.
        n: how many times to take differences.
        axis: the axis along which differences are taken.
        prepend: values in front of the first along the axis; None for none.
        append: values after the last; None for none.

    Returns:
        An array of the dtype of ``a``, shorter by n along ``axis``.

    Raises:
        ValueError: ``n`` is negative.

    >>> print(jnp.diff(jnp.array([1, 4, 9, 16])))
    [3 5 7]
    """
    x = as_array("diff", a)
    d = dim("diff", axis, x)
    parts = [x if v is None else _beside(x, v, d) for v in (prepend, x, append)]
    arrays = [p for p, v in zip(parts, (prepend, x, append), strict=True) if v is not None]
    if len(arrays) > 1:
        x = ops.concatenate(*promote_arrays("diff", arrays), dim=d)
    if n < 0:
        raise ValueError(f"diff: n must not be negative, got {n}")
    for _ in range(n):
        length = x.shape[d]
        later = ops.slice_dim(x, builtins.min(1, length), length, d)
        earlier = ops.slice_dim(x, 0, builtins.max(length - 1, 0), d)
        x = (ops.ne if x.aval.dtype == np.bool_ else ops.sub)(later, earlier)
    return x


def _beside(x: Any, v: Any, d: int) -> Any:
    """``v`` as an array to put beside ``x`` along dimension ``d``."""
    if v is x:
        return x
    v = as_array("diff", v)
    shape = tuple(1 if i == d else n for i, n in enumerate(x.shape))
    return v if v.ndim else ops.broadcast_to(v, shape)


@one_program
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """The differences of neighbours in the flattened array, with elements around them.

    Args:
        ary: an array, which is taken as a vector.
        to_end: values after the differences.
        to_begin: values before the differences.

    Returns:
        A vector.

    >>> print(jnp.ediff1d(jnp.array([1, 4, 9])))
    [3 5]
    """
    x = as_array("ediff1d", ary)
    inside = diff(ops.reshape(x, shape=(x.size,)))
    parts = [as_array("ediff1d", v) for v in (to_begin, inside, to_end) if v is not None]
    parts = [convert(ops.reshape(p, shape=(p.size,)), x.aval.dtype) for p in parts]
    return ops.concatenate(*parts, dim=0) if len(parts) > 1 else inside


@overload
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: int, edge_order: int | None = None
) -> Array: ...
@overload
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any: ...
@one_program
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any:
    """The derivative of sampled values along each axis, by differences of neighbours.

    Args:
        f: the values.
        varargs: the distance between samples: none (1), one for all axes, or one for each. A
            vector in place of a distance holds the coordinates of the samples along its axis.
        axis: the axis along which differences are taken; None is all, which gives a list.
        edge_order: of the slopes at both ends: 1, the default, of the line through two samples, or
            2, of the parabola through three.

    Returns:
        An array of the shape of ``f``; for several axes a list of them.

    Raises:
        ValueError: the number of distances is not that of the axes, or ``edge_order`` is not 1 or
            2.

    >>> print(jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0])))
    [3. 4. 6. 7.]
    """
    x, *gaps = promote_inexact("gradient", [f, *varargs])
    dims = range(x.ndim) if axis is None else axis
    over = ops.dimensions("gradient", dims, x.ndim)
    gaps: list[Any] = gaps or [1.0]
    if len(gaps) == 1:
        gaps = gaps * len(over)
    fits = len(gaps) == len(over) and all(
        np.shape(g) in ((), (x.shape[d],)) for g, d in zip(gaps, over, strict=True)
    )
    if not fits:
        raise ValueError(
            f"gradient: one distance is needed or {len(over)} of them, numbers or coordinates of "
            f"each sample, got {len(varargs)}"
        )
    if edge_order not in (None, 1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    out = [_slope(x, g, d, edge_order or 1) for g, d in zip(gaps, over, strict=True)]
    return out[0] if len(out) == 1 else out


def _slope(x: Any, gap: Any, d: int, edge_order: int) -> Any:
    n = x.shape[d]
    if n <= edge_order:
        raise ValueError(
            f"gradient: at least {edge_order + 1} samples are needed along an axis, got {x.aval}"
        )
    if np.ndim(gap):
        return _slope_between(diff(x, axis=d), gap, d, edge_order)
    both = ops.sub(ops.slice_dim(x, 2, n, d), ops.slice_dim(x, 0, n - 2, d))
    middle = ops.mul(both, literal(both, 0.5))
    near = edge_order + 1  # so many samples the slope at an end is of
    ends = [diff(ops.slice_dim(x, at, at + near, d), axis=d) for at in (0, n - near)]
    ones = ops.full(ends[0].shape, 1, x.aval.dtype)
    first, last = (_end(e, ones, d, at, edge_order) for e, at in zip(ends, (0, -1), strict=True))
    return true_divide(ops.concatenate(first, middle, last, dim=d), gap)


def _end(slopes: Any, widths: Any, d: int, at: int, edge_order: int) -> Any:
    """The slope at the first end or, where ``at`` is -1, at the last, of those between samples."""

    def part(v: Any, inwards: int) -> Any:
        place = inwards if at == 0 else v.shape[d] - 1 - inwards
        return ops.slice_dim(v, place, place + 1, d)

    outer = part(slopes, 0)
    if edge_order == 1:
        return outer
    width = part(widths, 0)
    bend = ops.div(ops.sub(outer, part(slopes, 1)), ops.add(width, part(widths, 1)))
    return ops.add(outer, ops.mul(bend, width))


def _slope_between(steps: Any, places: Any, d: int, edge_order: int) -> Any:
    """The slopes at ``places``: inside, of the parabola through a sample and its neighbours."""
    n = places.size
    widths = ops.broadcast(diff(places), shape=steps.shape, dims=(d,))
    steps, widths = promote_arrays("gradient", [steps, widths])
    slopes = ops.div(steps, widths)
    (left, right), (low, high) = (
        (ops.slice_dim(v, 0, n - 2, d), ops.slice_dim(v, 1, n - 1, d)) for v in (slopes, widths)
    )
    weighted = ops.add(ops.mul(left, high), ops.mul(right, low))
    inside = ops.div(weighted, ops.add(low, high))
    first, last = (_end(slopes, widths, d, at, edge_order) for at in (0, -1))
    return ops.concatenate(first, inside, last, dim=d)


@one_program
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral of samples ``y`` at ``x``, or at distances ``dx``, by trapezoids.

    Args:
        y: samples of the function along the axis.
        x: where they are; None: at equal distances ``dx``.
        dx: the distance of neighbours.
        axis: the axis along which it works, counted from the end if negative.

    Returns:
        Floating-point or complex numbers, without ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.trapezoid(jnp.array([0.0, 1.0, 2.0])))
    2.0
    """
    arrays = [y] if x is None else [y, x]
    values, *places = promote_inexact("trapezoid", arrays)
    last = values.ndim - 1
    values = ops.move(values, dim("trapezoid", axis, values), last)
    n = values.shape[last]
    spacing: Any = dx
    if not places and np.ndim(spacing) == 0 and not symbolic((n,)) and n > 1:
        return multiply(subtract(sum(values, -1), _half_of_ends(values)), dx)
    later = ops.slice_dim(values, builtins.min(1, n), n, last)
    both = ops.add(later, ops.slice_dim(values, 0, builtins.max(n - 1, 0), last))
    for at in places:
        along = at if at.ndim < 2 else ops.move(at, dim("trapezoid", axis, at), at.ndim - 1)
        dx = diff(along)
    return multiply(sum(multiply(both, dx), -1), 0.5)


def _half_of_ends(values: Array) -> Array:
    """Half the first and the last value, but for infinities: their sum is infinite, and stays."""
    n, last = values.shape[-1], values.ndim - 1
    pair = (ops.slice_dim(values, i, i + 1, last) for i in (0, n - 1))
    first, final = (where(isfinite(v), v, literal(v, 0)) for v in pair)
    return multiply(sum(add(first, final), -1), 0.5)
