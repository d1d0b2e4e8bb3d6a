"""Elementwise functions in as many digits as it takes, where they are compared, and their slopes.

The functions are those of mpmath, or a formula of them that follows the definition. Derivatives are
central differences, of so short steps and so many digits that more of either change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import mpmath
import numpy as np
from mpmath import mp, mpf

Mask = Callable[..., Any]


class Known(NamedTuple):
    """A function of real numbers, as mpmath computes it."""

    value: Callable[..., Any] | None  # None where its derivatives are known better
    inside: Mask  # where it is compared, of arrays of float64
    by: tuple[int, ...] = (0,)  # the arguments that it is differentiated by
    slopes: tuple[Callable[..., Any], ...] = ()  # its derivatives by these, where they are known
    whole: tuple[int, ...] = ()  # the arguments that are whole numbers
    points: int = 40  # at how many points, about
    units: tuple[int, int] = (32, 64)  # in the last place, by which the two derivatives may be off


# ---- where ----------------------------------------------------------------------------------


def between(low: float, high: float) -> Mask:
    return lambda x, *_: (x > low) & (x < high)


def apart(*kinks: float, within: Mask | None = None) -> Mask:
    """``within``, except at ``kinks``."""
    here = within or between(-np.inf, np.inf)
    return lambda x, *_: here(x) & ~np.isin(x, kinks)


def left_of_poles(low: float, high: float) -> Mask:
    """Between, but where it is negative not at whole numbers."""
    return lambda x, *_: (x > low) & (x < high) & ((x > 0) | (x != np.floor(x)))


def each(*masks: Mask) -> Mask:
    """A condition for each argument."""
    return lambda *xs: np.all([m(x) for m, x in zip(masks, xs, strict=True)], 0)


ANY, POSITIVE, UNIT = between(-np.inf, np.inf), between(0, np.inf), between(-1, 1)
SHARE = between(0, 1)


def divisor(x: Any, *_: Any) -> Any:
    """Where a square is a number, too: of x / y / y XLA makes x / y²."""
    return (abs(x) > 1e-18) & (abs(x) < 1e18)


WAVES, NOT_0 = between(-1e4, 1e4), apart(0)


# ---- what mpmath has not, or not for all numbers ---------------------------------------------


FAR = 1e5  # where exp(-x) is 0 in every dtype


def logistic(x: Any) -> Any:
    if abs(x) > FAR:
        return mpf(x > 0)
    return 1 / (1 + mp.exp(-x)) if x > 0 else mp.exp(x) / (1 + mp.exp(x))


def softplus(x: Any) -> Any:
    return (x if x > 0 else 0) + (mpmath.log1p(mp.exp(-abs(x))) if abs(x) < FAR else 0)


def bell(x: Any) -> Any:
    return mp.exp(-x * x) * 2 / mp.sqrt(mp.pi) if abs(x) < 1e3 else mpf(0)


def density(x: Any) -> Any:
    return bell(x / mp.sqrt(2)) / mp.sqrt(8)


def normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def share_below(x: Any) -> Any:
    return normal(x) if abs(x) < 1e3 else mpf(x > 0)


def normal_quantile(p: Any) -> Any:
    """By Newton's method for the logarithm, which is of one kind in all of the tail."""
    if p > 0.5:
        return -normal_quantile(1 - p)
    goal = mp.log(p)
    x = -mp.sqrt(max(-2 * goal - mp.log(-2 * goal) - 1.8, 0)) if p < 1e-10 else mpf(0)
    for _ in range(200):
        size = normal(x)
        step = (mp.log(size) - goal) * size / mp.npdf(x)
        x -= step
        if abs(step) <= abs(x) * mp.eps * 1000:
            break
    return x


def erf_inverse(x: Any) -> Any:
    if abs(x) < 0.9:
        return mp.erfinv(x)
    return -mp.sign(x) * normal_quantile((1 - abs(x)) / 2) / mp.sqrt(2)


def erfc_inverse(y: Any) -> Any:
    return -normal_quantile(y / 2) / mp.sqrt(2) if abs(y - 1) > 0.9 else mp.erfinv(1 - y)


def scaled_bessel(order: int, x: Any) -> Any:
    """e^-|x| I_ν(x), by 40 terms of the asymptotic series where that gives all digits."""
    if abs(x) < 1e4:
        return mp.besseli(order, x) * mp.exp(-abs(x))
    z, term, total = abs(x), mpf(1), mpf(1)
    for k in range(1, 40):
        term *= -(4 * order**2 - (2 * k - 1) ** 2) / (8 * k * z)
        total += term
    return total / mp.sqrt(2 * mp.pi * z) * mp.sign(x) ** order


