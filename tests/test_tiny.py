"""The smoke suite: what every commit must pass, in less than a minute."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.compare import close

X = np.arange(12.0, dtype=np.float32).reshape(3, 4) / 7


def test_eager():
    close(jnp.sin(X) @ jnp.ones(4), np.sin(X).sum(1))


def test_jit():
    calls = []

    @phalanx.jit
    def f(x):
        calls.append(x)
        return jnp.tanh(x).sum()

    for _ in range(3):
        close(f(X), np.tanh(X).sum())
    assert len(calls) == 1


def test_grad():
    close(phalanx.grad(lambda x: (x**3).sum())(X), 3 * X**2)
    close(phalanx.grad(phalanx.grad(lambda x: x**3))(2.0), 12.0)


def test_jvp_and_vjp():
    _, t = phalanx.jvp(jnp.exp, (X,), (jnp.ones_like(X),))
    close(t, np.exp(X))
    _, pullback = phalanx.vjp(jnp.dot, X, X.T)
    close(pullback(jnp.eye(3))[0], X)


def test_vmap():
    close(phalanx.vmap(jnp.dot, in_axes=(0, None))(X, X[1]), X @ X[1])
    close(phalanx.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(X), X / X.sum(0))


@pytest.mark.spmd
@pytest.mark.parametrize("size", [1, 3, 8, 10])
def test_pmap(size):
    x = np.arange(2.0 * size, dtype=np.float32).reshape(size, 2) + 1
    close(phalanx.pmap(lambda x: x - lax.pmean(x, "i"), "i")(x), x - x.mean(0))


@pytest.mark.spmd
def test_pmap_of_grad_and_grad_of_pmap():
    def loss(w, x):
        return jnp.tanh(x @ w).mean()

    w = np.ones(4, np.float32)
    x = np.stack([X, X + 1])
    each = phalanx.pmap(phalanx.grad(loss), in_axes=(None, 0))(w, x)
    whole = phalanx.grad(lambda w: phalanx.pmap(loss, in_axes=(None, 0))(w, x).sum())(w)
    close(jnp.sum(each, 0), whole)
    step = phalanx.pmap(
        lambda w, x: lax.pmean(phalanx.grad(loss)(w, x), "i"), "i", in_axes=(None, 0), out_axes=None
    )
    close(step(w, x), whole / 2)


@pytest.mark.spmd
def test_pmap_under_jit_and_nested():
    f = phalanx.pmap(phalanx.pmap(lambda x: lax.psum(x, ("i", "j")), "j"), "i")
    x = np.arange(8.0, dtype=np.float32).reshape(2, 4)
    close(f(x), np.full((2, 4), 28.0))
    close(phalanx.jit(f)(x), np.full((2, 4), 28.0))


def test_errors_speak():
    with pytest.raises(phalanx.errors.UnboundAxis, match="Did you mean 'batch'"):
        phalanx.vmap(lambda x: lax.psum(x, "bacth"), axis_name="batch")(X)
    with pytest.raises(phalanx.errors.ReplicationError):
        phalanx.pmap(lambda x: x, "i", out_axes=None)(X)
