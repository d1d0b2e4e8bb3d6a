"""Continuous distributions: quantiles of uniform numbers, and functions of simpler numbers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from phalanx import numpy as jnp
from phalanx.base import dtypes
from phalanx.control.one_program import staged
from phalanx.core.types import Array, ArrayLike, ArrayType, DTypeLike, KeyLike, ShapeLike
from phalanx.lax.layout import takes_out_sharding
from phalanx.primitives import abs, add, ge, log, log1p, mul, neg, select, sign, sub, tan
from phalanx.primitives.shape import broadcast_to
from phalanx.random.arguments import (
    Lengths,
    as_parameter,
    as_shape,
    check_method,
    drawn,
    float_dtype,
    shape_of_draws,
)
from phalanx.random.gammas import draw_gamma
from phalanx.random.generators import sources
from phalanx.random.keys import single
from phalanx.random.normals import draw_normal
from phalanx.random.uniforms import draw_signs, draw_two, draw_uniform, is_high

# ---- of gamma numbers -----------------------------------------------------------------------


@takes_out_sharding
def generalized_normal(
    key: KeyLike,
    p: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Numbers of the generalized normal distribution, of density ∝ exp(-|x|ᵖ).

    Args:
        key: a single key.
        p: a positive number.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.generalized_normal(random.key(0), 1.5, (2,)).round(3))
    [1.06  0.089]
    """
    return drawn(_generalized_normal, "generalized_normal", key, shape, dtype, p)


