"""Distributions of numbers that are made of a few simpler random numbers."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from phalanx import lax
from phalanx import numpy as jnp
from phalanx.control.one_program import staged
from phalanx.core.types import Array, ArrayLike, ArrayType, DTypeLike, KeyLike, ShapeLike, typeof
from phalanx.lax.layout import takes_out_sharding
from phalanx.ops.shape import broadcast_to
from phalanx.random.distributions import draw_exponential, draw_normal
from phalanx.random.generators import sources
from phalanx.random.keys import single
from phalanx.random.rejection import check_method, draw_gamma
from phalanx.random.uniforms import (
    as_parameter,
    as_shape,
    but_last_axis,
    draw_signs,
    draw_uniform,
    float_dtype,
    integer_dtype,
    shape_of_draws,
)

Lengths = tuple[int, ...]


def _made(core: Any, who: str, key: Any, shape: Any, dtype: Any, *parameters: Any) -> Any:
    """What ``core`` draws, of ``shape`` or of that to which the parameters broadcast."""
    chosen = float_dtype(who, dtype)
    given = [as_parameter(p, chosen) for p in parameters]
    lengths = shape_of_draws(who, shape, *given)
    return core(single(who, key), *given, shape=lengths, dtype=chosen)


# ---- of gamma numbers -----------------------------------------------------------------------


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        ValueError: the parameters do not broadcast to ``shape``, or there is no such method.

    >>> from phalanx import random
    >>> 0 < float(random.beta(random.key(0), 2.0, 3.0)) < 1
    True
    """
    check_method("beta", method)
    return _made(_beta, "beta", key, shape, dtype, a, b)


