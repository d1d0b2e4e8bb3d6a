"""Derivatives that are NaN or infinite at single points, and those that only look so."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.units.insight.checks.finding import codes

X = np.ones((4, 3), np.float32)


@pytest.mark.parametrize("inside, fun", [
    (lambda x: jnp.abs(x) < 1, jnp.arccos), (lambda x: jnp.abs(x) < 1, jnp.arcsin),
    (lambda x: jnp.abs(x) < 1, jnp.arctanh), (lambda x: x > 1, jnp.arccosh),
    (lambda x: x > -1, jnp.log1p), (lambda x: x > 0, jnp.cbrt),
])  # fmt: skip
def test_edges_of_domains_in_branches(inside, fun):
    def masked(x):
        return jnp.where(inside(x), fun(x), 0)

    def safe(x):
        return jnp.where(inside(x), fun(jnp.where(inside(x), x, 0.5)), 0)

    edges = phalanx.vmap(phalanx.grad(masked))(jnp.array([-1.0, 0.0, 1.0]))
    assert not np.isfinite(edges).all()
    assert codes(phalanx.grad(masked), 2.0) == ["P116"]
    assert codes(phalanx.grad(safe), 2.0) == []


def test_what_keeps_off_the_edges_of_domains():
    assert codes(phalanx.grad(lambda x: jnp.where(x > 0, jnp.log1p(x * x), x)), 2.0) == []
    assert codes(phalanx.grad(lambda x: jnp.where(x > 0, jnp.log1p(jnp.abs(x)), x)), 2.0) == []
    assert codes(phalanx.grad(
        lambda x: jnp.where(x > 0, jnp.log1p(x**2.0 / 3 + abs(x)), x)), 2.0) == []  # fmt: skip
    assert codes(phalanx.grad(
        lambda x: jnp.where(x > 0, jnp.arccos(jnp.clip(x, -0.9, 0.9)), x)), 2.0) == []  # fmt: skip


def norms_of_rows(x):
    return lax.scan(lambda total, x: (total + jnp.linalg.norm(x), None), 0.0, x)[0]


@pytest.mark.parametrize("fun", [
    lambda x: (x * x).sum() ** 0.5, lambda x: jnp.power(jnp.sum(x**4), 0.25),
    lambda x: jnp.sqrt(jnp.vdot(x, x)), norms_of_rows,
    lambda x: jnp.sqrt(sum(jnp.sum(row**2) for row in x)),
])  # fmt: skip
def test_roots_of_squares(fun):
    assert np.isnan(phalanx.grad(fun)(0 * X)).any()
    assert codes(phalanx.grad(fun), X) == ["P117"]


@pytest.mark.parametrize("fun", [
    lambda x: (jnp.sum(x**2) + 1e-6) ** 0.5, lambda x: jnp.sum(x**2) ** 1.5,
    lambda x: jnp.sum(x ** np.float32([0.5, 1, 2])), lambda x: jnp.sqrt(x[0] * x[1]).sum(),
])  # fmt: skip
def test_powers_that_have_derivatives(fun):
    assert codes(phalanx.grad(fun), X) == []
