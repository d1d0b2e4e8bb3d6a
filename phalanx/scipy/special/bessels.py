"""Bessel functions, spherical harmonics, and hypergeometric functions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from phalanx import lax
from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.source import user_location
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.joining import concatenate
from phalanx.numpy.promotion import ArrayLike, as_array, convert, real
from phalanx.numpy.searching import where
from phalanx.primitives.bessel import bessel_i, bessel_j0, bessel_j1
from phalanx.primitives.hypergeometric import hyp1f1 as _hyp1f1
from phalanx.primitives.hypergeometric import hyp2f1 as _hyp2f1
from phalanx.primitives.legendre import legendre

# ---- Bessel functions -----------------------------------------------------------------------


def i0e(x: ArrayLike) -> Array:
    """Exponentially scaled modified Bessel function of the first kind of order 0, e^-|x| I₀(x).

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floating-point numbers of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.i0e(jnp.array([0.0, 1.0, 1000.0])).round(4))
    [1.     0.4658 0.0126]
    """
    return lax.bessel_i0e(*real("i0e", x))


def i1e(x: ArrayLike) -> Array:
    """Exponentially scaled modified Bessel function of the first kind of order 1, e^-|x| I₁(x).

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floating-point numbers of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.i1e(jnp.array([0.0, 1.0, 1000.0])).round(4))
    [0.     0.2079 0.0126]
    """
    return lax.bessel_i1e(*real("i1e", x))


@one_program
def i1(x: ArrayLike) -> Array:
    """Modified Bessel function of the first kind of order 1, I₁(x).

    It overflows beyond x = 91 in float32; ``i1e`` does not.

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floating-point numbers of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.i1(jnp.array([-1.0, 0.0, 1.0])).round(4))
    [-0.5652  0.      0.5652]
    """
    (x,) = real("i1", x)
    return bessel_i(x, order=1)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind of the orders 0 to v, J₀(z), ..., J_v(z).

    Args:
        z: the argument, real, of any shape.
        v: the largest order: an integer, not traced.
        n_iter: accepted, and ignored: as many terms are used as the dtype needs.

    Returns:
        An array [v + 1, ...]: the orders in a new first dimension, before those of ``z``.

    Raises:
        TypeError: ``v`` is not an integer.
        ValueError: ``v`` is negative.

    >>> print(scipy.special.bessel_jn(jnp.array([0.0, 1.0]), v=2).round(4))
    [[1.     0.7652]
     [0.     0.4401]
     [0.     0.1149]]
    """
    last = operator.index(v)
    if last < 0:
        raise ValueError(f"bessel_jn: v must not be negative, got {v} at {user_location()}")
    return _bessel_jn(z, last)


@one_program
def _bessel_jn(z: ArrayLike, last: int) -> Array:
    """Upward by the recurrence for orders below |z|, beyond by ratios (DLMF 10.6.1, 10.10.1)."""
    (z,) = real("bessel_jn", z)
    dtype = z.dtype
    z = convert(z, np.result_type(dtype, np.float32))
    start = last + 12 + int(8 * last ** (1 / 3))  # from where on a ratio of 0 does for the last
    orders = np.arange(1, start, dtype=z.dtype)

    def ratio(above: Array, n: Array) -> tuple[Array, Array]:
        found = z / (2 * n - z * above)
        return found, found

    _, ratios = lax.scan(ratio, 0 * z, orders, reverse=True)
    size = ops.abs(z)
    inverse = 1 / where(size > 1, z, 1)  # below no order is

    def rise(two: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[Any, Array]:
        before, now = two
        n, found = row
        after = where(n < size, 2 * n * inverse * now - before, found * now)
        return (now, after), after

    first = bessel_j0(z)
    second = where(size > 0, bessel_j1(z), ratios[0] * first)
    rows = (orders[: max(last - 1, 0)], ratios[1 : max(last, 1)])
    _, others = lax.scan(rise, (first, second), rows)
    table = concatenate([first[None], second[None], others])
    return convert(table[: last + 1], dtype)


# ---- spherical harmonics --------------------------------------------------------------------


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
        Complex numbers, of the shape to which the arguments broadcast.

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


# ---- hypergeometric functions ---------------------------------------------------------------


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Confluent hypergeometric function of Kummer, ₁F₁(a; b; x) (DLMF 13.2.2).

    It is Σ (a)_k / (b)_k xᵏ / k! over k ≥ 0, where (a)_k is ``poch(a, k)``.

    Args:
        a: the parameter in the numerator.
        b: the parameter in the denominator.
        x: the argument, real, of any shape.

    Returns:
        Floating-point numbers of the shape to which the arguments broadcast; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.hyp1f1(1.0, 2.0, jnp.array([-1.0, 0.0, 1.0])).round(4))
    [0.6321 1.     1.7183]
    """
    return _hyp1f1(*real("hyp1f1", a, b, x))


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Hypergeometric function of Gauss, ₂F₁(a, b; c; x) (DLMF 15.2.1).

    It is Σ (a)_k (b)_k / (c)_k xᵏ / k! over k ≥ 0, where (a)_k is ``poch(a, k)``; and its
    continuation to x ≤ -1.

    Args:
        a: the first parameter in the numerator.
        b: the second, likewise.
        c: the parameter in the denominator.
        x: the argument, real, at most 1, of any shape.

    Returns:
        Floating-point numbers of the shape to which the arguments broadcast; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.hyp2f1(1.0, 1.0, 2.0, jnp.array([-1.0, 0.0, 0.5])).round(4))
    [0.6931 1.     1.3863]
    """
    return _hyp2f1(*real("hyp2f1", a, b, c, x))
