"""Associated Legendre functions, of all orders and degrees up to some.

Pₗᵐ(x) = (1 - x²)^(m/2) A(x), where A is a polynomial: (-1)ᵐ times the m-th derivative of Pₗ
(DLMF 14.7.10). So the derivative of A is that of the next order, without its sign, and what is
singular at ±1 stands in the power.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from phalanx import lax
from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.base.source import user_location
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import power
from phalanx.numpy.promotion import ArrayLike, as_array, convert, real
from phalanx.numpy.searching import where
from phalanx.primitives.legendre import legendre


@one_program
def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """Associated Legendre functions of the first kind Pₗᵐ(z), of all orders up to m and degrees up
    to n.

    They have the Condon-Shortley phase (-1)ᵐ (DLMF 14.7.10). Normalized, they are the spherical
    harmonics Yₗᵐ at the polar angle arccos z and azimuth 0, whose size stays near 1 at high orders.

    Args:
        m: the highest order: an integer, not traced.
        n: the highest degree, likewise.
        z: the points, a vector [k] of real numbers from -1 to 1.
        is_normalized: whether they are normalized as spherical harmonics (DLMF 14.30.1).

    Returns:
        An array [m + 1, n + 1, k] of the dtype of ``z``, or float32 for integers: by order, degree
        and point; 0 where the order is larger than the degree.

    Raises:
        ValueError: ``z`` is no vector, or ``m`` or ``n`` is negative.

    >>> import numpy as np
    >>> lpmn_values(1, 2, np.array([0.5], np.float32), False)[0, :, 0]
    Array([ 1.   ,  0.5  , -0.125], dtype=float32)
    """
    m, n, x = _checked("lpmn_values", m, n, z)
    return _powers(x, m, n, 0) * _polynomials(x, m, n, is_normalized)


@one_program
def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """Associated Legendre functions of the first kind Pₗᵐ(z) and their derivatives, of all orders
    up to m and degrees up to n.

    Args:
        m: the highest order: an integer, not traced.
        n: the highest degree, likewise.
        z: the points, a vector [k] of real numbers from -1 to 1.

    Returns:
        A tuple of two arrays [m + 1, n + 1, k]: the values, as of ``lpmn_values`` without
        normalization, and their derivatives by z. Those of order 1 are infinite at -1 and 1.

    Raises:
        ValueError: ``z`` is no vector, or ``m`` or ``n`` is negative.

    >>> import numpy as np
    >>> values, slopes = lpmn(1, 2, np.array([0.5], np.float32))
    >>> slopes[0, 1:, 0]
    Array([1. , 1.5], dtype=float32)
    """
    m, n, x = _checked("lpmn", m, n, z)
    polynomials = _polynomials(x, m + 1, n, is_normalized=False)
    here, next_order = polynomials[:-1], polynomials[1:]
    orders = np.arange(m + 1).astype(x.dtype)[:, None, None]
    of_power = x * -orders * _powers(x, m, n, 1)
    return _powers(x, m, n, 0) * here, of_power * here - _powers(x, m, n, 0) * next_order


def _checked(who: str, m: int, n: int, z: ArrayLike) -> tuple[int, int, Array]:
    m, n = operator.index(m), operator.index(n)
    (x,) = real(who, z)
    if m < 0 or n < 0:
        raise ValueError(
            f"{who}: the highest order and degree must not be negative, got m={m} and n={n}, at "
            f"{user_location()}"
        )
    if x.ndim != 1:
        raise ShapeError(
            f"{who}: the points must be a vector, got {x.ndim} dimensions, of shape {x.shape}, at "
            f"{user_location()}; use vmap, or z.ravel()"
        )
    return m, n, x


def _powers(x: Array, m: int, n: int, less: int) -> Array:
    """(1 - x²)^(order/2 - less), [order, degree, point]; 1 where what it multiplies is zero.

    So nothing is infinite there, at -1 and 1, nor is a derivative.
    """
    order, degree = np.arange(m + 1.0)[:, None], np.arange(n + 1.0)
    exponents = np.where((order > 0) & (order <= degree), order / 2 - less, 0)
    return power((1 - x) * (1 + x), exponents[..., None].astype(x.dtype))


def _polynomials(x: Array, m: int, n: int, is_normalized: bool) -> Array:
    """A(x), [order, degree, point], from one degree to the next (DLMF 14.10.3)."""

    def step(before: tuple[Array, Array], factors: Array) -> tuple[tuple[Array, Array], Array]:
        lower, last = before
        of_last, of_lower, first = factors
        new = of_last * (x * last) + of_lower * lower + first
        return (last, new), new

    none = lax.full_like(x, 0, shape=(m + 1, *x.shape))
    factors = _recurrence(m, n, is_normalized, x.dtype)
    return lax.scan(step, (none, none), factors)[1].swapaxes(0, 1)


def _recurrence(m: int, n: int, is_normalized: bool, dtype: np.dtype) -> np.ndarray:
    """[degree, 3, order, 1]: the factors of the last two degrees, and what the order starts with.

    Normalized functions have those of the others, times ratios of the factors of DLMF 14.30.1.
    """
    degree, order = np.arange(n + 1.0)[:, None], np.arange(m + 1.0)
    k, before = np.arange(1.0, m + 1), degree - 1
    with np.errstate(all="ignore"):  # what is not a number, or too large, is not for this order
        if is_normalized:
            of_last = np.sqrt((4 * degree**2 - 1) / (degree**2 - order**2))
            of_lower = -of_last * np.sqrt((before**2 - order**2) / (4 * before**2 - 1))
            ratios = [1 / math.sqrt(4 * math.pi), *-np.sqrt((2 * k + 1) / (2 * k))]
        else:
            of_last = (2 * degree - 1) / (degree - order)
            of_lower = -(degree + order - 1) / (degree - order)
            ratios = [1.0, *(1 - 2 * k)]
        first = np.where(degree == order, np.cumprod(ratios), 0)
        rest = [np.where(order < degree, factor, 0) for factor in (of_last, of_lower)]
        return np.stack([*rest, first], axis=1)[..., None].astype(dtype)


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Spherical harmonic of degree n and order m, with the Condon-Shortley phase.

    Args:
        n: the degree, an integer from 0 on.
        m: the order, an integer from -n to n; for others the result is 0.
        theta: the polar angle in radians, from 0 to π.
        phi: the azimuth in radians, from 0 to 2π.
        diff_n: must be None; take derivatives with ``grad`` or ``jvp``.
        n_max: None, or an upper bound on the degree: larger ones count as this one.

    Returns:
        Complex numbers, of the broadcast shape.

    Raises:
        ValueError: ``diff_n`` is given.

    >>> print(scipy.special.sph_harm_y(jnp.array([0, 1, 2]), 0, 0.0, 0.0).real.round(4))
    [0.2821 0.4886 0.6308]
    """
    if diff_n is not None:
        raise ValueError(
            f"sph_harm_y: diff_n must be None, got {diff_n} at {user_location()}; use jvp"
        )
    return _sph_harm_y(n, m, theta, phi, n_max)


@one_program
def _sph_harm_y(
    n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, n_max: int | None
) -> Array:
    theta, phi = real("sph_harm_y", theta, phi)
    n, m = (_whole(x, theta.dtype) for x in (n, m))
    n, m, theta, phi = real("sph_harm_y", n, m, theta, phi)
    if n_max is not None:
        n = where(n > n_max, n_max, n)
    wide = np.result_type(theta.dtype, np.float32)
    n, m, theta, phi = (convert(x, wide) for x in (n, m, theta, phi))
    turned = (ops.sin(theta) < 0) & (ops.abs(ops.rem(ops.floor(m), dtypes.scalar(2, wide))) == 1)
    size = legendre(n, m, theta)
    size = where(turned, -size, size)  # beyond the poles it is that of the sine's magnitude
    return ops.complex(size * ops.cos(m * phi), size * ops.sin(m * phi))


def _whole(x: ArrayLike, dtype: np.dtype) -> Any:
    """Integers ``x`` in ``dtype``, without promotion: they count, where other operands measure."""
    x = as_array("sph_harm_y", x)
    return x if dtypes.is_inexact(x.aval.dtype) else convert(x, dtype)