def scaled_erfc(x: Any) -> Any:
    """exp(x²) erfc x, by the continued fraction of large numbers (DLMF 7.9.1 at its ends)."""
    if x < 1e4:
        return mp.exp(x * x) * mp.erfc(x)
    term, total = mpf(1), mpf(1)
    for k in range(1, 40):
        term *= -(2 * k - 1) / (2 * x * x)
        total += term
    return total / (x * mp.sqrt(mp.pi))


def dawson(x: Any) -> Any:
    """√π/2 e^-x² erfi x."""
    if abs(x) < 1e4:
        return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)
    term, total = mpf(1), mpf(1)
    for k in range(1, 40):
        term *= (2 * k - 1) / (2 * x * x)
        total += term
    return total / (2 * x)


def sinc(x: Any) -> Any:
    return mp.sinpi(x) / (mp.pi * x) if x else mpf(1)


def digamma(x: Any) -> Any:
    """ψ(x), by the asymptotic series of large numbers (DLMF 5.11.2)."""
    if x < 1e4:
        return mp.digamma(x)
    terms = (mp.bernoulli(2 * k) / (2 * k * x ** (2 * k)) for k in range(1, 20))
    return mp.log(x) - 1 / (2 * x) - sum(terms)


def trigamma(x: Any) -> Any:
    """ψ'(x), by the asymptotic series of large numbers (DLMF 5.15.8)."""
    if x < 1e4:
        return mp.psi(1, x)
    return (
        1 / x + 1 / (2 * x * x) + sum(mp.bernoulli(2 * k) * x ** (-2 * k - 1) for k in range(1, 20))
    )


def log_gamma(x: Any) -> Any:
    return mp.loggamma(x) if x > 0 else mp.log(abs(mp.gamma(x)))


def log_beta(a: Any, b: Any) -> Any:
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


def box_cox(log: Any, k: Any) -> Any:
    return mpmath.expm1(k * log) / k if k else log


def cube_root(x: Any) -> Any:
    return mp.sign(x) * mp.cbrt(abs(x))


def gamma_density(a: Any, x: Any) -> Any:
    return mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def gamma_by_number(a: Any, x: Any) -> Any:
    """The derivative of P(a, x) = xᵃ e⁻ˣ Σ xᵏ / Γ(a + k + 1), term by term (DLMF 8.7.1)."""
    with mp.extradps(int(x / 2) + 20):
        term = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
        slope, total, k = mp.log(x) - mp.digamma(a + 1), mpf(0), 0
        while True:
            total += term * slope
            if k > x and abs(term * slope) < abs(total) * mp.eps:
                return total
            k += 1
            slope -= 1 / (a + k)
            term *= x / (a + k)


def hypot(x: Any, y: Any) -> Any:
    return mp.sqrt(x * x + y * y)


def gelu_by_tanh(x: Any) -> Any:
    """x logistic(2u), which is x (1 + tanh u) / 2."""
    return x * logistic(2 * mp.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x**3))


def elu(x: Any, alpha: Any = 1) -> Any:
    return x if x > 0 else alpha * mpmath.expm1(x)


def celu(x: Any, alpha: Any = 1) -> Any:
    return x if x > 0 else alpha * mpmath.expm1(x / alpha)


def squareplus(x: Any, b: Any = 4) -> Any:
    return (x + mp.sqrt(x * x + b)) / 2


def sparse_plus(x: Any) -> Any:
    return mpf(0) if x <= -1 else x if x >= 1 else (x + 1) ** 2 / 4


def clipped(low: float, high: float) -> Callable[[Any], Any]:
    return lambda x: min(max(x, mpf(low)), mpf(high))


def remainder(x: Any, y: Any) -> Any:
    return x - y * mp.floor(x / y)


def rest(x: Any, y: Any) -> Any:
    quotient = x / y
    return x - y * (mp.floor(quotient) if quotient > 0 else mp.ceil(quotient))


def exponential_integral(n: Any, x: Any) -> Any:
    """E_n(x), by the recurrence from E_1 (DLMF 8.19.12)."""
    if n < 1:
        return mp.exp(-x) / x
    out = mp.e1(x)
    for k in range(1, int(n)):
        out = (mp.exp(-x) - x * out) / k
    return out


def spence(x: Any) -> Any:
    return mp.re(mp.polylog(2, 1 - x))


# ---- of one number --------------------------------------------------------------------------

