"""Means, variances and correlations."""

from __future__ import annotations

import builtins
import functools
import math
from typing import Any, Literal, overload

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.broadcasting import check_fills
from phalanx.base.dtypes import COMPLEXES, INEXACT, accumulator
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import multiply, subtract, true_divide
from phalanx.numpy.extrema import max, maximum, min
from phalanx.numpy.logic import greater, isnan
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_array,
    boolean,
    convert,
    dims,
    inexact,
    is_python_scalar,
    literal,
    no_out,
    promote_arrays,
    promote_inexact,
    repeated,
)
from phalanx.numpy.reductions import Axis, masked, sum
from phalanx.numpy.searching import where as choose

# ---- mean and variance ----------------------------------------------------------------------


@one_program
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of the elements over ``axis``, Σ a / n; of integers, in floating-point numbers.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        dtype: of computation and result; None for that of ``a``, and float32 of integers.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        Floating-point or complex numbers, without the axes that are reduced. Integers give float32.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.mean(jnp.arange(6).reshape(2, 3), axis=1))
    [1. 4.]
    """
    no_out("mean", out)
    x = as_array("mean", a)
    kind = dtypes.to_inexact(x.aval.dtype) if dtype is None else dtypes.requested(dtype)
    x = convert(x, accumulator(kind))
    total = sum(x, axis, keepdims=keepdims, where=where)
    return convert(_over_count(total, x, axis, keepdims, where), kind)


def _count(x: Any, axis: Axis, keepdims: bool, where: Any) -> Any:
    """How many elements take part: a Python int, or an array where ``where`` decides."""
    if where is None:
        return math.prod(x.aval.shape[d] for d in dims("mean", axis, x))
    mask = ops.broadcast_to(boolean("mean", where), x.aval.shape)
    return sum(mask, axis, keepdims=keepdims)


def _over_count(total: Any, x: Any, axis: Axis, keepdims: bool, where: Any, ddof: Any = 0) -> Any:
    """``total`` over the count less ``ddof``; nan where nothing is left of it."""
    count = _count(x, axis, keepdims, where)
    if isinstance(count, int) and is_python_scalar(ddof):
        left = count - ddof
        return ops.div(total, literal(total, left if left > 0 else np.nan))
    count = convert(as_array("mean", count), dtypes.to_real(total.aval.dtype))
    left = subtract(count, ddof)
    return true_divide(total, choose(greater(left, 0), left, np.nan))


@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any: ...
@one_program
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The weighted average over ``axis``, Σ w a / Σ w; with ``returned`` also Σ w.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        weights: how much each element counts, of the shape of the array or a vector along the axis;
            None: all alike.
        returned: whether the sum of the weights is returned, too.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.

    Returns:
        The average, an array without the axes that are reduced; with ``returned`` a pair of it and
        the sum of the weights, of the same shape.

    Raises:
        ValueError: the weights have neither the shape of ``a`` nor that of its ``axis``.

    >>> print(jnp.average(jnp.array([1.0, 2.0]), weights=jnp.array([3, 1])))
    1.25
    """
    if weights is None:
        x = inexact("average", a)
        out = mean(x, axis, keepdims=keepdims)
        total = ops.full(out.shape, _count(x, axis, keepdims, None), out.aval.dtype)
        return (out, total) if returned else out
    x, w = promote_inexact("average", [a, weights])
    kind = x.aval.dtype
    x, w = map(_widened, (x, w))
    w = fitted_weights("average", x, w, axis)
    total = sum(w, axis, keepdims=keepdims)
    out = ops.div(sum(ops.mul(x, w), axis, keepdims=keepdims), total)
    out, total = (convert(v, kind, v.aval.weak) for v in (out, total))
    return (out, total) if returned else out


def flat(x: Any) -> Any:
    """The elements as a vector."""
    return ops.reshape(x, shape=(x.size,))


