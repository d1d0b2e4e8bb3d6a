"""The Faddeeva function and its relatives: erfcx, Dawson's and Fresnel's integrals, erfc⁻¹.

The values are those of the midpoint and trapezoidal rules with the contributions of poles, by Al
Azah and Chandler-Wilde, Computation of the complex error function using modified trapezoidal
rules, SIAM J. Numer. Anal. 59, 2021, theorem 1.1.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.primitive import Example, Primitive
from phalanx.primitives import elementwise as array
from phalanx.primitives.basis import mul, sub
from phalanx.primitives.compare import eq, min, select
from phalanx.primitives.domains import f32
from phalanx.primitives.formula import (
    Differentiated,
    absolute,
    chebyshev,
    chebyshev_series,
    complex_of,
    conj,
    exp,
    floor,
    imag,
    is_nan,
    isolated,
    lesser,
    log,
    polynomial,
    precision,
    real,
    rounded,
    sign,
    special,
    sqrt,
    where,
    within,
)
from phalanx.primitives.half_turns import cosine_of_half_turns, sine_of_half_turns

_SQRT_PI = math.sqrt(math.pi)
_REAL = Example((f32(2, 3),), low=-3.0, high=3.0)


def _rule(x: Any) -> tuple[int, float]:
    """The last node of the sums, and their step h."""
    last = 11 if precision(x) < 1e-10 else 5
    return last, math.sqrt(math.pi / (last + 1))


def _far(x: Any) -> float:
    """From where on two terms of the asymptotic expansions do (DLMF 7.12.1)."""
    return 1e4 if precision(x) < 1e-10 else 1e2


def _midpoints(x: Any, y: Any = 0.0) -> tuple[Any, Any]:
    """2hz/π Σ exp(-t²) / (z² - t²) of z = x + iy, over t = h/2, 3h/2, ...; the parts of it."""
    last, h = _rule(x)
    return _poles(x, y, [(k + 0.5) * h for k in range(last + 1)], 0.0)


def _trapezoid(x: Any, y: Any = 0.0) -> tuple[Any, Any]:
    """The same over t = 0, h, 2h, ..., with the first term halved."""
    last, h = _rule(x)
    return _poles(x, y, [k * h for k in range(1, last + 1)], 0.5)


def _poles(x: Any, y: Any, nodes: list[float], at_zero: float) -> tuple[Any, Any]:
    """The sum by z / (z² - t²) = (x (|z|² - t²) - iy (|z|² + t²)) / |z² - t²|²."""
    _, h = _rule(x)
    square, difference = x * x + y * y, (x - y) * (x + y)
    product = x * y * 2.0
    product = product * product
    even: Any = at_zero / square if at_zero else 0.0
    odd = even
    for t in reversed(nodes):
        gap = difference - t * t
        weight = math.exp(-t * t) / (gap * gap + product)
        even, odd = even + weight * (square - t * t), odd + weight * (square + t * t)
    return x * even * (2 * h / math.pi), y * odd * (-2 * h / math.pi)


def exp_of_square(x: Any, factor: float) -> Any:
    """exp(factor x²), where x² has more digits than a float."""
    high = rounded(x * 16.0) / 16.0
    return exp(high * high * factor) * exp((x - high) * (x + high) * factor)


# ---- on the imaginary and the real axis -----------------------------------------------------


def scaled_erfc_above(x: Any) -> Any:
    """exp(x²) erfc x = w(ix), for x ≥ 0."""
    far = _far(x)
    last, h = _rule(x)
    beyond = x > far
    y = within(~beyond, x, 1.0)
    nodes = [(k + 0.5) * h for k in reversed(range(last + 1))]
    out = sum(math.exp(-t * t) / (y * y + t * t) for t in nodes) * y * (2 * h / math.pi)
    inner = y < math.pi / h
    v = within(inner, y, 1.0)
    out = out + where(inner, exp_of_square(v, 1.0) * 2.0 / (exp(v * (2 * math.pi / h)) + 1.0), 0.0)
    u = 1.0 / within(beyond, x, far)
    return where(beyond, (u - u * u * u * 0.5) / _SQRT_PI, out)


def scaled_erfc(x: Any) -> Any:
    """exp(x²) erfc x = w(ix)."""
    down = x < 0.0
    out = scaled_erfc_above(where(down, -x, x))
    w = within(down, x, -1.0)
    least = -27.0 if precision(x) < 1e-10 else -10.0
    beyond = w * w * math.inf  # its derivatives are infinite, too
    mirrored = where(w > least, exp_of_square(_at_least(w, least), 1.0) * 2.0 - out, beyond)
    return where(is_nan(x), x, where(down, mirrored, out))


def _at_least(x: Any, least: float) -> Any:
    return where(x > least, x, least)


def _dawson(x: Any) -> Any:
    """exp(-x²) ∫₀ˣ exp(t²) dt = √π/2 Im w(x)."""
    size, far = absolute(x), _far(x)
    _, h = _rule(x)
    beyond, near = size > far, size < 0.25
    v = within(near, x, 0.1)
    terms = [(-2.0) ** k / math.prod(range(1, 2 * k + 2, 2)) for k in range(12)]
    close = v * polynomial(v * v, terms)
    y = within(~beyond & ~near, size, 1.0)
    turns = y / h
    turns = turns - floor(turns)
    between = (turns > 0.25) & (turns < 0.75)
    p, q = within(between, y, 0.5 * h), within(~between, y, h)
    bell = exp_of_square(y, -1.0)
    s, c = sine_of_half_turns(turns), cosine_of_half_turns(turns)
    ratio = where(between, -c, s) / where(between, s, c)
    out = bell * ratio + where(between, _trapezoid(p)[0], _midpoints(q)[0])
    u = 1.0 / within(beyond, size, far)
    out = where(beyond, (u + u * u * u * 0.5) / _SQRT_PI, out) * (_SQRT_PI / 2)
    return where(near, close, where(is_nan(x), x, out * sign(x)))


# ---- in the plane ---------------------------------------------------------------------------


def _first_quadrant(z: Any) -> Any:
    """w(z) for Re z ≥ 0, Im z ≥ 0."""
    _, h = _rule(z)
    far = _far(real(z))
    beyond = absolute(z) > far
    u = 1.0 / within(beyond, z, complex(far, far))
    asymptotic = (u + u * u * u * 0.5) * complex(0, 1 / _SQRT_PI)
    z = isolated(within(~beyond, z, complex(1, 1)))
    x, y = real(z), imag(z)
    turns = x / h
    turns = turns - floor(turns)
    near = y < math.pi / h  # elsewhere the pole counts for nothing
    between = (y < x) & (turns > 0.25) & (turns < 0.75)
    first = _trapezoid(within(between, x, 0.5 * h), within(between, y, 0.0))
    second = _midpoints(within(~between, x, 0.0), within(~between, y, 1.0))
    re, im = (where(between, p, q) for p, q in zip(first, second, strict=True))
    r = within(near, y, 1.0)
    inverse = exp(complex_of(r * (2 * math.pi / h), turns * (-2 * math.pi)))
    a = within(near, x, 1.0)
    bell = exp(complex_of((r - a) * (r + a), a * r * -2.0))
    pole = bell * 2.0 / (where(between, -inverse, inverse) + 1.0)
    return where(beyond, asymptotic, complex_of(-im, re) + where(near, pole, 0.0))


def _faddeeva(z: Any) -> Any:
    """By w(-z) = 2 exp(-z²) - w(z), and w of -conj(z) is conj(w(z)) (DLMF 7.4.3)."""
    x, y = real(z), imag(z)
    down = y < 0.0
    left = where(down, x > 0.0, x < 0.0)
    size = complex_of(where(x < 0.0, -x, x), where(down, -y, y))
    out = isolated(_first_quadrant(size))
    out = where(left, conj(out), out)
    v, u = within(down, y, -1.0), within(down, x, 1.0)
    bell = exp(complex_of((v - u) * (v + u), u * v * -2.0)) * 2.0
    out = where(down, bell - out, out)
    return where(is_nan(x) | is_nan(y), complex(math.nan, math.nan), out)


wofz: Primitive = special(
    "wofz",
    _faddeeva,
    partials=[None],
    operations=210,
    doc="exp(-z²) erfc(-iz), of complex z (DLMF 7.2.3)",
    examples=[Example((np.complex64(0.7 + 0.5j),), order=1)],
    on=dtypes.is_complex,
)

erfcx: Primitive = special(
    "erfcx", scaled_erfc, partials=[None], doc="exp(x²) erfc x (DLMF 7.2.2)", examples=[_REAL]
)

erfcx_above: Primitive = special(
    "erfcx_above",
    scaled_erfc_above,
    partials=[None],
    operations=50,
    doc="exp(x²) erfc x, for x ≥ 0 (DLMF 7.2.2)",
    examples=[Example((f32(2, 3),), low=0.5, high=3.0)],
)

dawsn: Primitive = special(
    "dawsn",
    _dawson,
    partials=[None],
    operations=200,
    doc="exp(-x²) ∫₀ˣ exp(t²) dt (DLMF 7.2.5)",
    examples=[_REAL],
)


# ---- Fresnel's integrals --------------------------------------------------------------------


def _fresnel(x: Any, sine: bool) -> Any:
    """Near 0 by the series, elsewhere by auxiliary functions (DLMF 7.6.4, 7.6.6, 7.5.3, 7.5.4)."""
    size = absolute(x)
    near = size < 1.6
    v = within(near, x, 1.0)
    square = v * v
    m = 1 if sine else 0
    terms = [
        (-1) ** k * (math.pi / 2) ** (2 * k + m) / (math.factorial(2 * k + m) * (4 * k + 2 * m + 1))
        for k in range(14 if precision(x) < 1e-10 else 10)
    ]
    close = v * polynomial(square * square, terms) * (square if sine else 1.0)
    u = within(~near & (size < math.inf), size, 2.0)
    half_turns = _turned(u)
    s, c = sine_of_half_turns(half_turns), cosine_of_half_turns(half_turns)
    f, g = _auxiliary(u)
    rest = f * c + g * s if sine else g * c - f * s
    away = where(size < math.inf, 0.5 - rest, 0.5) * sign(x)
    return where(near, close, where(is_nan(x), x, away))


def _auxiliary(u: Any) -> tuple[Any, Any]:
    """f(u) and g(u) for u ≥ 1.6: πu f and π²u³ g are smooth in 1/u² (DLMF 7.12.2, 7.12.3)."""
    w = 1.0 / (u * math.pi)
    of_f, of_g = _expansions(precision(u) / 16)
    y = w * w * (2 * (1.6 * math.pi) ** 2) - 1.0
    return chebyshev(y, of_f) * w, chebyshev(y, of_g) * (w * w * w * math.pi)


@cache
def _expansions(eps: float) -> list[list[float]]:
    """The Chebyshev series of πu f and of π²u³ g in y, where u⁻² = (y + 1) / 2 · 1.6⁻².

    They are the means of 1 / (1 + a v⁴) and of 2v² / (1 + a v⁴) over normal v of variance 1/2,
    where a is 4 / π²u⁴ (DLMF 7.7.10 and 7.7.11 with √t = √(2/π) v / u), by the trapezoidal rule.
    """
    step = 0.2
    squares = (step * np.arange(-40, 41)) ** 2
    weights = np.exp(-squares) * (step / _SQRT_PI)

    def mean(weights: np.ndarray, y: np.ndarray) -> np.ndarray:
        a = ((y + 1) / (math.pi * 1.6**2)) ** 2
        return (weights / (1 + np.multiply.outer(a, squares**2))).sum(-1)

    return [chebyshev_series(partial(mean, w), eps) for w in (weights, 2 * weights * squares)]


def _turned(u: Any) -> Any:
    """u² / 2, up to multiples of 2."""
    n = rounded(u * 0.5)
    r = u - n * 2.0
    product = n * r  # u² is 4 n r + r², up to multiples of 4
    return (product - rounded(product)) * 2.0 + r * r * 0.5


def _fresnel_slope(x: Any, sine: bool) -> Any:
    finite = absolute(x) < math.inf
    half_turns = _turned(within(finite, x, 0.0))
    wave = sine_of_half_turns(half_turns) if sine else cosine_of_half_turns(half_turns)
    return where(finite, wave, math.nan)


class _Sine(Differentiated):
    sine: bool


def _fresnel_bend(x: Any, sine: bool) -> Any:
    factor = math.pi if sine else -math.pi
    return mul(mul(x, factor), fresnel_slope(x, sine=not sine))


fresnel_slope: Primitive = special(
    "fresnel_slope",
    _fresnel_slope,
    partials=[lambda out, x, sine: _fresnel_bend(x, sine)],
    params=_Sine,
    operations=45,
    doc="cos(πx²/2), or, sine, sin(πx²/2), of which πx²/2 has too few digits",
    examples=[Example((f32(2, 3),), {"sine": True}, low=-3.0, high=3.0)],
)


fresnel: Primitive = special(
    "fresnel",
    _fresnel,
    partials=[lambda out, x, sine: fresnel_slope(x, sine=sine)],
    params=_Sine,
    operations=180,
    doc="∫₀ˣ cos(πt²/2) dt, or, sine, ∫₀ˣ sin(πt²/2) dt (DLMF 7.2.7)",
    examples=[Example((f32(2, 3),), {"sine": True}, low=-3.0, high=3.0)],
)


# ---- the inverse of erfc --------------------------------------------------------------------


# Wichura, Algorithm AS 241: the percentage points of the normal distribution, Appl. Statist. 37,
# 1988: numerators and denominators for |p - 1/2| ≤ 0.425, for r ≤ 5, and for r > 5, where
# r = √(-log p).
_NORMAL_ABOVE = (
    (
        3.3871328727963666080,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.42343711074968357734,
        4.63033784615654529590,
        5.76949722146069140550,
        3.64784832476320460504,
        1.27045825245236838258,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        6.65790464350110377720,
        5.46378491116411436990,
        1.78482653991729133580,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
)
_NORMAL_BELOW = (
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
    (
        1.0,
        2.05319162663775882187,
        1.67638483018380384940,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)


def _quotients() -> list[tuple[list[float], list[float]]]:
    """Numerators and denominators for √½ of the quantile; in the middle for what is above 7/8."""
    center, near, far = (
        ([math.sqrt(0.5) * c for c in above], list(below))
        for above, below in zip(_NORMAL_ABOVE, _NORMAL_BELOW, strict=True)
    )
    above, below = center
    rest = [0.5 * a - 0.875 * b for a, b in zip(above, below, strict=True)]
    return [(rest, below), near, far]


def _erfc_inverse(y: Any) -> Any:
    """-√½ times the normal quantile of y/2, by one rational function with chosen coefficients."""
    tail = lesser(y, 2.0 - y)
    middle, inside = tail >= 0.15, tail > 0.0
    u = 1.0 - within(middle, y, 1.0)
    r = sqrt(math.log(2) - log(within(inside & ~middle, tail, 0.1)))
    close = r <= 5.0
    z = where(middle, 0.180625 - u * u * 0.25, r - where(close, y.like(1.6), 5.0))
    rows = zip(*_quotients(), strict=True)  # of numerators, and of denominators
    above, below = (
        polynomial(
            z,
            [
                where(middle, y.like(a), where(close, y.like(b), c))
                for a, b, c in zip(*row, strict=True)
            ],
        )
        for row in rows
    )
    side = where(y > 1.0, y.like(-1.0), 1.0)
    x = where(middle, u, side) * (above / below) + where(middle, u * 0.875, 0.0)
    return where(inside, x, where(tail >= 0.0, side * math.inf, tail * math.nan))


def _erfc_inverse_slope(x: Any, y: Any) -> Any:
    """-√π/2 exp(x²), where that is erfcx x / y: x² has a few digits only of the exponential."""
    tail = min(y, sub(2, y))
    above = select(eq(tail, 0), 1, erfcx_above(array.abs(x)))
    return mul(array.div(above, tail), -_SQRT_PI / 2)


erfc_inv: Primitive = special(
    "erfc_inv",
    _erfc_inverse,
    partials=[_erfc_inverse_slope],
    doc="the x with erfc x = y, for y in [0, 2] (DLMF 7.17.1)",
    examples=[Example((f32(2, 3),), low=0.1, high=1.9)],
)
