"""Contexts copied while tracing: what was current in them is not found after its end."""

import contextvars

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx.core import axes
from phalanx.core.trace import Tracer

TRANSFORMED = {
    "jit": lambda f: ph.jit(f)(2.0),
    "grad": lambda f: ph.grad(f)(2.0),
    "vmap": lambda f: ph.vmap(f, axis_name="i")(jnp.arange(2.0)),
    "pmap": lambda f: ph.pmap(f, axis_name="i")(jnp.arange(2.0)),
    "scan": lambda f: ph.lax.scan(lambda c, x: (f(x), None), 0.0, jnp.arange(2.0)),
    "grad of jit": lambda f: ph.grad(ph.jit(f))(2.0),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_what_runs_in_it_later_runs_as_if_nothing_had_been_traced(name):
    copies = []

    def f(x):
        copies.append(contextvars.copy_context())
        return x * 1.0

    TRANSFORMED[name](f)
    assert copies
    for copy in copies:
        value = copy.run(lambda: ph.jit(jnp.sin)(0.5) + jnp.square(3.0))
        assert isinstance(value, ph.Array) and not isinstance(value, Tracer)
        np.testing.assert_allclose(value, np.sin(0.5) + 9, rtol=1e-6)
        assert copy.run(axes.scope) == ()
        with pytest.raises(NameError):
            copy.run(lambda: ph.lax.psum(1.0, "i"))


def test_while_the_transformation_runs_a_copied_context_is_part_of_it():
    def f(x):
        return contextvars.copy_context().run(lambda: ph.lax.psum(x, "i") * x)

    np.testing.assert_array_equal(ph.vmap(f, axis_name="i")(jnp.arange(3.0)), [0, 3, 6])
