"""The gamma function and what is made of it: beta and zeta functions, and rising factorials."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from phalanx import lax
from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.source import user_location
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.special import nth_polygamma
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.numpy.searching import where
from phalanx.primitives.gamma import gamma as _gamma
from phalanx.primitives.gamma import log_gamma as _log_gamma
from phalanx.primitives.incomplete import betaln as _betaln
from phalanx.primitives.incomplete import log_poch as _log_poch
from phalanx.scipy.special.operands import inexact, is_complex


def gammaln(x: ArrayLike) -> Array:
    """Logarithm of the absolute value of the gamma function, log |Γ(x)|.

    Finite where Γ(x) itself is too large for a float; see ``gammasgn`` for the sign.

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.gammaln(jnp.array([0.5, 5.0, 100.0])).round(3))
    [  0.572   3.178 359.134]
    """
    return ops.lgamma(*real("gammaln", x))


@one_program
def gammasgn(x: ArrayLike) -> Array:
    """Sign of the gamma function: 1 or -1; NaN at -1, -2, ..., and the sign of 1 / x at 0.

    So Γ(x) is ``gammasgn(x) * exp(gammaln(x))``.

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.gammasgn(jnp.array([2.5, -0.5, -1.5])))
    [ 1. -1.  1.]
    """
    (x,) = real("gammasgn", x)
    return _sign_of_gamma(x)


def _sign_of_gamma(x: Array) -> Array:
    down = ops.floor(x)
    sign = where(ops.rem(down, _like(x, 2)) == 0, 1, -1)
    below = where((down == x) | (x == -math.inf), math.nan, sign)
    return where(x == 0, ops.sign(1 / x), where(x > 0, 1, where(x < 0, below, x)))


def _like(x: Array, value: float) -> Any:
    return dtypes.scalar(value, x.dtype)


def gamma(x: ArrayLike) -> Array:
    """Gamma function Γ(x), which is (x - 1)! at positive integers; NaN at -1, -2, ...

    Args:
        x: the argument, real or complex, of any shape.

    Returns:
        Numbers of the shape of ``x``: of its dtype, or float32 for integers.

    >>> print(scipy.special.gamma(jnp.array([0.5, 5.0, -1.5])).round(4))
    [ 1.7725 24.      2.3633]
    """
    (x,) = inexact("gamma", x)
    return _complex_gamma(x) if is_complex(x) else _gamma(x)


@one_program
def _complex_gamma(x: ArrayLike) -> Array:
    (x,) = inexact("gamma", x)
    return ops.exp(_log_gamma(x))


def loggamma(x: ArrayLike) -> Array:
    """Principal branch of the logarithm of the gamma function, of real or complex x.

    Of complex x it is continuous but for a cut along the negative real axis, so it is not always
    the principal logarithm of ``gamma(x)``. Of negative real x it is NaN: make x complex, or take
    ``gammaln``.

    Args:
        x: the argument, real or complex, of any shape.

    Returns:
        Numbers of the shape of ``x``: of its dtype, or float32 for integers.

    >>> print(scipy.special.loggamma(5.0).round(4))
    3.1781
    >>> print(scipy.special.loggamma(-1.5 + 1j).round(3))
    (-1.354-5.543j)
    """
    (x,) = inexact("loggamma", x)
    return _log_gamma(x) if is_complex(x) else _real_log_gamma(x)


@one_program
def _real_log_gamma(x: ArrayLike) -> Array:
    (x,) = real("loggamma", x)
    return where(x < 0, math.nan, ops.lgamma(where(x < 0, 1, x)))


def digamma(x: ArrayLike) -> Array:
    """Digamma function ψ(x), the derivative of log Γ(x).

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.digamma(jnp.array([0.5, 1.0, 10.0])).round(4))
    [-1.9635 -0.5772  2.2518]
    """
    return ops.digamma(*real("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Polygamma function: the n-th derivative of ``digamma``.

    Args:
        n: the order of the derivative: integers from 0 on.
        x: the argument, real, of any shape.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.polygamma(jnp.array([0, 1, 2]), 1.0).round(4))
    [-0.5772  1.6449 -2.4041]
    """
    return nth_polygamma(n, *real("polygamma", n, x))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Riemann zeta function of x; with ``q`` that of Hurwitz, Σ (q + k)⁻ˣ over k ≥ 0.

    For x > 1. At 1 it is infinite, and below NaN.

    Args:
        x: the exponent, greater than 1.
        q: the first base of the sum; None for 1, which is Riemann's function.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.zeta(jnp.array([2.0, 4.0])).round(4))
    [1.6449 1.0823]
    """
    return lax.zeta(*real("zeta", x, 1 if q is None else q))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized lower incomplete gamma function P(a, x).

    It is ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a): the cumulative distribution function of the gamma distribution.

    Args:
        a: the shape parameter, positive.
        x: the upper limit of the integral, not negative.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.gammainc(2.0, jnp.array([0.0, 1.0, 5.0])).round(4))
    [0.     0.2642 0.9596]
    """
    return lax.igamma(*real("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    Accurate also where it is too small to be seen in ``1 - gammainc(a, x)``.

    Args:
        a: the shape parameter, positive.
        x: the lower limit of the integral, not negative.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.gammaincc(2.0, jnp.array([0.0, 1.0, 5.0])).round(4))
    [1.     0.7358 0.0404]
    """
    return lax.igammac(*real("gammaincc", a, x))


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Logarithm of the absolute value of the beta function, log |B(a, b)|.

    Args:
        a: the first argument, real, of any shape.
        b: the second argument, likewise.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.betaln(jnp.array([2.0, 200.0]), 3.0).round(3))
    [ -2.485 -15.217]
    """
    return _betaln(*real("betaln", a, b))


@one_program
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Beta function B(a, b) = Γ(a) Γ(b) / Γ(a + b).

    Infinite at poles, but for integers a ≤ 0 < b ≤ -a, or a and b exchanged, where it has a limit.

    Args:
        a: the first argument, real, of any shape.
        b: the second argument, likewise.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.beta(jnp.array([2.0, 0.5]), jnp.array([3.0, 0.5])).round(4))
    [0.0833 3.1416]
    """
    x, y = real("beta", a, b)
    sign = _sign_of_gamma(x) * _sign_of_gamma(y) * _sign_of_gamma(x + y)
    sign = where(_is_pole(x + y) | (x == -math.inf) | (y == -math.inf), 1, sign)
    sign = where(_is_pole(y), where(x + y < 1, _parity(x), 1), sign)
    sign = where(_is_pole(x), where(x + y < 1, _parity(y), 1), sign)
    return ops.stop_gradient(sign) * ops.exp(_betaln(x, y))


def _is_pole(x: Array) -> Array:
    """Whether the gamma function has a pole there: at 0, -1, ..."""
    return (x <= 0) & (ops.floor(x) == x) & (x > -math.inf)


def _parity(x: Array) -> Array:
    """-1 of odd numbers, 1 of others."""
    return where(ops.abs(ops.rem(x, _like(x, 2))) == 1, -1, 1)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Regularized incomplete beta function I_x(a, b).

    It is ∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b): the cumulative distribution function of the beta
    distribution.

    Args:
        a: the first parameter, positive.
        b: the second parameter, positive.
        x: the upper limit of the integral, from 0 to 1.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.betainc(2.0, 3.0, jnp.array([0.0, 0.5, 1.0])).round(4))
    [0.     0.6875 1.    ]
    """
    return lax.betainc(*real("betainc", a, b, x))