SELU = 1.0507009873554805, 1.6732632423543772

OF_ONE: dict[str, Known] = {
    "abs": Known(abs, NOT_0),
    "acos": Known(mp.acos, UNIT),
    "acosh": Known(mp.acosh, between(1, np.inf)),
    "asin": Known(mp.asin, UNIT),
    "asinh": Known(mp.asinh, ANY),
    "atan": Known(mp.atan, ANY),
    "atanh": Known(mp.atanh, UNIT),
    "bessel_i0e": Known(partial(scaled_bessel, 0), NOT_0, units=(64, 1024)),
    "bessel_i1e": Known(partial(scaled_bessel, 1), NOT_0, units=(64, 1024)),
    "bessel_jn": Known(partial(mp.besselj, 2), between(-1e4, 1e4)),
    "cbrt": Known(cube_root, NOT_0),
    "celu": Known(celu, NOT_0),
    "cos": Known(mp.cos, WAVES),
    "cosh": Known(mp.cosh, ANY),
    "dawsn": Known(dawson, ANY, units=(32, 256)),
    "deg2rad": Known(lambda x: x * mp.pi / 180, ANY),
    "digamma": Known(None, left_of_poles(-50, np.inf), slopes=(trigamma,)),
    "elu": Known(elu, NOT_0),
    "entr": Known(lambda x: -x * mp.log(x), POSITIVE),
    "erf": Known(None, ANY, slopes=(bell,)),
    "erfc": Known(None, ANY, slopes=(lambda x: -bell(x),)),
    "erfcinv": Known(erfc_inverse, apart(1, within=between(0, 2))),
    "erfcx": Known(scaled_erfc, between(-1e3, np.inf)),
    "erfinv": Known(erf_inverse, apart(0, within=UNIT)),
    "exp": Known(mp.exp, ANY),
    "exp1": Known(None, between(0, 1e3), slopes=(lambda x: -mp.exp(-x) / x,)),
    "exp2": Known(lambda x: mpf(2) ** x, ANY),
    "expi": Known(
        None, apart(0, within=between(-1e3, 1e3)), slopes=(lambda x: mp.exp(x) / x,)
    ),
    "expm1": Known(mpmath.expm1, ANY),
    "factorial": Known(
        None, between(0, 200), slopes=(lambda x: mp.gamma(x + 1) * mp.digamma(x + 1),)
    ),
    "fresnel_c": Known(
        None, between(-1e2, 1e2), slopes=(lambda x: mp.cos(mp.pi * x * x / 2),)
    ),
    "fresnel_s": Known(
        None, between(-1e2, 1e2), slopes=(lambda x: mp.sin(mp.pi * x * x / 2),)
    ),
    "gamma": Known(
        None, left_of_poles(-200, 200), slopes=(lambda x: mp.gamma(x) * mp.digamma(x),), points=10
    ),
    "gelu": Known(gelu_by_tanh, ANY),
    "gelu_exact": Known(
        None, ANY, slopes=(lambda x: share_below(x) + x * density(x),)
    ),
    "hard_sigmoid": Known(lambda x: clipped(0, 6)(x + 3) / 6, apart(-3, 3)),
    "hard_silu": Known(lambda x: x * clipped(0, 6)(x + 3) / 6, apart(-3, 3)),
    "hard_tanh": Known(clipped(-1, 1), apart(-1, 1)),
    "i0": Known(partial(mp.besseli, 0), between(-800, 800)),
    "i1": Known(partial(mp.besseli, 1), between(-800, 800)),
    "identity": Known(lambda x: x, ANY),
    "leaky_relu": Known(lambda x: x if x > 0 else x * mpf("0.01"), NOT_0),
    "lgamma": Known(None, left_of_poles(-50, np.inf), slopes=(digamma,)),
    "log": Known(mp.log, POSITIVE),
    "log1mexp": Known(lambda x: mp.log(-mpmath.expm1(-x)), POSITIVE),
    "log1p": Known(mpmath.log1p, between(-1, np.inf)),
    "log2": Known(lambda x: mp.log(x) / mp.log(2), POSITIVE),
    "log10": Known(lambda x: mp.log(x) / mp.log(10), POSITIVE),
    "log_ndtr": Known(
        None, between(-1e6, np.inf),
        slopes=(lambda x: mp.npdf(x) / normal(x) if x < 1e3 else mpf(0),),
    ),
    "log_sigmoid": Known(lambda x: -softplus(-x), ANY),
    "loggamma": Known(None, POSITIVE, slopes=(digamma,)),
    "logistic": Known(logistic, ANY),
    "logit": Known(lambda x: mp.log(x / (1 - x)), SHARE),
    "mish": Known(lambda x: x * mp.tanh(softplus(x)), ANY),
    "modf": Known(lambda x: x - (mp.floor(x) if x > 0 else mp.ceil(x)), lambda x: x != np.floor(x)),
    "multigammaln": Known(
        lambda x: log_gamma(x) + log_gamma(x - 0.5) + mp.log(mp.pi) / 2, between(0.5, np.inf)
    ),
    "ndtr": Known(None, ANY, slopes=(density,)),
    "ndtri": Known(normal_quantile, apart(0.5, within=SHARE)),
    "negative": Known(lambda x: -x, ANY),
    "one_minus_square": Known(lambda x: 1 - x * x, ANY),
    "rad2deg": Known(lambda x: x * 180 / mp.pi, ANY),
    "reciprocal": Known(lambda x: 1 / x, divisor),
    "relu": Known(lambda x: max(x, mpf(0)), NOT_0),
    "relu6": Known(clipped(0, 6), apart(0, 6)),
    "rsqrt": Known(lambda x: 1 / mp.sqrt(x), POSITIVE),
    "selu": Known(lambda x: SELU[0] * elu(x, SELU[1]), NOT_0),
    "sici_c": Known(None, between(0, 1e4), slopes=(lambda x: mp.cos(x) / x,)),
    "sici_s": Known(None, WAVES, slopes=(mp.sinc,)),
    "silu": Known(lambda x: x * logistic(x), ANY),
    "sin": Known(mp.sin, WAVES),
    "sinc": Known(sinc, WAVES),
    "sinh": Known(mp.sinh, ANY),
    "soft_sign": Known(lambda x: x / (1 + abs(x)), NOT_0),
    "softplus": Known(softplus, ANY),
    "sparse_plus": Known(sparse_plus, apart(-1, 1)),
    "sparse_sigmoid": Known(lambda x: clipped(0, 2)(x + 1) / 2, apart(-1, 1)),
    "spence": Known(None, POSITIVE, slopes=(lambda x: mp.log(x) / (1 - x) if x != 1 else -x,)),
    "sqrt": Known(mp.sqrt, POSITIVE),
    "square": Known(lambda x: x * x, ANY),
    "squareplus": Known(squareplus, ANY),
    "tan": Known(mp.tan, WAVES),
    "tanh": Known(mp.tanh, ANY),
}  # fmt: skip

