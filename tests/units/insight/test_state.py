"""What of a function is state: arguments, parts of them and references that come back anew."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.insight.state import state_of

W, M = np.ones((3, 4), np.float32), np.ones((3, 4), np.float32)
X, RATE = np.ones((5, 3), np.float32), np.float32(0.1)


def pairs_of(f, *args):
    traced = phalanx.jit(f).trace(*args)
    return state_of(traced._traced, traced.program)


def step(w, m, rate, x):
    loss, g = phalanx.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    m = 0.9 * m + g
    return w - rate * m, m, loss


def as_two_trees(params, m, rate, x):
    (w, m, _) = step(params["w"], m, rate, x)
    return {"w": w}, m


def as_one_dictionary(params, m, rate, x):
    w, m, loss = step(params["w"], m["w"], rate, x)
    return {"loss": loss, "m": {"w": m}, "params": {"w": w}}


def with_what_is_not_returned(state, rate, x):
    w, _, loss = step(state["w"], state["m"], rate, x)
    return {"w": w, "loss": loss}


def counting(n, w):
    return n + 1, w * n


@pytest.mark.parametrize(
    "f, args, pairs",
    [
        (step, (W, M, RATE, X), [(0, 0), (1, 1)]),
        (as_two_trees, ({"w": W}, M, RATE, X), [(0, 0), (1, 1)]),
        (as_one_dictionary, ({"w": W}, {"w": M}, RATE, X), [(0, 1), (1, 2)]),
        (with_what_is_not_returned, ({"m": M, "w": W}, RATE, X), [(0, 1)]),
        (counting, (0, W), [(0, 0), (1, 1)]),
        (lambda w, x: x @ w, (W, X), []),
        (lambda w: w.astype(jnp.bfloat16), (W,), [(0, 0)]),
        (lambda rate, x: jnp.mean(x), (RATE, X), []),
        (lambda w, x: (x @ w).astype(jnp.bfloat16), (np.eye(3, dtype=np.float32), X), []),
    ],
)
def test_pairs(f, args, pairs):
    assert pairs_of(f, *args) == pairs


def test_what_a_reference_holds_is_state_if_it_is_written():
    outer, read = phalanx.new_ref(jnp.asarray(W)), phalanx.new_ref(jnp.asarray(W))

    def f(x, ref):
        outer[...] += read[...]
        ref[...] = ref[...] + x
        return x * 2

    inner = phalanx.new_ref(jnp.asarray(W))
    pairs = pairs_of(f, W, inner)
    captured = phalanx.jit(f).trace(W, inner)._traced.captured
    assert sorted(pairs) == sorted([(captured.index(outer), 0), (2, 1), (3, 2)])