def fitted_weights(who: str, x: Any, w: Any, axis: Axis) -> Any:
    if w.shape == x.shape:
        return w
    over = dims(who, axis, x)
    if axis is None or w.shape != tuple(x.shape[d] for d in over):
        raise ValueError(
            f"{who}: weights {w.aval} need the shape of the array {x.aval}, or that of its "
            f"dimensions along axis {axis}"
        )
    order = sorted(range(len(over)), key=lambda i: over[i])
    return ops.broadcast(ops.reorder(w, order), shape=x.shape, dims=tuple(sorted(over)))


def _less(who: str, ddof: Any, correction: Any) -> Any:
    if correction is None:
        return ddof
    if not is_python_scalar(ddof) or ddof:
        raise ValueError(
            f"{who}: ddof and correction mean the same, but both are given: {ddof!r} and "
            f"{correction!r}"
        )
    return correction


@one_program
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The variance over ``axis``, Σ |a - mean(a)|² / (n - ddof); nan where n is not above ddof.

    ``correction`` is the array API's name of ``ddof``. A ``mean`` that is known is given as
    ``mean(a, axis, keepdims=True)`` gives it.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        dtype: of computation and result; None for that of ``a``, and float32 of integers.
        out: must be None: arrays are immutable, and results are returned.
        ddof: subtracted from the number of elements: 1 for the unbiased variance of a sample.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        where: which elements take part: booleans that broadcast with the array; None for all.
        mean: the mean, if it is known already, as ``mean`` gives it with ``keepdims``.
        correction: the same as ``ddof``, by its name in the array API standard.

    Returns:
        Real numbers, without the axes that are reduced. Integers give float32.

    Raises:
        ValueError: a real ``dtype`` for complex numbers; both ``ddof`` and ``correction``.

    >>> print(jnp.var(jnp.array([1.0, 3.0])), jnp.var(jnp.array([1.0, 3.0]), ddof=1))
    1.0 2.0
    """
    no_out("var", out)
    less = _less("var", ddof, correction)
    spread, kind = _spread("var", a, axis, dtype, less, keepdims, where, mean)
    return convert(spread, kind)


def _spread(
    who: str,
    a: Any,
    axis: Axis,
    dtype: Any,
    less: Any,
    keepdims: bool,
    where: Any,
    mean: Any,
) -> tuple[Any, np.dtype]:
    """The variance in the dtype in which it is computed, and the dtype of the result."""
    x = as_array(who, a)
    own = dtypes.to_inexact(x.aval.dtype)
    kind = dtypes.to_real(own) if dtype is None else dtypes.requested(dtype)
    if own in COMPLEXES:
        if dtype is not None and kind not in COMPLEXES:
            raise ValueError(
                f"{who}: of complex numbers {x.aval}, dtype must be complex, got {kind}"
            )
        x, kind = convert(x, dtypes.to_complex(kind)), dtypes.to_real(kind)
    else:
        x = convert(x, accumulator(dtypes.to_real(dtypes.to_inexact(kind))))
    centre = _centre(x, axis, where, mean)
    gap = masked(ops.sub(x, ops.broadcast_to(centre, x.aval.shape)), where, 0)
    parts = (ops.real(gap), ops.imag(gap)) if own in COMPLEXES else (gap,)
    total = sum(functools.reduce(ops.add, map(ops.square, parts)), axis, keepdims=keepdims)
    return _over_count(total, x, axis, keepdims, where, less), kind


@one_program
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The standard deviation over ``axis``: the square root of ``var``.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        dtype: of computation and result; None for that of ``a``, and float32 of integers.
        out: must be None: arrays are immutable, and results are returned.
        ddof: subtracted from the number of elements: 1 for the unbiased variance of a sample.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        where: which elements take part: booleans that broadcast with the array; None for all.
        mean: the mean, if it is known already, as ``mean`` gives it with ``keepdims``.
        correction: the same as ``ddof``, by its name in the array API standard.

    Returns:
        Real numbers, without the axes that are reduced. Integers give float32.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.std(jnp.array([1.0, 3.0])))
    1.0
    """
    no_out("std", out)
    less = _less("std", ddof, correction)
    spread, kind = _spread("std", a, axis, dtype, less, keepdims, where, mean)
    return convert(ops.sqrt(spread), kind)


