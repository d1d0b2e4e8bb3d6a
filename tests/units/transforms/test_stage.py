"""Recording a function: what becomes an input, a constant, a number; and what is told of it."""

import gc
import weakref

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Literal
from phalanx.core.types import typeof
from phalanx.transforms.derive import trace_closed
from phalanx.transforms.stage import Stage, evaluate, is_value, stage

X, Y = np.float32(2), np.float32(3)
TYPE = typeof(X)


def test_values_of_other_traces_are_the_first_inputs_in_the_order_of_use():
    seen = []

    @ph.jit
    def outer(a, b):
        def inner(x):
            return [b * x, a * b]

        program, captured = stage(inner, [TYPE], "inner")
        seen.append(([v is b for v in captured], len(program.inputs)))
        return evaluate(program, [*captured, a])

    assert outer(X, Y) == [6.0, 6.0]
    assert seen == [([True, False], 3)]


def test_numpy_arrays_are_copied_and_arrays_are_not():
    mutable, array = np.ones(3, np.float32), jnp.ones(3)
    trace = Stage(None, "")
    first, second = trace.atom(mutable), trace.atom(array)
    mutable[:] = 5
    assert isinstance(first, Literal) and np.array_equal(first.value, np.ones(3))
    assert isinstance(second, Literal) and second.value is array
    assert trace.atom(array) is second


@pytest.mark.parametrize(
    ("number", "dtype"), [(True, bool), (3, "int32"), (0.5, "float32"), (1j, "complex64")]
)
def test_numbers_are_scalars_of_weak_types(number, dtype):
    atom = Stage(None, "").atom(number)
    assert isinstance(atom, Literal)
    assert atom.value == number and atom.value.dtype == np.dtype(dtype)


def test_names_of_the_arguments_that_a_value_comes_from():
    trace = Stage(None, "")
    x, y, z = (trace.input(TYPE, n) for n in ("x", "y", ""))
    mul = ph.make_program(lambda a, b: a * b)(X, Y).equations[0].prim
    product = trace.process(mul, (y, z), {})
    assert trace.sources(product) == ["y"]
    assert trace.sources(trace.process(mul, (product, x), {})) == ["x", "y"]


def test_a_program_that_is_derived_is_closed():
    x, made = [], []

    def keeping(t):
        x.append(t)
        return t

    def broken(y):
        return [y * x[0]], None

    ph.jit(keeping)(X)
    with pytest.raises(ph.errors.UnexpectedTracerError):
        made.append(trace_closed(broken, [TYPE], "broken"))


def test_what_is_made_of_a_program_is_made_once_and_goes_with_it():
    program = ph.make_program(jnp.sin)(X)
    calls = []

    def make():
        calls.append(1)
        return None if len(calls) == 1 else object()

    assert (
        memoize_on(program, "nothing", make) is None
        and memoize_on(program, "nothing", make) is None
    )
    thing = memoize_on(program, "something", make)
    assert memoize_on(program, "something", make) is thing and len(calls) == 2
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("x", [1, 1.0, 1j, True, np.float32(1), np.ones(2), jnp.ones(2)])
def test_values(x):
    assert is_value(x)


@pytest.mark.parametrize("x", [None, "1", [1], {}, object(), np.dtype("f4")])
def test_no_values(x):
    assert not is_value(x)
