"""Programs in lanes of an axis "batch", from small to large, which `benchmarks.chunks` measures.

Each is a function `(np, api, lanes)`, where `api` is the module phalanx or jax with its submodules.
It gives a function, which arguments have lanes of their own (`in_axes`), whether the results are
the same in all lanes, and the arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import transformer

AXIS = "batch"
TRAINING = 8  # lanes of a training step
RATE = 0.1


@dataclass(frozen=True)
class Mapped:
    """A function to be mapped, and its arguments."""

    fun: Callable
    in_axes: tuple
    shared: bool
    arguments: tuple


@dataclass(frozen=True)
class Named:
    """A program of so many lanes, if nobody says otherwise."""

    name: str
    lanes: int
    make: Callable[[Any, Any, int], Mapped]


PROGRAMS: list[Named] = []


def program(name: str, lanes: int) -> Callable:
    def register(make: Callable) -> Callable:
        PROGRAMS.append(Named(name, lanes, make))
        return make

    return register


def numbers(np: Any, *shape: int) -> Any:
    return (0.1 * np.random.default_rng(len(shape)).normal(size=shape)).astype(np.float32)


# ---- training steps -----------------------------------------------------------------------------


def training(api: Any, loss: Callable, params: Any, *batch: Any) -> Mapped:
    """A step of gradient descent with the mean of the gradients of all lanes."""

    def step(params: Any, *batch: Any) -> tuple:
        value, grads = api.lax.pmean(api.value_and_grad(loss)(params, *batch), AXIS)
        return api.tree.map(lambda w, g: w - RATE * g, params, grads), value

    return Mapped(step, (None, *[0] * len(batch)), True, (params, *batch))


def perceptron(name: str, width: int, layers: int, rows: int, lanes: int = TRAINING) -> None:
    @program(name, lanes)
    def made(np: Any, api: Any, lanes: int) -> Mapped:
        def loss(weights: list, x: Any) -> Any:
            for w in weights:
                x = api.numpy.tanh(x @ w)
            return api.numpy.mean(x * x)

        weights = [numbers(np, width, width) for _ in range(layers)]
        return training(api, loss, weights, numbers(np, lanes, rows, width))


perceptron("4 layers, width 32, 32 rows a lane", 32, 4, 32, lanes=64)
perceptron("4 layers, width 256, 32 rows a lane", 256, 4, 32)
perceptron("3 layers, width 1024, 64 rows a lane", 1024, 3, 64)
perceptron("3 layers, width 1024, 4 rows a lane", 1024, 3, 4)


def transformers(layers: int, width: int, length: int, rows: int) -> None:
    @program(f"transformer, {layers} layers, width {width}", TRAINING)
    def made(np: Any, api: Any, lanes: int) -> Mapped:
        params = transformer.init(np, layers, width, length)
        rng = np.random.default_rng(1)
        text = rng.integers(0, transformer.VOCABULARY, (lanes, rows, length + 1), np.int32)
        arguments = (params, text[..., :-1], text[..., 1:])
        return Mapped(transformer.training_step(api), (None, 0, 0), True, arguments)


transformers(transformer.LAYERS, transformer.WIDTH, transformer.LENGTH, rows=1)
transformers(4, 128, 64, rows=2)
transformers(4, 256, 64, rows=4)


@program("convolutions, 16 channels, 32 x 32", TRAINING)
def convolutions(np: Any, api: Any, lanes: int) -> Mapped:
    def loss(kernels: list, x: Any) -> Any:
        for k in kernels:
            x = api.lax.conv_general_dilated(
                x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = api.nn.relu(x)
        return api.numpy.mean(x * x)

    kernels = [numbers(np, 3, 3, m, 16) for m in (3, 16)]
    return training(api, loss, kernels, numbers(np, lanes, 4, 32, 32, 3))


# ---- the same work in every lane ----------------------------------------------------------------


def each(fun: Callable, *arguments: Any, weights: tuple = ()) -> Mapped:
    """Every lane has arguments and results of its own; all have the weights, which come last."""
    in_axes = (*[0] * len(arguments), *[None] * len(weights))
    return Mapped(fun, in_axes, False, (*arguments, *weights))


def elementwise(name: str, size: int, lanes: int) -> None:
    @program(name, lanes)
    def made(np: Any, api: Any, lanes: int) -> Mapped:
        def f(x: Any) -> Any:
            jnp = api.numpy
            y = jnp.sin(x) * jnp.exp(-x * x)
            for _ in range(6):
                y = jnp.tanh(1.1 * y + x)
            return y.sum()

        return each(f, numbers(np, lanes, size))


elementwise("elementwise, 1,000 numbers", 1000, lanes=64)
elementwise("elementwise, a million numbers", 10**6, lanes=8)


def stencil(size: int, lanes: int) -> None:
    @program(f"50 steps of diffusion, {size} x {size}", lanes)
    def made(np: Any, api: Any, lanes: int) -> Mapped:
        def step(heat: Any, _: Any) -> tuple:
            roll = api.numpy.roll
            around = [roll(heat, by, axis) for by in (1, -1) for axis in (0, 1)]
            return heat + 0.1 * (sum(around) - 4 * heat), None

        def f(heat: Any) -> Any:
            return api.lax.scan(step, heat, None, length=50)[0]

        return each(f, numbers(np, lanes, size, size))


stencil(64, lanes=16)
stencil(512, lanes=8)


@program("two products with shared weights, 256 x 256", 16)
def products(np: Any, api: Any, lanes: int) -> Mapped:
    def f(x: Any, w: Any) -> Any:
        return api.numpy.tanh(api.numpy.tanh(x @ w) @ w)

    return each(f, numbers(np, lanes, 256, 256), weights=(numbers(np, 256, 256),))


@program("sort, 100,000 numbers", 8)
def sort(np: Any, api: Any, lanes: int) -> Mapped:
    return each(lambda x: api.numpy.cumsum(api.numpy.sort(x)), numbers(np, lanes, 100_000))


def sampler(size: int, steps: int, lanes: int) -> None:
    """Metropolis' walk through a normal distribution."""

    @program(f"sampler, {size} dimensions, {steps} steps", lanes)
    def made(np: Any, api: Any, lanes: int) -> Mapped:
        jnp, random = api.numpy, api.random

        def density(x: Any) -> Any:
            return -0.5 * jnp.sum(x * x)

        def step(state: tuple, key: Any) -> tuple:
            x, here = state
            walk, chance = random.split(key)
            y = x + 0.3 * random.normal(walk, x.shape)
            there = density(y)
            goes = jnp.log(random.uniform(chance)) < there - here
            return (jnp.where(goes, y, x), jnp.where(goes, there, here)), None

        def f(key: Any, x: Any) -> Any:
            return api.lax.scan(step, (x, density(x)), random.split(key, steps))[0][0]

        return each(f, random.split(random.key(0), lanes), numbers(np, lanes, size))


