"""Taylor coefficients against derivatives taken one of the other, in float64."""

import math

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.experimental.jet import jet

pytestmark = pytest.mark.usefixtures("x64")

X = np.array([0.3, -0.7, 1.1])
CURVE = [np.array([1.0, 0.5, -0.4]), np.array([0.2, -1.0, 0.3]), np.array([0.7, 0.1, -0.6])]
W = np.array([[1.0, 2.0, -1.0], [0.5, -0.3, 0.8]])


def network(x):
    return jnp.tanh(W @ jnp.tanh(x * x)) / (1 + jnp.exp(-jnp.sum(x)))


def loop(x):
    def step(state, _):
        return jnp.sin(state) * x + state, jnp.sum(state)

    return lax.scan(step, x, None, length=3)


FUNCTIONS = {
    "sin": jnp.sin,
    "cos": jnp.cos,
    "exp": lambda x: jnp.exp(x) + x,
    "log": lambda x: jnp.log(2 + x),
    "quotient": lambda x: (1 + x) / (3 + x * x) + 1 / (x + 5) - x / 3,
    "tanh": jnp.tanh,
    "root": lambda x: jnp.sqrt(2 + x),
    "cube": lambda x: x**3,
    "power": lambda x: (2 + x) ** 1.5,
    "product": lambda x: (W * x) @ x,
    "sigmoid": phalanx.nn.sigmoid,
    "softplus": phalanx.nn.softplus,
    "erf": lax.erf,
    "softmax": phalanx.nn.softmax,
    "where": lambda x: jnp.where(x > 0, x**2, jnp.sin(x)),
    "part": lambda x: jnp.concatenate([x[1:], x[:1]])[::-1].reshape(3, 1).T,
    "network": network,
    "loop": loop,
    "branch": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "jit": lambda x: phalanx.jit(network)(x),
    "constant": lambda x: (jnp.ones(2), x.astype(int)),
}


def along(f, order):
    """The derivatives of ``f`` along the curve, each taken of the one before."""

    def at(t):
        return f(X + sum(c * t ** (k + 1) / math.factorial(k + 1) for k, c in enumerate(CURVE)))

    found = [at(0.0)]
    for _ in range(order):
        at = (lambda g: lambda t: phalanx.jvp(g, (t,), (1.0,))[1])(at)
        found.append(at(0.0))
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_along_a_curve(name):
    f = FUNCTIONS[name]
    value, series = phalanx.jit(lambda x, *c: jet(f, (x,), (list(c),)))(X, *CURVE)
    wanted = phalanx.jit(lambda: along(f, 3))()
    leaves = phalanx.tree.leaves(f(X))
    assert phalanx.tree.structure(value) == phalanx.tree.structure(f(X))
    for k in range(4):
        ours = phalanx.tree.leaves(value) if k == 0 else phalanx.tree.leaves(series)[k - 1 :: 3]
        for y, ours_k, theirs in zip(leaves, ours, phalanx.tree.leaves(wanted[k]), strict=True):
            if jnp.issubdtype(y.dtype, jnp.inexact):
                np.testing.assert_allclose(ours_k, theirs, rtol=1e-9, atol=1e-12)


def test_two_arguments_one_of_which_stands_still():
    value, (first, second) = jet(
        lambda x, n, y: x * y * n, (2.0, 3, 5.0), ([1.0, 0.0], [0, 0], [1.0, 2.0])
    )
    assert (float(value), float(first), float(second)) == (30.0, 21.0, 18.0)


def test_coefficients_without_factorials():
    _, scaled = jet(jnp.exp, (0.0,), ([1.0, 0.0, 0.0],), factorial_scaled=False)
    np.testing.assert_allclose(scaled, [1, 1 / 2, 1 / 6])
    _, derivatives = jet(jnp.exp, (0.0,), ([1.0, 0.0, 0.0],))
    np.testing.assert_allclose(derivatives, [1, 1, 1])


def test_inside_transformations():
    def second(x, w):
        return jet(lambda y: jnp.sin(w * y), (x,), ([1.0, 0.0],))[1][1]

    np.testing.assert_allclose(phalanx.vmap(second, (0, None))(X, 2.0), -4 * np.sin(2 * X))
    np.testing.assert_allclose(phalanx.grad(second)(0.3, 2.0), -8 * np.cos(0.6))


def test_wrong_arguments():
    with pytest.raises(TypeError, match="primals must be arrays"):
        jet(lambda t: t["x"], ({"x": 1.0},), ([1.0],))
    with pytest.raises(ValueError, match=r"all of one length, got lengths \[1, 2\]"):
        jet(jnp.add, (1.0, 2.0), ([1.0], [1.0, 2.0]))
    with pytest.raises(ValueError, match="for each of 2 arguments"):
        jet(jnp.add, (1.0, 2.0), ([1.0],))