# ---- of two numbers -------------------------------------------------------------------------

BOTH = (0, 1)


def unlike(x: Any, y: Any) -> Any:
    return x != y


OF_TWO: dict[str, Known] = {
    "add": Known(lambda x, y: x + y, each(ANY, ANY), BOTH),
    "atan2": Known(mp.atan2, each(NOT_0, NOT_0), BOTH),
    "beta": Known(mp.beta, each(between(1e-3, 100), between(1e-3, 100)), BOTH),
    "betaln": Known(log_beta, each(between(1e-6, 1e6), between(1e-6, 1e6)), BOTH),
    "boxcox": Known(
        lambda x, k: box_cox(mp.log(x), k), lambda x, k: (x > 0) & (abs(k * np.log(x)) < 80)
    ),
    "boxcox1p": Known(
        lambda x, k: box_cox(mpmath.log1p(x), k),
        lambda x, k: (x > -1) & (abs(k * np.log1p(x)) < 80),
    ),
    "celu": Known(celu, each(NOT_0, between(1e-6, 1e6))),
    "comb": Known(mp.binomial, lambda n, k: (k > 0) & (n > k) & (n < 1e3), BOTH, points=10),
    "div": Known(lambda x, y: x / y, each(ANY, divisor), BOTH),
    "elu": Known(elu, each(NOT_0, ANY), BOTH),
    "expn": Known(
        None, each(between(0, 9), between(0, 1e3)), (1,), whole=(0,), points=20,
        slopes=(lambda n, x: -exponential_integral(n - 1, x),),
    ),
    "gammainc": Known(
        None, each(between(0.01, 1e3), between(0.01, 1e3)), BOTH, points=8,
        slopes=(gamma_by_number, gamma_density),
    ),
    "gammaincc": Known(
        None, each(between(0.01, 1e3), between(0.01, 1e3)), BOTH, points=8,
        slopes=(
            lambda a, x: -gamma_by_number(a, x),
            lambda a, x: -gamma_density(a, x),
        ),
    ),
    "hypot": Known(
        None, each(NOT_0, NOT_0), BOTH,
        slopes=(lambda x, y: x / hypot(x, y), lambda x, y: y / hypot(x, y)),
    ),
    "kl_div": Known(
        lambda p, q: p * mp.log(p / q) - p + q, each(POSITIVE, POSITIVE), BOTH
    ),
    "leaky_relu": Known(lambda x, s: x if x > 0 else s * x, each(NOT_0, ANY), BOTH),
    "logaddexp": Known(
        lambda x, y: max(x, y) + softplus(-abs(x - y)), each(ANY, ANY), BOTH
    ),
    "logaddexp2": Known(
        lambda x, y: max(x, y) + softplus(-abs(x - y) * mp.log(2)) / mp.log(2), each(ANY, ANY), BOTH
    ),
    "maximum": Known(max, unlike, BOTH),
    "minimum": Known(min, unlike, BOTH),
    "mul": Known(lambda x, y: x * y, each(ANY, ANY), BOTH),
    "owens_t": Known(
        None, each(between(-50, 50), between(-1e3, 1e3)), BOTH,
        slopes=(
            lambda h, a: -mp.exp(-h * h / 2) * mp.erf(h * a / mp.sqrt(2)) / mp.sqrt(8 * mp.pi),
            lambda h, a: mp.exp(-h * h * (1 + a * a) / 2) / (2 * mp.pi * (1 + a * a)),
        ),
    ),
    "poch": Known(mp.rf, each(between(0.01, 100), between(-0.001, 40)), BOTH, points=10),
    "polygamma": Known(
        None, lambda n, x: left_of_poles(-50, 1e6)(x) & (n < 8), (1,), whole=(0,), points=20,
        slopes=(lambda n, x: mp.psi(int(n) + 1, x),),
    ),
    "pow": Known(
        lambda x, y: x**y, lambda x, y: (x > 0) & ((abs(y) > 1e-2) | (x > 1e-2)), BOTH
    ),
    "rel_entr": Known(lambda p, q: p * mp.log(p / q), each(POSITIVE, POSITIVE), BOTH),
    "rem": Known(
        rest, lambda x, y: (abs(x) < 100 * abs(y)) & (x % np.where(y, y, 1) != 0) & (y != 0), BOTH
    ),
    "remainder": Known(
        remainder,
        lambda x, y: (abs(x) < 100 * abs(y)) & (x % np.where(y, y, 1) != 0) & (y != 0), BOTH,
    ),
    "squareplus": Known(squareplus, each(ANY, between(1e-6, 1e6))),
    "sub": Known(lambda x, y: x - y, each(ANY, ANY), BOTH),
    "xlog1py": Known(
        lambda x, y: x * mpmath.log1p(y), each(ANY, between(-1, np.inf)), BOTH
    ),
    "xlogy": Known(lambda x, y: x * mp.log(y), each(ANY, between(0, 1e37)), BOTH),
    "zeta": Known(
        None, each(between(1.01, 30), between(1e-3, 1e3)), BOTH,
        slopes=(lambda s, q: mp.zeta(s, q, 1), lambda s, q: -s * mp.zeta(s + 1, q)), points=20,
    ),
}  # fmt: skip


