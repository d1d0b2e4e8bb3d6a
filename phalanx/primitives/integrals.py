"""Exponential, sine and cosine integrals, the dilogarithm, and Owen's function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phalanx.core.primitive import Example, Primitive
from phalanx.primitives import elementwise as array
from phalanx.primitives.basis import mul, neg, sub
from phalanx.primitives.domains import f32
from phalanx.primitives.elementwise import div
from phalanx.primitives.faddeeva import exp_of_square
from phalanx.primitives.formula import (
    Differentiated,
    Number,
    absolute,
    complex_of,
    continued_fraction,
    cos,
    erfc,
    exp,
    floor,
    imag,
    is_nan,
    isolated,
    iterate,
    lesser,
    log,
    log1p,
    polynomial,
    precision,
    real,
    sign,
    sin,
    small,
    special,
    summed,
    where,
    within,
)
from phalanx.primitives.gamma import psi
from phalanx.primitives.shape import zeros_like
from phalanx.primitives.special import erf
from phalanx.primitives.zeta import BERNOULLI

_EULER = 0.57721566490153286061
_POSITIVE = Example((f32(2, 3),), low=0.5, high=6.0)


# ---- exponential integrals ------------------------------------------------------------------


_NO_MORE = 750.0  # from where on e^-x is 0 in float64


def _expn(n: Any, x: Any) -> Any:
    """E_n(x) of whole n: a sum for n ≤ 0, a series up to x = 1, a fraction from there on."""
    n = floor(n)
    valid = (x > 0.0) & (x < _NO_MORE) & (absolute(n) < math.inf)
    u, m = within(valid, x, 2.0), within(valid, n, 1.0)
    few = m <= 0.0
    near = ~few & (u <= 1.0)
    beyond = ~few & ~near
    least = _finite(where(few, -m, 0.0), within(few, u, 1.0))
    less = _logarithmic(within(near, m, 1.0), within(near, u, 1.0))
    p, v = within(beyond, m, 1.0), within(beyond, u, 2.0)
    fraction = continued_fraction(v + p, lambda k: k * (1.0 - p - k), lambda k: v + p + k * 2.0)
    inside = where(few, isolated(least), where(near, isolated(less), exp(-v) / isolated(fraction)))
    zero = where(n > 1.0, 1.0 / (n - 1.0), where(is_nan(n), n, math.inf))
    edge = where(x > 0.0, where(is_nan(n), n, 0.0), where(x >= 0.0, zero, math.nan))
    return where(valid, inside, edge)


def _finite(k: Any, x: Any) -> Any:
    """E_-k(x) = e^-x/x Σ k! / (k - j)! x^-j over j = 0, ..., k (DLMF 8.4.8, 8.19.1)."""
    first = exp(-x) / x

    def step(j: Any, term: Any, total: Any) -> tuple[Any, Any, Number]:
        term = term * (k - j + 1.0) / x
        return term, total + term, k <= j

    return iterate(step, [first, first], 10_000)[1]


def _logarithmic(n: Any, x: Any) -> Any:
    """E_n(x) of n ≥ 1 and x ≤ 1: of the terms of a series one has the logarithm (DLMF 8.19.8)."""
    one = n <= 1.0

    def step(k: Any, power: Any, chosen: Any, total: Any) -> tuple[Any, Any, Any, Number]:
        power = power * -x / k
        gap = k + 1.0 - n
        this = absolute(gap) < 0.5
        chosen = where(this, power, chosen)
        total = total - where(this, 0.0, power / where(this, 1.0, gap))
        return power, chosen, total, small(power, total)

    ones = where(x >= 0.0, 1.0, x)
    first = where(one, 0.0, 1.0 / where(one, 1.0, n - 1.0))
    _, chosen, total = iterate(step, [ones, where(one, 1.0, 0.0 * n), first], 500)
    return total + chosen * (psi(n) - log(x))


expn: Primitive = special(
    "expn",
    _expn,
    partials=[
        lambda out, n, x: zeros_like(n),
        lambda out, n, x: neg(expn(sub(n, 1), x)),
    ],
    operations=270,
    doc="E_n(x) = ∫₁ exp(-xt) t⁻ⁿ dt, of whole n (DLMF 8.19.3)",
    examples=[Example((f32(3), f32(3)), low=1.25, high=1.75)],
)

_ROOT = 0.3725074107813666345  # of Ei
_ROOT_HIGH = float(np.float32(_ROOT))
_ROOT_LOW = -1.2381093692686446e-08  # the rest of it


def _about_root() -> list[float]:
    """The power series of Ei at its root, of e^t / t without its constant."""
    f = [math.exp(_ROOT) / _ROOT]
    for n in range(1, 26):
        f.append((math.exp(_ROOT) / math.factorial(n) - f[-1]) / _ROOT)
    return [0.0] + [c / (n + 1) for n, c in enumerate(f)]


def _expi(x: Any) -> Any:
    """By -E₁(-x); about the root; by a series and an asymptotic one (DLMF 6.6.2, 6.12.2)."""
    turn = 40 if precision(x) < 1e-10 else 20
    positive = x > 0.0
    close = (x > 0.3) & (x < 0.45)
    d = isolated(within(close, x, 0.4) - _ROOT_HIGH) - _ROOT_LOW
    near = positive & (x <= float(turn))
    u = within(near, x, 1.0)
    ones = where(near, 1.0, u)

    def step(k: Any, power: Any, total: Any) -> tuple[Any, Any, Number]:
        power = power * u / k
        change = power / k
        return power, total + change, small(change, total + change)

    _, total = iterate(step, [ones, 0.0 * u], 500)
    far = x > float(turn)
    v = within(far, x, float(turn))
    half = exp(v * 0.5)
    terms = [float(math.factorial(k)) for k in range(turn + 1)]
    asymptotic = half * (half / v * polynomial(1.0 / v, terms))
    below = -_expn(x.like(1.0), within(~positive, -x, 1.0))
    above = where(close, polynomial(d, _about_root()), _EULER + log(u) + isolated(total))
    above = where(far, where(x < math.inf, asymptotic, math.inf), above)
    return where(is_nan(x), x, where(positive, above, below))


def _expi_slope(x: Any) -> Any:
    half = exp(x * 0.5)
    return where(x < math.inf, half * (half / x), math.inf)


expi_slope: Primitive = special(
    "expi_slope",
    _expi_slope,
    partials=[lambda out, x: mul(out, div(sub(x, 1), x))],
    operations=25,
    doc="e^x / x, the derivative of Ei, also where e^x is too large",
    examples=[_POSITIVE],
)

expi: Primitive = special(
    "expi",
    _expi,
    partials=[lambda out, x: expi_slope(x)],
    operations=360,
    doc="Ei(x), the integral of e^t / t from -∞ to x (DLMF 6.2.5)",
    examples=[_POSITIVE],
)


# ---- sine and cosine integrals --------------------------------------------------------------


def _sici(x: Any, sine: bool) -> Any:
    """By series up to 4, and by E₁(ix) from there on (DLMF 6.6.5, 6.6.6, 6.2.17, 6.9.1)."""
    size = absolute(x)
    near = size <= 4.0
    u = within(near, size, 1.0)
    square = u * u
    if sine:
        terms = [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(18)]
        close = u * polynomial(square, terms)
    else:
        terms = [(-1) ** k / (2 * k * math.factorial(2 * k)) for k in range(1, 18)]
        close = _EULER + log(u) + square * polynomial(square, terms)
    v = within(~near & (size < math.inf), size, 5.0)
    z = complex_of(0.0, v)
    fraction = continued_fraction(z + 1.0, lambda n: -1.0 * n * n, lambda n: z + n * 2.0 + 1.0)
    auxiliary = 1.0 / isolated(fraction)
    g, f = real(auxiliary), -imag(auxiliary)
    s, c = sin(v), cos(v)
    if sine:
        out = where(near, close, where(size < math.inf, math.pi / 2 - f * c - g * s, math.pi / 2))
        return where(is_nan(x), x, out * sign(x))
    out = where(near, close, where(size < math.inf, f * s - g * c, 0.0))
    return where(is_nan(x), x, where(x > -math.inf, out, math.nan))


def _sici_slope(out: Any, x: Any, sine: bool) -> Any:
    return sine_quotient(x) if sine else div(array.cos(x), x)


def _sine_quotient(x: Any) -> Any:
    size = absolute(x)
    near = size < 1.0
    u, v = within(near, x, 0.5), within(~near & (size < math.inf), x, 2.0)
    terms = [(-1) ** k / math.factorial(2 * k + 1) for k in range(11)]
    return where(near, polynomial(u * u, terms), where(size < math.inf, sin(v) / v, 0.0))


sine_quotient: Primitive = special(
    "sine_quotient",
    _sine_quotient,
    partials=[None],  # cos x / x - sin x / x² cancels near 0
    operations=50,
    doc="sin x / x, 1 at 0",
    examples=[Example((f32(2, 3),), low=-3.0, high=3.0)],
)


class _Sine(Differentiated):
    sine: bool


sici: Primitive = special(
    "sici",
    _sici,
    partials=[_sici_slope],
    params=_Sine,
    operations=120,
    doc="γ + log x + ∫₀ˣ (cos t - 1) / t dt, or, sine, ∫₀ˣ sin t / t dt (DLMF 6.2.9, 6.2.13)",
    examples=[Example((f32(2, 3),), {"sine": True}, low=0.5, high=6.0)],
)


# ---- the dilogarithm ------------------------------------------------------------------------


def _spence(x: Any) -> Any:
    """Into [1/2, 2], and there in powers of log x (DLMF 25.12.4, 25.12.6; 24.2.1 integrated)."""
    large = x > 2.0
    y = where(large, 1.0 / x, x)
    low = y < 0.5
    u = -where(low, log1p(-within(low, y, 0.25)), log(within(~low, y, 1.0)))
    terms = [b / math.factorial(2 * k + 1) for k, b in enumerate(BERNOULLI, 1)]
    square = u * u
    core = u * (1.0 - u * 0.25 + square * polynomial(square, terms))
    v = within(low & (y > 0.0), y, 0.25)
    other = math.pi**2 / 6 - where(y > 0.0, log(v) * log1p(-v), 0.0) - core
    out = where(low, other, core)
    logarithm = log(within(large, x, 3.0))
    out = where(large, logarithm * logarithm * -0.5 - out, out)
    return where(x >= 0.0, out, math.nan)


def _spence_slope(x: Any) -> Any:
    """By log x = 2 artanh u with u = (x - 1) / (x + 1), where x is close to 1."""
    d = x - 1.0
    near = absolute(d) < 0.3
    s, v = 1.0 / (within(near, d, 0.1) + 2.0), within(~near, x, 2.0)
    u = within(near, d, 0.1) * s
    terms = [-2 / (2 * k + 1) for k in range(11)]
    far = where(x < math.inf, log(v) / (1.0 - v), 0.0)
    return where(near, s * polynomial(u * u, terms), far)


spence_slope: Primitive = special(
    "spence_slope",
    _spence_slope,
    partials=[None],  # 1 / x (1 - x) + log x / (1 - x)² cancels near 1
    operations=40,
    doc="log x / (1 - x), the derivative of spence; -1 at 1",
    examples=[_POSITIVE],
)


spence: Primitive = special(
    "spence",
    _spence,
    partials=[lambda out, x: spence_slope(x)],
    operations=65,
    doc="∫₁ˣ log t / (1 - t) dt, the dilogarithm of 1 - x (DLMF 25.12.1)",
    examples=[_POSITIVE],
)


# ---- Owen's function ------------------------------------------------------------------------


def _owens_t(h: Any, a: Any) -> Any:
    """By Gauss quadrature for |a| ≤ 1; elsewhere by T(ah, 1/a) (Owen 1956, equation 2.3)."""
    width, count = (8.6, 26) if precision(h) < 1e-10 else (5.9, 12)
    h, b = absolute(h), absolute(a)
    large = b > 1.0
    product = where((h > 0.0) & (b > 0.0), h * b, 0.0)
    p, c = where(large, product, h), where(large, 1.0 / b, b)
    s = where(large, h, product)  # c p
    cut = s > width
    length = where(cut, c * width / s, c)
    s = where(cut, width, s)
    points, weights = np.polynomial.legendre.leggauss(count)

    def term(t: Any, weight: Any, s: Any, length: Any) -> Any:
        return weight * exp(s * s * t * t * -0.5) / (length * length * t * t + 1.0)

    total = summed(term, (points + 1) / 2, weights / 2, of=[s, length])
    inner = length * total * exp_of_square(lesser(p, 100.0), -0.5) / (2 * math.pi)
    q, r = (erfc(z * math.sqrt(0.5)) * 0.5 for z in (h, product))
    out = where(large, (q + r) * 0.5 - q * r - inner, inner)
    return where(is_nan(h) | is_nan(a), math.nan, where(a < 0.0, -out, out))


def _owens_slope_by_h(out: Any, h: Any, a: Any) -> Any:
    bell = array.exp(mul(array.square(h), -0.5))
    return mul(mul(bell, erf(mul(mul(h, a), math.sqrt(0.5)))), -0.5 / math.sqrt(2 * math.pi))


def _owens_bell(h: Any, a: Any) -> Any:
    square = a * a + 1.0
    return exp(h * h * square * -0.5) / (square * (2 * math.pi))


owens_bell: Primitive = special(
    "owens_bell",
    _owens_bell,
    partials=[None, None],
    operations=25,
    doc="exp(-h² (1 + a²) / 2) / 2π (1 + a²), the derivative of owens_t by a",
    examples=[Example((f32(3), f32(3)), low=-2.0, high=2.0)],
)


owens_t: Primitive = special(
    "owens_t",
    _owens_t,
    partials=[_owens_slope_by_h, lambda out, h, a: owens_bell(h, a)],
    operations=300,
    doc="1/2π ∫₀ᵃ exp(-h² (1 + t²) / 2) / (1 + t²) dt (Owen, Ann. Math. Statist. 27, 1956)",
    examples=[Example((f32(3), f32(3)), low=-2.0, high=2.0)],
)
