"""Forward mode costs what forward mode costs: one loop, and nothing stored."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

X = jnp.ones(1000)


def scanned(x):
    return lax.scan(lambda c, _: (jnp.sin(c) * 1.01, None), x, None, length=2000)[0]


def looped(x):
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, jnp.sin(s[1])), (0, x))[1]


def branched(x):
    return lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)


@pytest.mark.parametrize("f", [scanned, looped, branched, phalanx.jit(jnp.sin)])
def test_one_operation_computes_results_and_tangents(f):
    program = phalanx.make_program(lambda x, t: phalanx.jvp(f, (x,), (t,)))(X, X)
    control = [e for e in program.equations if e.prim.subprograms is not None]
    assert len(control) == 1


def test_a_long_loop_stores_nothing():
    lowered = phalanx.jit(lambda x, t: phalanx.jvp(scanned, (x,), (t,))).lower(X, X)
    assert lowered.as_text().count("stablehlo.while") == 1
    assert lowered.compile().memory_analysis().temp_size_in_bytes < 4 * X.size * X.dtype.itemsize


def test_effects_of_a_loop_happen_once():
    seen = []

    def step(state):
        i, x = state
        phalanx.debug.callback(lambda i: seen.append(int(i)), i)
        return i + 1, jnp.sin(x)

    def f(x):
        return lax.while_loop(lambda s: s[0] < 3, step, (0, x))[1]

    y, t = phalanx.jvp(f, (0.5,), (1.0,))
    phalanx.effects_barrier()
    assert seen == [0, 1, 2]
    slope = np.cos(0.5) * np.cos(np.sin(0.5)) * np.cos(np.sin(np.sin(0.5)))
    np.testing.assert_allclose([y, t], [np.sin(np.sin(np.sin(0.5))), slope], rtol=1e-6)


def test_derivatives_of_derivatives():
    def third(f):
        for _ in range(3):
            f = (lambda g: lambda x: phalanx.jvp(g, (x,), (jnp.ones_like(x),))[1])(f)
        return f

    x = jnp.array([0.3, 0.7])
    for f in (branched, lambda x: lax.fori_loop(0, 1, lambda i, y: jnp.sin(y), x)):
        np.testing.assert_allclose(third(f)(x), -np.cos(x), rtol=1e-5)


def test_calls_nest_deep():
    def nested(depth):
        f = jnp.sin
        for _ in range(depth):
            f = (lambda g: phalanx.jit(lambda x: g(x) * 1.0))(f)
        return f

    np.testing.assert_allclose(phalanx.grad(nested(50))(0.3), np.cos(0.3), rtol=1e-6)
