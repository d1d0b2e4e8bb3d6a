"""Interpolation between points."""

from __future__ import annotations

import builtins
from typing import Any, Literal

import numpy as np

from phalanx import primitives as ops
from phalanx.base import lattice
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import add, multiply, remainder, subtract, true_divide
from phalanx.numpy.indexing import take
from phalanx.numpy.logic import isinf, logical_and
from phalanx.numpy.promotion import ArrayLike, inexact, literal, operand, promote_inexact
from phalanx.numpy.searching import where
from phalanx.numpy.sorting import searchsorted


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | Literal["extrapolate"] | None = None,
    right: ArrayLike | Literal["extrapolate"] | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """The function through the points (xp, fp), straight between them, at ``x``.

    Args:
        x: where, real numbers.
        xp: the places of the points, increasing.
        fp: their values.
        left: the value before the first point; default that of the point. "extrapolate": the line
            through the first two points goes on.
        right: the value behind the last one; default that of the point. "extrapolate": the line
            through the last two points goes on.
        period: after which the function repeats; the places need not be sorted then, and ``left``
            and ``right`` are ignored.

    Returns:
        An array of the shape of ``x``.

    Raises:
        ValueError: ``xp`` and ``fp`` are not vectors of one length, or ``left`` or ``right`` is
            another string.

    >>> xp, fp = jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0])
    >>> print(jnp.interp(1.5, xp, fp))
    15.0
    >>> at = jnp.array([0.0, 1.5, 4.0])
    >>> print(jnp.interp(at, xp, fp, left="extrapolate", right="extrapolate"))
    [ 0. 15. 40.]
    """
    sides = {"left": left, "right": right}
    for name, side in sides.items():
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(f"interp: {name} must be a value, None or 'extrapolate', got {side!r}")
        if not (side is None or isinstance(side, str)):
            operand(f"interp: {name}", side)
    low, high = (None if isinstance(side, str) else side for side in sides.values())
    goes_on = isinstance(left, str), isinstance(right, str)
    return _interp(x, xp, fp, low, high, period, goes_on)


@one_program
def _interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None,
    right: ArrayLike | None,
    period: ArrayLike | None,
    goes_on: tuple[bool, bool],
) -> Array:
    """``interp``, where the lines at both ends go on as ``goes_on`` says."""
    values = inexact("interp", fp)
    at, places = promote_inexact("interp", [x, xp])
    if places.ndim != 1 or values.shape != places.shape or (at.size and not places.size):
        raise ValueError(
            f"interp: two vectors of one length are needed, got {places.aval} and {values.aval}"
        )
    if not at.size:
        return ops.full(at.shape, 0, lattice.result_type(at, values))
    if period is not None:
        at, places, values = _periodic(at, places, values, period)
    n = places.size
    after = searchsorted(places, at, "right")
    after = ops.clamp(literal(after, 1), after, literal(after, builtins.max(n - 1, 1)))
    before = ops.sub(after, literal(after, 1))
    # a table of slopes takes one gather, and no division, for each of many places
    table = places, values, _slopes(places, values)
    x0, y0, slope = (take(v, before, 0, mode="clip") for v in table)
    slope = where(ops.ne(at, at), literal(slope, np.nan), slope)  # NaN lies between no two points
    step = ops.sub(at, x0)
    if any(goes_on):  # a line without a slope has its value at infinity, too
        still = logical_and(isinf(at), ops.eq(slope, literal(slope, 0)))
        step = ops.select(still, literal(step, 0), step)
    inside = add(y0, multiply(step, slope))
    if period is not None:
        return inside
    ends = (goes_on[0], left, 0, ops.lt), (goes_on[1], right, n - 1, ops.gt)
    for line, side, i, beyond in ends:
        if line:
            continue  # outside, ``before`` and ``after`` are the two nearest points
        place, value = (_element(v, i, at.shape) for v in (places, values))
        inside = where(beyond(at, place), value if side is None else side, inside)
    return inside


def _slopes(x: Any, y: Any) -> Any:
    """From each point but the last to the next; 0 where two have one place, or are one point."""
    n = builtins.max(x.size - 1, 1)
    (x0, x1), (y0, y1) = ([ops.slice_dim(v, i, i + n, 0) for i in (0, x.size - n)] for v in (x, y))
    gap = ops.sub(x1, x0)
    flat = ops.eq(gap, literal(gap, 0))
    slope = true_divide(subtract(y1, y0), ops.select(flat, literal(gap, 1), gap))
    return where(flat, literal(slope, 0), slope)


def _element(v: Any, i: int, shape: tuple[int, ...]) -> Any:
    """Element ``i`` of a vector, as an array of ``shape``."""
    return ops.broadcast_to(ops.reshape(ops.slice_dim(v, i, i + 1, 0), shape=()), shape)


def _periodic(x: Any, xp: Any, values: Any, period: Any) -> tuple[Any, Any, Any]:
    """The points in one period, sorted, with the last one before and the first one behind."""
    x, xp = remainder(x, period), remainder(xp, period)
    xp, values = ops.sort(xp, values, dim=0, num_keys=1, stable=True)
    n = xp.size
    before, behind = ops.slice_dim(xp, n - 1, n, 0), ops.slice_dim(xp, 0, 1, 0)
    xp = ops.concatenate(subtract(before, period), xp, add(behind, period), dim=0)
    values = ops.concatenate(
        ops.slice_dim(values, n - 1, n, 0), values, ops.slice_dim(values, 0, 1, 0), dim=0
    )
    return x, xp, values
