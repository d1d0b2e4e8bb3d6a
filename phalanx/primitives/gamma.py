"""The gamma function, its logarithm, the derivative of that, and binomial coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.primitive import Example, Primitive
from phalanx.primitives.basis import add, mul, sub
from phalanx.primitives.bits import and_
from phalanx.primitives.compare import gt, lt, select
from phalanx.primitives.domains import f32
from phalanx.primitives.elementwise import filled
from phalanx.primitives.formula import (
    Number,
    absolute,
    complex_of,
    conj,
    economized,
    exp,
    expm1,
    floor,
    imag,
    is_nan,
    log,
    log1p,
    polygamma_of,
    polynomial,
    power,
    precision,
    real,
    rounded,
    special,
    where,
    with_slope,
    within,
)
from phalanx.primitives.half_turns import sine_of_half_turns
from phalanx.primitives.zeta import BERNOULLI, hurwitz, zeta

LARGE = 8.0  # from where on Stirling's series is used
_POSITIVE = Example((f32(2, 3),), low=0.5, high=3.0)
_POSITIVES = Example((f32(3), f32(3)), low=0.5, high=3.0)


# ---- series ---------------------------------------------------------------------------------


def stirling(z: Any) -> Any:
    """log Γ(z) - (z - 1/2) log z + z - log √2π, for z ≥ 8 (DLMF 5.11.1)."""
    count = 8 if precision(z) < 1e-10 else 4
    terms = [b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(BERNOULLI[:count])]
    u = 1.0 / z
    return polynomial(u * u, terms) * u


def about_two(a: Any) -> Any:
    """log Γ(2 + a), exact for small |a| ≤ 1/2 (DLMF 5.7.3)."""
    count = 28 if precision(a) < 1e-10 else 14
    return polynomial(a, _about_two()[:count])


@cache
def _about_two() -> list[float]:
    return [0.0, 1 - 0.5772156649015329] + [(-1) ** k * hurwitz(k, 2) / k for k in range(2, 28)]


def _lowered(x: Any) -> tuple[Any, Any]:
    """a and p with Γ(x) = Γ(2 + a) p and |a| ≤ 1/2, for 0 < x < 8."""
    a = x - 2.0
    p = where(a < -1.5, 1.0 / (x * (x + 1.0)), where(a < -0.5, 1.0 / x, 1.0))
    a = where(a < -1.5, x, where(a < -0.5, x - 1.0, a))
    for _ in range(6):
        larger = a > 0.5
        p = where(larger, (a + 1.0) * p, p)
        a = where(larger, a - 1.0, a)
    return a, p


# ---- log |Γ(x)| and its derivative ----------------------------------------------------------


def _log_gamma_above(x: Number) -> Number:
    """log Γ(x) for x > 0: in one logarithm of what each region needs."""
    large = x >= LARGE
    u, v = within(large, x, LARGE), within(~large & (x > 0.0), x, 1.0)
    a, p = _lowered(v)
    one = absolute(v - 1.0) < 0.5  # where p is 1 / x, rounded
    logarithm = log(where(large, u, where(one, v, p)))
    far = (u - 0.5) * (logarithm - 1.0) + (stirling(u) + (0.5 * math.log(2 * math.pi) - 0.5))
    near = about_two(a) + where(one, -logarithm, logarithm)
    return where(large, where(u < math.inf, far, math.inf), near)


def _log_gamma(x: Number) -> Number:
    """log |Γ(x)|, left of 0 by reflection (DLMF 5.5.3)."""
    size = absolute(x)
    out = _log_gamma_above(size)
    down = (x < 0.0) & (x > -math.inf)
    w = within(down, x, -0.5)
    sine = absolute(sine_of_half_turns(w))
    pole = sine <= 0.0
    below = math.log(math.pi) - log(-w) - log(within(~pole, sine, 1.0)) - out
    out = where(down, where(pole, math.inf, below), where(x < 0.0, -math.inf, out))
    return where(size > 0.0, out, where(is_nan(x), x, math.inf))


# The root of ψ: a number of double and of single precision, and what it lacks.
_ROOT = 1.46163214496836234126, 9.549995429965697e-17
_SINGLE_ROOT = float(np.float32(_ROOT[0])), 1.2438149938918909e-08
_REACH = 0.5  # of the powers about it


@cache
def _about_root(double: bool) -> tuple[float, Sequence[float]]:
    """A number next to the root of ψ, and the coefficients of ψ about it (DLMF 5.15.1)."""
    near, rest = _ROOT if double else _SINGLE_ROOT
    slopes = [(-1) ** (k + 1) * hurwitz(k + 1, _ROOT[0]) for k in range(1, 50)]
    others = economized(slopes, -_REACH, _REACH, 1e-17 if double else 1e-9)
    return near, [-rest * others[0], *others]


@cache
def _cotangent(double: bool) -> Sequence[float]:
    """The coefficients of (π cot πt - 1/t) / t in t², for |t| ≤ 1/2 (DLMF 25.8.8)."""
    terms = [-2 * hurwitz(2 * k, 1.0) for k in range(1, 40)]
    return economized(terms, 0.0, 0.25, 1e-17 if double else 1e-9)


def _digamma_of_next(x: Number) -> Number:
    """ψ(x + 1) for x ≥ 0, by Stirling's series from a larger number on (DLMF 5.5.2, 5.11.2)."""
    steps, count = (8, 8) if precision(x) < 1e-10 else (4, 5)
    low = x < float(steps)
    shift = sum((1.0 / (x + float(k)) for k in range(2, steps)), 1.0 / (x + 1.0))
    z = x + where(low, x.like(float(steps)), 1.0)
    u = 1.0 / z
    terms = [b / (2 * k + 2) for k, b in enumerate(BERNOULLI[:count])]
    return log(z) - (u * 0.5 + u * u * polynomial(u * u, terms)) - where(low, shift, 0.0)


