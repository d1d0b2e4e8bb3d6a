"""What is made of programs is kept with them, and keeps none of them alive."""

import gc

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.control.branch import branch
from phalanx.control.loop import loop
from phalanx.core.program import Program
from phalanx.core.roles import CARRY
from phalanx.primitives.domains import bools
from phalanx.transforms.derive import trace_closed

X = jnp.asarray([0.5, -0.25, 1.0])


def alternatives(*orders):
    """A function that chooses between the same programs, in these orders."""
    f, g = (trace_closed(h, [X.aval], "f").program for h in (_sine, _double))
    programs = {"f": f, "g": g}

    def run(x):
        for order in orders:
            (x,) = branch(np.int32(0), x, programs=tuple(programs[name] for name in order))
        return x

    return run


def _sine(x):
    return [jnp.sin(x) * x], None


def _double(x):
    return [x * 2.0], None


def same_branch():
    return alternatives("ff")


def branches_both_ways():
    return alternatives("fg", "gf")


def loop_of_its_condition():
    off = trace_closed(lambda x: ([jnp.logical_not(x)], None), [bools()], "off").program

    def run(x):
        (on,) = loop(x.sum() > 0, condition=off, program=off, ins=(CARRY,))
        return jnp.where(on, x, x * x)

    return run


def rows():
    return lambda x: lax.scan(lambda c, r: (jnp.sin(c) * r, c), x, x)[0]


def with_memory():
    f = phalanx.checkpoint(lambda x: jnp.sin(x) * x)
    return lambda x: lax.map(f, x)


def in_lanes():
    return lambda x: phalanx.pmap(lambda x: jnp.sin(x) * x)(x)


def called_twice():
    f = phalanx.jit(lambda x: jnp.sin(x) * x)
    return lambda x: f(f(x))


FUNCTIONS = (
    same_branch, branches_both_ways, loop_of_its_condition, rows, with_memory, in_lanes,
    called_twice,
)  # fmt: skip
USES = {
    "values": lambda f: f,
    "forward": lambda f: lambda x: phalanx.jvp(f, (x,), (x,))[1],
    "in two halves": lambda f: lambda x: phalanx.linearize(f, x)[1](x),
    "backward": lambda f: phalanx.grad(lambda x: f(x).sum()),
    "in lanes": lambda f: lambda x: phalanx.vmap(f)(jnp.stack([x, -x])),
}


def programs():
    return sum(type(x) is Program for x in gc.get_objects())


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("make", FUNCTIONS)
def test_programs_die_with_their_function(collector_off, use, make):
    def run():
        phalanx.jit(USES[use](make())).lower(X)

    run()  # what is made once in a process
    gc.collect()
    before = programs()
    run()
    assert programs() == before
