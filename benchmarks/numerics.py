"""The benchmarks of what computes: matrices, Fourier transforms and operations on arrays.

Each is timed compiled, at several sizes, and as it is traced and lowered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.case import case

# ---- matrices and Fourier transforms ------------------------------------------------------------
FACTORIZED: dict[str, Callable] = {
    "cholesky": lambda jnp, a: jnp.linalg.cholesky(a),
    "qr": lambda jnp, a: jnp.linalg.qr(a),
    "svd": lambda jnp, a: jnp.linalg.svd(a),
    "eigh": lambda jnp, a: jnp.linalg.eigh(a),
    "solve": lambda jnp, a: jnp.linalg.solve(a, a[:, :4]),
    "fft": lambda jnp, a: jnp.fft.fft(a.reshape(-1)),
}


def positive(np: Any, api: Any, n: int) -> Any:
    """A symmetric positive definite matrix."""
    x = np.random.default_rng(0).normal(size=(n, n)).astype(np.float32)
    return api.device_put(x @ x.T / n + np.eye(n, dtype=np.float32))


def factorized(function: Callable, n: int, np: Any, api: Any) -> Callable:
    """The compiled function of a matrix of size n."""
    f, a = api.jit(functools.partial(function, api.numpy)), positive(np, api, n)
    return lambda: f(a)


def factorization_lowered(function: Callable, np: Any, api: Any) -> tuple[Callable, Callable]:
    """A function that is not traced yet, and tracing and lowering it."""
    a = positive(np, api, 10)

    def fresh() -> Callable:
        return lambda a: function(api.numpy, a)

    return fresh, lambda f: api.jit(f).lower(a)


for _name, _function in FACTORIZED.items():
    for _n in (10, 100, 400):
        case(f"{_name} of {_n} x {_n}")(functools.partial(factorized, _function, _n))
    case(f"lower {_name}", "fresh")(functools.partial(factorization_lowered, _function))


# ---- arrays -------------------------------------------------------------------------------------


def convolved(api: Any, x: Any, places: Any) -> Any:
    """Eight channels over a line, as an image of one row."""
    image = x[: x.size // 8 * 8].reshape(1, 1, -1, 8)
    kernel = api.numpy.full((1, 3, 8, 8), 0.1)
    numbers = ("NHWC", "HWIO", "NHWC")
    return api.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=numbers)


OF_ARRAYS: dict[str, Callable] = {
    "sort": lambda api, x, places: api.numpy.sort(x),
    "gather": lambda api, x, places: x[places],
    "scatter-add": lambda api, x, places: x.at[places].add(x),
    "cumsum": lambda api, x, places: api.numpy.cumsum(x),
    "conv": convolved,
    "sum": lambda api, x, places: x.sum(),
    "max of rows": lambda api, x, places: x[: x.size // 7 * 7].reshape(-1, 7).max(1),
}
SIZES = (17, 10_001, 10_000_001)


def of_arrays(np: Any, api: Any, n: int) -> tuple[Any, Any]:
    """Numbers, and the places of such."""
    rng = np.random.default_rng(0)
    x, places = rng.normal(size=n).astype(np.float32), rng.integers(0, n, n).astype(np.int32)
    return api.device_put(x), api.device_put(places)


def computed(function: Callable, n: int, np: Any, api: Any) -> Callable:
    """The compiled function of so many numbers."""
    f, arguments = api.jit(functools.partial(function, api)), of_arrays(np, api, n)
    return lambda: f(*arguments)


def computation_lowered(function: Callable, np: Any, api: Any) -> tuple[Callable, Callable]:
    """A function that is not traced yet, and tracing and lowering it."""
    arguments = of_arrays(np, api, SIZES[0])

    def fresh() -> Callable:
        return lambda *arguments: function(api, *arguments)

    return fresh, lambda f: api.jit(f).lower(*arguments)


for _name, _function in OF_ARRAYS.items():
    for _n in SIZES:
        case(f"{_name} of {_n:,}")(functools.partial(computed, _function, _n))
    case(f"lower {_name}", "fresh")(functools.partial(computation_lowered, _function))


# ---- random numbers -----------------------------------------------------------------------------

DRAWN: dict[str, Callable] = {
    "normal": lambda random, key, n: random.normal(key, (n,)),
    "gamma": lambda random, key, n: random.gamma(key, 2.0, (n,)),
    "permutation": lambda random, key, n: random.permutation(key, n),
}


def drawn(draw: Callable, n: int, np: Any, api: Any) -> Callable:
    """So many random numbers, outside `jit`."""
    key = api.random.key(0)
    return lambda: draw(api.random, key, n)


for _name, _function in DRAWN.items():
    for _n in (10, 10_000, 10_000_000):
        case(f"random {_name} of {_n:,}")(functools.partial(drawn, _function, _n))
