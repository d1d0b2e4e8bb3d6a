"""The incomplete gamma and beta functions, and the logarithm of the beta function."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from phalanx.base.on_demand import OnDemand
from phalanx.core.primitive import Example, Primitive
from phalanx.primitives import elementwise as array
from phalanx.primitives.basis import add, mul, neg, sub
from phalanx.primitives.domains import f32
from phalanx.primitives.formula import (
    Differentiated,
    Formula,
    Number,
    absolute,
    continued_fraction,
    erfc,
    exp,
    expm1,
    floor,
    greater,
    is_nan,
    isolated,
    iterate,
    lesser,
    log,
    log1p,
    polynomial,
    precision,
    series,
    sign,
    special,
    sqrt,
    together,
    where,
    within,
)
from phalanx.primitives.gamma import (
    LARGE,
    about_two,
    digamma,
    digamma_change,
    ln_gamma,
    ln_gamma_above,
    stirling,
)

_fractions = OnDemand("fractions", "slow, and only one series needs it")
_POSITIVE = Example((f32(3), f32(3)), low=0.5, high=3.0)


# ---- logarithms of gamma functions ----------------------------------------------------------


def curvature(m: Any) -> Any:
    """2 (m - log(1 + m)) / m², 1 at 0 (Loader, Computation of binomial probabilities, 2000)."""
    near = absolute(m) < 0.3
    n = within(near, m, 0.1)
    r = n / (n + 2.0)
    terms = [2 / (2 * k + 3) for k in range(12 if precision(m) < 1e-10 else 6)]
    close = (1.0 - r * polynomial(r * r, terms) / (n + 2.0)) * 2.0 / (n + 2.0)
    f = within(~near, m, 1.0)
    return where(near, close, (f - log1p(f)) / (f * f) * 2.0)


def _log_beta(a: Any, b: Any) -> Any:
    """log |B(a, b)|, infinite at poles but for whole a ≤ 0 < b ≤ -a: there by reflection."""
    low, high = lesser(a, b), greater(a, b)
    are_integers = (floor(low) >= low) & (floor(high) >= high) & (low > -math.inf)
    mirrored = are_integers & (high > 0.0) & (low + high <= 0.0)
    pole = (low <= 0.0) & (floor(low) >= low) | (high <= 0.0) & (floor(high) >= high)
    inside = (mirrored | ~pole) & (high < math.inf)
    u, v = within(inside, where(mirrored, 1.0 - low - high, low), 1.0), within(inside, high, 1.0)
    edge = where((low > 0.0) & ~pole, -math.inf, _one(low) * math.inf)
    unknown = is_nan(a) | is_nan(b)
    value = where(inside | unknown, isolated(_log_beta_inside(u, v)), edge)
    return value + where(unknown, a + b, 0.0)


def _log_beta_inside(a: Any, b: Any) -> Any:
    """log |B(a, b)| but for poles: of large arguments by Stirling's series, not to cancel."""
    low, high = lesser(a, b), greater(a, b)
    large = low >= LARGE
    u, v = within(large, low, LARGE), within(large, high, LARGE)
    n = u + v
    out = (log(n / u * (2 * math.pi)) - log(v)) * 0.5 + stirling(u) + stirling(v) - stirling(n)
    out = out - u * log1p(v / u) - v * log1p(u / v)
    return where(large, isolated(out), _log_beta_below(low, high))


def _log_beta_below(low: Any, high: Any, log_of_gamma: Formula = ln_gamma) -> Any:
    """log |B(low, high)|, unless both are large, by the logarithm of the gamma function."""
    large = (high >= LARGE) & (low + high >= LARGE)
    u, v = within(large, low, 1.0), within(large, high, LARGE)
    ratio, n = u / v, u + v
    p, q, r = together(log_of_gamma, [low, high, low + high])
    out = u * ratio * curvature(ratio) * 0.5 + log1p(ratio) * 0.5 - u * log(n)
    out = out + stirling(v) - stirling(n) + p
    small = p + (q - r)
    return where(large, out, small)


