"""Functions with a rule for ``vmap``, and linear ones with a rule for their transposes."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.custom_batching import custom_vmap, sequential_vmap
from phalanx.custom_derivatives import SymbolicZero, linear_call, zero_from_primal
from phalanx.errors import MissingRule
from phalanx.laws import check_grads

X = np.float32([1, 2, 3])


def tripled(seen):
    """A sum, of which lanes are three times as much."""
    f = custom_vmap(lambda tree, y: (tree["x"] + y, y))

    @f.def_vmap
    def rule(axis_size, in_batched, tree, y):
        seen.append((axis_size, in_batched, tree["x"].shape, jnp.shape(y)))
        return (3 * (tree["x"] + y), y), (True, in_batched[1])

    return lambda x, y: f({"x": x}, y)


@pytest.mark.spmd
def test_a_rule_draws_numbers_where_devices_have_several_lanes():
    key = phalanx.random.key(7)
    f = custom_vmap(lambda x: x)

    @f.def_vmap
    def rule(axis_size, in_batched, x):
        return x * phalanx.random.uniform(key), True

    x = np.arange(2.0 * phalanx.device_count())
    wanted = x * float(phalanx.random.uniform(key))
    np.testing.assert_allclose(phalanx.pmap(f)(x), wanted, rtol=1e-6)


def test_the_rule_vectorizes():
    seen = []
    f = tripled(seen)
    assert f(1.0, 2.0) == (3, 2)
    out, y = phalanx.vmap(f, in_axes=(0, None), out_axes=(0, None))(X, 2.0)
    np.testing.assert_array_equal(out, 3 * (X + 2))
    assert seen == [(3, [{"x": True}, False], (3,), ())] and y == 2
    np.testing.assert_array_equal(phalanx.jit(phalanx.vmap(f))(X, X)[0], 6 * X)
    out, _ = phalanx.vmap(f, (1, None), (0, None))(X[None], 2.0)
    np.testing.assert_array_equal(out, 3 * (X[:, None] + 2))
    assert seen[-1] == (3, [{"x": True}, False], (3, 1), ())


def test_what_the_rule_closes_over():
    @phalanx.jit
    def whole(x, w):
        f = custom_vmap(lambda x: x * w)
        f.def_vmap(lambda size, batched, x: (x * w + 1, True))
        return phalanx.vmap(f)(x), phalanx.grad(lambda w: phalanx.vmap(f)(x * w).sum())(w)

    out, slope = whole(X, 2.0)
    np.testing.assert_array_equal(out, 2 * X + 1)
    assert slope == 12


def test_results_that_lanes_share_have_cotangents_from_all():
    f = custom_vmap(lambda x, w: (x * w, w**2))
    f.def_vmap(lambda n, batched, x, w: ((x * w, (w**2).mean(0)), (True, False)))
    ws = np.float32([0.5, 2, -1])
    _, shared = phalanx.vmap(f, out_axes=(0, None))(X, ws)
    np.testing.assert_allclose(shared, (ws**2).mean(), rtol=1e-6)
    summed = lambda x, w: sum(f(x, w))  # noqa: E731
    by_x, by_w = phalanx.vmap(phalanx.grad(summed, (0, 1)))(X, ws)
    np.testing.assert_array_equal(by_x, ws)
    # three lanes have the mean, a third of which is of each
    np.testing.assert_allclose(by_w, X + 2 * ws, rtol=1e-6)


def test_derivatives_by_what_is_closed_over_are_those_of_the_function():
    def summed(w, x):
        f = custom_vmap(lambda x: x * w)
        f.def_vmap(lambda size, batched, x: (100 * x * w, True))
        return f(x)

    np.testing.assert_array_equal(phalanx.vmap(phalanx.grad(summed), (None, 0))(2.0, X), X)
    np.testing.assert_array_equal(
        phalanx.vmap(phalanx.grad(summed, 1), (None, 0))(2.0, X), [200] * 3
    )
    np.testing.assert_array_equal(phalanx.vmap(phalanx.grad(summed, 1), (0, None))(X, 2.0), X)


def test_a_rule_of_lanes_one_after_the_other_is_differentiated():
    f = sequential_vmap(jnp.sin)
    for around in (lambda f: f, phalanx.jit, phalanx.checkpoint):
        g = phalanx.vmap(phalanx.grad(around(f)))
        np.testing.assert_allclose(g(X), np.cos(X), rtol=1e-6)
        assert "while" in phalanx.jit(g).lower(X).as_text()
    slopes = phalanx.vmap(lambda x: phalanx.jvp(f, (x,), (1.0,))[1])(X)
    np.testing.assert_allclose(slopes, np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(phalanx.jacfwd(f)(X[0]), np.cos(X[0]), rtol=1e-6)
    np.testing.assert_allclose(phalanx.vmap(phalanx.hessian(f))(X), -np.sin(X), rtol=1e-6)


def test_lanes_one_after_the_other():
    f = sequential_vmap(lambda x, y: (jnp.sin(x) * y, y))
    out, y = phalanx.vmap(f, (0, None))(X, 2.0)
    np.testing.assert_allclose(out, 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_array_equal(y, [2, 2, 2])
    assert "while" in phalanx.jit(phalanx.vmap(f)).lower(X, X).as_text()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda n, b, x: x, r"must return a pair \(results, out_batched\)"),
        (lambda n, b, x: (x, False), r"must return f32\[\], as out_batched says, got f32\[3\]"),
        (lambda n, b, x: (x[:2], True), r"must return 3 lanes of f32\[\]"),
        (lambda n, b, x: ((x, x), True), "must return what the function does"),
        (lambda n, b, x: (x, (True, True)), "booleans like the results as out_batched"),
    ],
)
def test_wrong_rules(rule, words):
    f = custom_vmap(lambda x: x)
    f.def_vmap(rule)
    with pytest.raises(TypeError, match=words):
        phalanx.vmap(f)(X)


def test_no_rule():
    with pytest.raises(MissingRule, match="give one with def_vmap"):
        phalanx.vmap(custom_vmap(lambda x: x))(X)


# ---- linear functions ---------------------------------------------------------------------------


def marked(x):
    return linear_call(lambda _, x: x, lambda _, ct: 7 * ct, (), x)


def transposed(f):
    return lambda y: phalanx.linear_transpose(f, 1.0)(y)[0]


def test_transposes_alternate():
    assert marked(2.0) == 2 and transposed(marked)(2.0) == 14
    assert transposed(transposed(marked))(2.0) == 2
    np.testing.assert_array_equal(phalanx.jit(phalanx.vmap(phalanx.grad(marked)))(X), [7] * 3)
    np.testing.assert_array_equal(phalanx.pmap(phalanx.grad(marked))(X), [7] * 3)


def quotient(r, x):
    divide = lambda r, x: {"x": x / r["r"]}  # noqa: E731
    return linear_call(divide, lambda r, ct: ct["x"] / r["r"], {"r": r}, x)["x"]


def test_derivatives_by_residuals_are_those_of_the_function():
    check_grads(quotient, (X, X + 1), order=2)
    found = phalanx.vmap(phalanx.grad(quotient, argnums=(0, 1)), (None, 0))(2.0, X)
    np.testing.assert_allclose(found, [-X / 4, np.full(3, 0.5)], rtol=1e-6)


def test_cotangents_of_another_shape():
    f = lambda x: linear_call(lambda _, x: x, lambda _, ct: ct[:2], (), x).sum()  # noqa: E731
    with pytest.raises(TypeError, match="must return cotangents like the linear arguments"):
        phalanx.grad(f)(X)


def test_zeros():
    np.testing.assert_array_equal(zero_from_primal(X), np.zeros(3))
    assert zero_from_primal(3).dtype == phalanx.float0
    assert isinstance(zero_from_primal(X, symbolic_zeros=True), SymbolicZero)
