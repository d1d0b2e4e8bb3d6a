"""Messages under the mode: what to use has the name that the program knows."""

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.base import dialect
from phalanx.base.dialect import Dialect
from phalanx.compat.worded import as_served

pytestmark = pytest.mark.usefixtures("served")


def test_names_that_jax_serves_are_its_own():
    said = "set one, phalanx.set_mesh(mesh), or phalanx.P; see phalanx.experimental.checkpoint"
    assert as_served(ValueError(), said) == (
        "set one, jax.set_mesh(mesh), or jax.P; see phalanx.experimental.checkpoint"
    )
    assert as_served(ValueError(), "/a/phalanx.py: phalanx plan") == "/a/phalanx.py: phalanx plan"


def test_errors_of_ours_are_told_so_and_no_others(monkeypatch):
    def outside():
        phalanx.lax.with_sharding_constraint(jnp.ones(2), phalanx.P("x"))

    def of_user():
        phalanx.jit(lambda x: fail("phalanx.jit failed"))(1.0)

    def fail(words):
        raise ValueError(words)

    plain = message(outside)
    assert "phalanx.set_mesh" in plain
    monkeypatch.setattr(dialect, "spoken", Dialect(message=as_served))
    ours, _, theirs = message(outside).partition(" (in JAX's words: ")
    assert ours.replace("jax.", "phalanx.") == plain.replace("jax.", "phalanx.")
    assert "jax.set_mesh" in ours and "phalanx.set_mesh" not in ours
    assert theirs == "with_sharding_constraint requires a non-empty mesh in context)"
    assert message(of_user) == "phalanx.jit failed"


def message(function):
    with pytest.raises(Exception) as caught:
        function()
    return str(caught.value)