def _unless_near_root(x: Number, away: Number) -> Number:
    """ψ(x) by the powers about its root; ``away`` from it what is given."""
    near, terms = _about_root(precision(x) < 1e-10)
    d = x - near
    return where(absolute(d) < _REACH, polynomial(d, terms), away)


def _digamma_above(x: Number) -> Number:
    """ψ(x) for x > 0."""
    return _unless_near_root(x, _digamma_of_next(x) - 1.0 / x)


def _digamma(x: Number) -> Number:
    """ψ(x), left of 0 by reflection (DLMF 5.5.4)."""
    down, t = x < 0.0, x - rounded(x)
    turn = where(down, t * polynomial(t * t, _cotangent(precision(x) < 1e-10)), 0.0)
    out = _digamma_of_next(absolute(x)) - turn - 1.0 / where(down, t, x)
    pole = down & (absolute(t) <= 0.0)
    return _unless_near_root(x, where(pole, math.nan, out))


psi = with_slope(_digamma, lambda x, y: polygamma_of(1, x))
psi_above = with_slope(_digamma_above, lambda x, y: polygamma_of(1, x))
ln_gamma = with_slope(_log_gamma, lambda x, y: psi(x))
ln_gamma_above = with_slope(_log_gamma_above, lambda x, y: psi_above(x))


lgamma: Primitive = special(
    "lgamma",
    ln_gamma,
    partials=[lambda y, x: digamma(x)],
    operations=160,
    doc="log |Γ(x)| (DLMF 5.2.1)",
    examples=[_POSITIVE],
)

digamma: Primitive = special(
    "digamma",
    psi,
    partials=[lambda y, x: zeta(2.0, x)],
    operations=90,
    doc="ψ(x), the derivative of log Γ (DLMF 5.2.2)",
    examples=[_POSITIVE],
)


def _digamma_gap(a: Any, h: Any) -> Any:
    """By the differences of all that ψ is the sum of (DLMF 5.5.2, 5.11.2): nothing cancels."""
    double = precision(a) < 1e-10
    steps, count = (8, 8) if double else (4, 5)
    low = (a < float(steps)) | (a + h < float(steps))
    b = within(low, a, 1.0)
    g = within(low, h, 1.0)
    shift = sum(
        (g / ((b + float(k)) * (b + g + float(k))) for k in range(1, steps)), g / (b * (b + g))
    )
    z = where(low, a + float(steps), a)
    w = z + h
    u, v = 1.0 / z, 1.0 / w
    terms = [0.0] + [c / (2 * k + 2) for k, c in enumerate(BERNOULLI[:count])]
    inner: Any = terms[-1]
    outer: Any = 0.0
    for c in reversed(terms[:-1]):
        outer = outer * (v * v) + inner
        inner = inner * (u * u) + c
    return log1p(h * u) + h * v * u * ((u + v) * outer + 0.5) + where(low, shift, 0.0)


