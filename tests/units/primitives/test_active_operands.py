"""Derivatives do nothing for operands that have no tangent."""

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import lax
from phalanx import primitives as ops
from phalanx.base.errors import NonFiniteError
from phalanx.primitives.collective import pmax
from phalanx.primitives.index import ScatterDimensionNumbers

X = np.array([0.0, -1.5, 2.0], np.float32)
EXPONENTS = np.array([2.0, 2.0, 0.5], np.float32)


def primitives(f, *args):
    """The names of the primitives in the program of ``f``."""
    return [e.prim.name for e in px.make_program(f)(*args).walk()]


@pytest.mark.parametrize("exponent", [2.5, np.float32(2.5), EXPONENTS, jnp.asarray(EXPONENTS)])
def test_a_power_with_a_constant_exponent_takes_no_logarithm(exponent):
    slope = px.grad(lambda x: jnp.power(x, exponent).sum())
    assert "log" not in primitives(slope, X)
    _, linear = px.linearize(lambda x: jnp.power(x, exponent), X)
    assert linear(X).shape == X.shape
    pair = lambda x: px.jvp(lambda x: jnp.power(x, exponent), (x,), (x,))  # noqa: E731
    assert "log" not in primitives(pair, X)


def test_a_power_of_a_constant_takes_no_root_of_it():
    assert primitives(px.grad(lambda y: jnp.power(X, y).sum()), EXPONENTS).count("pow") == 1


@pytest.mark.parametrize("transform", [lambda f: f, px.jit], ids=["eager", "jit"])
def test_debug_nans_is_silent_about_what_a_derivative_does_not_need(transform):
    base, exponent = np.array([-2.0, 0.0], np.float32), np.array([2.0, 3.0], np.float32)
    power = transform(lambda x, y: jnp.power(x, y).sum())
    with px.config.override(debug_nans=True):
        np.testing.assert_allclose(px.grad(power)(base, exponent), [-4.0, 0.0])
        _, slope = px.jvp(lambda x: power(x, exponent), (base,), (np.ones_like(base),))
        np.testing.assert_allclose(slope, -4.0)
        exact = px.grad(transform(lambda y: jnp.arctan2(y, np.float32([0, 0])).sum()))
        with pytest.raises(NonFiniteError):  # this derivative is needed, and has no value
            exact(np.float32([0, 1]))


def test_each_factor_belongs_to_an_operand_with_a_tangent():
    grad_of_first = px.grad(lambda x, y: lax.max(x, y).sum())
    both = px.grad(lambda x, y: lax.max(x, y).sum(), argnums=(0, 1))
    assert primitives(grad_of_first, X, EXPONENTS).count("gt") == 1
    assert primitives(both, X, EXPONENTS).count("gt") == 2


def test_lanes_count_ties_of_operands_with_a_tangent_alone():
    def lane(x, y):
        return px.jvp(lambda x: pmax(x, y, axes=("i",), groups=None)[0], (x,), (x,))[1]

    found = primitives(px.vmap(lane, axis_name="i"), X, X)
    assert found.count("eq") == 1


def test_a_scatter_with_constant_updates_looks_for_no_winner():
    numbers, indices = ScatterDimensionNumbers((), (0,), (0,)), np.array([[2], [0], [2]], np.int32)
    rows = {"numbers": numbers, "mode": "promise"}

    def replaced(x):
        return ops.scatter(x, indices, EXPONENTS, **rows)

    assert "iota" not in primitives(px.grad(lambda x: replaced(x).sum()), X)
    np.testing.assert_array_equal(px.grad(lambda x: replaced(x).sum())(X), [0, 1, 0])
    np.testing.assert_array_equal(px.jvp(replaced, (X,), (X,))[1], [0, X[1], 0])


def test_products_with_repeated_places_need_no_unique_updates_that_are_constant():
    numbers, indices = ScatterDimensionNumbers((), (0,), (0,)), np.array([[2], [0], [2]], np.int32)
    rows = {"numbers": numbers, "mode": "promise"}
    slope = px.grad(lambda x: ops.scatter_mul(x, indices, EXPONENTS, **rows).sum())
    np.testing.assert_allclose(slope(X), [2.0, 1.0, 1.0])
