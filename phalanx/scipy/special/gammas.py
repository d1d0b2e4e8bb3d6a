"""The gamma function and what is made of it: factorials, binomials, beta and zeta functions."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from phalanx import lax, ops
from phalanx.base import dtypes
from phalanx.base.source import user_location
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.special import nth_polygamma
from phalanx.numpy.choice import where
from phalanx.numpy.creation import asarray
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.ops.gamma import gamma as _gamma
from phalanx.ops.gamma import log_gamma as _log_gamma
from phalanx.ops.incomplete import betaln as _betaln
from phalanx.ops.incomplete import binomial as _binomial
from phalanx.scipy.special.operands import inexact, is_complex


def gammaln(x: ArrayLike) -> Array:
    """log |Γ(x)|.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> f"{float(gammaln(5.0)):.4f}"
    '3.1781'
    """
    return ops.lgamma(*real("gammaln", x))


@one_program
def gammasgn(x: ArrayLike) -> Array:
    """The sign of Γ(x): that of 1 / x at 0, NaN at -1, -2, ...

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(gammasgn(-0.5))
    -1.0
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
    """Γ(x), of real or complex x; NaN at -1, -2, ...

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> f"{float(gamma(5.0)):.3f}"
    '24.000'
    """
    (x,) = inexact("gamma", x)
    return _complex_gamma(x) if is_complex(x) else _gamma(x)


@one_program
def _complex_gamma(x: ArrayLike) -> Array:
    (x,) = inexact("gamma", x)
    return ops.exp(_log_gamma(x))


def loggamma(x: ArrayLike) -> Array:
    """log Γ(x), of complex x continuous but at the negative real axis; NaN of negative real x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> f"{loggamma(-1.5 + 1j).item():.3f}"
    '-1.354-5.543j'
    """
    (x,) = inexact("loggamma", x)
    return _log_gamma(x) if is_complex(x) else _real_log_gamma(x)


@one_program
def _real_log_gamma(x: ArrayLike) -> Array:
    (x,) = real("loggamma", x)
    return where(x < 0, math.nan, ops.lgamma(where(x < 0, 1, x)))


