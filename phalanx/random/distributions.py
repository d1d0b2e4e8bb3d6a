"""Continuous distributions, from uniform numbers by their quantile functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.control.one_program import staged
from phalanx.core.types import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike
from phalanx.lax.layout import takes_out_sharding
from phalanx.ops import (
    abs,
    add,
    clamp,
    complex,
    div,
    erf,
    erf_inv,
    exp,
    ge,
    log,
    log1p,
    mul,
    neg,
    nextafter,
    select,
    sign,
    sub,
    tan,
)
from phalanx.ops.shape import broadcast_to
from phalanx.random.generators import sources
from phalanx.random.keys import single
from phalanx.random.uniforms import (
    as_parameter,
    as_shape,
    as_uniform,
    bits_of,
    draw_bits,
    draw_two,
    draw_uniform,
    float_dtype,
    is_high,
    shape_of_draws,
)

_SQRT_2 = math.sqrt(2)


def _standard(core: Callable[..., Any], who: str, key: Any, shape: Any, dtype: Any) -> Any:
    chosen = float_dtype(who, dtype)
    return core(single(who, key), shape=as_shape(who, shape), dtype=chosen)


# ---- normal ---------------------------------------------------------------------------------


@takes_out_sharding
def normal(
    key: KeyLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Standard normal numbers, of density exp(-x²/2) / √(2π).

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``. A
            complex dtype gives numbers whose parts have variance 1/2 each.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.normal(random.key(0), (2, 3)).round(3))
    [[ 1.623  2.025 -0.434]
     [-0.079  0.176 -0.972]]
    """
    if dtype is not None and dtypes.is_complex(dtypes.requested(dtype)):
        chosen, core = dtypes.requested(dtype), _complex_normal
        return core(single("normal", key), shape=as_shape("normal", shape), dtype=chosen)
    return _standard(_normal, "normal", key, shape, dtype)


@staged
def _normal(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return draw_normal(key, shape, dtype)


@staged
def _complex_normal(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return draw_standard_normal(key, shape, dtype)


def draw_standard_normal(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Standard normal numbers, real or complex, inside a staged function."""
    if not dtypes.is_complex(dtype):
        return draw_normal(key, shape, dtype)
    part = dtypes.to_real(dtype)
    both = complex(*(draw_normal(k, shape, part) for k in sources(key, 2)))
    return div(both, _SQRT_2)


def draw_normal(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Standard normal numbers, inside a staged function."""
    return as_normal(draw_bits(key, shape, bits_of(dtype)), dtype)


def as_normal(drawn: Any, dtype: np.dtype) -> Any:
    """The standard normal numbers that random bits stand for."""
    least = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)[()]
    return mul(erf_inv(as_uniform(drawn, dtype, least)), _SQRT_2)


@takes_out_sharding
def truncated_normal(
    key: KeyLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Truncated normal numbers: standard normal ones, given that they lie in (lower, upper).

    Args:
        key: a single key.
        lower: the lower bound, a number, or an array that broadcasts to ``shape``.
        upper: the upper bound, a number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that to which the bounds broadcast.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the bounds
        broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> x = random.truncated_normal(random.key(0), -2, 2, (100,))
    >>> bool((jnp.abs(x) < 2).all())
    True
    """
    chosen = float_dtype("truncated_normal", dtype)
    lower, upper = as_parameter(lower, chosen), as_parameter(upper, chosen)
    lengths = shape_of_draws("truncated_normal", shape, lower, upper)
    key = single("truncated_normal", key)
    return _truncated_normal(key, lower, upper, shape=lengths, dtype=chosen)


@staged
def _truncated_normal(
    key: Any, lower: Any, upper: Any, *, shape: tuple[int, ...], dtype: np.dtype
) -> Any:
    low, high = (broadcast_to(erf(div(v, _SQRT_2)), shape) for v in (lower, upper))
    out = mul(erf_inv(draw_uniform(key, shape, dtype, low, high)), _SQRT_2)
    lower, upper = broadcast_to(lower, shape), broadcast_to(upper, shape)
    return clamp(nextafter(lower, np.inf), out, nextafter(upper, -np.inf))


@takes_out_sharding
def lognormal(
    key: KeyLike,
    sigma: ArrayLike = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Log-normal numbers: exp(σ x) for standard normal x, which may be complex.

    Args:
        key: a single key.
        sigma: a number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``sigma``.
        dtype: a floating-point or complex dtype; float32 by default, or float64 under
            ``enable_x64``.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point or complex numbers of ``shape``; if that is None, of the shape of ``sigma``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.lognormal(random.key(0), 0.5, (2,)).round(3))
    [2.251 2.753]
    """
    chosen = None if dtype is None else dtypes.requested(dtype)
    if chosen is None or not dtypes.is_complex(chosen):
        chosen = float_dtype("lognormal", dtype)
    sigma = as_parameter(sigma, chosen)
    lengths = shape_of_draws("lognormal", shape, sigma)
    return _lognormal(single("lognormal", key), sigma, shape=lengths, dtype=chosen)


@staged
def _lognormal(key: Any, sigma: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return exp(mul(draw_standard_normal(key, shape, dtype), broadcast_to(sigma, shape)))


# ---- others ---------------------------------------------------------------------------------


@takes_out_sharding
def exponential(
    key: KeyLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Exponentially distributed numbers, of density exp(-x), x ≥ 0.

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
    >>> print(random.exponential(random.key(0), (2, 3)).round(3))
    [[2.95  3.843 0.404]
     [0.632 0.844 0.181]]
    """
    return _standard(_exponential, "exponential", key, shape, dtype)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``.

    Raises:
        ValueError: there is no such mode.

    >>> from phalanx import random
    >>> print(random.gumbel(random.key(0), (2, 3)).round(3))
    [[ 2.923  3.833 -0.097]
     [ 0.277  0.576 -0.587]]
    """
    core = partial(_gumbel, high=is_high("gumbel", mode))
    return _standard(core, "gumbel", key, shape, dtype)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.laplace(random.key(0), (2, 3)).round(3))
    [[-2.257 -3.15   0.409]
     [ 0.065 -0.151  1.106]]
    """
    return _standard(_laplace, "laplace", key, shape, dtype)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.logistic(random.key(0), (2, 3)).round(3))
    [[ 2.896  3.822 -0.698]
     [-0.125  0.281 -1.618]]
    """
    return _standard(_logistic, "logistic", key, shape, dtype)


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.cauchy(random.key(0), (2, 3)).round(3))
    [[ 6.027 14.838 -0.582]
     [-0.099  0.223 -1.747]]
    """
    return _standard(_cauchy, "cauchy", key, shape, dtype)


@staged
def _cauchy(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    unit = draw_uniform(key, shape, dtype, dtypes.finfo(dtype).eps)
    return tan(mul(sub(unit, 0.5), math.pi))