# ---- derivatives ----------------------------------------------------------------------------


def real(x: Any) -> Any:
    return mp.re(x)


def differences(f: Callable[[Any], Any], x: Any, digits: int, most: int) -> list[Any]:
    """Derivatives of the orders from 1 to ``most`` by steps of 10 to the power of -``digits``."""
    with mp.workdps(digits * (most + 2) + 20):
        h = (abs(x) or 1) * mpf(10) ** -digits
        lower, low, mid, high, higher = (real(f(x + k * h)) for k in (-2, -1, 0, 1, 2))
        found = [
            (high - low) / (2 * h),
            (high - 2 * mid + low) / h**2,
            (higher - 2 * high + 2 * low - lower) / (2 * h**3),
        ]
        return found[:most]


def derivatives(f: Callable[[Any], Any], x: Any, most: int) -> list[Any]:
    """What ``differences`` become: the last of them, of which few digits are needed, roughly."""
    before: list[Any] = []
    for digits in (20, 40, 360):
        found = differences(f, x, digits, most)
        if before and all(
            (abs(a - b) <= 1e-18 * abs(b) and b) or (k == most - 1 and abs(a - b) <= 1e-6 * scale)
            for k, (a, b) in enumerate(zip(before, found, strict=True))
            for scale in [abs(b) + (abs(found[k - 1] / x) if k and x else 0)]
        ):
            break
        before = found
    return found
