"""The benchmarks of the library's functions: compiled, on many numbers, and compiling them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.case import case

MANY = 1_000_000


def special(name: str) -> Callable:
    return lambda api, *xs: getattr(api.scipy.special, name)(*xs)


def gamma_slope(api: Any, a: Any, x: Any) -> Any:
    """The gradient of the incomplete gamma function by its parameter."""
    return api.grad(lambda a: api.scipy.special.gammainc(a, x).sum())(a)


def halved(api: Any, x: Any) -> Any:
    """An image of rows of 100, at half the size."""
    image = x[: x.size // 100 * 100].reshape(-1, 100)
    return api.image.resize(image, (image.shape[0] // 2, 50), "lanczos3")


# Each with the bounds of its operands.
FUNCTIONS: dict[str, tuple[Callable, tuple[tuple[float, float], ...]]] = {
    "betainc": (special("betainc"), ((0.5, 20), (0.5, 20), (0, 1))),
    "betaln": (special("betaln"), ((0.5, 20), (0.5, 20))),
    "bessel_jn": (lambda api, x: api.scipy.special.bessel_jn(x, v=5), ((0.1, 20),)),
    "digamma": (special("digamma"), ((0.1, 20),)),
    "fresnel": (special("fresnel"), ((-5, 5),)),
    "gamma": (special("gamma"), ((0.5, 20),)),
    "gammainc": (special("gammainc"), ((0.5, 20), (0, 30))),
    "gradient of gammainc": (gamma_slope, ((0.5, 20), (0, 30))),
    "log_ndtr": (special("log_ndtr"), ((-5, 5),)),
    "ndtri": (special("ndtri"), ((0, 1),)),
    "zeta": (special("zeta"), ((1.1, 20), (0.1, 20))),
    "interp": (
        lambda api, x: api.numpy.interp(x, api.numpy.arange(100.0), api.numpy.arange(100.0) ** 2),
        ((0, 99),),
    ),
    "histogram": (lambda api, x: api.numpy.histogram(x, bins=10)[0], ((0, 1),)),
    "unique": (lambda api, x: api.numpy.unique(x // 1, size=100), ((0, 100),)),
    "associative_scan": (
        lambda api, x: api.lax.associative_scan(api.numpy.maximum, x),
        ((0, 1),),
    ),
    "lanczos3": (halved, ((0, 1),)),
    "sinc": (lambda api, x: api.numpy.sinc(x), ((-5, 5),)),
    "trapezoid": (lambda api, x: api.numpy.trapezoid(x), ((0, 1),)),
}


def operands(np: Any, api: Any, bounds: tuple[tuple[float, float], ...], n: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [api.device_put(rng.uniform(*ends, n).astype(np.float32)) for ends in bounds]


def computed(name: str, n: int, np: Any, api: Any) -> Callable:
    """The compiled function of so many numbers."""
    function, bounds = FUNCTIONS[name]
    f, xs = api.jit(functools.partial(function, api)), operands(np, api, bounds, n)
    return lambda: f(*xs)


def compiled(name: str, np: Any, api: Any) -> tuple[Callable, Callable]:
    """A module that nobody has compiled, and compiling it."""
    function, bounds = FUNCTIONS[name]
    sizes = iter(range(1000, 2000))  # another one each time, so that nothing is found

    def fresh() -> Any:
        xs = operands(np, api, bounds, next(sizes))
        return api.jit(functools.partial(function, api)).lower(*xs)

    return fresh, lambda lowered: lowered.compile()


for _name in FUNCTIONS:
    for _n in (1000, MANY):
        case(f"{_name} of {_n:,}", "waits")(functools.partial(computed, _name, _n))
    case(f"compile {_name}", "fresh")(functools.partial(compiled, _name))
