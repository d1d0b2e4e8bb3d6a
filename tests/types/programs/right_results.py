"""More programs without a mistake: loops, branches, decompositions, results of options.

The names are those of the field, so the same file is read with the peer's in their place.
"""

import functools
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import Array, lax, scipy

T = TypeVar("T")

x = jnp.ones((4, 3))


# ---- loops, branches and decompositions ----


class Point(NamedTuple):
    place: Array
    speed: Array
    steps: int | Array


ones, square = jnp.ones(3), jnp.eye(3) * 2
rows = np.ones((4, 3), np.float32)


def scans_from_numbers_and_numpy() -> None:
    def total(carry: Array, row: Array) -> tuple[Array, Array]:
        return carry + row.sum(), carry

    def both(carry: tuple[Array, Array], row: Array) -> tuple[tuple[Array, Array], None]:
        return (carry[0] + row, carry[1] + 1), None

    def pairs(carry: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        return carry + row[0] @ row[1], carry

    print(lax.scan(total, 0.0, rows)[0].item(), lax.scan(pairs, 0.0, (rows, rows))[1].sum())
    (added, counted), nothing = lax.scan(both, (ones, 0), rows)
    print(added.sum(), counted.item(), nothing is None)


def loops_from_numpy_and_named_tuples() -> None:
    def move(point: Point) -> Point:
        return Point(point.place + point.speed, point.speed, point.steps + 1)

    print(lax.while_loop(lambda x: x.sum() < 99, lambda x: x + jnp.exp(x), rows).sum())
    print(lax.while_loop(lambda p: p.place.sum() < 9, move, Point(ones, ones, 0)).steps)
    print(lax.fori_loop(0, 3, lambda i, c: (c[0] + i, c[1] * 2), (0, ones))[1].sum())
    print(lax.fori_loop(0, 3, lambda _, p: move(p), Point(ones, ones, 0)).place.sum())


def scans_of_named_tuples_and_dicts() -> None:
    def move(point: Point, force: Array) -> tuple[Point, Array]:
        speed = point.speed + force
        return Point(point.place + speed, speed, point.steps + 1), speed.sum()

    def decay(state: dict[str, Array], _: None) -> tuple[dict[str, Array], Array]:
        return {"w": state["w"] * 0.9}, state["w"]

    last, speeds = lax.scan(move, Point(ones, ones, 0), rows)
    print(last.place @ last.speed, last.steps, speeds.max())
    state, path = lax.scan(decay, {"w": ones}, None, length=3)
    print(state["w"].sum(), path.shape)


def scans_from_numbers_among_parts() -> None:
    def four(
        c: tuple[Array, Array, Array, Array], row: Array
    ) -> tuple[tuple[Array, Array, Array, Array], Array]:
        return (c[0] + 1, c[1], c[2], c[3] + row), row

    def nested(
        c: tuple[tuple[Array, Array], Array], row: Array
    ) -> tuple[tuple[tuple[Array, Array], Array], Array]:
        return (c[0], c[1] + row), row

    def listed(c: list[Array], row: Array) -> tuple[list[Array], Array]:
        return [c[0] + 1, c[1] + row], row

    def named(c: dict[str, Array], row: Array) -> tuple[dict[str, Array], Array]:
        return {"total": c["total"] + row.sum()}, row

    print(lax.scan(four, (0.0, 0.0, 0.0, ones), rows)[0][3].sum())
    print(lax.scan(nested, ((0.0, 0.0), ones), rows)[0][0][1].item())
    print(lax.scan(listed, [0.0, ones], rows)[0][0].item())
    print(lax.scan(named, {"total": 0.0}, rows)[0]["total"].item())


def loops_whose_bodies_give_numpy() -> None:
    print(lax.fori_loop(0, 4, lambda i, c: np.float32(1), jnp.float32(0)).item())
    print(lax.while_loop(lambda c: c < 1, lambda c: np.float32(1), jnp.float32(0)).item())


def scans_of_lambdas() -> None:
    (a, b), out = lax.scan(lambda c, row: ((c[0] + row, c[1] * 2), c[1]), (ones, ones), x)
    print(a.sum(), b.sum(), out.shape, lax.scan(lambda c, _: (c * 2, None), ones, length=3)[0])


def branches_of_any_shape() -> None:
    def update(params: dict[str, Array], rate: Array) -> dict[str, Array]:
        return jax.tree.map(lambda w: w * rate, params)

    def keep(params: dict[str, Array], rate: Array) -> dict[str, Array]:
        return params

    print(lax.cond(True, update, keep, {"w": ones}, 0.1)["w"].sum())
    print(lax.cond(True, lambda x: x.sum(), lambda x: 0.0, ones).item())
    low, high = lax.cond(True, lambda x: (x, x + 1), lambda x: (-x, x), ones)
    print(low.sum(), high.sum(), lax.switch(1, [jnp.sin, lambda x: x * 2], ones).mean())
    print(lax.switch(0, [lambda: ones, lambda: ones * 2]).sum())
    print(lax.cond(True, lambda a, b, c, d: a + d, lambda a, b, c, d: b, 1.0, 2.0, 3.0, 4.0))


def decompositions() -> None:
    u, s, vt = jnp.linalg.svd(square, full_matrices=False)
    p, lower, upper = scipy.linalg.lu(square)
    both, above = scipy.linalg.lu(square, permute_l=True)
    print((u * s @ vt).sum(), jnp.linalg.svd(square, compute_uv=False).max(), both @ above)
    print((p @ lower @ upper).trace(), scipy.linalg.svd(square, compute_uv=False).sum())
    values, vectors = scipy.linalg.eigh(square)
    print(values @ vectors, scipy.linalg.eigh(square, eigvals_only=True).min())
    q, r = scipy.linalg.qr(square)
    print(q @ r, scipy.linalg.hessenberg(square).trace())


def results_that_options_change() -> None:
    grid, step = jnp.linspace(0.0, 1.0, 5, retstep=True)
    mean, weight = jnp.average(x, axis=0, weights=jnp.ones(4), returned=True)
    print(grid * step, mean / weight, jnp.linspace(0, 1, 3).sum(), jnp.average(x).item())
    values, counts = jnp.unique(x, return_counts=True)
    print(values[counts.argmax()], jnp.unique(x).size, jnp.polyfit(grid, grid**2, 2).round(2))
    print(jnp.gradient(grid, axis=0) + 1, jnp.gradient(grid) * 2, jnp.indices((2, 2)).sum())


def dtypes_and_scalars() -> None:
    dtype: np.dtype[Any] = jnp.result_type(x, jnp.bfloat16)
    print(dtype.itemsize, x.dtype.name, x.dtype == jnp.float32, x.astype(x.dtype).nbytes)
    print(jnp.float32(3) * 2, jnp.finfo(x.dtype).eps, jnp.iinfo(jnp.int8).max)
    print(jnp.issubdtype(x.dtype, jnp.floating), jnp.zeros(3, x.dtype).dtype.kind == "f")


def methods_of_functions() -> None:
    print(jnp.add.reduce(x, axis=1), jnp.multiply.accumulate(ones), jnp.subtract.outer(ones, x))
    print(jnp.add.at(ones, 0, 2.0, inplace=False), jnp.maximum(x, 0), jnp.add(1, x, out=None))
    print(functools.reduce(jnp.maximum, [ones, ones * 2]), lax.associative_scan(jnp.add, ones))


def values_and_data() -> None:
    def with_logits(w: Array) -> tuple[Array, dict[str, Array]]:
        return w.sum(), {"logits": w}

    (value, logs), slope = jax.value_and_grad(with_logits, has_aux=True)(ones)
    again, more = jax.grad(with_logits, has_aux=True)(ones)
    print(value.item(), logs["logits"].sum(), slope + again, more["logits"])
    print(jax.block_until_ready({"a": ones})["a"].sum(), jax.device_put(rows).sum())
    print(jax.make_jaxpr(with_logits)(ones), jax.make_jaxpr(lambda a: a + 1)(1.0))


class Rule(NamedTuple):
    """An optimizer of two functions, as libraries of them have it."""

    init: Callable[[Any], Any]
    update: Callable[[Any, Any], tuple[Any, Any]]


def momentum(decay: float) -> Rule:
    def update(grads: Any, state: Any) -> tuple[Any, Any]:
        state = jax.tree.map(lambda g, s: g + decay * s, grads, state)
        return state, state

    return Rule(lambda params: jax.tree.map(jnp.zeros_like, params), update)


class Average(Generic[T]):
    """A running mean of a tree of any kind."""

    def __init__(self, tree: T) -> None:
        self.tree = tree

    def add(self, tree: T) -> T:
        self.tree = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, self.tree, tree)
        return self.tree


def optimizers_of_pairs() -> None:
    rule, point = momentum(0.9), Point(ones, ones * 2, 0)
    state, mean = rule.init(point), Average(point)

    @jax.jit
    def step(point: Point, state: Any) -> tuple[Point, Any]:
        grads = jax.grad(lambda p: jnp.sum(p.place * p.speed), allow_int=True)(point)
        updates, state = rule.update(grads._replace(steps=0), state)
        return Point(*(p - 0.1 * u for p, u in zip(point, updates, strict=True))), state

    for _ in range(2):
        point, state = step(point, state)
    print(point.place.sum(), mean.add(point).speed.mean())
