"""Minima against those of known functions."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.scipy.optimize import minimize


def rosenbrock(x, a=100.0):
    return jnp.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_minima():
    found = minimize(rosenbrock, np.zeros(3), method="BFGS", tol=1e-3)
    np.testing.assert_allclose(found.x, np.ones(3), atol=1e-2)
    assert found.success and found.status == 0 and found.nit < 100
    np.testing.assert_allclose(found.jac, phalanx.grad(rosenbrock)(found.x), atol=1e-4)
    np.testing.assert_allclose(found.fun, rosenbrock(found.x), atol=1e-6)


def test_quadratic_functions_tell_their_hessian():
    a = np.diag(np.float32([1, 4, 9]))

    @phalanx.jit
    def run(b):
        return minimize(lambda x, b: x @ a @ x / 2 - b @ x, b * 0, (b,), method="BFGS")

    b = np.float32([1, 2, 3])
    found = run(b)
    np.testing.assert_allclose(found.x, b / np.diag(a), rtol=1e-4)
    lanes = phalanx.vmap(run)(np.stack([b, 2 * b])).x
    np.testing.assert_allclose(lanes[1], 2 * b / np.diag(a), rtol=1e-4)


def test_it_ends():
    short = minimize(rosenbrock, np.zeros(3), method="bfgs", options={"maxiter": 2})
    assert not short.success and short.status == 1 and short.nit == 2
    endless = minimize(jnp.sum, np.float32([0.3]), method="BFGS")
    assert not endless.success and endless.status == 5
    assert minimize(lambda x: jnp.float32(3), np.ones(2), method="BFGS").success
    assert minimize(jnp.sum, np.zeros(0), method="BFGS").x.shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: minimize(jnp.sum, np.ones(2), method="CG"), ValueError, "must be 'BFGS'"),
        (lambda: minimize(jnp.sum, 1.0, method="BFGS"), ValueError, "x0 must be a vector"),
        (lambda: minimize(jnp.sin, np.ones(2), method="BFGS"), TypeError, "a real scalar"),
        (lambda: minimize(jnp.sum, np.ones(2), 3, method="BFGS"), TypeError, "must be a tuple"),
        (
            lambda: minimize(jnp.sum, np.ones(2), method="BFGS", options={"x": 1}),
            ValueError,
            "options must be among gtol",
        ),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