def _log_beta_slope(a: Any, b: Any) -> Any:
    return neg(digamma_change(a, b))


betaln = special(
    "betaln",
    _log_beta,
    partials=[
        lambda out, a, b: _log_beta_slope(a, b),
        lambda out, a, b: _log_beta_slope(b, a),
    ],
    operations=770,
    doc="log |Γ(a) Γ(b) / Γ(a + b)| (DLMF 5.12.1)",
    examples=[_POSITIVE],
)


# ---- rising factorials ----------------------------------------------------------------------


def _log_of_poch(z: Any, m: Any) -> Any:
    """log |Γ(z + m) / Γ(z)|, of large z by the beta function, so that nothing cancels."""
    low, gap = lesser(z, z + m), absolute(m)
    far = (low >= 16.0) & (gap > 0.0)
    u, k = within(far, low, 16.0), within(far, gap, 1.0)
    change = sign(m) * (ln_gamma(k) - _log_beta(u, k))
    v, n = within(~far, z, 1.0), within(~far, m, 1.0)
    return where(far, change, ln_gamma(v + n) - ln_gamma(v))


log_poch: Primitive = special(
    "log_poch",
    _log_of_poch,
    partials=[
        lambda out, z, m: digamma_change(z, m),
        lambda out, z, m: digamma(add(z, m)),
    ],
    operations=900,
    doc="log |Γ(z + m) / Γ(z)|, but for poles (DLMF 5.2.5)",
    examples=[_POSITIVE],
)


# ---- binomial coefficients ------------------------------------------------------------------

_FACTORS = 64  # up to that many are multiplied


def _binomial_coefficient(n: Any, k: Any) -> Any:
    """Γ(n + 1) / (Γ(k + 1) Γ(n - k + 1)), for n ≥ k ≥ 0; exact of whole numbers where it can be."""
    gap = n - k
    other = (floor(n) >= n) & (gap < k)
    low, few = where(other, k, gap), where(other, gap, k)
    product = (floor(few) >= few) & (few < float(_FACTORS)) & (n < math.inf)
    u, v = within(product, low, 1.0), within(product, few, 1.0)

    def step(i: Any, total: Any) -> tuple[Any, Number]:
        going = v >= i
        exact, large = total * (u + i) / i, total * ((u + i) / i)
        new = where(total < 1 / precision(u), exact, large)
        return where(going, new, total), ~going

    near = iterate(step, [where(product, 1.0, u)], _FACTORS)[0]
    p, q = within(~product, k, 0.5), within(~product, n, 0.75)
    far = exp(-_log_beta(q - p + 1.0, p + 1.0) - log1p(q))
    edge = where(k <= 0.0, 1.0, _one(k) * math.inf)
    return where((n >= math.inf) & (k < math.inf), edge, where(product, isolated(near), far))


def _by_count(out: Any, n: Any, k: Any) -> Any:
    return mul(out, digamma_change(add(sub(n, k), 1), k))


def _by_taken(out: Any, n: Any, k: Any) -> Any:
    return mul(out, digamma_change(add(k, 1), sub(sub(n, k), k)))


binomial: Primitive = special(
    "binomial",
    _binomial_coefficient,
    partials=[_by_count, _by_taken],
    operations=800,
    doc="n over k, for n ≥ k ≥ 0 (DLMF 1.2.6)",
    examples=[Example((np.float32(5.5), f32(3)), low=0.5, high=4.5)],
)


# ---- the incomplete gamma functions ---------------------------------------------------------


def poisson(a: Any, x: Any) -> Any:
    """xᵃ e⁻ˣ / Γ(a + 1), for large ``a`` without a difference of large logarithms."""
    large = _is_large(a, x)
    by_loader = _by_loader(within(large, a, LARGE), within(large, x, LARGE))
    v = within(~large, a, 1.0)
    return where(large, by_loader, exp(v * log(x) - x - ln_gamma_above(v + 1.0)))