def _centre(x: Any, axis: Axis, where: Any, known: Any) -> Any:
    if known is None:
        return mean(x, axis, keepdims=True, where=where)
    centre = convert(as_array("var", known), x.aval.dtype)
    wanted = tuple(1 if d in dims("var", axis, x) else n for d, n in enumerate(x.shape))
    check_fills("var", "a mean", centre.shape, wanted)
    return centre


# ---- the same, ignoring nan -----------------------------------------------------------------


@one_program
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean over ``axis`` of the elements that are not nan.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        dtype: of computation and result; None for that of ``a``, and float32 of integers.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        Floating-point or complex numbers, without the axes that are reduced. Integers give float32.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0])))
    2.0
    """
    x = as_array("nanmean", a)
    return mean(x, axis, dtype, out, keepdims, where=_not_nan(x, where))


@one_program
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance over ``axis`` of the elements that are not nan.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        dtype: of computation and result; None for that of ``a``, and float32 of integers.
        out: must be None: arrays are immutable, and results are returned.
        ddof: subtracted from the number of elements: 1 for the unbiased variance of a sample.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        where: which elements take part: booleans that broadcast with the array; None for all.
        mean: the mean, if it is known already, as ``mean`` gives it with ``keepdims``.

    Returns:
        Real numbers, without the axes that are reduced. Integers give float32.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0])))
    1.0
    """
    x = as_array("nanvar", a)
    counted = _not_nan(x, where)
    return var(x, axis, dtype, out, ddof, keepdims, where=counted, mean=mean)


