"""Programs filled up with zeros, or without effects."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx.core.program import Var
from phalanx.core.types import typeof
from phalanx.transforms.simplify import (
    blank,
    depending,
    filled,
    fixpoint,
    with_inputs,
    without_effects,
)
from phalanx.transforms.stage import evaluate

X, Y, Z = np.float32(2), np.float32(3), np.float32(5)


def test_marks_grow_until_a_run_adds_nothing():
    reaches = {0: 1, 1: 3, 2: 0, 3: 3}  # a run marks the next of what is marked

    def step(marks):
        return [any(marks[i] and reaches[i] == j for i in range(4)) for j in range(4)]

    assert fixpoint([True, False, False, False], step) == [True, True, False, True]
    assert fixpoint([False] * 4, step) == [False] * 4
    of_names = [frozenset("a"), frozenset[str]()]
    assert fixpoint(of_names, lambda marks: marks[::-1]) == [{"a"}, {"a"}]


def test_effects_can_be_left_out():
    def f(x):
        ph.debug.print("{}", jnp.sin(x))
        return x + 1

    program = ph.make_program(f)(X)
    assert not any(e.effects for e in without_effects(program))
    assert len(without_effects(program)) == len(program.equations) - 1


def test_results_that_are_not_given_are_zeros():
    program = ph.make_program(lambda x, k: (jnp.ones(3) * x, x, k))(X, ph.random.key(0))
    two = program.update(outputs=program.outputs[1:2])
    whole = filled(two, program.output_types, [False, True, False])
    zeros, x, key = evaluate(whole, [X, ph.random.key(0)])
    assert np.array_equal(zeros, np.zeros(3)) and x == X
    assert [typeof(v) for v in (zeros, key)] == [program.output_types[0], program.output_types[2]]
    assert np.array_equal(ph.random.key_data(key), [0, 0])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float16, np.complex64, jnp.bfloat16])
def test_a_blank_is_of_the_type_that_is_asked_for(dtype):
    kind = typeof(jnp.ones((2, 0, 3), dtype))
    (out,) = blank(kind).outputs
    assert out.type == kind


def test_what_depends_on_an_input_or_on_an_effect():
    def f(x, y):
        a = jnp.sin(x)
        b = jnp.cos(y)
        c = ph.pure_callback(np.sin, y, y)
        return a, b, a * b, c

    program = ph.make_program(f)(X, Y)
    dependent = depending(program, program.inputs[:1])
    assert [v in dependent for v in program.outputs] == [True, False, True, False]
    more = with_inputs(program, [Var(typeof(Z))])
    assert len(more.inputs) == 3 and more.outputs == program.outputs

    def effect(x):
        ph.debug.print("{}", x)
        return jnp.cos(x)

    program = ph.make_program(effect)(X)
    assert program.outputs[0] not in depending(program, [])
