"""Special functions, with SciPy's names. Integers become floats; shapes are broadcast."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import lax, ops
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.source import user_location
from phalanx.core.types import Array
from phalanx.lax.special import nth_polygamma
from phalanx.nn.normalize import log_softmax as _log_softmax
from phalanx.nn.normalize import logsumexp
from phalanx.nn.normalize import softmax as _softmax
from phalanx.numpy.choice import where
from phalanx.numpy.one_program import one_program
from phalanx.numpy.promotion import ArrayLike, arrays
from phalanx.ops.incomplete import betaln as _betaln

__all__ = [
    "beta",
    "betainc",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "poch",
    "polygamma",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]

_SQRT_HALF = math.sqrt(0.5)


def _real(who: str, *xs: Any) -> list[Array]:
    """``xs`` as arrays of one floating-point dtype and one shape.

    Raises:
        TypeError: an operand is complex.
    """
    operands = arrays(who, *xs, to=dtypes.to_inexact)
    if dtypes.is_complex(operands[0].dtype):
        raise TypeError(f"{who}: real operands are needed, got {operands[0].aval}")
    return operands


# ---- error functions ------------------------------------------------------------------------


def erf(x: ArrayLike) -> Array:
    """2/√π times the integral of exp(-t²) from 0 to x.

    >>> float(erf(0.0))
    0.0
    """
    return ops.erf(*_real("erf", x))


def erfc(x: ArrayLike) -> Array:
    """1 - erf x, exact for large x.

    >>> float(erfc(0.0))
    1.0
    """
    return ops.erfc(*_real("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """The y with erf y = x.

    >>> float(erfinv(0.0))
    0.0
    """
    return ops.erf_inv(*_real("erfinv", x))


@one_program
def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal distribution.

    >>> float(ndtr(0.0))
    0.5
    """
    (x,) = _real("ndtr", x)
    return 0.5 * ops.erfc(-_SQRT_HALF * x)


@one_program
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of ``ndtr``, exact where that is 0 or 1 to a float.

    Args:
        x: a real array.
        series_order: taken for the sake of other libraries; there is no series to cut.

    >>> f"{float(log_ndtr(-100.0)):.3f}"
    '-5005.524'
    """
    (x,) = _real("log_ndtr", x)
    return _log_ndtr(x)


def _log_ndtr(x: Array) -> Array:
    """log Φ(x) by erfc, and below by the continued fraction of Mills' ratio (DLMF 7.9.3)."""
    low = x < -5
    z = where(low, -x, 5)
    fraction = z
    for k in range(25, 0, -1):
        fraction = z + k / fraction
    tail = -0.5 * z * z - 0.5 * math.log(2 * math.pi) - ops.log(fraction)
    u = where(low, 0, x)
    above = ops.log1p(-0.5 * ops.erfc(_SQRT_HALF * where(u > 0, u, 0)))
    below = ops.log(0.5 * ops.erfc(-_SQRT_HALF * where(u > 0, 0, u)))
    return where(low, tail, where(x > 0, above, below))


@one_program
def ndtri(p: ArrayLike) -> Array:
    """The x with ndtr(x) = p; NaN outside of [0, 1].

    By ``erfinv``, and two steps of Newton's method for what that leaves, in the smaller tail.

    >>> float(ndtri(0.5))
    0.0
    """
    (p,) = _real("ndtri", p)
    tail = where(p < 0.5, p, 1 - p)
    inside = (tail > 0) & (tail < 0.5)
    q = where(inside, tail, 0.25)
    logs = ops.log(q)
    far = q < 1e-3
    guess = ops.sqrt(-2 * where(far, logs, -1))
    start = -(guess - (ops.log(guess) + 0.5 * math.log(2 * math.pi)) / guess)
    x = where(far, start, math.sqrt(2) * ops.erf_inv(2 * where(far, 0.25, q) - 1))
    for _ in range(4):
        value = _log_ndtr(x)
        slope = ops.exp(-0.5 * x * x - 0.5 * math.log(2 * math.pi) - value)
        x = x - (value - logs) / slope
    x = where(inside, x, where(tail == 0, -math.inf, where(tail == 0.5, 0, math.nan)))
    return where(p < 0.5, x, 0 - x)


