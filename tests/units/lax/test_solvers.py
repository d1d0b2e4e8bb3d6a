"""Solutions of equations against NumPy, and their derivatives against finite differences."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.laws import check_batch, check_grads, check_jit

SOURCE = np.random.default_rng(0)
A = np.float32(SOURCE.normal(size=(3, 3)) + 4 * np.eye(3))
B = np.float32(SOURCE.normal(size=3))


def richardson(matvec, b):
    """A loop that reverse mode could not go through."""

    def step(state):
        i, x = state
        return i + 1, x + (b - matvec(x)) / 5

    return lax.while_loop(lambda s: s[0] < 60, step, (0, jnp.zeros_like(b)))[1]


def by_loop(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, richardson, richardson)


def symmetric(a, b):
    def solve(matvec, b):
        return {"x": jnp.linalg.solve(a + a.T, b["x"])}, jnp.linalg.norm(b["x"])

    def matvec(x):
        return {"x": (a + a.T) @ x["x"]}

    x, norm = lax.custom_linear_solve(matvec, {"x": b}, solve, symmetric=True, has_aux=True)
    return x["x"] + 0 * norm


def test_solutions():
    np.testing.assert_allclose(by_loop(A, B), np.linalg.solve(A, B), rtol=1e-4)
    np.testing.assert_allclose(symmetric(A, B), np.linalg.solve(A + A.T, B), rtol=1e-4)
    check_jit(by_loop, (A, B))
    check_batch(by_loop, (np.stack([A, A + 1]), np.stack([B, 2 * B])))


@pytest.mark.parametrize("f", [by_loop, symmetric])
def test_derivatives_of_solutions(f):
    check_grads(f, (A, B), order=2)


@pytest.mark.parametrize("mapping", [phalanx.vmap, phalanx.pmap])
def test_derivatives_on_lanes(mapping):
    def slope(a, b):
        return phalanx.grad(lambda a: by_loop(a, b).sum())(a)

    found = mapping(slope, in_axes=(0, None))(np.stack([A, A + 0.1]), B)
    np.testing.assert_allclose(found, [slope(A, B), slope(A + np.float32(0.1), B)], rtol=1e-3)

    def over_right_sides(a):
        return mapping(lambda b: by_loop(a, b))(np.stack([B, 2 * B])).sum()

    np.testing.assert_allclose(phalanx.grad(over_right_sides)(A), 3 * slope(A, B), rtol=1e-3)


def test_what_solutions_refuse():
    def without_transpose(b):
        return lax.custom_linear_solve(lambda x: A @ x, b, richardson).sum()

    np.testing.assert_allclose(
        phalanx.jvp(without_transpose, (B,), (B,))[1], np.linalg.solve(A, B).sum(), rtol=1e-4
    )
    with pytest.raises(TypeError, match="reverse mode needs transpose_solve"):
        phalanx.grad(without_transpose)(B)
    with pytest.raises(TypeError, match=r"must return what the unknown is, f32\[3\], got f32\[2\]"):
        phalanx.jit(lambda b: lax.custom_linear_solve(lambda x: b[:2], b, richardson))(B)


def newton(f, guess):
    def step(state):
        x, slope = state
        return x - f(x) / slope, phalanx.grad(f)(x)

    return lax.while_loop(lambda s: abs(f(s[0])) > 1e-5, step, (guess, phalanx.grad(f)(guess)))[0]


def cube_root(a):
    return lax.custom_root(lambda x: x * x * x - a, 2.0, newton, lambda g, y: y / g(1.0))


def test_roots_and_their_derivatives():
    slope = phalanx.grad(cube_root)
    np.testing.assert_allclose(cube_root(8.5), 8.5 ** (1 / 3), rtol=1e-5)
    np.testing.assert_allclose(slope(8.5), 8.5 ** (-2 / 3) / 3, rtol=1e-5)
    np.testing.assert_allclose(phalanx.grad(slope)(8.5), -2 / 9 * 8.5 ** (-5 / 3), rtol=1e-4)
    np.testing.assert_allclose(phalanx.jvp(cube_root, (8.5,), (2.0,))[1], 2 * slope(8.5), rtol=1e-5)


def test_results_outside_of_transformations_are_checked_arrays():
    root, aux = lax.custom_root(
        lambda x: x * x - 4, 1.0, lambda f, x: (2.0, {"n": 3}), lambda g, y: y, has_aux=True
    )
    assert (root.dtype, aux["n"].dtype) == (np.float32, np.int32)
    with pytest.raises(TypeError, match="must return what the unknown is"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: (x, x), lambda g, y: y)
    with pytest.raises(TypeError, match="must return what the unknown is"):
        lax.custom_linear_solve(lambda x: 2 * x, jnp.ones(3), lambda a, b: b.sum())


def test_roots_on_lanes():
    a, slope = np.float32([8.5, 27.5]), phalanx.grad(cube_root)
    for f in (phalanx.jit(phalanx.vmap(slope)), phalanx.pmap(slope)):
        np.testing.assert_allclose(f(a), a ** (-2 / 3) / 3, rtol=1e-5)


def test_roots_of_systems():
    def root(a):
        """x with a x + x³ = 1, by its fixed point, and its tangents by the Jacobian."""

        def f(x):
            return {"x": a @ x["x"] + x["x"] ** 3 - 1}

        def solve(f, guess):
            step = lambda _, x: {"x": x["x"] - f(x)["x"] / 6}  # noqa: E731
            return lax.fori_loop(0, 80, step, guess), {"steps": 80}

        def tangent_solve(g, y):
            whole = phalanx.vmap(lambda e: g({"x": e})["x"], out_axes=1)(jnp.eye(3))
            return {"x": jnp.linalg.solve(whole, y["x"])}

        guess = {"x": jnp.zeros(3)}
        return lax.custom_root(f, guess, solve, tangent_solve, has_aux=True)[0]["x"]

    x = root(A)
    np.testing.assert_allclose(A @ x + x**3, np.ones(3), rtol=1e-5)
    check_grads(root, (A,), order=2)