@one_program
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer symbol, or rising factorial, (z)ₘ = Γ(z + m) / Γ(z).

    Of a positive integer m it is z (z + 1) ... (z + m - 1). At a pole of one of the two gamma
    functions it is infinite or 0, at poles of both it has a limit.

    Args:
        z: the first factor, real, of any shape.
        m: the number of factors, real.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.poch(2.0, jnp.array([0.0, 1.0, 3.0])).round(3))
    [ 1.  2. 24.]
    """
    return _poch(*real("poch", z, m))


def _poch(z: Array, m: Array) -> Array:
    above, below = _is_pole(z + m), _is_pole(z)
    both = above & below  # by reflection (DLMF 5.5.3)
    z = where(both, 1 - z - m, z)
    sign = where(both, _parity(m), _sign_of_gamma(z + m) * _sign_of_gamma(z))
    edge = where(above, math.inf, 0)
    inside = (above == below) | (m != m)
    z, m = where(inside, z, 1), where(inside, m, 1)
    # where logarithms say so, with a slope, and where they are infinite
    nothing = (m == 0) & ~(ops.abs(z) < math.sqrt(dtypes.finfo(z.dtype).max))
    sign = ops.stop_gradient(sign)  # whose derivative would be 0 times what may be infinite
    return where(nothing, 1, where(inside, sign * ops.exp(_log_poch(z, m)), edge))


def multigammaln(a: ArrayLike, d: int) -> Array:
    """Logarithm of the multivariate gamma function of dimension d (DLMF 35.3.4).

    log Γ_d(a) = d (d - 1) / 4 log π + Σ log Γ(a - j / 2) over j = 0, ..., d - 1; as in the density
    of the Wishart distribution.

    Args:
        a: the argument, real, greater than (d - 1) / 2.
        d: the dimension: an integer, not traced.

    Returns:
        Floats of the shape of ``a``: of its dtype, or float32 for integers.

    Raises:
        ValueError: ``d`` is negative, or larger than 65536.

    >>> print(scipy.special.multigammaln(jnp.array([2.5, 4.0]), 2).round(4))
    [0.857  3.5651]
    """
    size = operator.index(d)
    if not 0 <= size <= _LARGEST_MATRIX:
        raise ValueError(
            f"multigammaln: d must be from 0 to {_LARGEST_MATRIX}, got {d} at {user_location()}"
        )
    return _multigammaln(a, size)


_LARGEST_MATRIX = 2**16


@one_program
def _multigammaln(a: ArrayLike, d: int) -> Array:
    (a,) = real("multigammaln", a)
    halves = np.arange(d, dtype=a.dtype) / 2
    return ops.lgamma(a[..., None] - halves).sum(-1) + d * (d - 1) / 4 * math.log(math.pi)
