"""Quantiles and medians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base.dtypes import COMPLEXES, accumulator
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy.indexing import take_along_axis
from phalanx.numpy.logic import isnan
from phalanx.numpy.promotion import (
    ArrayLike,
    convert,
    dims,
    inexact,
    is_python_scalar,
    literal,
    no_out,
    over,
    promote_arrays,
)
from phalanx.numpy.reductions import Axis
from phalanx.numpy.statistics import fitted_weights, flat

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@one_program
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The number below which a share ``q`` of the elements over ``axis`` lies.

    Args:
        a: the elements, real numbers.
        q: a share between 0 and 1, or an array of them, whose dimensions come first in the
            result.
        axis: one axis, several, or None for all.
        out: must be None.
        overwrite_input: has no meaning.
        method: how to choose between two neighbours: "linear" interpolation, the "lower", the
            "higher", their "midpoint", the "nearest"; or "inverted_cdf", the first element up to
            which the share is reached.
        keepdims: whether the reduced axes stay, with length 1.
        weights: how much each element counts, of the shape of ``a`` or of its ``axis``; for
            "inverted_cdf".

    Returns:
        Real numbers, without the axes that are reduced. The dimensions of ``q`` come first.

    Raises:
        ValueError: there is no such method, it takes no weights, or these do not fit.

    >>> print(jnp.quantile(jnp.arange(5.0), 0.25))
    1.0
    >>> votes = jnp.array([5, 1, 1])
    >>> print(jnp.quantile(jnp.arange(3), 0.5, weights=votes, method="inverted_cdf"))
    0.0
    """
    no_out("quantile", out)
    return _quantiles("quantile", a, q, axis, method, keepdims, weights, ignore_nan=False)


@takes_out_sharding
@one_program
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """``quantile`` with ``q`` in hundredths.

    Args:
        a: the elements, real numbers.
        q: percentages, from 0 to 100: a number, or an array, whose dimensions come first.
        axis: one axis, several, or None for all.
        out: must be None.
        overwrite_input: has no meaning.
        method: how to choose between two neighbours: "linear" interpolation, the "lower", the
            "higher", their "midpoint", the "nearest"; or "inverted_cdf", the first element up to
            which the share is reached.
        keepdims: whether the reduced axes stay, with length 1.
        weights: how much each element counts, of the shape of ``a`` or of its ``axis``; for
            "inverted_cdf".
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Real numbers, without the axes that are reduced. The dimensions of ``q`` come first.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``a`` is complex.

    >>> print(jnp.percentile(jnp.arange(5.0), 25))
    1.0
    """
    no_out("percentile", out)
    shares = _hundredths("percentile", q)
    return _quantiles("percentile", a, shares, axis, method, keepdims, weights, ignore_nan=False)


@one_program
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """``quantile`` of the elements that are not nan.

    Args:
        a: the elements, real numbers.
        q: a share between 0 and 1, or an array of them, whose dimensions come first in the result.
        axis: one axis, several, or None for all.
        out: must be None.
        overwrite_input: has no meaning.
        method: how to choose between two neighbours: "linear" interpolation, the "lower", the
            "higher", their "midpoint", the "nearest"; or "inverted_cdf", the first element up to
            which the share is reached.
        keepdims: whether the reduced axes stay, with length 1.
        weights: how much each element counts, of the shape of ``a`` or of its ``axis``; for
            "inverted_cdf".

    Returns:
        Real numbers, without the axes that are reduced. The dimensions of ``q`` come first.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``a`` is complex.

    >>> print(jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5))
    2.0
    """
    no_out("nanquantile", out)
    return _quantiles("nanquantile", a, q, axis, method, keepdims, weights, ignore_nan=True)


