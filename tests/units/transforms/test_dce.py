"""What no result needs is left out, in what programs run, too; the rest computes the same."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.transforms.dce import dce, live_equations, prune, without_unused_inputs
from phalanx.transforms.stage import evaluate

X, Y, Z = np.float32(0.5), np.float32(3), np.float32(5)


def traced(f, *args):
    return ph.make_program(f)(*(args or (X,)))


def names(program):
    return {p.name for p in program.primitives}


def listed(equations):
    return [e.prim.name for e in equations]


def test_what_nobody_uses_goes_and_its_inputs_with_it():
    def f(x, y, z):
        jnp.sin(jnp.cos(y))
        return x * 2 + z * 0

    program = ph.make_program(f)(X, Y, Z)
    pruned, kept = prune(program, 0)
    assert kept == [0, 2] and "sin" not in listed(pruned.equations)
    assert evaluate(pruned, [X, Z]) == evaluate(program, [X, Y, Z]) == [1]
    assert without_unused_inputs(program)[1] == kept
    assert without_unused_inputs(pruned) == (pruned, [0, 1])


def test_the_last_inputs_stay_where_they_are_fixed():
    program = ph.make_program(lambda x, y, z: jnp.sin(x))(X, Y, Z)
    pruned, kept = prune(program, 1)
    assert kept == [0] and len(pruned.inputs) == 2
    assert pruned.inputs[1] is program.inputs[2]


def test_effects_are_live():
    def f(x):
        ph.debug.print("{}", jnp.sin(x))
        jnp.cos(x)
        return x + 1

    program = ph.make_program(f)(X)
    live = listed(live_equations(program))
    assert "sin" in live and "cos" not in live
    assert "sin" not in listed(live_equations(program, lambda e: False))


def same(f, *args):
    """``f`` without what is not needed, which gives the same."""
    program = traced(f, *args)
    made = dce(program)
    args = args or (X,)
    results = zip(evaluate(made, args), evaluate(program, args), strict=True)
    for got, wanted in results:
        np.testing.assert_array_equal(got, wanted)
    assert made.input_types == program.input_types and dce(made) is made
    return made


def counting(c):
    """One step of a loop: of its values, two need each other, and one needs itself."""
    i, x, y, z = c
    return i + 1, jnp.sin(x), jnp.cos(z), y * jnp.tanh(z)


WITH_DEAD_PARTS = {
    "beside a call": lambda x: (jnp.cos(x), ph.jit(jnp.sin)(x))[1],
    "a call": lambda x: ph.jit(lambda x: (jnp.cos(x), jnp.sin(x)))(x)[1],
    "a call in a call": lambda x: ph.jit(ph.jit(lambda x: (jnp.cos(x), jnp.sin(x))))(x)[1],
    "an operand of what is not needed": lambda x: ph.jit(
        lambda x, y: (jnp.sin(x), jnp.tanh(y) + jnp.cos(y))[0]
    )(x, jnp.cos(x)),
    "a condition of what is not needed": lambda x: lax.while_loop(
        lambda c: (c[0] < 3, jnp.cos(c[1]))[0], lambda c: (c[0] + 1, jnp.cos(c[1]), jnp.sin(c[2])),
        (0, x, x),
    )[2],
    "branches": lambda x: lax.cond(x > 0, counting, lambda c: c, (0, x, x, x))[1],
    "a loop": lambda x: lax.while_loop(lambda c: c[0] < 3, counting, (0, x, x, x))[1],
    "a loop in a loop": lambda x: lax.fori_loop(
        0, 2, lambda _, c: lax.while_loop(lambda c: c[0] < 9, counting, c), (0, x, x, x)
    )[1],
    "rows": lambda x: lax.scan(
        lambda c, r: ((jnp.sin(c[0] + r[0]), jnp.cos(c[1] + r[1])), jnp.cos(r[1])),
        (x, x), (x + jnp.arange(3.0), x + jnp.arange(3.0)),
    )[0][0],
    "what is computed again": lambda x: ph.checkpoint(lambda x: (jnp.cos(x), jnp.sin(x)))(x)[1],
    "what has a rule": lambda x: RULED(x)[1],
}  # fmt: skip
RULED = ph.custom_jvp(lambda x: (jnp.cos(x), jnp.sin(x)))
RULED.defjvp(lambda x, t: (RULED(*x), (t[0], t[0])))


@pytest.mark.parametrize("what", WITH_DEAD_PARTS)
def test_what_no_result_needs_is_gone(what):
    f = WITH_DEAD_PARTS[what]
    assert "cos" in names(traced(f))
    made = same(f)
    assert "sin" in names(made) and not {"cos", "tanh"} & names(made)


LIVE = {
    "a value that decides": lambda x: lax.while_loop(
        lambda c: c[2] < 3, lambda c: (c[0] * 2, jnp.cos(c[1]), c[2] + jnp.abs(c[1])), (x, x, 0.0)
    )[0],
    "a value that the next run needs": lambda x: lax.fori_loop(
        0, 3, lambda _, c: (jnp.sin(c[1]), jnp.cos(c[2]), c[2] * 2), (x, x, x)
    )[0],
    "one branch's operand": lambda x: lax.cond(x > 0, lambda y: y, lambda y: x, jnp.cos(x)),
}  # fmt: skip


@pytest.mark.parametrize("what", LIVE)
def test_what_another_run_or_branch_needs_stays(what):
    assert "cos" in names(same(LIVE[what]))


def test_a_program_of_which_all_is_needed_is_itself():
    def f(x):
        x = lax.cond(x > 0, jnp.sin, jnp.cos, x)
        step = lambda c: (c[0] + c[1], c[1])  # noqa: E731
        return lax.while_loop(lambda c: c[0] < 3, step, (x, ph.jit(jnp.tan)(x)))

    program = traced(f)
    assert dce(program) is program


def test_a_gradient_is_written_without_the_value_that_it_does_not_give():
    assert names(same(lambda x: (jnp.cos(x), jnp.sin(x))[1])) == {"sin"}
    text = ph.jit(ph.grad(lambda x: jnp.exp(x).sum())).lower(np.ones(2, np.float32)).as_text()
    assert "stablehlo.exponential" in text and "stablehlo.reduce" not in text


def test_effects_stay_with_what_they_need(capfd):
    def run(x):
        ph.debug.print("{}", jnp.cos(x))
        return jnp.tanh(x), jnp.exp(x)

    made = dce(traced(lambda x: ph.jit(run)(x)[1]))
    assert "cos" in names(made) and "tanh" not in names(made)
    looped = lambda x: lax.fori_loop(0, 2, lambda i, c: (run(c[0])[0], c[1] + 1), (x, x))[1]  # noqa: E731
    assert ph.jit(looped)(X) == 2.5
    ph.effects_barrier()
    printed = [float(line) for line in capfd.readouterr().out.splitlines()]
    np.testing.assert_allclose(printed, np.cos([X, np.tanh(X)]), rtol=1e-6)


def test_what_a_compiler_knows_by_name_takes_and_gives_all():
    program = traced(lambda x: lax.composite(lambda x, y: (x, y), "two")(jnp.sin(x), jnp.cos(x))[0])
    (e,) = [e for e in dce(program).equations if e.prim.name == "composite"]
    assert len(e.inputs) == len(e.outputs) == 2


def test_lanes_give_what_is_needed_of_them_and_alone_stay_whole():
    f = ph.pmap(lambda x, y: (jnp.cos(x), WITH_DEAD_PARTS["a loop"](y)))
    rows = np.ones(2, np.float32)
    (lanes,) = dce(traced(lambda x, y: f(x, y)[1], rows, rows)).equations
    assert len(lanes.inputs) == len(lanes.outputs) == 1
    assert "sin" in names(lanes.params["program"]) and "tanh" not in names(lanes.params["program"])
    alone = traced(f, rows, rows)
    assert dce(alone) is alone
    text = ph.jit(lambda x: f(x, x)[1]).lower(rows).as_text()
    assert "stablehlo.sine" in text and "stablehlo.tanh" not in text


def test_calls_of_one_program_stay_calls_of_one_program():
    f = ph.jit(lambda x: (jnp.cos(x), jnp.sin(x)))
    made = dce(traced(lambda x: f(f(x)[1])[1]))
    first, second = (e.params["program"] for e in made.equations)
    assert first is second