# ---- logistic functions and entropies -------------------------------------------------------


def expit(x: ArrayLike) -> Array:
    """1 / (1 + e⁻ˣ).

    >>> float(expit(0.0))
    0.5
    """
    return ops.logistic(*_real("expit", x))


@one_program
def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)).

    >>> float(logit(0.5))
    0.0
    """
    (x,) = _real("logit", x)
    return ops.log(x) - ops.log1p(-x)


@one_program
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log y, and 0 where x is 0.

    >>> float(xlogy(0.0, 0.0))
    0.0
    """
    x, y = _real("xlogy", x, y)
    zero = (x == 0) & (y == y)
    return where(zero, 0, x * ops.log(where(zero, 1, y)))


@one_program
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), and 0 where x is 0.

    >>> float(xlog1py(0.0, -1.0))
    0.0
    """
    x, y = _real("xlog1py", x, y)
    zero = (x == 0) & (y == y)
    return where(zero, 0, x * ops.log1p(where(zero, 0, y)))


@one_program
def entr(x: ArrayLike) -> Array:
    """-x log x; 0 at 0, and -inf below.

    >>> float(entr(1.0)) == 0
    True
    """
    (x,) = _real("entr", x)
    inside = x > 0
    u = where(inside, x, 1)
    return where(inside, -u * ops.log(u), where(x == 0, 0, where(x < 0, -math.inf, x)))


@one_program
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q); 0 where p is 0, and inf where either is negative.

    >>> float(rel_entr(2.0, 2.0))
    0.0
    """
    p, q = _real("rel_entr", p, q)
    return _rel_entr(p, q)


def _rel_entr(p: Array, q: Array) -> Array:
    inside = (p > 0) & (q > 0)
    u, v = where(inside, p, 1), where(inside, q, 1)
    unknown = (p != p) | (q != q)
    edge = where((p == 0) & (q >= 0), 0, where(unknown, math.nan, math.inf))
    return where(inside, u * (ops.log(u) - ops.log(v)), edge)