@one_program
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n! = Γ(n + 1); 0 of negative n.

    Args:
        n: real numbers.
        exact: must be False: results are floating-point numbers. Of float32 the largest is 34!.

    Returns:
        Floating-point numbers of the shape of ``n``.

    Raises:
        ValueError: ``exact`` is true.

    >>> float(factorial(5.0))
    120.0
    """
    if exact:
        raise ValueError(
            "factorial: there are no integers of any length here, so exact must be False; "
            "math.factorial gives those"
        )
    (n,) = real("factorial", n)
    below = n < 0
    return where(below, 0, _gamma(where(below, 0, n) + 1))


@one_program
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to take k of N things; 0 unless N ≥ k ≥ 0.

    Args:
        N: real numbers.
        k: real numbers.
        repetition: whether a thing may be taken more than once.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> float(comb(5.0, 2.0)), float(comb(5.0, 2.0, repetition=True))
    (10.0, 15.0)
    """
    n, k = real("comb", N, k)
    if repetition:
        n = where((n == 0) & (k == 0), 0, n + k - 1)
    inside = (n >= k) & (k >= 0)
    return where(inside, _binomial(where(inside, n, 1), where(inside, k, 1)), 0)


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B₀, ..., B_n, with B₁ = -1/2 (DLMF 24.2.1).

    Args:
        n: the index of the last one, an integer that is known.

    Returns:
        float32 [n + 1].

    Raises:
        TypeError: n is no integer.
        ValueError: n is negative.

    >>> [f"{b:.4f}" for b in bernoulli(4).tolist()]
    ['1.0000', '-0.5000', '0.1667', '0.0000', '-0.0333']
    """
    last = operator.index(n)
    if last < 0:
        raise ValueError(f"bernoulli: n must not be negative, got {n} at {user_location()}")
    numbers = np.zeros(last + 1)
    numbers[:2] = [1.0, -0.5][: last + 1]
    even = _even_bernoulli(min(last, _LAST_FINITE) // 2)
    numbers[2 : 2 * len(even) + 1 : 2] = even
    beyond = range(2 * len(even) + 2, last + 1, 2)
    numbers[2 * len(even) + 2 :: 2] = [math.copysign(math.inf, i % 4 - 1) for i in beyond]
    with np.errstate(over="ignore"):
        return asarray(numbers.astype(dtypes.default_float()))


_LAST_FINITE = 258  # in float64


def _even_bernoulli(count: int) -> list[float]:
    """B₂, B₄, ... from the tangent numbers, which are whole (DLMF 24.15.4)."""
    tangent = [math.factorial(k) for k in range(count)]
    for i in range(1, count):
        for j in range(i, count):
            tangent[j] = (j - i) * tangent[j - 1] + (j - i + 2) * tangent[j]
    return [
        (-1) ** k * (2 * k + 2) * t / ((1 << (2 * k + 2)) * ((1 << (2 * k + 2)) - 1))
        for k, t in enumerate(tangent)
    ]


def digamma(x: ArrayLike) -> Array:
    """The derivative of log Γ(x).

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> f"{float(digamma(1.0)):.4f}"
    '-0.5772'
    """
    return ops.digamma(*real("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order n of ``digamma``.

    Args:
        n: which derivative: integers.
        x: an array, or a number.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(polygamma(1, 1.0)):.4f}"
    '1.6449'
    """
    return nth_polygamma(*real("polygamma", n, x))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz' zeta function, Σ (q + k)⁻ˣ over k ≥ 0; Riemann's without q, for x > 1.

    Args:
        x: an array, or a number.
        q: the first term, where it is not 1.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(zeta(2.0)):.4f}"
    '1.6449'
    """
    return lax.zeta(*real("zeta", x, 1 if q is None else q))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a).

    Args:
        a: an array, or a number; the two broadcast.
        x: an array, or a number.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(gammainc(1.0, 1.0)):.4f}"
    '0.6321'
    """
    return lax.igamma(*real("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Q(a, x) = 1 - P(a, x).

    Args:
        a: an array, or a number; the two broadcast.
        x: an array, or a number.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(gammaincc(1.0, 1.0)):.4f}"
    '0.3679'
    """
    return lax.igammac(*real("gammaincc", a, x))


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """log |B(a, b)|.

    Args:
        a: an array, or a number; the two broadcast.
        b: an array, or a number; the two broadcast.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(betaln(2.0, 3.0)):.4f}"
    '-2.4849'
    """
    return _betaln(*real("betaln", a, b))


@one_program
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """B(a, b) = Γ(a) Γ(b) / Γ(a + b); infinite at poles but for whole a ≤ 0 < b ≤ -a.

    Args:
        a: an array, or a number; the two broadcast.
        b: an array, or a number; the two broadcast.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(beta(2.0, 3.0)):.4f}"
    '0.0833'
    """
    x, y = real("beta", a, b)
    sign = _sign_of_gamma(x) * _sign_of_gamma(y) * _sign_of_gamma(x + y)
    sign = where(_is_pole(x + y) | (x == -math.inf) | (y == -math.inf), 1, sign)
    sign = where(_is_pole(y), where(x + y < 1, _parity(x), 1), sign)
    sign = where(_is_pole(x), where(x + y < 1, _parity(y), 1), sign)
    return sign * ops.exp(_betaln(x, y))


def _is_pole(x: Array) -> Array:
    """Whether the gamma function has a pole there: at 0, -1, ..."""
    return (x <= 0) & (ops.floor(x) == x) & (x > -math.inf)


def _parity(x: Array) -> Array:
    """-1 of odd numbers, 1 of others."""
    return where(ops.abs(ops.rem(x, _like(x, 2))) == 1, -1, 1)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """I_x(a, b) = ∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b).

    Args:
        a: positive numbers.
        b: positive numbers.
        x: an array, or a number.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(betainc(2.0, 1.0, 0.5)):.4f}"
    '0.2500'
    """
    return lax.betainc(*real("betainc", a, b, x))


@one_program
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Γ(z + m) / Γ(z): 0 or infinite at a pole of one of them, finite at those of both.

    Args:
        z: the first factor.
        m: how many factors.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(poch(2.0, 3.0)):.3f}"
    '24.000'
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
    return where(nothing, 1, where(inside, sign * ops.exp(_log_of_poch(z, m)), edge))


def _log_of_poch(z: Array, m: Array) -> Array:
    """log |Γ(z + m) / Γ(z)|, of large z by the beta function, so that nothing cancels."""
    low, gap = ops.min(z, z + m), ops.abs(m)
    far = (low >= 16) & (gap > 0)
    u, k = where(far, low, 16), where(far, gap, 1)
    change = ops.sign(m) * (ops.lgamma(k) - _betaln(u, k))
    z, m = where(far, 1, z), where(far, 1, m)
    return where(far, change, ops.lgamma(z + m) - ops.lgamma(z))


def multigammaln(a: ArrayLike, d: int) -> Array:
    """The logarithm of the gamma function of d × d matrices (DLMF 35.3.4).

    Args:
        a: an array, or a number.
        d: the dimension, an integer.

    Returns:
        An array of the shape and dtype of ``a``; integers give float32.

    Raises:
        ValueError: d is negative, or larger than 65536.

    >>> f"{float(multigammaln(2.5, 1)):.4f}"
    '0.2847'
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