def _is_large(a: Any, x: Any) -> Number:
    """Where Loader's form is exact: x / a is not lost beside 1, or the result is 0 in any case."""
    return (a >= LARGE) & ((x > a * 0.1) | (a > 1e3))


def _by_loader(a: Any, x: Any) -> Any:
    m = (x - a) / a
    return exp(-a * m * m * curvature(m) * 0.5 - stirling(a)) / sqrt(a * (2 * math.pi))


@cache
def _temme() -> list[float]:
    """The series of η / (λ - 1) in η, where η²/2 = λ - 1 - log λ.

    From η λ = (λ - 1) dλ/dη, the equation of λ (DLMF 8.12.1).
    """
    exact = _fractions.Fraction
    order, none = 27, exact(0)
    m: list[Any] = [none, exact(1)]  # of λ - 1
    for n in range(2, order + 1):
        m.append(m[n - 1] / (n + 1) - sum((m[i] * m[n + 1 - i] for i in range(2, n)), none) / 2)
    inverse: list[Any] = [exact(1)]
    for n in range(1, order):
        inverse.append(-sum((m[i + 1] * inverse[n - i] for i in range(1, n + 1)), none))
    return [float(f) for f in inverse]


def _uniform(a: Any, x: Any, upper: bool) -> Any:
    """Q(a, x), or P(a, x), for large ``a`` and ``x`` near it (DLMF 8.12.3).

    The remainder is summed as by Gil, Segura and Temme, Efficient and accurate algorithms for the
    incomplete gamma function ratios, 2012.
    """
    m = (x - a) / a
    eta = m * sqrt(curvature(m))
    f = _temme()[: None if precision(a) < 1e-10 else 15]
    inverse = 1.0 / a
    b: list[Any] = [0.0] * len(f)
    b[-2:] = f[-1], 0.0
    for k in range(len(f) - 2, 0, -1):
        b[k - 1] = f[k] + (k + 1) * b[k + 1] * inverse
    rest = polynomial(eta, b[:-1]) / (1.0 + b[1] * inverse)
    rest = rest * exp(a * eta * eta * -0.5) / sqrt(a * (2 * math.pi))
    z = eta * sqrt(a * 0.5)
    return erfc(z) * 0.5 + rest if upper else erfc(-z) * 0.5 - rest


def _fraction(a: Any, x: Any) -> Any:
    """Q(a, x) over ``poisson``, for x > max(a, 1.5) (DLMF 8.9.2)."""
    return a / continued_fraction(
        x + 1.0 - a, lambda n: n * (a - n), lambda n: x + n * 2.0 + 1.0 - a
    )


def _power_series(a: Any, x: Any, small: Number | None) -> Any:
    """P(a, x) over ``poisson``, for x below a, or small (DLMF 8.7.1).

    Of ``small`` arguments the series of ``_small``, in the same loop.
    """
    if small is None:
        return series(_one(x), lambda n, term: term * x / (a + n))
    start = where(small, -x, _one(x))
    return series(start, lambda n, term: term * x * where(small, -_step(a, n), 1.0 / (a + n)))


def _one(x: Any) -> Any:
    return where(x >= x, 1.0, x)


def _small(a: Any, x: Any, terms: Any) -> Any:
    """Q(a, x) of small arguments, where it is the difference of 1 and almost 1 (DLMF 8.7.3)."""
    power = a * log(x) - (about_two(a) - log1p(a))
    return -expm1(power) - exp(power) * a * terms / (a + 1.0)


def _step(a: Any, n: Any) -> Any:
    """The ratio of 1 / ((a + n + 1) (n + 1)!) and 1 / ((a + n) n!)."""
    return (a + n) / ((a + n + 1.0) * (n + 1.0))


def _regions(a: Any, x: Any) -> tuple[Number, Number, Number]:
    """Where the function is taken from its expansion, its power series, its small form."""
    uniform = (a > 12.0) & (x > a * 0.3) & (x < a * 2.35)
    below = ~uniform & ((x <= 1.5) | (x < a))
    return uniform, below, (x <= 1.5) & (a < 0.5)


