"""Normal numbers: real and complex, truncated, and their exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.control.one_program import staged
from phalanx.core.types import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike
from phalanx.lax.layout import takes_out_sharding
from phalanx.primitives import clamp, complex, div, erf, erf_inv, exp, mul, nextafter
from phalanx.primitives.shape import broadcast_to
from phalanx.random.arguments import as_parameter, as_shape, drawn, float_dtype, shape_of_draws
from phalanx.random.generators import sources
from phalanx.random.keys import single
from phalanx.random.uniforms import as_uniform, bits_of, draw_bits, draw_uniform

_SQRT_2 = math.sqrt(2)


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
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``.

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
    return drawn(_normal, "normal", key, as_shape("normal", shape), dtype)


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
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the bounds broadcast.

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
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

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