sampler(10, steps=200, lanes=64)
sampler(10_000, steps=50, lanes=8)


# ---- lanes that decide for themselves -----------------------------------------------------------


def shuffled(np: Any, values: Any) -> Any:
    return np.random.default_rng(1).permutation(values)


TOLERANCE = 1e-5


def solver(name: str, count: int, first: float, last: float) -> None:
    """Oscillators in a ring by Bogacki and Shampine's pair, in steps as long as errors allow."""

    @program(name, 64)
    def made(np: Any, api: Any, lanes: int) -> Mapped:
        jnp = api.numpy

        def f(frequency: Any, start: Any) -> Any:
            def slope(y: Any) -> Any:
                beside = jnp.roll(y, 1, 1) + jnp.roll(y, -1, 1)
                return frequency * jnp.stack([-y[1], y[0]]) + 0.01 * (beside - 2 * y)

            def step(state: tuple) -> tuple:
                t, y, h = state
                a = slope(y)
                b = slope(y + h / 2 * a)
                c = slope(y + 3 / 4 * h * b)
                new = y + h / 9 * (2 * a + 3 * b + 4 * c)
                rest = -5 / 72 * a + b / 12 + c / 9 - slope(new) / 8
                error = jnp.abs(h * rest).max() / TOLERANCE
                t = jnp.where(error < 1, t + h, t)
                y = jnp.where(error < 1, new, y)
                h = h * jnp.clip(0.9 * (error + 1e-9) ** (-1 / 3), 0.2, 5.0)
                return t, y, jnp.minimum(h, 1 - t + 1e-7)

            state = (jnp.float32(0), start, jnp.float32(0.05))
            return api.lax.while_loop(lambda state: state[0] < 1 - 1e-6, step, state)[1]

        frequencies = shuffled(np, np.geomspace(first, last, lanes).astype(np.float32))
        return each(f, frequencies, weights=(10 * numbers(np, 2, count),))