def _gamma_ratio(a: Any, x: Any, upper: bool) -> Any:
    valid = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    u, v = within(valid, a, 1.0), within(valid, x, 1.0)
    uniform, below, small = _regions(u, v)
    beyond = ~uniform & ~below
    near = isolated(_uniform(within(uniform, u, 20.0), within(uniform, v, 20.0), upper))
    factor = poisson(within(~uniform, u, 1.0), within(~uniform, v, 1.0))
    terms = _power_series(within(below, u, 1.0), within(below, v, 1.0), small if upper else None)
    q = _fraction(within(beyond, u, 1.0), within(beyond, v, 2.0))
    p, q = isolated(factor * where(below, terms, 0.0)), isolated(factor * where(beyond, q, 0.0))
    if upper:
        terms = where(small, terms, 0.0)
        less = isolated(_small(within(small, u, 0.25), within(small, v, 1.0), terms))
        far = where(below, where(small, less, 1.0 - p), q)
    else:
        far = where(below, p, 1.0 - q)
    return where(valid, where(uniform, near, far), _at_the_edge(a, x, upper))


def _at_the_edge(a: Any, x: Any, upper: bool) -> Any:
    """Where an argument is 0 or infinite; NaN where one is negative, or both are alike."""
    nothing, everything = (1.0, 0.0) if upper else (0.0, 1.0)
    least = (x < a) & (x >= 0.0)
    most = (a < x) & (a >= 0.0)
    return where(least, nothing, where(most, everything, where(a >= a, math.nan, a)))


def _density(a: Any, x: Any) -> Any:
    large = _is_large(a, x) & (x > 0.0) & (x < math.inf)
    u, v = within(large, a, LARGE), within(large, x, LARGE)
    w, y = within(~large, a, 1.0), within(~large, x, 1.0)
    return where(large, _by_loader(u, v) * u / v, exp((w - 1.0) * log(y) - y - ln_gamma(w)))


def _by_number(out: Any, a: Any, x: Any) -> Any:
    return mul(out, sub(array.div(sub(a, 1), x), 1))


gamma_density = special(
    "gamma_density",
    _density,
    partials=[None, _by_number],
    operations=200,
    doc="xᵃ⁻¹ e⁻ˣ / Γ(a), the derivative of P(a, x) by x (DLMF 8.8.13)",
    examples=[Example((f32(3), f32(3)), low=0.5, high=3.0)],
)


def _slope(out: Any, a: Any, x: Any, upper: bool) -> Any:
    return neg(gamma_density(a, x)) if upper else gamma_density(a, x)


class _Upper(Differentiated):
    upper: bool


igamma = special(
    "igamma",
    _gamma_ratio,
    partials=[None, _slope],
    params=_Upper,
    operations=860,
    doc="P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a), or, upper, Q(a, x) = 1 - P(a, x) (DLMF 8.2.4)",
    examples=[Example((f32(3), f32(3)), {"upper": True}, low=0.5, high=3.0, order=1)],
)


# ---- the incomplete beta function -----------------------------------------------------------


def _binomial(a: Any, b: Any, x: Any) -> Any:
    """xᵃ (1 - x)ᵇ / B(a, b); of large arguments as ``poisson`` is computed."""
    large = _both_large(a, b, x)
    u, v = within(large, a, LARGE), within(large, b, LARGE)
    by_loader = _beta_by_loader(u, v, within(large, x, 0.5))
    u, v = within(~large, a, 1.0), within(~large, b, 1.0)
    below = _log_beta_below(lesser(u, v), greater(u, v), ln_gamma_above)
    return where(large, isolated(by_loader), exp(u * log(x) + v * log1p(-x) - below))


def _both_large(a: Any, b: Any, x: Any) -> Number:
    """Where Loader's form is exact: of Poisson numbers of the means n x and n (1 - x)."""
    n = a + b
    return _is_large(a, n * x) & _is_large(b, n * (1.0 - x))


