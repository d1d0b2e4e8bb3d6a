"""Traces of other libraries: each operation is theirs to interpret."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.compat.core import Trace, Tracer, eval_context, find_top_trace, get_aval, jaxpr_as_fun
from phalanx.compat.traces import set_current_trace, take_current_trace


class Value(Tracer):
    """A value and how many operations led to it."""

    def __init__(self, trace, value, depth=0):
        super().__init__(trace, get_aval(value))
        self.value, self.depth = value, depth


class Depth(Trace[Value]):
    """Counts along the longest path; calls and functions with rules count what is in them."""

    def __init__(self, parent):
        super().__init__()
        self.parent_trace = parent
        self.seen = []

    def lower(self, x):
        return x.value if isinstance(x, Value) and x._trace is self else x

    def process_primitive(self, primitive, tracers, params):
        self.seen.append(primitive.name)
        if primitive.name == "jit":
            return jaxpr_as_fun(params["jaxpr"])(*tracers)
        values = [self.lower(t) for t in tracers]
        out = primitive.bind_with_trace(self.parent_trace, values, None, params)
        depth = 1 + max((t.depth for t in tracers if isinstance(t, Value)), default=0)
        several = [Value(self, y, depth) for y in (out if primitive.multiple_results else [out])]
        return several if primitive.multiple_results else several[0]

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        self.seen.append(primitive.name)
        return fun.call_wrapped(*tracers)


def deep(f, *xs):
    with take_current_trace() as parent:
        trace = Depth(parent)
        with set_current_trace(trace):
            out = f(*[Value(trace, x) for x in xs])
    return trace.lower(out), out.depth, trace.seen


@phalanx.custom_jvp
def halved(x):
    return lax.sin(x)


@halved.defjvp
def _halved_jvp(primals, tangents):
    return halved(*primals), 0.5 * tangents[0]


def test_operations_are_told_by_name_and_handed_on():
    y, depth, seen = deep(lambda x: lax.mul(lax.sin(x), lax.cos(lax.neg(x))), 0.3)
    assert seen == ["sin", "neg", "cos", "mul"] and depth == 3
    assert np.allclose(y, np.sin(0.3) * np.cos(0.3))


def programs(x):
    y = lax.cond(x > 0, lax.sin, lax.cos, x)
    y = lax.while_loop(lambda c: c < 3 * x, lambda c: c + x, y)
    return lax.scan(lambda c, r: (c * r, c + x), y, jnp.arange(1.0, 4.0))[0]


def test_operations_that_hold_programs_are_handed_on():
    y, _, seen = deep(programs, 0.5)
    c = np.sin(0.5)
    while c < 1.5:
        c += 0.5
    held = [name for name in seen if name in ("cond", "while", "scan")]
    assert np.allclose(y, 6 * c) and held == ["cond", "while", "scan"]


def test_a_trace_wraps_nothing_beforehand():
    with take_current_trace() as parent:
        x = jnp.ones(2)
        assert Depth(parent).full_raise(x) is x


def test_calls_are_programs_of_the_fields():
    y, depth, seen = deep(phalanx.jit(lambda x: lax.sin(lax.neg(x))), 0.3)
    assert seen == ["jit", "neg", "sin"] and depth == 2
    assert np.allclose(y, np.sin(-0.3))


def test_a_program_is_the_same_object_whenever_it_is_met():
    met = []

    class Meeting(Depth):
        def process_primitive(self, primitive, tracers, params):
            met.extend([params["jaxpr"]] if primitive.name == "jit" else [])
            return super().process_primitive(primitive, tracers, params)

    f = phalanx.jit(lambda x: lax.sin(lax.neg(x)))
    for x in (0.3, 0.5):
        with take_current_trace() as parent:
            trace = Meeting(parent)
            with set_current_trace(trace):
                assert np.allclose(f(Value(trace, x)).value, np.sin(-x))
    first, second = met
    assert first is second


def test_it_may_stand_inside_and_outside_of_transformations():
    x = jnp.arange(3.0)
    assert np.allclose(phalanx.jit(lambda x: deep(jnp.sin, x)[0])(x), np.sin(x))
    assert np.allclose(phalanx.vmap(lambda x: deep(jnp.sin, x)[0])(x), np.sin(x))
    assert np.allclose(phalanx.pmap(lambda x: deep(jnp.sin, x)[0])(x), np.sin(x))
    assert np.allclose(phalanx.grad(lambda x: deep(jnp.sin, x)[0])(0.3), np.cos(0.3))
    assert np.allclose(deep(phalanx.grad(lax.sin), jnp.float32(0.3))[0], np.cos(0.3))
    assert np.allclose(deep(phalanx.pmap(lax.sin), x)[0], np.sin(x))
    assert np.allclose(deep(phalanx.vmap(lax.sin), x)[0], np.sin(x))


def test_a_function_with_rules_is_one_operation():
    y, depth, seen = deep(halved, 0.3)
    assert seen == ["custom_jvp_call", "sin"] and depth == 1
    assert np.allclose(y, np.sin(0.3))
    # whose rule was dropped by the one that was asked
    assert np.allclose(phalanx.grad(lambda x: deep(halved, x)[0])(0.3), np.cos(0.3))


def test_what_an_interpreter_does_not_say_is_told_by_name():
    squared = phalanx.custom_vjp(lambda x: x * x)
    squared.defvjp(lambda x: (x * x, x), lambda x, ct: (ct * x,))
    with pytest.raises(NotImplementedError, match="Depth has no method process_custom_vjp_call"):
        deep(squared, 0.3)


def test_traces_are_told_from_other_things():
    with take_current_trace() as trace:
        assert isinstance(trace, Trace) and not isinstance(3, Trace)
        assert not isinstance(trace, Depth)
        mine = Depth(trace)
        assert find_top_trace([Value(mine, 1.0)]) is not mine  # which is not entered
        with set_current_trace(mine):
            assert find_top_trace([Value(mine, 1.0)]) is mine


def test_what_is_known_is_computed_at_once():
    @phalanx.jit
    def f(x):
        with eval_context():
            return x * float(jnp.sum(jnp.ones(3)))

    assert f(2.0) == 6.0