solver("adaptive solver, size 8, 10 to 1,000 steps", 4, 0.4, 50)
solver("adaptive solver, size 128, 10 to 1,000 steps", 64, 0.4, 50)
solver("adaptive solver, size 128, equally many steps", 64, 10, 10)


def neural(name: str, width: int, hidden: int, lanes: int) -> None:
    """A neural differential equation, each lane of which takes its own number of steps."""

    @program(name, lanes)
    def made(np: Any, api: Any, lanes: int) -> Mapped:
        def f(steps: Any, y: Any, v: Any, w: Any) -> Any:
            def slope(y: Any) -> Any:
                return api.numpy.tanh(y @ v) @ w

            def step(state: tuple) -> tuple:
                n, y = state
                first = slope(y)
                return n + 1, y + 0.005 * (first + slope(y + 0.01 * first))

            return api.lax.while_loop(lambda state: state[0] < steps, step, (0, y))[1]

        steps = shuffled(np, np.geomspace(10, 1000, lanes).astype(np.int32))
        weights = numbers(np, width, hidden), numbers(np, hidden, width)
        return each(f, steps, numbers(np, lanes, width), weights=weights)


neural("neural equation, width 4, 10 to 1,000 steps", 4, 32, lanes=64)
neural("neural equation, width 64, 10 to 1,000 steps", 64, 256, lanes=64)


@program("fixed point of a 64 x 64 matrix", 64)
def fixed_point(np: Any, api: Any, lanes: int) -> Mapped:
    def f(matrix: Any, b: Any) -> Any:
        def step(state: tuple) -> tuple:
            x, _ = state
            rest = b - matrix @ x
            return x + 0.3 * rest, api.numpy.sum(rest * rest)

        start = (api.numpy.zeros_like(b), api.numpy.float32(1))
        return api.lax.while_loop(lambda state: state[1] > 1e-6, step, start)[0]

    scales = np.geomspace(0.02, 2, lanes)[:, None, None] * np.eye(64)
    matrices = (scales + 0.01 * numbers(np, lanes, 64, 64)).astype(np.float32)
    return each(f, matrices, numbers(np, lanes, 64))


@program("Collatz's numbers", 1000)
def collatz(np: Any, api: Any, lanes: int) -> Mapped:
    def step(state: tuple) -> tuple:
        n, steps = state
        return api.numpy.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    def f(n: Any) -> Any:
        return api.lax.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]

    return each(f, np.arange(1, lanes + 1, dtype=np.int32))


@program("a branch of products that 1 of 4 lanes takes", 16)
def branch(np: Any, api: Any, lanes: int) -> Mapped:
    def products(x: Any) -> Any:
        for _ in range(2):
            x = api.numpy.tanh(x @ x.T @ x)
        return x

    def f(taken: Any, x: Any) -> Any:
        return api.lax.cond(taken, products, lambda x: x, x)

    return each(f, np.arange(lanes) % 4 == 0, numbers(np, lanes, 256, 256))
