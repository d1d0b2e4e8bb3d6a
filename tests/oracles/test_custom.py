"""Functions with rules of their own, written once and run by Phalanx and by JAX."""

import functools

import numpy as np
import pytest

import phalanx
import phalanx.numpy
from phalanx import lax

jax = pytest.importorskip("jax")

X = np.array([0.3, 0.9, -0.8], np.float32)


def log1pexp(m, np_, lax_):
    @m.custom_jvp
    def f(x):
        return np_.log(1.0 + np_.exp(x))

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return f(x), (1 - 1 / (1 + np_.exp(x))) * t

    return f


def parts(m, np_, lax_):
    f = m.custom_jvp(lambda x, y: np_.sin(x) * y)
    f.defjvps(lambda t, out, x, y: np_.cos(x) * t * y, lambda t, out, x, y: 3 * t * out)
    return lambda x: f(x, x * x)


def clipped(m, np_, lax_):
    @functools.partial(m.custom_vjp, nondiff_argnums=(0, 1))
    def clip(low, high, x):
        return x

    clip.defvjp(lambda low, high, x: (x, None), lambda low, high, _, ct: (np_.clip(ct, low, high),))
    return lambda x: 5 * clip(-1.0, 2.0, x) ** 2


def fixed_point(m, np_, lax_):
    """x = cos(a x) by iteration, its derivative by the implicit function theorem."""

    @m.custom_vjp
    def solve(a):
        return lax_.fori_loop(0, 40, lambda i, x: np_.cos(a * x), np_.zeros_like(a))

    def forward(a):
        x = solve(a)
        return x, (a, x)

    def backward(residuals, ct):
        a, x = residuals
        _, pull = m.vjp(lambda a, x: np_.cos(a * x), a, x)
        back = lax_.fori_loop(0, 40, lambda i, u: ct + pull(u)[1], ct)
        return (pull(back)[0],)

    solve.defvjp(forward, backward)
    return lambda a: solve(0.5 * a)


def straight_through(m, np_, lax_):
    @m.custom_gradient
    def f(x):
        return np_.round(x * 4) / 4, lambda ct: ct * (np_.abs(x) < 0.85)

    return lambda x: f(x) * x


FUNCTIONS = (log1pexp, parts, clipped, fixed_point, straight_through)


def both(make, transform):
    ours = transform(phalanx, make(phalanx, phalanx.numpy, lax), phalanx.numpy)
    return ours, transform(jax, make(jax, jax.numpy, jax.lax), jax.numpy)


TRANSFORMS = {
    "value": lambda m, f, np_: m.vmap(f)(X),
    "grad": lambda m, f, np_: m.jit(m.vmap(m.grad(f)))(X),
    "grad of sum": lambda m, f, np_: m.grad(lambda x: np_.sum(m.vmap(f)(x) ** 2))(X),
    "second": lambda m, f, np_: m.grad(m.jit(m.grad(f)))(X[0]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("make", FUNCTIONS)
def test_as_jax(make, name):
    if make is fixed_point and name == "second":
        pytest.skip("the loop of the backward rule has static bounds in Phalanx alone")
    found, wanted = both(make, TRANSFORMS[name])
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-4, atol=1e-5)
