"""Where jax is served, all that programs look at is said in one dialect; elsewhere in our own."""

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.base import dialect
from phalanx.compat.jaxprs import ClosedJaxpr
from phalanx.compat.running import JAX

P = phalanx.P
pytestmark = pytest.mark.usefixtures("served")


@pytest.fixture
def spoken(monkeypatch):
    monkeypatch.setattr(dialect, "spoken", JAX)


def of_a_type():
    return phalanx.typeof(jnp.asarray(2.0))


def test_our_own():
    assert (str(of_a_type()), repr(of_a_type())) == ("f32[]", "f32[]~")
    assert repr(P("x")) == "P('x')"
    traced = phalanx.jit(jnp.sin).trace(1.0)
    assert traced.jaxpr is traced.program


@pytest.mark.usefixtures("spoken")
def test_that_of_programs_for_jax():
    assert str(of_a_type()) == repr(of_a_type()) == "~float32[]"
    assert (repr(P("x")), repr(P("x", None)), repr(P())) == ("P('x',)", "P('x', None)", "P()")
    assert isinstance(phalanx.jit(jnp.sin).trace(1.0).jaxpr, ClosedJaxpr)
    with pytest.raises(TypeError, match=r"Use jax\.grad"):
        jnp.sum(jnp.ones(2), requires_grad=True)


@pytest.mark.usefixtures("spoken")
def test_what_a_callback_raises_is_caught_as_its_own_and_as_of_the_runtime():
    def fail(x):
        raise KeyError("gone")

    for kind in (KeyError, phalanx.errors.JaxRuntimeError):
        with pytest.raises(kind, match="KeyError"):
            phalanx.jit(lambda x: phalanx.pure_callback(fail, x, x))(1.0)
