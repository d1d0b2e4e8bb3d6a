"""Bessel functions, spherical harmonics, and hypergeometric functions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from phalanx import lax, ops
from phalanx.base import dtypes
from phalanx.base.source import user_location
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.numpy.joining import concatenate
from phalanx.numpy.promotion import ArrayLike, as_array, convert, real
from phalanx.ops.bessel import bessel_j0, bessel_j1
from phalanx.ops.hypergeometric import hyp1f1 as _hyp1f1
from phalanx.ops.hypergeometric import hyp2f1 as _hyp2f1
from phalanx.ops.legendre import legendre

# ---- Bessel functions -----------------------------------------------------------------------


def i0e(x: ArrayLike) -> Array:
    """e^-|x| I₀(x).

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(i0e(0.0))
    1.0
    """
    return lax.bessel_i0e(*real("i0e", x))


def i1e(x: ArrayLike) -> Array:
    """e^-|x| I₁(x).

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(i1e(0.0))
    0.0
    """
    return lax.bessel_i1e(*real("i1e", x))


@one_program
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 1.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(i1(0.0))
    0.0
    """
    (x,) = real("i1", x)
    half = ops.exp(0.5 * ops.abs(x))  # e^|x| may be too large
    return half * (half * lax.bessel_i1e(x))


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """J₀(z), ..., J_v(z), the Bessel functions of the first kind, in a first dimension.

    Args:
        z: a real array.
        v: the largest order.
        n_iter: taken for the sake of other libraries; as many terms are used as are needed.

    Returns:
        An array of the shape of ``z`` and a first dimension of length v + 1.

    Raises:
        TypeError: v is no integer.
        ValueError: v is negative.

    >>> [f"{y:.4f}" for y in bessel_jn(1.0, v=2).tolist()]
    ['0.7652', '0.4401', '0.1149']
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
    inverse = 1 / where(z == 0, 1, z)

    def rise(two: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[Any, Array]:
        before, now = two
        n, found = row
        after = where(n < size, 2 * n * inverse * now - before, found * now)
        return (now, after), after

    first = bessel_j0(z)
    second = where(size > 0, bessel_j1(z), ratios[0] * first)
    rows = (orders[: max(last - 1, 0)], ratios[1:max(last, 1)])
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
    """The spherical harmonic of degree n and order m, with the phase of Condon and Shortley.

    Args:
        n: degrees, whole numbers from 0 on.
        m: orders, whole numbers from -n to n; elsewhere the result is 0.
        theta: the angle from the pole, a real number from 0 to π.
        phi: the angle around it, from 0 to 2π.
        diff_n: None; derivatives are those that ``grad`` and ``jvp`` take.
        n_max: a largest degree, which stands for larger ones.

    Returns:
        Complex numbers, of the shape to which the arguments broadcast.

    Raises:
        ValueError: ``diff_n`` is given.

    >>> f"{sph_harm_y(1, 0, 0.0, 0.0).item():.4f}"
    '0.4886+0.0000j'
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
    size = legendre(n, m, theta)
    return ops.complex(size * ops.cos(m * phi), size * ops.sin(m * phi))


def _whole(x: ArrayLike, dtype: np.dtype) -> Any:
    """Integers ``x`` in ``dtype``, without promotion: they count, where other operands measure."""
    x = as_array("sph_harm_y", x)
    return x if dtypes.is_inexact(x.aval.dtype) else convert(x, dtype)


# ---- hypergeometric functions ---------------------------------------------------------------


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's function 1F1(a; b; x) = Σ (a)_k / (b)_k xᵏ / k! (DLMF 13.2.2).

    Args:
        a: a parameter of the series.
        b: a parameter of the series.
        x: an array, or a number.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(hyp1f1(1.0, 1.0, 1.0)):.4f}"
    '2.7183'
    """
    return _hyp1f1(*real("hyp1f1", a, b, x))


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss' function 2F1(a, b; c; x) = Σ (a)_k (b)_k / (c)_k xᵏ / k!, continued to x ≤ 1.

    Args:
        a: a parameter of the series.
        b: a parameter of the series.
        c: a parameter of the series, in its denominator.
        x: an array, or a number.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(hyp2f1(1.0, 1.0, 2.0, 0.5)):.4f}"
    '1.3863'
    """
    return _hyp2f1(*real("hyp2f1", a, b, c, x))
