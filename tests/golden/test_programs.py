"""How programs print, word for word: plain, differentiated, vectorized, mapped; as StableHLO."""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random

X = np.ones((4, 3), np.float32)
W = np.ones((3, 2), np.float32)


def layer(w, x):
    return jnp.tanh(x @ w)


def loss(w, x):
    return jnp.mean(layer(w, x) ** 2)


def centered(x):
    return x - lax.pmean(x, "i")


def step(w, x):
    return w - 0.1 * lax.pmean(phalanx.grad(loss)(w, x), "i")


def turns(keys):
    return lax.scan(lambda key, other: (jnp.where(True, key, other), other), keys[0], keys)


PROGRAMS = {
    "layer": lambda: phalanx.make_program(layer)(W, X),
    "captured": lambda: phalanx.make_program(lambda x: x @ jnp.asarray(W))(X),
    "grad": lambda: phalanx.make_program(phalanx.grad(loss))(W, X),
    "jvp": lambda: phalanx.make_program(lambda x, t: phalanx.jvp(jnp.sin, (x,), (t,)))(X, X),
    "vmap": lambda: phalanx.make_program(phalanx.vmap(jnp.dot, in_axes=(0, None)))(X, W[:, 0]),
    "vmap_with_a_name": lambda: phalanx.make_program(phalanx.vmap(centered, axis_name="i"))(X),
    "jit_in_jit": lambda: phalanx.make_program(lambda x: phalanx.jit(jnp.exp)(x) + 1)(X),
    "pmap": lambda: phalanx.make_program(phalanx.pmap(centered, axis_name="i"))(X),
    "pmap_step": lambda: phalanx.make_program(
        phalanx.pmap(step, axis_name="i", in_axes=(None, 0), out_axes=None)
    )(W, np.ones((2, 4, 3), np.float32)),
    "grad_of_pmap": lambda: phalanx.make_program(
        phalanx.grad(lambda x: phalanx.pmap(centered, axis_name="i")(x).sum())
    )(X),
    "keys": lambda: phalanx.make_program(turns)(random.split(random.key(0), 3)),
    "nested": lambda: phalanx.make_program(
        phalanx.pmap(phalanx.pmap(lambda v: lax.psum(v, ("i", "j")), axis_name="j"), axis_name="i")
    )(X),
}


MODULES = {
    "layer, StableHLO": lambda: phalanx.jit(layer).lower(W, X),
    "keys, StableHLO": lambda: phalanx.jit(turns).lower(random.split(random.key(0), 3)),
}


def test_programs(golden):
    modules = {name: lower().as_text() for name, lower in MODULES.items()}
    golden({name: str(make()) for name, make in PROGRAMS.items()} | modules)