def _beta_by_loader(a: Any, b: Any, x: Any) -> Any:
    n = a + b
    gap = b * x - a * (1.0 - x)
    exponent = stirling(n) - stirling(a) - stirling(b)
    for z in (a, b):
        m = gap / z
        exponent = exponent - z * m * m * curvature(m) * 0.5
        gap = -gap
    return exp(exponent) * sqrt(a * (b / n) / (2 * math.pi))


def _beta_ratio(a: Any, b: Any, x: Any) -> Any:
    """By the continued fraction of Didonato and Morris (ACM TOMS 708, 1992)."""
    valid = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < math.inf) & (b < math.inf)
    u, v, low = within(valid, a, 1.0), within(valid, b, 1.0), within(valid, x, 0.5)
    high = 1.0 - low
    gap = u * high - v * low
    swap = low > u / (u + v)  # without a sum of products, which may be rounded in two ways
    p, q = where(swap, v, u), where(swap, u, v)
    s = where(swap, high, low)
    gap = where(swap, -gap, gap)

    def numerator(n: Any) -> Any:
        r = s / (p + n * 2.0 - 1.0)
        return (p + n - 1.0) * (p + q + n - 1.0) * n * (q - n) * r * r

    def denominator(n: Any) -> Any:
        rest = (p + n) * (gap + 1.0 + n * (2.0 - s)) / (p + n * 2.0 + 1.0)
        return n + n * (q - n) * s / (p + n * 2.0 - 1.0) + rest

    p, q, s, gap = (isolated(z) for z in (p, q, s, gap))
    fraction = continued_fraction(p * (gap + 1.0) / (p + 1.0), numerator, denominator, 10_000)
    ratio = isolated(_binomial(u, v, low)) / isolated(fraction)
    inside = where(swap, 1.0 - ratio, ratio)
    return where(valid, inside, _at_the_beta_edge(a, b, x))


def _at_the_beta_edge(a: Any, b: Any, x: Any) -> Any:
    defined = (x >= 0.0) & (x <= 1.0) & (a >= 0.0) & (b >= 0.0)
    none = (x <= 0.0) | ((x < 1.0) & ((b <= 0.0) | (a >= math.inf)))
    both = ((a <= 0.0) & (b <= 0.0)) | ((a >= math.inf) & (b >= math.inf))
    alike = both | is_nan(x) | is_nan(a) | is_nan(b)
    return where(defined & ~alike, where(none, 0.0, _one(x)), math.nan)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    large = _both_large(a, b, x) & (x > 0.0) & (x < 1.0)
    u, v, y = within(large, a, LARGE), within(large, b, LARGE), within(large, x, 0.5)
    by_loader = _beta_by_loader(u, v, y) / (y * (1.0 - y))
    u, v, y = within(~large, a, 1.0), within(~large, b, 1.0), within(~large, x, 0.5)
    powers = exp((u - 1.0) * log(y) + (v - 1.0) * log1p(-y) - _log_beta(u, v))
    return where(large, isolated(by_loader), powers)


def _by_share(out: Any, a: Any, b: Any, x: Any) -> Any:
    ratio = sub(array.div(sub(a, 1), x), array.div(sub(b, 1), sub(1, x)))
    return mul(out, ratio)


beta_density = special(
    "beta_density",
    _beta_density,
    partials=[None, None, _by_share],
    operations=400,
    doc="xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b), the derivative of I_x(a, b) by x (DLMF 8.17.1)",
    examples=[Example((f32(3), np.float32(1.5), np.float32(0.4)), low=0.5, high=3.0)],
)


betainc = special(
    "betainc",
    _beta_ratio,
    partials=[None, None, lambda out, a, b, x: beta_density(a, b, x)],
    operations=800,
    doc="I_x(a, b) = ∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b) (DLMF 8.17.2)",
    examples=[Example((f32(3), np.float32(1.5), np.float32(0.4)), low=0.5, high=3.0, order=1)],
)