@staged
def _generalized_normal(key: Any, p: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    return draw_generalized_normal(key, p, shape, dtype)


def draw_generalized_normal(key: Any, p: Any, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    gammas = draw_gamma(first, broadcast_to(1 / p, shape), in_logs=False)
    return draw_signs(second, shape, dtype) * gammas ** (1 / p)


@takes_out_sharding
def beta(
    key: KeyLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Array:
    """Beta-distributed numbers, of density xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b), 0 < x < 1.

    Args:
        key: a single key.
        a: the first parameter, a positive number, or an array that broadcasts to ``shape``.
        b: the second parameter, a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that to which ``a`` and ``b`` broadcast.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        method: "exact", by rejection; there is no other.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

    Raises:
        ValueError: the parameters do not broadcast to ``shape``, or there is no such method.

    >>> from phalanx import random
    >>> 0 < float(random.beta(random.key(0), 2.0, 3.0)) < 1
    True
    """
    check_method("beta", method)
    return drawn(_beta, "beta", key, shape, dtype, a, b)


@staged
def _beta(key: Any, a: Any, b: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    x = draw_gamma(first, broadcast_to(a, shape), in_logs=True)
    y = draw_gamma(second, broadcast_to(b, shape), in_logs=True)
    greatest = jnp.maximum(x, y)
    x, y = jnp.exp(x - greatest), jnp.exp(y - greatest)
    return x / (x + y)


@takes_out_sharding
def chisquare(
    key: KeyLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Array:
    """Chi-square numbers: sums of ``df`` squares of standard normal numbers.

    Args:
        key: a single key.
        df: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``df``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        method: "exact", by rejection; there is no other.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

    Raises:
        ValueError: ``df`` does not broadcast to ``shape``, or there is no such method.

    >>> from phalanx import random
    >>> bool(random.chisquare(random.key(0), 3.0) > 0)
    True
    """
    check_method("chisquare", method)
    return drawn(_chisquare, "chisquare", key, shape, dtype, df)


@staged
def _chisquare(key: Any, df: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    return _draw_chisquare(key, df, shape)


def _draw_chisquare(key: Any, df: Any, shape: Lengths) -> Any:
    return jnp.exp(draw_gamma(key, broadcast_to(df / 2, shape), in_logs=True)) * 2


@takes_out_sharding
def f(
    key: KeyLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """F-distributed numbers: quotients of two chi-square numbers, each over its degrees of freedom.

    Args:
        key: a single key.
        dfnum: degrees of freedom of the numerator, positive: a number, or an array that broadcasts
            to ``shape``.
        dfden: degrees of freedom of the denominator, positive: a number, or an array that
            broadcasts to ``shape``.
        shape: the shape of the result; by default that to which the parameters broadcast.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.f(random.key(0), 3.0, 4.0) > 0)
    True
    """
    return drawn(_f, "f", key, shape, dtype, dfnum, dfden)


@staged
def _f(key: Any, dfnum: Any, dfden: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    below, above = sources(key, 2)
    top = _draw_chisquare(above, dfnum, shape) / dfnum
    return top / (_draw_chisquare(below, dfden, shape) / dfden)


@takes_out_sharding
def t(
    key: KeyLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Student's t: standard normal numbers over √(χ²/df).

    Args:
        key: a single key.
        df: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``df``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.t(random.key(0), 3.0, (2,)).round(3))
    [ 0.69  -3.239]
    """
    return drawn(_t, "t", key, shape, dtype, df)


@staged
def _t(key: Any, df: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    half = df / 2
    gammas = draw_gamma(second, broadcast_to(half, shape), in_logs=False)
    return draw_normal(first, shape, dtype) * jnp.sqrt(half / gammas)


# ---- of normal numbers ----------------------------------------------------------------------


@takes_out_sharding
def maxwell(
    key: KeyLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Maxwell-distributed numbers: lengths of vectors of three standard normal numbers.

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.maxwell(random.key(0)) > 0)
    True
    """
    return drawn(_maxwell, "maxwell", key, as_shape("maxwell", shape), dtype)


@staged
def _maxwell(key: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    return _draw_maxwell(key, shape, dtype)


def _draw_maxwell(key: Any, shape: Lengths, dtype: np.dtype) -> Any:
    x = draw_normal(key, (*shape, 3), dtype)
    return jnp.sqrt(jnp.sum(x * x, -1))


def double_sided_maxwell(
    key: KeyLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """``loc`` + ``scale`` x, with x of the Maxwell distribution and of either sign.

    Args:
        key: a single key.
        loc: the center of the distribution, a number, or an array.
        scale: the factor of the numbers, a number, or an array.
        shape: of the numbers for each element of the parameters; where it is empty, there are
            as many numbers for each of them as there are elements.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.

    Returns:
        An array ``[*shape, ...]``, whose last axes are those to which the parameters broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.double_sided_maxwell(random.key(0), 0.0, 1.0, (2,)).round(3))
    [1.546 1.574]
    """
    who, chosen = "double_sided_maxwell", float_dtype("double_sided_maxwell", dtype)
    loc, scale = as_parameter(loc, chosen), as_parameter(scale, chosen)
    each = shape_of_draws(who, None, loc, scale)
    lengths = (as_shape(who, shape) or each) + each
    return _double_maxwell(single(who, key), loc, scale, shape=lengths, dtype=chosen)


@staged
def _double_maxwell(key: Any, loc: Any, scale: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    x = draw_signs(second, shape, dtype) * _draw_maxwell(first, shape, dtype)
    return x * scale + loc


@takes_out_sharding
def wald(
    key: KeyLike,
    mean: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The inverse Gaussian distribution of scale 1: when a drifting random walk passes 1.

    By a root of a quadratic equation, or the other (Michael, Schucany and Haas, Generating random
    variates using transformations with multiple roots, 1976).

    Args:
        key: a single key.
        mean: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``mean``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.wald(random.key(0), 2.0) > 0)
    True
    """
    return drawn(_wald, "wald", key, shape, dtype, mean)


@staged
def _wald(key: Any, mean: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    mean = broadcast_to(mean, shape)
    square = draw_normal(first, shape, dtype) ** 2
    unit = draw_uniform(second, shape, dtype)
    wide = mean * mean
    root = jnp.sqrt(4 * mean * square + wide * (square * square))
    x = mean + wide * square / 2 - mean / 2 * root
    return jnp.where(unit <= mean / (mean + x), x, wide / x)


# ---- of one uniform number ------------------------------------------------------------------


@takes_out_sharding
def pareto(
    key: KeyLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Pareto-distributed numbers, of density b / xᵇ⁺¹, x ≥ 1.

    Args:
        key: a single key.
        b: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``b``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.pareto(random.key(0), 2.0) >= 1)
    True
    """
    return drawn(_pareto, "pareto", key, shape, dtype, b)


@staged
def _pareto(key: Any, b: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    return jnp.exp(draw_exponential(key, shape, dtype) / broadcast_to(b, shape))


@takes_out_sharding
def rayleigh(
    key: KeyLike,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Rayleigh-distributed numbers, of density x / σ² exp(-x² / 2σ²), x ≥ 0.

    Args:
        key: a single key.
        scale: σ, a positive number or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``scale``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.rayleigh(random.key(0), 2.0) >= 0)
    True
    """
    return drawn(_rayleigh, "rayleigh", key, shape, dtype, scale)


@staged
def _rayleigh(key: Any, scale: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    return scale * jnp.sqrt(jnp.log(draw_uniform(key, shape, dtype)) * -2)


def weibull_min(
    key: KeyLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Weibull-distributed numbers, of density ∝ xᶜ⁻¹ exp(-(x / scale)ᶜ), with c the concentration.

    Args:
        key: a single key.
        scale: the scale, a positive number, or an array.
        concentration: the exponent c, a positive number, or an array.
        shape: of the random numbers that are scaled; it broadcasts with the parameters.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.

    Returns:
        Floats of the shape to which ``shape`` and those of the parameters broadcast.

    Raises:
        ValueError: ``shape`` and those of the parameters do not broadcast.

    >>> from phalanx import random
    >>> bool(random.weibull_min(random.key(0), 2.0, 3.0) >= 0)
    True
    """
    who, chosen = "weibull_min", float_dtype("weibull_min", dtype)
    scale, concentration = as_parameter(scale, chosen), as_parameter(concentration, chosen)
    lengths = as_shape(who, shape)
    shape_of_draws(who, None, scale, concentration, ArrayType(lengths, chosen))
    return _weibull(single(who, key), scale, concentration, shape=lengths, dtype=chosen)


@staged
def _weibull(key: Any, scale: Any, concentration: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    return draw_exponential(key, shape, dtype) ** (1 / concentration) * scale


@takes_out_sharding
def triangular(
    key: KeyLike,
    left: ArrayLike,
    mode: Any,
    right: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Triangular numbers: the density rises from ``left`` to ``mode``, and falls to ``right``.

    Args:
        key: a single key.
        left: the lower end, a number, or an array that broadcasts to ``shape``.
        mode: where the density is largest, a number, or an array that broadcasts to ``shape``.
        right: the upper end, a number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that to which the parameters broadcast.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> 0 <= float(random.triangular(random.key(0), 0.0, 0.3, 1.0)) <= 1
    True
    """
    return drawn(_triangular, "triangular", key, shape, dtype, left, mode, right)


@staged
def _triangular(
    key: Any, left: Any, mode: Any, right: Any, *, shape: Lengths, dtype: np.dtype
) -> Any:
    left, mode, right = (broadcast_to(x, shape) for x in (left, mode, right))
    unit = draw_uniform(key, shape, dtype)
    rising = left + jnp.sqrt(unit * (right - left) * (mode - left))
    falling = right - jnp.sqrt((1 - unit) * (right - left) * (right - mode))
    return jnp.where(unit < (mode - left) / (right - left), rising, falling)


@takes_out_sharding
def exponential(
    key: KeyLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Exponentially distributed numbers, of density exp(-x), x ≥ 0.

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.exponential(random.key(0), (2, 3)).round(3))
    [[2.95  3.843 0.404]
     [0.632 0.844 0.181]]
    """
    return drawn(_exponential, "exponential", key, as_shape("exponential", shape), dtype)


@staged
def _exponential(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return draw_exponential(key, shape, dtype)


def draw_exponential(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Exponential numbers, inside a staged function."""
    return neg(log1p(neg(draw_uniform(key, shape, dtype))))


@takes_out_sharding
def gumbel(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Gumbel-distributed numbers, with distribution function exp(-exp(-x)).

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        mode: how many random bits a number is made of: "high" for twice as many as "low", the
            default; large numbers, which are rare, need them.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``.

    Raises:
        ValueError: there is no such mode.

    >>> from phalanx import random
    >>> print(random.gumbel(random.key(0), (2, 3)).round(3))
    [[ 2.923  3.833 -0.097]
     [ 0.277  0.576 -0.587]]
    """
    core = partial(_gumbel, high=is_high("gumbel", mode))
    return drawn(core, "gumbel", key, as_shape("gumbel", shape), dtype)


@staged
def _gumbel(key: Any, *, shape: tuple[int, ...], dtype: np.dtype, high: bool) -> Any:
    return draw_gumbel(key, shape, dtype, high)


def draw_gumbel(key: Any, shape: tuple[int, ...], dtype: np.dtype, high: bool = False) -> Any:
    """Gumbel-distributed numbers, inside a staged function; see ``gumbel`` for ``high``."""
    if not high:
        unit = draw_uniform(key, shape, dtype, dtypes.finfo(dtype).tiny)
        return neg(log(neg(log(unit))))
    coarse, fine = draw_two(key, shape, dtype)
    info = dtypes.finfo(dtype)
    half_a_step = max(float(info.eps) ** 2 / 2, float(info.tiny))
    unit = select(ge(coarse, 0.5), coarse, add(add(coarse, fine), half_a_step))
    return neg(log(neg(log1p(neg(unit)))))


@takes_out_sharding
def laplace(
    key: KeyLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Laplace-distributed numbers, of density exp(-|x|) / 2.

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.laplace(random.key(0), (2, 3)).round(3))
    [[-2.257 -3.15   0.409]
     [ 0.065 -0.151  1.106]]
    """
    return drawn(_laplace, "laplace", key, as_shape("laplace", shape), dtype)


@staged
def _laplace(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    unit = draw_uniform(key, shape, dtype, -1 + dtypes.finfo(dtype).epsneg)
    return mul(sign(unit), log1p(neg(abs(unit))))


@takes_out_sharding
def logistic(
    key: KeyLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Logistic numbers, with distribution function 1 / (1 + exp(-x)).

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.logistic(random.key(0), (2, 3)).round(3))
    [[ 2.896  3.822 -0.698]
     [-0.125  0.281 -1.618]]
    """
    return drawn(_logistic, "logistic", key, as_shape("logistic", shape), dtype)


@staged
def _logistic(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    unit = draw_uniform(key, shape, dtype, dtypes.finfo(dtype).tiny)
    return sub(log(unit), log1p(neg(unit)))


@takes_out_sharding
def cauchy(
    key: KeyLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Cauchy-distributed numbers, of density 1 / (π (1 + x²)).

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.cauchy(random.key(0), (2, 3)).round(3))
    [[ 6.027 14.838 -0.582]
     [-0.099  0.223 -1.747]]
    """
    return drawn(_cauchy, "cauchy", key, as_shape("cauchy", shape), dtype)


@staged
def _cauchy(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    unit = draw_uniform(key, shape, dtype, dtypes.finfo(dtype).eps)
    return tan(mul(sub(unit, 0.5), math.pi))
