"""Operations that are launched by themselves: alone they run, and nothing is compiled with them."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.primitive import REGISTRY, Execution, Primitive
from phalanx.errors import DeviceError
from phalanx.run.array import from_host
from phalanx.run.calls import LoadedProgram

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Launch(LoadedProgram):
    """Adds one, outside of any program."""

    names, donate = (), ()

    def __init__(self, sigs):
        self.in_shardings = [s.sharding for s in sigs]
        self.out_sigs = sigs

    def __call__(self, arrays):
        return [from_host(np.asarray(arrays[0]) + 1)]


alone = Primitive(
    "alone",
    lambda x: x,
    lambda b, x: b.add(x, b.constant(1, np.dtype(np.float32))),
    linearize=lambda active, x: (alone(x), lambda t: t, lambda ct: (ct,)),
    batch=lambda axis, values, dims: (alone(*values), dims[0]),
    execution=Execution(launch=lambda program, sigs, donate: Launch(sigs)),
)
del REGISTRY["alone"]  # which has what the laws are about


def once(x):
    return jnp.sin(alone(jnp.cos(x))) * 2


def test_alone_it_is_launched():
    np.testing.assert_array_equal(alone(jnp.asarray(X)), X + 1)
    np.testing.assert_allclose(once(X), np.sin(np.cos(X) + 1) * 2, rtol=1e-6)
    np.testing.assert_allclose(ph.vmap(once)(X), np.sin(np.cos(X) + 1) * 2, rtol=1e-6)


COMPILED = {
    "jit": ph.jit(once),
    "jit of nothing else": ph.jit(lambda x: alone(x)),
    "jit in jit": ph.jit(lambda x: ph.jit(once)(x) + x),
    "pmap": ph.pmap(once),
    "branch": lambda x: lax.cond(x[0, 1] > 0, alone, lambda x: x, jnp.asarray(x)),
    "loop": lambda x: lax.while_loop(lambda c: c[1, 2] < 9, alone, jnp.asarray(x)),
    "condition": lambda x: lax.while_loop(lambda c: alone(c)[1, 2] < 9, lambda c: c + 1, x),
    "scan": lambda x: lax.scan(lambda c, r: (alone(c), c), x[0], x)[1],
    "checkpoint": ph.checkpoint(once),
    "lowered": lambda x: ph.jit(once).lower(x),
}


@pytest.mark.parametrize("name", COMPILED)
def test_what_is_compiled_has_none_in_it(name):
    found = r"the pmap at .*test_launched.py:\d+.* maps rows of each process.*mesh=.*inside of it"
    with pytest.raises(DeviceError, match=found):
        COMPILED[name](X)


def test_such_a_program_can_be_looked_at():
    assert "alone" in str(ph.make_program(once)(X))
    assert ph.eval_shape(once, X).shape == X.shape
