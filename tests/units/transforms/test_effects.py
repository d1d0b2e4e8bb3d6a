"""Calls to the host under a condition, in order, or not at all: the treatment of their state."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.primitive import ORDERED
from phalanx.transforms.effects import conditional, silent, with_ordered_calls
from phalanx.transforms.stage import evaluate

X = np.float32(2)


class Calls:
    """What the host was told."""

    def __init__(self):
        self.values = []

    def note(self, x):
        self.values.append(float(x))

    def noting(self, x, ordered=False):
        ph.debug.callback(self.note, x, ordered=ordered)
        return x

    def of(self, program, *args):
        """What a run of ``program`` tells it, and the results."""
        self.values.clear()
        results = ph.jit(lambda *xs: evaluate(program, xs))(*args)
        ph.effects_barrier()
        return sorted(self.values), [float(y) for y in results]


PROGRAMS = {
    "alone": (lambda c: lambda x: c.noting(x) * 3, [2.0]),
    "in a call": (lambda c: lambda x: ph.jit(c.noting)(x) * 3, [2.0]),
    "in a branch": (
        lambda c: lambda x: lax.cond(x > 0, c.noting, lambda y: y, x) + c.noting(x + 1), [2.0, 3.0],
    ),
    "in the other branch": (lambda c: lambda x: lax.cond(x < 0, c.noting, lambda y: y, x), []),
    "in a scan": (
        lambda c: lambda x: lax.scan(lambda s, _: (c.noting(s) + 1, None), x, None, 3)[0],
        [2.0, 3.0, 4.0],
    ),
    "in a loop": (
        lambda c: lambda x: lax.while_loop(lambda s: s < 5, lambda s: c.noting(s) + 1, x),
        [2.0, 3.0, 4.0],
    ),
    "in lanes": (
        lambda c: lambda x: ph.pmap(c.noting)(x + jnp.arange(2.0)).sum(), [2.0, 3.0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_effects_happen_where_the_condition_holds(name):
    calls = Calls()
    make, told = PROGRAMS[name]
    program = ph.make_program(make(calls))(X)
    assert calls.of(program, X)[0] == told
    results = calls.of(program, X)[1]
    made = conditional(program)
    assert calls.of(made, np.bool_(True), X) == (told, results)
    assert calls.of(made, np.bool_(False), X) == ([], results)
    assert calls.of(silent(program), X) == ([], results)


def test_a_call_that_gives_something_cannot_be_left_out():
    shape = ph.ShapeDtypeStruct((), np.float32)

    def f(x):
        return ph.experimental.io_callback(np.sin, shape, x)

    program = ph.make_program(f)(X)
    with pytest.raises(ValueError, match="loop that is differentiated runs twice"):
        silent(program)


def test_only_ordered_calls_wait_for_each_other():
    calls = Calls()
    program = ph.make_program(lambda x: calls.noting(calls.noting(x, ordered=True) + 1))(X)
    assert ORDERED in program.effects
    made = with_ordered_calls(program)
    ordered, free = [e for e in made.equations if e.effects]
    before = [e.inputs for e in program.equations if e.effects]
    assert len(ordered.inputs) == len(before[0]) + 1 and len(free.inputs) == len(before[1])


def test_each_ordered_call_takes_what_the_one_before_gave():
    calls = Calls()

    def f(x):
        for _ in range(3):
            calls.noting(x, ordered=True)
        return x

    first, *rest = [e for e in with_ordered_calls(ph.make_program(f)(X)).equations if e.effects]
    for e in rest:
        assert first.outputs[0] in e.inputs
        first = e


def test_without_effects_nothing_changes():
    program = ph.make_program(jnp.sin)(X)
    assert silent(program) is program and with_ordered_calls(program) is program