@one_program
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The square root of ``nanvar``.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        dtype: of computation and result; None for that of ``a``, and float32 of integers.
        out: must be None: arrays are immutable, and results are returned.
        ddof: subtracted from the number of elements: 1 for the unbiased variance of a sample.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        where: which elements take part: booleans that broadcast with the array; None for all.
        mean: the mean, if it is known already, as ``mean`` gives it with ``keepdims``.

    Returns:
        Real numbers, without the axes that are reduced. Integers give float32.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0])))
    1.0
    """
    x = as_array("nanstd", a)
    counted = _not_nan(x, where)
    return std(x, axis, dtype, out, ddof, keepdims, where=counted, mean=mean)


def _not_nan(x: Any, where: Any) -> Any:
    if x.aval.dtype not in INEXACT:
        return where
    counted = ops.not_(isnan(x))
    if where is None:
        return counted
    return ops.and_(*repeated("nanmean", [counted, boolean("nanmean", where)]))


# ---- correlations ---------------------------------------------------------------------------


@one_program
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of variables, one per row (or per column without ``rowvar``).

    Args:
        m: the samples of each variable; a vector is one variable.
        y: more variables.
        rowvar: whether a row is a variable, and not a column.
        bias: whether to divide by n, and not by n - 1.
        ddof: divides by n - ``ddof``.
        fweights: how often each sample counts, integers.
        aweights: how important each sample is.
        dtype: in which to compute, of floating-point or complex numbers; by default that to which
            ``m`` and ``y`` promote.

    Returns:
        A matrix [v, v], of v variables; a number of one.

    Raises:
        TypeError: ``dtype`` is of integers.
        ValueError: ``m`` or ``y`` has more than two dimensions, or weights are no vector of the
            number of samples.

    >>> print(jnp.cov(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    less = (0 if bias else 1) if ddof is None else ddof
    out, kind = _covariances(m, y, rowvar, less, fweights, aweights, dtype)
    return convert(out, kind, out.aval.weak)


def _covariances(
    m: Any, y: Any, rowvar: bool, less: Any, fweights: Any, aweights: Any, dtype: Any
) -> tuple[Any, np.dtype]:
    """The covariances in the dtype in which they are computed, and the dtype of the result."""
    arrays = promote_inexact("cov", [m] if y is None else [m, y])
    rows = ops.concatenate(*(_variables(_in_dtype("cov", v, dtype), rowvar) for v in arrays), dim=0)
    rows, kind = _widened(rows), rows.aval.dtype
    weights, left = _sample_weights(rows, fweights, aweights, less)
    gap = subtract(rows, average(rows, 1, weights, keepdims=True))
    other = gap if weights is None else multiply(gap, ops.reshape(weights, shape=(1, weights.size)))
    other = ops.conj(other) if other.aval.dtype in COMPLEXES else other
    gap, other = promote_arrays("cov", [gap, other])
    total = ops.dot_general(gap, other, contract=((1,), (1,)), batch=((), ()))
    out = true_divide(total, left)
    return (ops.reshape(out, shape=()) if out.shape == (1, 1) else out), kind


def _widened(x: Any) -> Any:
    return convert(x, accumulator(x.aval.dtype), x.aval.weak)


def _in_dtype(who: str, x: Any, dtype: DTypeLike | None) -> Any:
    x = inexact(who, x)
    if dtype is None:
        return x
    kind = dtypes.requested(dtype)
    if kind not in INEXACT:
        raise TypeError(f"{who}: a dtype of real or complex numbers is needed, got {kind}")
    return convert(x, kind)


def _variables(x: Any, rowvar: bool) -> Any:
    if x.ndim > 2:
        raise ValueError(f"cov: an array of at most 2 dimensions is needed, got {x.aval}")
    if x.ndim < 2:
        return ops.reshape(x, shape=(1, x.size))
    return x if rowvar else ops.transpose(x, perm=(1, 0))


def _sample_weights(rows: Any, fweights: Any, aweights: Any, less: Any) -> tuple[Any, Any]:
    """The weight of each sample, or None, and what the sum of products is divided by."""
    n = rows.shape[1]
    pair: list[Any] = [None if w is None else _vector("cov", w, n) for w in (fweights, aweights)]
    frequency, importance = pair
    if importance is None:
        if frequency is None:
            return None, builtins.max(n - less, 0)
        return frequency, maximum(subtract(sum(frequency), less), 0)
    weights = importance if frequency is None else multiply(frequency, importance)
    total = sum(weights)
    counted = true_divide(sum(multiply(weights, importance)), total)
    return weights, maximum(subtract(total, multiply(counted, less)), 0)


def _vector(who: str, x: Any, n: int) -> Any:
    x = as_array(who, x)
    if x.shape != (n,):
        raise ValueError(f"{who}: one weight for each of {n} samples is needed, got {x.aval}")
    return _widened(x)


@one_program
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """The correlations of variables: their covariances over the product of their deviations.

    Args:
        x: variables in rows, observations in columns; or one variable.
        y: further variables, laid out as in ``x``.
        rowvar: whether variables are rows; otherwise they are columns.
        dtype: the dtype of the result; None for the one that follows from the data.

    Returns:
        A matrix [v, v], of v variables; a number of one.

    >>> print(jnp.corrcoef(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).round(3))
    [[ 1. -1.]
     [-1.  1.]]
    """
    c, kind = _covariances(x, y, rowvar, 1, None, None, dtype)
    return convert(_correlations(c), kind, c.aval.weak)


def _correlations(c: Any) -> Any:
    """Covariances over the deviations of both variables."""
    if c.ndim == 0:
        return ops.div(c, c)
    n = c.shape[0]
    flat = ops.reshape(c, shape=(n * n,))
    variances = ops.slice_dim(flat, 0, n * n, 0, n + 1)
    deviation = ops.sqrt(ops.real(variances) if variances.aval.dtype in COMPLEXES else variances)
    deviation = convert(deviation, c.aval.dtype)
    across = ops.broadcast(deviation, shape=c.shape, dims=(0,))
    down = ops.broadcast(deviation, shape=c.shape, dims=(1,))
    out = ops.div(ops.div(c, across), down)
    if out.aval.dtype in COMPLEXES:
        return out
    return ops.clamp(literal(out, -1), out, literal(out, 1))


@one_program
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest minus the smallest element over ``axis``.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.

    Returns:
        An array of the dtype of ``a``, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.ptp(jnp.array([3, 7, 4])))
    4
    """
    return ops.sub(max(a, axis, out, keepdims), min(a, axis, None, keepdims))