digamma_gap: Primitive = special(
    "digamma_gap",
    _digamma_gap,
    partials=[None, lambda out, a, h: zeta(2.0, add(a, h))],
    operations=120,
    doc="ψ(a + h) - ψ(a), of positive a and a + h, also where they are almost the same",
    examples=[_POSITIVES],
)


def digamma_change(a: Any, h: Any) -> Any:
    """ψ(a + h) - ψ(a), where either may be negative, too."""
    end = add(a, h)
    a, h = filled(a, end), filled(h, end)
    inside = and_(and_(gt(a, 0), gt(end, 0)), lt(h, math.inf))
    near = digamma_gap(select(inside, a, 1), select(inside, h, 1))
    return select(inside, near, sub(digamma(end), digamma(a)))


# ---- Γ(x) -----------------------------------------------------------------------------------


def _gamma(x: Any) -> Any:
    """Γ(x), whole for whole numbers as long as a float holds it (DLMF 5.11.3, 5.5.3)."""
    size = absolute(x)
    large = size >= LARGE
    u, v = within(large, size, LARGE), within(~large, size, 1.0)
    root = power(u, (u - 0.5) * 0.5)
    far = root * exp(-u) * root * (exp(stirling(u)) * math.sqrt(2 * math.pi))
    a, p = _lowered(v)
    most = 180.0 if precision(x) < 1e-10 else 40.0
    out = where(large, where(u < most, far, math.inf), exp(about_two(a)) * p)
    is_integer = (floor(size) >= size) & (out < 1 / precision(x))
    out = where(is_integer, rounded(out), out)
    below = -math.pi / (sine_of_half_turns(x) * (x * out))
    pole = (x < 0.0) & (floor(x) >= x)
    out = where(x < 0.0, where(pole, math.nan, below), out)
    return where(size > 0.0, out, 1.0 / x)


gamma: Primitive = special(
    "gamma",
    _gamma,
    partials=[lambda y, x: mul(y, digamma(x))],
    operations=160,
    doc="Γ(x) (DLMF 5.2.1)",
    examples=[_POSITIVE],
)


def _complex_log_gamma(z: Any) -> Any:
    """For numbers right of 1/2, above the real axis; elsewhere by symmetry (DLMF 5.5.3)."""
    x, y = real(z), imag(z)
    down = (y < 0.0) | ((y <= 0.0) & (1.0 / y < 0.0))
    upper = where(down, conj(z), z)
    left = x < 0.5
    right = where(left, 1.0 - upper, upper)
    out = _log_gamma_right(right)
    turn = complex_of(x - rounded(x), imag(upper)) * complex(0, 2 * math.pi)
    turn = within(left, turn, complex(-1, 1))
    phase = complex_of(-imag(upper) * math.pi, (x - 0.5) * math.pi)
    mirrored = math.log(2 * math.pi) + phase - log(-expm1(turn)) - out
    out = where(left, mirrored, out)
    out = where(down, conj(out), out)
    pole = (x <= 0.0) & (floor(x) >= x) & (absolute(y) <= 0.0)
    return where(pole, complex(math.nan, math.nan), out)


def _log_gamma_right(z: Any) -> Any:
    """For Re z ≥ 1/2: about the zeros 1 and 2 by the series, elsewhere by Stirling's."""
    one, two = absolute(z - 1.0) < 0.5, absolute(z - 2.0) < 0.5
    a = within(one | two, where(one, z - 1.0, z - 2.0), 0.1)
    close = about_two(a) - where(one, log1p(a), 0.0)
    near = absolute(z) < 12.0
    v = within(near, z, 12.0)
    shift: Any = 0.0
    for k in range(0, 12, 2):  # of two together the arguments are less than π
        shift = shift + log((v + float(k)) * (v + float(k + 1)))
    u = where(near, v + 12.0, z)
    far = (u - 0.5) * (log(u) - 1.0) + (stirling(u) + (0.5 * math.log(2 * math.pi) - 0.5))
    return where(one | two, close, far - where(near, shift, 0.0))


log_gamma: Primitive = special(
    "log_gamma",
    _complex_log_gamma,
    partials=[None],
    operations=300,
    doc="log Γ(z) of complex z, continuous but at the negative real axis (DLMF 5.11.1)",
    examples=[Example((np.complex64(1.5 + 0.5j),), order=1)],
    on=dtypes.is_complex,
)
