"""Sums of exponentials, the probabilities made from them, and standardized arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

from phalanx import numpy as jnp
from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES, FLOAT8, accumulator
from phalanx.base.lengths import integer, length
from phalanx.base.recent import memoized
from phalanx.control.custom_jvp_call import JvpRule, custom_jvp
from phalanx.control.one_program import staged
from phalanx.core.program import Program
from phalanx.core.types import Array, ArrayLike, ArrayType, DTypeLike, typeof
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy.promotion import convert, inexact, promote_inexact, shape_entries
from phalanx.transforms.stage import stage

Axis = int | Sequence[int] | None


def _static(who: str, axis: Axis) -> tuple[int, ...] | None:
    """``axis`` as a part of a key: arrays of integers have no hash, and True is equal to 1."""
    if axis is None:
        return None
    return tuple([integer(who, "a dimension", d) for d in shape_entries(axis)])


def _total(x: Any, axis: Any, keepdims: bool = True) -> Any:
    """The sum along ``axis``, in a dtype that holds the sum of many."""
    return jnp.sum(_in(x, accumulator(x.dtype)), axis=axis, keepdims=keepdims)


def _in(x: Any, dtype: Any) -> Any:
    """``x`` in ``dtype``, as weak as it is."""
    return convert(x, dtype, x.weak_type)


def _with_infinity(x: Any) -> Any:
    """``x``, in float32 where it is of float8 or float4: most of these have no infinity."""
    return _in(x, accumulator(x.dtype)) if x.dtype in FLOAT8 else x


def _greatest(x: Any, axis: Any) -> Any:
    """The maximum along ``axis`` as a constant."""
    return jnp.max(ops.stop_gradient(x), axis=axis, keepdims=True, initial=-jnp.inf)


def _greatest_finite(x: Any, axis: Any) -> Any:
    """The same; 0 where it is infinite."""
    largest = _greatest(x, axis)
    return jnp.where(jnp.isfinite(largest), largest, 0)


# ---- logsumexp ------------------------------------------------------------------------------


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: Any = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: Any = None,
) -> tuple[Array, Array]: ...


def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Array | tuple[Array, Array]:
    """The logarithm of a sum of exponentials, log Σ b exp(a), exact for large and small ``a``.

    Of no elements it is -inf, with derivative 0.

    Args:
        a: a floating-point or complex array.
        axis: the axis or axes to sum over; by default all.
        b: factors that broadcast with ``a``.
        keepdims: whether the result keeps the summed axes with length 1.
        return_sign: whether to return the logarithm of the magnitude and the sign of the sum;
            otherwise the result is NaN where a real sum is negative.
        where: a mask that broadcasts with ``a``: what to sum.

    Returns:
        An array without the axes that are reduced; with ``keepdims`` they stay, with length 1. With
        ``return_sign`` a pair: the logarithm of the absolute value, and the sign.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> import phalanx.numpy as jnp
    >>> from phalanx import nn
    >>> float(nn.logsumexp(jnp.array([1000.0, -jnp.inf])))
    1000.0
    """
    axis = _static("logsumexp", axis)
    return _logsumexp(a, b, where, axis=axis, keepdims=keepdims, return_sign=return_sign)


@staged
def _logsumexp(a: Any, b: Any, where: Any, *, axis: Any, keepdims: bool, return_sign: bool) -> Any:
    if b is None:
        a = inexact("logsumexp", a)
    else:
        a, b = jnp.broadcast_arrays(*promote_inexact("logsumexp", [a, b]))
    dtype, a = a.dtype, _with_infinity(a)
    if b is not None:
        b = _with_infinity(b)
        a = jnp.where(b == 0, -jnp.inf, a)
    if where is not None:
        a = jnp.where(where, a, -jnp.inf)
    shift = _greatest_finite(jnp.real(a), axis)
    terms = jnp.exp(a - shift)
    total = _total(terms if b is None else b * terms, axis, keepdims)
    real = total.dtype not in COMPLEXES  # a complex logarithm has the sign of the sum in it
    size = jnp.abs(total) if return_sign or (real and b is not None) else total
    shift = shift if keepdims else jnp.reshape(shift, total.shape)
    empty = size == 0
    out = jnp.where(empty, -jnp.inf, jnp.log(jnp.where(empty, 1, size)) + shift)
    out = _in(out, dtypes.to_real(dtype) if return_sign else dtype)
    if return_sign:
        return out, _in(jnp.sign(total), dtype)
    return jnp.where(total < 0, jnp.nan, out) if real and b is not None else out


def logmeanexp(x: ArrayLike, axis: Axis = None, where: Any = None, keepdims: bool = False) -> Array:
    """The logarithm of the mean of exp(x), exact for large and small ``x``.

    Args:
        x: a floating-point array.
        axis: the axis or axes to take the mean over; by default all.
        where: a mask that broadcasts with ``x``: of what to take the mean.
        keepdims: whether the result keeps those axes with length 1.

    Returns:
        An array without the axes that are reduced; with ``keepdims`` they stay, with length 1.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> import phalanx.numpy as jnp
    >>> from phalanx import nn
    >>> float(nn.logmeanexp(jnp.array([1000.0, 1000.0])))
    1000.0
    """
    return _logmeanexp(x, where, axis=_static("logmeanexp", axis), keepdims=bool(keepdims))


@staged
def _logmeanexp(x: Any, where: Any, *, axis: Any, keepdims: bool) -> Any:
    x = inexact("logmeanexp", x)
    wide = _in(x, accumulator(x.dtype))
    total = logsumexp(wide, axis=axis, where=where, keepdims=keepdims)
    mask = jnp.broadcast_to(True if where is None else where, jnp.shape(x))
    count = jnp.sum(mask, axis=axis, keepdims=keepdims)
    return _in(total - jnp.log(jnp.astype(count, total.dtype)), x.dtype)


@staged
def _log1mexp(x: Any) -> Any:
    """By expm1 up to log 2, by log1p beyond (Mächler, Accurately computing log(1 - e^-a), 2012)."""
    near = x < math.log(2)
    close = jnp.log(-jnp.expm1(-jnp.where(near, x, 0.5)))
    return jnp.where(near, close, jnp.log1p(-jnp.exp(-jnp.where(near, 1, x))))


def log1mexp(x: ArrayLike) -> Array:
    """The logarithm log(1 - exp(-x)), exact for large and small ``x``; NaN of negative ``x``.

    Args:
        x: positive numbers.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> f"{float(nn.log1mexp(1e-3)):.3f}"
    '-6.908'
    """
    return _log1mexp(inexact("log1mexp", x))


# ---- softmax --------------------------------------------------------------------------------


def softmax(x: ArrayLike, axis: Axis = -1, where: Any = None) -> Array:
    """The softmax exp(x) / Σ exp(x) along ``axis``, exact for large and small x.

    Args:
        x: an array.
        axis: the axis or axes over which the result sums to 1.
        where: a mask that broadcasts with ``x``; the result is 0 where it does not hold.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> import phalanx.numpy as jnp
    >>> from phalanx import nn
    >>> nn.softmax(jnp.array([1000.0, 1000.0])).tolist()
    [0.5, 0.5]
    """
    return _softmax(x, where, axis=_static("softmax", axis))


@staged
def _softmax(x: Any, where: Any, *, axis: Any) -> Any:
    array = inexact("softmax", x)
    x = _with_infinity(array)
    if where is None:
        program, rule = _exponentials(typeof(x), axis), _softmax_rule(axis)
        return _in(custom_jvp(x, program=program, rule=rule, num_consts=0)[0], array.dtype)
    terms = jnp.where(where, jnp.exp(_shifted(x, axis, where)), 0)
    total = _total(terms, axis)
    return _in(terms / jnp.where(total == 0, 1, total), array.dtype)


@memoized(64)
def _exponentials(type: ArrayType, axis: Any) -> Program:
    def shares(x: Any) -> tuple[Any]:
        terms = jnp.exp(_shifted(x, axis, None))
        return (_in(terms / _total(terms, axis), terms.dtype),)

    return stage(shares, [type], "softmax")[0]


@memoized(16)
def _softmax_rule(axis: Any) -> JvpRule:
    """y moves by y (t - sum y t), which keeps nothing but y, and reads it once for all."""

    def pair(nonzero: Sequence[bool], operands: Sequence[Any]) -> list[Any]:
        x, tangent = operands
        y = _softmax(x, None, axis=axis)
        wide = _in(y, accumulator(y.dtype))
        return [y, _in(wide * (tangent - _total(wide * tangent, axis)), y.dtype)]

    return JvpRule("softmax", pair)


def _shifted(x: Any, axis: Any, where: Any) -> Any:
    if where is None:  # the maximum is not looked at: compilers fuse what follows it with it
        return x - _greatest(x, axis)
    x = jnp.where(where, x, -jnp.inf)
    return x - _greatest_finite(x, axis)


def log_softmax(x: ArrayLike, axis: Axis = -1, where: Any = None) -> Array:
    """The logarithm of the softmax, x - logsumexp(x), exact for large and small x.

    Args:
        x: an array.
        axis: the axis or axes over which the exponentials of the result sum to 1.
        where: a mask that broadcasts with ``x``; the result is -inf where it does not hold.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> import phalanx.numpy as jnp
    >>> from phalanx import nn
    >>> nn.log_softmax(jnp.array([1000.0, 0.0])).tolist()
    [0.0, -1000.0]
    """
    return _log_softmax(x, where, axis=_static("log_softmax", axis))


@staged
def _log_softmax(x: Any, where: Any, *, axis: Any) -> Any:
    array = inexact("log_softmax", x)
    shifted = _shifted(_with_infinity(array), axis, where)
    total = _total(jnp.exp(shifted), axis)
    return _in(shifted - jnp.log(jnp.where(total == 0, 1, total)), array.dtype)


# ---- standardize ----------------------------------------------------------------------------


def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """``x`` with mean 0 and variance 1 over ``axis``: (x - mean) / √(variance + ε).

    Args:
        x: an array.
        axis: the axis or axes whose mean becomes 0 and whose variance 1.
        mean: by default that of ``x``.
        variance: by default that of ``x``.
        epsilon: added to the variance.
        where: a mask that broadcasts with ``x``: what mean and variance are taken of.
        algorithm: "fast" or "stable"; both take the variance from the deviations.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    Raises:
        ValueError: there is no such algorithm.

    >>> import phalanx.numpy as jnp
    >>> from phalanx import nn
    >>> nn.standardize(jnp.array([1.0, 3.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    return _standardize(x, mean, variance, epsilon, where, axis=_static("standardize", axis))


@staged
def _standardize(x: Any, mean: Any, variance: Any, epsilon: Any, where: Any, *, axis: Any) -> Any:
    array = inexact("standardize", x)
    kind = jnp.result_type(*[v for v in (array, mean, variance, epsilon) if v is not None])
    # What is left out may be NaN: it stays so, and has no part in what is computed of the rest.
    counted = True if where is None else jnp.broadcast_to(jnp.asarray(where, bool), array.shape)
    lost = ~(jnp.isfinite(array) | counted)
    x = jnp.where(lost, 0, _in(array, accumulator(array.dtype)))
    if mean is None:
        mean = jnp.mean(x, axis=axis, keepdims=True, where=where)
    centered = x - mean
    if variance is None:
        variance = jnp.mean(jnp.square(centered), axis=axis, keepdims=True, where=where)
    return _in(jnp.where(lost, array, centered * ops.rsqrt(variance + epsilon)), kind)


# ---- one_hot --------------------------------------------------------------------------------


@takes_out_sharding
def one_hot(
    x: ArrayLike,
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    out_sharding: Any = None,
) -> Array:
    """One-hot vectors: 1 at the position that an element of ``x`` names, else 0, on a new axis.

    Args:
        x: an integer array; elements outside 0 ... num_classes - 1 give zeros.
        num_classes: the length of the new axis.
        dtype: of the result; by default float32, or float64 under ``enable_x64``.
        axis: where the new axis is in the result.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the shape of ``x`` and a dimension of length ``num_classes`` more.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> import phalanx.numpy as jnp
    >>> from phalanx import nn
    >>> nn.one_hot(jnp.array([2, 0]), 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    kind = dtypes.requested(float if dtype is None else dtype)
    place, count = integer("one_hot", "axis", axis), length(num_classes)
    return _one_hot(jnp.asarray(x), num_classes=count, dtype=kind, axis=place)


@staged
def _one_hot(x: Any, *, num_classes: int, dtype: Any, axis: int) -> Any:
    x = jnp.expand_dims(x, axis)
    if not dtypes.is_inexact(x.dtype) and x.dtype.itemsize < 4:
        x = x.astype(jnp.int32)  # which has every class, also where x has not so many numbers
    shape = [1] * x.ndim
    shape[axis] = num_classes
    classes = jnp.arange(num_classes, dtype=x.dtype).reshape(shape)
    return (x == classes).astype(dtype)
