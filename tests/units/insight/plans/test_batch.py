"""The rows of a batch and the weights that stay as they are, of steps as others write them."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax, tree
from phalanx.insight.plans.performance_model import load_of

RNG = np.random.default_rng(0)
ROWS, TIMES, WIDE, NARROW, HEADS = 8, 12, 32, 16, 4


def normal(*shape):
    return RNG.normal(0, 0.1, shape).astype(np.float32)


def descended(loss, w):
    value, grads = ph.value_and_grad(loss)(w)
    return tree.map(lambda p, g: p - 0.1 * g, w, grads), value


def planned(step, *args):
    return load_of(ph.jit(step).trace(*args))


def agrees(step, args, **mesh):
    """What a step gives on eight devices is what it gives on one."""
    train = ph.plan(step, on="v5e:2x4", **mesh)(*args).apply()
    expected = tree.leaves(ph.jit(step)(*args))
    for got, wanted in zip(tree.leaves(train(*args)), expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)
    return train


def attend(x, w):
    q, k, v = (jnp.einsum("bld,dhk->blhk", x, w[n]) for n in "qkv")
    mixed = ph.nn.softmax(jnp.einsum("blhk,bmhk->bhlm", q, k))
    return x + jnp.einsum("bhlm,bmhk,hkd->bld", mixed, v, w["out"])


def weights():
    side = WIDE // HEADS
    shapes = {n: (WIDE, HEADS, side) for n in "qkv"} | {"out": (HEADS, side, WIDE)}
    return {n: normal(*s) for n, s in shapes.items()} | {
        "up": normal(WIDE, 64), "down": normal(64, WIDE), "scale": normal(WIDE)
    }  # fmt: skip


def adapted(adapter, base, x, y):
    """An adapter of low rank is trained, of weights that stay as they are."""

    def loss(adapter):
        up = base["up"] + adapter["a"] @ adapter["b"]
        h = attend(x * base["scale"], base)
        return jnp.mean((h + jnp.tanh(h @ up) @ base["down"] - y) ** 2)

    return descended(loss, adapter)


ADAPTER = {"a": normal(WIDE, 2), "b": normal(2, 64)}


@pytest.mark.parametrize("rows", [ROWS, HEADS])  # as many as heads, too
def test_weights_that_stay_are_no_batch(rows):
    base, batch = weights(), (normal(rows, TIMES, WIDE), normal(rows, TIMES, WIDE))
    found = planned(adapted, ADAPTER, base, *batch)
    assert (found.batch, found.parted.text) == (rows, "dimension 0 of x, dimension 0 of y")
    assert found.parted.doubt == ""
    assert found.state == sum(a.nbytes for a in (*ADAPTER.values(), *base.values()))
    assert found.sequences.length == TIMES


def test_weights_that_stay_are_divided_as_those_that_are_trained():
    args = ADAPTER, weights(), normal(ROWS, TIMES, WIDE), normal(ROWS, TIMES, WIDE)
    train = agrees(adapted, args, fsdp=4, tensor=2)
    base = train.in_shardings[1]
    assert all(
        {"fsdp", "tensor"} <= {*base[name].spec} for name in ("q", "k", "v", "out", "up", "down")
    )
    assert "donate_argnums=(0,)" in train.code


def cell(w):
    def next_of(h, x):
        h = jnp.tanh(x @ w["in"] + h @ w["again"])
        return h, h

    return next_of


RECURRENT = {
    "in": normal(NARROW, WIDE),
    "again": normal(WIDE, WIDE),
    "out": normal(WIDE, NARROW),
}


def of_times_first(w, x, y):
    def loss(w):
        _, h = lax.scan(cell(w), jnp.zeros((x.shape[1], WIDE)), x)
        return jnp.mean((h @ w["out"] - y) ** 2)

    return descended(loss, w)


def of_rows_first(w, x, y):
    return of_times_first(w, jnp.swapaxes(x, 0, 1), jnp.swapaxes(y, 0, 1))


def test_rows_are_not_the_times_of_a_recurrence():
    x, y = normal(TIMES, ROWS, NARROW), normal(TIMES, ROWS, NARROW)
    found = planned(of_times_first, RECURRENT, x, y)
    assert (found.batch, found.parted.text) == (ROWS, "dimension 1 of x, dimension 1 of y")
    x, y = normal(ROWS, TIMES, NARROW), normal(ROWS, TIMES, NARROW)
    found = planned(of_rows_first, RECURRENT, x, y)
    assert (found.batch, found.parted.text) == (ROWS, "dimension 0 of x, dimension 0 of y")
    assert agrees(of_rows_first, (RECURRENT, x, y), data=8).in_shardings[1].spec[0]


def of_parts(w, x, y):
    """Gradients of parts of the batch that come as such."""

    def one(total, part):
        grads = ph.grad(lambda w: jnp.mean((jnp.tanh(part[0] @ w["in"]) @ w["out"] - part[1]) ** 2))
        return tree.map(jnp.add, total, grads(w)), None

    total, _ = lax.scan(one, tree.map(jnp.zeros_like, w), (x, y))
    return tree.map(lambda p, g: p - 0.1 * g, w, total), None


def test_rows_are_not_the_parts_of_which_gradients_are_accumulated():
    w = {n: RECURRENT[n] for n in ("in", "out")}
    x, y = normal(4, ROWS, NARROW), normal(4, ROWS, NARROW)
    found = planned(of_parts, w, x, y)
    assert (found.batch, found.parted.text) == (ROWS, "dimension 1 of x, dimension 1 of y")
    train = agrees(of_parts, (w, x, y), data=8)
    assert train.in_shardings[1].spec == ph.P(None, ("data", "fsdp"))


def test_rows_are_not_a_sequence_of_which_attention_needs_all():
    def step(w, x, y):
        def loss(w):
            h = jnp.swapaxes(attend(jnp.swapaxes(x, 0, 1), w), 0, 1)
            return jnp.mean((h - y) ** 2)

        return descended(loss, w)

    w = {n: a for n, a in weights().items() if n in "qkv" or n == "out"}
    found = planned(step, w, normal(TIMES, 2, WIDE), normal(TIMES, 2, WIDE))
    assert (found.batch, found.sequences.length) == (2, TIMES)
    assert found.parted.text == "dimension 1 of x, dimension 1 of y"
    assert found.sequences.text == "dimension 0 of x, dimension 0 of y"
