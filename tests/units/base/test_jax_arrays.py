"""Programs that import the package jax beside Phalanx, as libraries do for them."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp

ROOT = Path(__file__).parents[3]
LIBRARY = """
import jax
import jax.numpy as jnp

def init(params):
    return jax.tree.map(jnp.zeros_like, params)

def update(grads, state):
    state = jax.tree.map(lambda m, g: 0.9 * m + g, state, grads)
    return jax.tree.map(lambda m: -0.1 * jnp.sign(m), state), state
"""
PROGRAM = """
import phalanx, phalanx.numpy as jnp
{before}
import momentum
params = {{"w": jnp.array([1.0, -2.0])}}
state = {init}
updates, state = momentum.update(phalanx.grad(lambda p: (p["w"] ** 2).sum())(params), state)
print(params["w"] + updates["w"])
"""
INSTALLED = "phalanx.as_jax.install()"  # as messages say it


def run(folder, before="", init="momentum.init(params)", warnings="default"):
    """A program that uses a library for JAX, which imports jax."""
    (folder / "momentum.py").write_text(LIBRARY)
    (folder / "program.py").write_text(PROGRAM.format(before=before, init=init))
    return subprocess.run(
        [sys.executable, "-W", warnings, "program.py"],
        env={**os.environ, "PHALANX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
    )


def test_the_remedy_works(tmp_path):
    done = run(tmp_path, INSTALLED, warnings="error")
    assert done.stdout == "[ 0.9 -1.9]\n" and not done.stderr, done.stderr


def test_what_the_library_ends_with_tells_the_remedy(tmp_path):
    done = run(tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert "has no attribute '_is_concrete'" in last and "phalanx.as_jax.install()" in last


def test_jax_that_looks_at_an_array_is_warned_of_once_at_the_line_that_calls_it(tmp_path):
    done = run(tmp_path, init='{"w": 0.0}')
    assert done.stderr.count("phalanx.as_jax.install()") == 1, done.stderr
    if sys.version_info >= (3, 12):
        assert "momentum.py:10: RuntimeWarning: the package jax was imported" in done.stderr
    assert "not a valid JAX type" in done.stderr


@pytest.mark.parametrize("x", [jnp.arange(3.0), jnp.ones((2, 2), "bfloat16")])
def test_others_are_not_told(x):
    """Neither those who ask for the protocol, nor those who make arrays of jax's own."""
    assert not hasattr(x, "__jax_array__")
    np.testing.assert_array_equal(np.asarray(jax.numpy.asarray(x)), np.asarray(x))
    assert not hasattr(x.sharding, "_is_concrete")
    with pytest.raises(AttributeError, match=r"object has no attribute '_is_concrete'$"):
        x.sharding._is_concrete  # noqa: B018
    phalanx.jit(lambda y: y * (not hasattr(y, "__jax_array__")))(x)


MIXED = {
    "+": lambda theirs, x: x + theirs,
    "-": lambda theirs, x: theirs - x,
    "sin": lambda theirs, x: jnp.sin(theirs),
    "where": lambda theirs, x: jnp.where(theirs > 0, x, 0),
    "an index": lambda theirs, x: x[theirs.astype(int)],
    "jit": lambda theirs, x: phalanx.jit(jnp.sin)(theirs),
    "cond": lambda theirs, x: phalanx.lax.cond(True, jnp.sin, jnp.cos, theirs),
    "a collective": lambda theirs, x: phalanx.vmap(
        lambda v: phalanx.lax.psum(theirs, "i"), axis_name="i"
    )(x),
}


@pytest.mark.filterwarnings(
    "ignore:the package jax was imported:RuntimeWarning"
)  # it is asked first
@pytest.mark.parametrize("call", MIXED.values(), ids=MIXED)
def test_an_array_of_jax_is_told_from_others(call):
    with pytest.raises(TypeError, match=r"of the package jax: numpy\.asarray\(x\).*as_jax"):
        call(jax.numpy.ones(3), jnp.ones(3))
    assert jnp.allclose(jnp.ones(3) + np.asarray(jax.numpy.ones(3)), 2)


def test_what_jax_traces_is_told_from_others():
    with pytest.raises(TypeError, match=r"a function that jax transforms can use jax.numpy alone"):
        jax.grad(lambda x: jnp.sin(x).sum())(jax.numpy.ones(3))