@one_program
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q) - p + q; inf where either is negative.

    >>> float(kl_div(2.0, 2.0))
    0.0
    """
    p, q = _real("kl_div", p, q)
    known = (p >= 0) & (q >= 0)
    return _rel_entr(p, q) + where(known, q - p, 0)


def softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """exp(x) / Σ exp(x), the sum over ``axis``, or over all elements.

    >>> softmax(jnp.zeros(2)).tolist()
    [0.5, 0.5]
    """
    return _softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """The logarithm of ``softmax``, exact where that is 0 to a float.

    >>> log_softmax(jnp.array([1000.0, 0.0])).tolist()
    [0.0, -1000.0]
    """
    return _log_softmax(x, axis)


# ---- the gamma family -----------------------------------------------------------------------


def gammaln(x: ArrayLike) -> Array:
    """log |Γ(x)|.

    >>> f"{float(gammaln(5.0)):.4f}"
    '3.1781'
    """
    return ops.lgamma(*_real("gammaln", x))


@one_program
def gammasgn(x: ArrayLike) -> Array:
    """The sign of Γ(x): that of 1 / x at 0, NaN at -1, -2, ...

    >>> float(gammasgn(-0.5))
    -1.0
    """
    (x,) = _real("gammasgn", x)
    return _sign_of_gamma(x)


def _sign_of_gamma(x: Array) -> Array:
    down = ops.floor(x)
    sign = where(ops.rem(down, _like(x, 2)) == 0, 1, -1)
    below = where((down == x) | (x == -math.inf), math.nan, sign)
    return where(x == 0, ops.sign(1 / x), where(x > 0, 1, where(x < 0, below, x)))


def _like(x: Array, value: float) -> Any:
    return dtypes.scalar(value, x.dtype)


@one_program
def gamma(x: ArrayLike) -> Array:
    """Γ(x); NaN at -1, -2, ...

    >>> f"{float(gamma(5.0)):.3f}"
    '24.000'
    """
    (x,) = _real("gamma", x)
    return _sign_of_gamma(x) * ops.exp(ops.lgamma(x))


def digamma(x: ArrayLike) -> Array:
    """The derivative of log Γ(x).

    >>> f"{float(digamma(1.0)):.4f}"
    '-0.5772'
    """
    return ops.digamma(*_real("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order n of ``digamma``.

    >>> f"{float(polygamma(1, 1.0)):.4f}"
    '1.6449'
    """
    return nth_polygamma(*_real("polygamma", n, x))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz' zeta function, Σ (q + k)⁻ˣ over k ≥ 0; Riemann's without q, for x > 1.

    >>> f"{float(zeta(2.0)):.4f}"
    '1.6449'
    """
    return lax.zeta(*_real("zeta", x, 1 if q is None else q))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a).

    >>> f"{float(gammainc(1.0, 1.0)):.4f}"
    '0.6321'
    """
    return lax.igamma(*_real("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Q(a, x) = 1 - P(a, x).

    >>> f"{float(gammaincc(1.0, 1.0)):.4f}"
    '0.3679'
    """
    return lax.igammac(*_real("gammaincc", a, x))


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """log |B(a, b)|.

    >>> f"{float(betaln(2.0, 3.0)):.4f}"
    '-2.4849'
    """
    return _betaln(*_real("betaln", a, b))


@one_program
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """B(a, b) = Γ(a) Γ(b) / Γ(a + b).

    >>> f"{float(beta(2.0, 3.0)):.4f}"
    '0.0833'
    """
    a, b = _real("beta", a, b)
    sign = _sign_of_gamma(a) * _sign_of_gamma(b) * _sign_of_gamma(a + b)
    return sign * ops.exp(_betaln(a, b))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """I_x(a, b) = ∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b).

    >>> f"{float(betainc(2.0, 1.0, 0.5)):.4f}"
    '0.2500'
    """
    return lax.betainc(*_real("betainc", a, b, x))


@one_program
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Γ(z + m) / Γ(z).

    >>> f"{float(poch(2.0, 3.0)):.3f}"
    '24.000'
    """
    z, m = _real("poch", z, m)
    sign = _sign_of_gamma(z + m) * _sign_of_gamma(z)
    return where(m == 0, 1, sign * ops.exp(ops.lgamma(z + m) - ops.lgamma(z)))


def multigammaln(a: ArrayLike, d: int) -> Array:
    """The logarithm of the gamma function of d × d matrices (DLMF 35.3.4).

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
    (a,) = _real("multigammaln", a)
    halves = np.arange(d, dtype=a.dtype) / 2
    return ops.lgamma(a[..., None] - halves).sum(-1) + d * (d - 1) / 4 * math.log(math.pi)


# ---- Bessel functions -----------------------------------------------------------------------


def i0e(x: ArrayLike) -> Array:
    """e^-|x| I₀(x).

    >>> float(i0e(0.0))
    1.0
    """
    return lax.bessel_i0e(*_real("i0e", x))


def i1e(x: ArrayLike) -> Array:
    """e^-|x| I₁(x).

    >>> float(i1e(0.0))
    0.0
    """
    return lax.bessel_i1e(*_real("i1e", x))


@one_program
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0.

    >>> float(i0(0.0))
    1.0
    """
    (x,) = _real("i0", x)
    return ops.exp(ops.abs(x)) * lax.bessel_i0e(x)


@one_program
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 1.

    >>> float(i1(0.0))
    0.0
    """
    (x,) = _real("i1", x)
    return ops.exp(ops.abs(x)) * lax.bessel_i1e(x)


bound(sys.modules[__name__])
