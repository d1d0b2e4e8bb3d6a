"""The Faddeeva function and its relatives: erfcx, Dawson's and Fresnel's integrals, erfc⁻¹.

The values are those of the midpoint and trapezoidal rules with the contributions of poles, by Al
Azah and Chandler-Wilde, Computation of the complex error function using modified trapezoidal
rules, SIAM J. Numer. Anal. 59, 2021, theorem 1.1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.primitive import Example, Primitive
from phalanx.ops import elementwise as array
from phalanx.ops.basis import f32, mul
from phalanx.ops.formula import (
    absolute,
    apart,
    conj,
    cos,
    erf,
    erf_inv,
    exp,
    floor,
    imag,
    is_nan,
    joined,
    lesser,
    log,
    polynomial,
    precision,
    real,
    rounded,
    sign,
    sin,
    special,
    sqrt,
    where,
    within,
)

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


def scaled_erfc(x: Any) -> Any:
    """exp(x²) erfc x = w(ix)."""
    size, far = where(x < 0.0, -x, x), _far(x)
    _, h = _rule(x)
    beyond = size > far
    y = within(~beyond, size, 1.0)
    out = -_midpoints(_nothing(y), y)[1]
    inner = y < math.pi / h
    v = within(inner, y, 1.0)
    out = out + where(inner, exp_of_square(v, 1.0) * 2.0 / (exp(v * (2 * math.pi / h)) + 1.0), 0.0)
    u = 1.0 / within(beyond, size, far)
    out = where(beyond, (u - u * u * u * 0.5) / _SQRT_PI, out)
    down = x < 0.0
    w = within(down, x, -1.0)
    least = -27.0 if precision(x) < 1e-10 else -10.0
    mirrored = where(w > least, exp_of_square(_at_least(w, least), 1.0) * 2.0 - out, math.inf)
    return where(is_nan(x), x, where(down, mirrored, out))


def _nothing(x: Any) -> Any:
    return x * 0.0


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
    angle = turns * math.pi
    s, c = sin(angle), cos(angle)
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
    z = apart(within(~beyond, z, complex(1, 1)))
    x, y = real(z), imag(z)
    turns = x / h
    turns = turns - floor(turns)
    near = y < math.pi / h  # elsewhere the pole counts for nothing
    between = (y < x) & (turns > 0.25) & (turns < 0.75)
    first = _trapezoid(within(between, x, 0.5 * h), within(between, y, 0.0))
    second = _midpoints(within(~between, x, 0.0), within(~between, y, 1.0))
    re, im = (where(between, p, q) for p, q in zip(first, second, strict=True))
    r = within(near, y, 1.0)
    inverse = exp(joined(r * (2 * math.pi / h), turns * (-2 * math.pi)))
    a = within(near, x, 1.0)
    bell = exp(joined((r - a) * (r + a), a * r * -2.0))
    pole = bell * 2.0 / (where(between, -inverse, inverse) + 1.0)
    return where(beyond, asymptotic, joined(-im, re) + where(near, pole, 0.0))


def _faddeeva(z: Any) -> Any:
    """By w(-z) = 2 exp(-z²) - w(z), and w of -conj(z) is conj(w(z)) (DLMF 7.4.3)."""
    x, y = real(z), imag(z)
    down = y < 0.0
    left = where(down, x > 0.0, x < 0.0)
    size = joined(where(x < 0.0, -x, x), where(down, -y, y))
    out = apart(_first_quadrant(size))
    out = where(left, conj(out), out)
    v, u = within(down, y, -1.0), within(down, x, 1.0)
    bell = exp(joined((v - u) * (v + u), u * v * -2.0)) * 2.0
    out = where(down, bell - out, out)
    return where(is_nan(x) | is_nan(y), complex(math.nan, math.nan), out)


wofz: Primitive = special(
    "wofz",
    _faddeeva,
    known=[None],
    doc="exp(-z²) erfc(-iz), of complex z (DLMF 7.2.3)",
    examples=[Example((np.complex64(0.7 + 0.5j),), order=1)],
    on=dtypes.is_complex,
)

erfcx: Primitive = special(
    "erfcx", scaled_erfc, known=[None], doc="exp(x²) erfc x (DLMF 7.2.2)", examples=[_REAL]
)

dawsn: Primitive = special(
    "dawsn",
    _dawson,
    known=[None],
    doc="exp(-x²) ∫₀ˣ exp(t²) dt (DLMF 7.2.5)",
    examples=[_REAL],
)


# ---- Fresnel's integrals --------------------------------------------------------------------


def _fresnel(x: Any, sine: bool) -> Any:
    """Near 0 by the series, elsewhere by w on the diagonal (DLMF 7.6.4, 7.6.6, 7.5.10)."""
    size = absolute(x)
    near = size < 1.6
    v = within(near, x, 1.0)
    square = v * v
    m = 1 if sine else 0
    terms = [
        (-1) ** k * (math.pi / 2) ** (2 * k + m) / (math.factorial(2 * k + m) * (4 * k + 2 * m + 1))
        for k in range(14)
    ]
    close = v * polynomial(square * square, terms) * (square if sine else 1.0)
    u = within(~near & (size < math.inf), size, 2.0)
    w = _first_quadrant(joined(u * (_SQRT_PI / 2), u * (_SQRT_PI / 2)))
    n = rounded(u * 0.5)
    r = u - n * 2.0
    product = n * r  # u² is 4 n r + r², up to multiples of 4
    angle = (product - rounded(product)) * (2 * math.pi) + r * r * (0.5 * math.pi)
    f, g = (real(w) + imag(w)) * 0.5, (real(w) - imag(w)) * 0.5
    s, c = sin(angle), cos(angle)
    rest = f * c + g * s if sine else g * c - f * s
    away = where(size < math.inf, 0.5 - rest, 0.5) * sign(x)
    return where(near, close, where(is_nan(x), x, away))


def _fresnel_slope(out: Any, x: Any, sine: bool) -> Any:
    angle = mul(array.square(x), 0.5 * math.pi)
    return array.sin(angle) if sine else array.cos(angle)


fresnel: Primitive = special(
    "fresnel",
    _fresnel,
    known=[_fresnel_slope],
    doc="∫₀ˣ cos(πt²/2) dt, or, sine, ∫₀ˣ sin(πt²/2) dt (DLMF 7.2.7)",
    examples=[Example((f32(2, 3),), {"sine": True}, low=-3.0, high=3.0)],
)


# ---- the inverse of erfc --------------------------------------------------------------------


def _erfc_inverse(y: Any) -> Any:
    """In the middle that of erf; of tails by Newton's method for log erfc."""
    tail = lesser(y, 2.0 - y)
    middle = tail >= 0.5
    u = 1.0 - within(middle, y, 1.0)
    close = erf_inv(u)
    close = close - (erf(close) - u) * exp(close * close) * (_SQRT_PI / 2)
    inside = (tail > 0.0) & ~middle
    goal = log(within(inside, tail, 0.25))
    t = sqrt(-2.0 * (goal - math.log(2)))
    top = polynomial(t, [2.515517, 0.802853, 0.010328])  # Abramowitz and Stegun 26.2.23
    x = (t - top / polynomial(t, [1.0, 1.432788, 0.189269, 0.001308])) * math.sqrt(0.5)
    for _ in range(3 if precision(y) < 1e-10 else 2):
        ratio = scaled_erfc(x)
        x = x + (log(ratio) - x * x - goal) * ratio * (_SQRT_PI / 2)
    x = where(inside, x, where(tail >= 0.0, math.inf, tail * math.nan))
    return where(middle, close, where(y > 1.0, -x, x))


def _erfc_inverse_slope(x: Any, y: Any) -> Any:
    return mul(array.exp(array.square(x)), -_SQRT_PI / 2)


erfc_inv: Primitive = special(
    "erfc_inv",
    _erfc_inverse,
    known=[_erfc_inverse_slope],
    doc="the x with erfc x = y, for y in [0, 2] (DLMF 7.17.1)",
    examples=[Example((f32(2, 3),), low=0.1, high=1.9)],
)
