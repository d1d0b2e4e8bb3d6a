"""Solutions of differential equations against formulas, and their derivatives."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.experimental.ode import odeint
from tests.laws.slopes import along

TIMES = np.linspace(0.0, 2.0, 5).astype(np.float32)


def decay(k, y0, t):
    """y0 exp(-k (t² - t[0]²) / 2), as an equation."""
    options = {"rtol": 1e-6, "atol": 1e-6}
    return odeint(lambda y, t, b: {"y": -k * b * y["y"] * t}, {"y": y0}, t, 1, **options)["y"]


def formula(k, y0, t):
    return y0 * np.exp(-k * (t**2 - t[0] ** 2) / 2)


def test_solutions_are_trees():
    y = odeint(
        lambda y, t, k: {"x": y["v"], "v": -k * y["x"]},
        {"x": jnp.ones(2), "v": jnp.zeros(2)},
        TIMES,
        np.float32([4, 9]),
        rtol=1e-6,
        atol=1e-6,
    )
    np.testing.assert_allclose(y["x"][:, 0], np.cos(2 * TIMES), atol=1e-5)
    np.testing.assert_allclose(y["v"][:, 1], -3 * np.sin(3 * TIMES), atol=1e-4)


def test_derivatives_by_all_that_the_equation_has():
    weights = np.cos(np.arange(5))

    def loss(solve, sum, k, y0, t):
        return sum(solve(k, y0, t) * weights)

    point = np.float64(0.7), np.float64(1.5), np.linspace(0.25, 2.25, 5)
    slopes = phalanx.jit(phalanx.grad(lambda *xs: loss(decay, jnp.sum, *xs), argnums=(0, 1, 2)))
    found = np.concatenate([np.ravel(s) for s in slopes(*map(np.float32, point))])
    flat = np.concatenate([np.ravel(p) for p in point])

    def f(v):
        return loss(formula, np.sum, v[0], v[1], v[2:])

    wanted = [along(f, (flat,), (e,)) for e in np.eye(len(flat))]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_lanes_take_steps_of_their_own():
    ends = phalanx.vmap(lambda k: decay(k, 1.0, TIMES)[-1])(np.float32([1, 30]))
    np.testing.assert_allclose(ends, [np.exp(-2), 0], atol=1e-5)


def test_limits_of_steps():
    one = odeint(lambda y, t: y, 1.0, TIMES[:2], mxstep=0)
    np.testing.assert_array_equal(one, [1, 1])
    fine = odeint(lambda y, t: y, 1.0, TIMES[:2], rtol=1.0, atol=1.0, hmax=0.05)
    np.testing.assert_allclose(fine[1], np.exp(0.5), rtol=1e-5)
    assert odeint(lambda y, t: y, 1.0, TIMES[:1]).shape == (1,)


def test_errors():
    with pytest.raises(TypeError, match="func must return what y is"):
        odeint(lambda y, t: y[:1], np.ones(2), TIMES)
    with pytest.raises(ValueError, match="t must be a vector of times"):
        odeint(lambda y, t: y, 1.0, 2.0)