@one_program
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """``percentile`` of the elements that are not nan.

    Args:
        a: the elements, real numbers.
        q: percentages, from 0 to 100: a number, or an array, whose dimensions come first.
        axis: one axis, several, or None for all.
        out: must be None.
        overwrite_input: has no meaning.
        method: how to choose between two neighbours: "linear" interpolation, the "lower", the
            "higher", their "midpoint", the "nearest"; or "inverted_cdf", the first element up to
            which the share is reached.
        keepdims: whether the reduced axes stay, with length 1.
        weights: how much each element counts, of the shape of ``a`` or of its ``axis``; for
            "inverted_cdf".

    Returns:
        Real numbers, without the axes that are reduced. The dimensions of ``q`` come first.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``a`` is complex.

    >>> print(jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50))
    2.0
    """
    no_out("nanpercentile", out)
    shares = _hundredths("nanpercentile", q)
    return _quantiles("nanpercentile", a, shares, axis, method, keepdims, weights, ignore_nan=True)


@one_program
def median(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle element over ``axis`` in sorted order, or the mean of the two in the middle.

    Args:
        a: real numbers, as an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        out: must be None: arrays are immutable, and results are returned.
        overwrite_input: has no meaning: arrays are immutable.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.

    Returns:
        Floats, without the axes that are reduced. Integers give float32.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``a`` is complex.

    >>> print(jnp.median(jnp.array([3, 1, 2])))
    2.0
    """
    no_out("median", out)
    return _quantiles("median", a, 0.5, axis, "midpoint", keepdims, None, ignore_nan=False)


@one_program
def nanmedian(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median over ``axis`` of the elements that are not nan.

    Args:
        a: real numbers, as an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        out: must be None: arrays are immutable, and results are returned.
        overwrite_input: has no meaning: arrays are immutable.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.

    Returns:
        Floats, without the axes that are reduced. Integers give float32.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``a`` is complex.

    >>> print(jnp.nanmedian(jnp.array([3.0, 1.0, jnp.nan])))
    2.0
    """
    no_out("nanmedian", out)
    return _quantiles("nanmedian", a, 0.5, axis, "midpoint", keepdims, None, ignore_nan=True)


def _hundredths(who: str, q: Any) -> Any:
    return q / 100 if is_python_scalar(q) else over(inexact(who, q), 100)


def _quantiles(
    who: str, a: Any, q: Any, axis: Axis, method: str, keepdims: bool, weights: Any,
    ignore_nan: bool,
) -> Any:  # fmt: skip
    x = inexact(who, a)
    x = convert(x, x.aval.dtype)
    if method not in _METHODS:
        raise ValueError(f"{who}: method must be one of {', '.join(_METHODS)}, got {method!r}")
    if x.aval.dtype in COMPLEXES:
        raise TypeError(f"{who}: complex numbers have no order, got {x.aval}")
    over = dims(who, axis, x)
    shares = inexact(who, q)
    if weights is not None:
        if method != "inverted_cdf":
            raise ValueError(f"{who}: weights need method='inverted_cdf', got {method!r}")
        x, weights = promote_arrays(who, [x, inexact(who, weights)])
        weights = _as_lines(fitted_weights(who, x, weights, axis), over)
    lines = _as_lines(x, over)  # [..., n]
    if not lines.shape[-1]:  # no element, as if it were none that is a number
        lines, weights = ops.full((*lines.shape[:-1], 1), np.nan, lines.dtype), None
    if method == "inverted_cdf":
        quantiles = _reached(lines, weights, flat(shares), ignore_nan)  # [..., shares]
    else:
        (ordered,) = ops.sort(lines, dim=lines.ndim - 1, num_keys=1, stable=False)
        quantiles = _at_shares(ordered, flat(shares), method, ignore_nan)
    quantiles = ops.move(quantiles, quantiles.ndim - 1, 0)
    rest = tuple(n for d, n in enumerate(x.shape) if d not in over)
    if keepdims:
        rest = tuple(1 if d in over else n for d, n in enumerate(x.shape))
    return ops.reshape(quantiles, shape=(*shares.shape, *rest))


def _as_lines(x: Any, over: tuple[int, ...]) -> Any:
    """``x`` with the dimensions ``over`` as one, the last."""
    remaining = [d for d in range(x.ndim) if d not in over]
    moved = ops.reorder(x, (*remaining, *over))
    n = math.prod(x.shape[d] for d in over)
    return ops.reshape(moved, shape=(*(x.shape[d] for d in remaining), n))


def _reached(lines: Any, weights: Any, shares: Any, ignore_nan: bool) -> Any:
    """The first elements of ``lines``, in order, up to which they weigh the ``shares``."""
    last = lines.ndim - 1
    real = accumulator(lines.aval.dtype)
    raw = ops.full(lines.shape, 1, real) if weights is None else convert(weights, real)
    weights = ops.select(isnan(lines), literal(raw, 0), raw) if ignore_nan else raw
    ordered, weights = ops.sort(lines, weights, dim=last, num_keys=1, stable=True)
    weight = ops.cumsum(weights, dim=last, reverse=False)
    total = ops.slice_dim(weight, lines.shape[-1] - 1, lines.shape[-1], last)
    share = ops.div(weight, ops.broadcast_to(total, weight.shape))
    # what comes before the first element that weighs anything is not reached by a share of 0
    share = ops.select(ops.eq(share, literal(share, 0)), literal(share, -1), share)
    table = (*lines.shape, shares.size)
    asked = ops.broadcast_to(convert(shares, real), table)
    below = ops.lt(ops.broadcast(share, shape=table, dims=tuple(range(last + 1))), asked)
    place = ops.reduce_sum(convert(below, np.dtype("int32")), dims=(last,))
    value = take_along_axis(ordered, place, -1, mode="clip")
    bad = ops.lt(raw, literal(raw, 0))
    bad = ops.or_(bad, isnan(weights if ignore_nan else ops.add(convert(lines, real), raw)))
    weightless = ops.eq(ops.squeeze(total, (last,)), literal(total, 0))
    nothing = ops.or_(ops.reduce_or(bad, dims=(last,)), weightless)
    nothing = ops.broadcast(nothing, shape=value.shape, dims=tuple(range(last)))
    nothing = ops.or_(nothing, ops.broadcast_to(isnan(shares), value.shape))
    return ops.select(nothing, literal(value, np.nan), value)


def _at_shares(ordered: Any, shares: Any, method: str, ignore_nan: bool) -> Any:
    """The elements at ``shares`` of sorted lines, in which nan comes last."""
    n, dtype = ordered.shape[-1], ordered.aval.dtype
    shape = (*ordered.shape[:-1], shares.size)
    last = ordered.ndim - 1
    bad = isnan(ordered)
    if ignore_nan:
        valid = ops.reduce_sum(convert(ops.not_(bad), np.dtype("int32")), dims=(last,))
    else:
        valid = ops.full(shape[:-1], n, np.dtype("int32"))
    real = accumulator(dtype)
    top = convert(ops.max(ops.sub(valid, np.int32(1)), np.int32(0)), real)
    top = ops.broadcast(top, shape=shape, dims=tuple(range(last)))
    place = ops.broadcast_to(convert(shares, real), shape)
    place = ops.mul(place, top)
    low, high = ops.floor(place), ops.ceil(place)
    weight = _weight(method, place, low)
    below, above = (
        take_along_axis(ordered, convert(i, np.dtype("int32")), -1, mode="clip")
        for i in (low, high)
    )
    if method in ("linear", "midpoint"):
        weight = convert(weight, dtype)
        mixed = ops.add(ops.mul(below, ops.sub(literal(weight, 1), weight)), ops.mul(above, weight))
        # between equal ones nothing is rounded, both have their share of the slope, infinities stay
        level = ops.add(below, ops.mul(ops.sub(above, below), weight))
        level = ops.select(ops.is_finite(below), level, below)
        value = ops.select(ops.eq(below, above), level, mixed)
    else:
        value = ops.select(ops.gt(weight, literal(weight, 0)), above, below)
    nothing = ops.eq(valid, np.int32(0)) if ignore_nan else ops.reduce_or(bad, dims=(last,))
    nothing = ops.broadcast(nothing, shape=shape, dims=tuple(range(last)))
    return ops.select(nothing, literal(value, np.nan), value)


def _weight(method: str, place: Any, low: Any) -> Any:
    """The share of the neighbour above."""
    past = ops.sub(place, low)
    if method == "linear":
        return past
    if method == "lower":
        return ops.mul(past, literal(past, 0))
    if method == "higher":
        return past
    if method == "midpoint":
        return ops.select(ops.gt(past, literal(past, 0)), literal(past, 0.5), past)
    return ops.sub(ops.round(place, mode="even"), low)