@staged
def _beta(key: Any, a: Any, b: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    x = draw_gamma(first, broadcast_to(a, shape), in_logs=True)
    y = draw_gamma(second, broadcast_to(b, shape), in_logs=True)
    greatest = jnp.maximum(x, y)
    x, y = jnp.exp(x - greatest), jnp.exp(y - greatest)
    return x / (x + y)


@takes_out_sharding
def dirichlet(
    key: KeyLike,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Dirichlet vectors: positive numbers of sum 1 along the last axis, of density ∝ Π xᵢ^(αᵢ - 1).

    Args:
        key: a single key.
        alpha: positive numbers along the last axis.
        shape: of the result without its last axis; by default that of ``alpha``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of shape [*shape, n], n the length of ``alpha``.

    Raises:
        ValueError: ``alpha`` has no axis, or does not broadcast to ``shape``.

    >>> import numpy as np
    >>> from phalanx import random
    >>> print(random.dirichlet(random.key(0), np.ones(3), (2,)).round(3))
    [[0.365 0.428 0.207]
     [0.494 0.326 0.18 ]]
    """
    chosen = float_dtype("dirichlet", dtype)
    alpha = as_parameter(alpha, chosen)
    batch, count = but_last_axis("dirichlet", "alpha", alpha)
    lengths = shape_of_draws("dirichlet", shape, batch)
    return _dirichlet(single("dirichlet", key), alpha, shape=(*lengths, count))


@staged
def _dirichlet(key: Any, alpha: Any, *, shape: Lengths) -> Any:
    logs = draw_gamma(key, broadcast_to(alpha, shape), in_logs=True)
    greatest = lax.stop_gradient(jnp.max(logs, -1, keepdims=True, initial=-math.inf))
    shares = jnp.exp(logs - greatest)
    return shares / jnp.sum(shares, -1, keepdims=True)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        ValueError: ``df`` does not broadcast to ``shape``, or there is no such method.

    >>> from phalanx import random
    >>> bool(random.chisquare(random.key(0), 3.0) > 0)
    True
    """
    check_method("chisquare", method)
    return _made(_chisquare, "chisquare", key, shape, dtype, df)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.f(random.key(0), 3.0, 4.0) > 0)
    True
    """
    return _made(_f, "f", key, shape, dtype, dfnum, dfden)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.t(random.key(0), 3.0, (2,)).round(3))
    [ 0.69  -3.239]
    """
    return _made(_t, "t", key, shape, dtype, df)


@staged
def _t(key: Any, df: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    half = df / 2
    gammas = draw_gamma(second, broadcast_to(half, shape), in_logs=False)
    return draw_normal(first, shape, dtype) * jnp.sqrt(half / gammas)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.generalized_normal(random.key(0), 1.5, (2,)).round(3))
    [1.06  0.089]
    """
    return _made(_generalized_normal, "generalized_normal", key, shape, dtype, p)


@staged
def _generalized_normal(key: Any, p: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    return _draw_generalized(key, p, shape, dtype)


def _draw_generalized(key: Any, p: Any, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    gammas = draw_gamma(first, broadcast_to(1 / p, shape), in_logs=False)
    return draw_signs(second, shape, dtype) * gammas ** (1 / p)


@takes_out_sharding
def ball(
    key: KeyLike,
    d: int,
    p: ArrayLike = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Points of the unit ball of the p-norm in ``d`` dimensions, all equally likely.

    Args:
        key: a single key.
        d: the number of dimensions.
        p: of the norm, a positive number.
        shape: of the points.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        An array ``[*shape, d]``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.ball(random.key(0), 3, shape=(2,)).round(3))
    [[ 0.917  0.393  0.012]
     [-0.861  0.317 -0.063]]
    """
    chosen = float_dtype("ball", dtype)
    lengths = (*as_shape("ball", shape), *as_shape("ball", operator.index(d)))
    return _ball(single("ball", key), as_parameter(p, chosen), shape=lengths, dtype=chosen)


@staged
def _ball(key: Any, p: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    x = _draw_generalized(first, p, shape, dtype)
    size = jnp.sum(jnp.abs(x) ** p, -1) + draw_exponential(second, shape[:-1], dtype)
    return x / (size ** (1 / p))[..., None]


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.maxwell(random.key(0)) > 0)
    True
    """
    return _made(_maxwell, "maxwell", key, as_shape("maxwell", shape), dtype)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.wald(random.key(0), 2.0) > 0)
    True
    """
    return _made(_wald, "wald", key, shape, dtype, mean)


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
def geometric(
    key: KeyLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Geometric numbers: how many trials it takes until one succeeds, each with probability ``p``.

    Args:
        key: a single key.
        p: a number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``p``.
        dtype: an integer dtype; int32 by default, or int64 under ``enable_x64``.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Integers of ``shape``; if that is None, of the shape of the parameter.

    Raises:
        TypeError: ``dtype`` is not integer.
        ValueError: ``p`` does not broadcast to ``shape``.

    >>> from phalanx import random
    >>> int(random.geometric(random.key(0), 1.0))
    1
    """
    chosen = integer_dtype("geometric", dtype)
    p = as_parameter(p, float_dtype("geometric", None))
    lengths = shape_of_draws("geometric", shape, p)
    return _geometric(single("geometric", key), p, shape=lengths, dtype=chosen)


@staged
def _geometric(key: Any, p: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    unit = draw_uniform(key, shape, typeof(p).dtype)
    logs = jnp.log(jnp.where(unit == 0, 1, unit))
    trials = jnp.floor(logs / broadcast_to(jnp.log1p(-p), shape)) + 1
    return lax.convert_element_type(trials, dtype)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.pareto(random.key(0), 2.0) >= 1)
    True
    """
    return _made(_pareto, "pareto", key, shape, dtype, b)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.rayleigh(random.key(0), 2.0) >= 0)
    True
    """
    return _made(_rayleigh, "rayleigh", key, shape, dtype, scale)


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
        Floating-point numbers of the shape to which ``shape`` and those of the parameters
        broadcast.

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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> 0 <= float(random.triangular(random.key(0), 0.0, 0.3, 1.0)) <= 1
    True
    """
    return _made(_triangular, "triangular", key, shape, dtype, left, mode, right)


@staged
def _triangular(
    key: Any, left: Any, mode: Any, right: Any, *, shape: Lengths, dtype: np.dtype
) -> Any:
    left, mode, right = (broadcast_to(x, shape) for x in (left, mode, right))
    unit = draw_uniform(key, shape, dtype)
    rising = left + jnp.sqrt(unit * (right - left) * (mode - left))
    falling = right - jnp.sqrt((1 - unit) * (right - left) * (right - mode))
    return jnp.where(unit < (mode - left) / (right - left), rising, falling)
