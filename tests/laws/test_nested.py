"""Loops, branches, rules and checkpoints in each other, under every transformation."""

import numpy as np
import pytest
from hypothesis import given, settings

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.check import check
from tests.compare import close_to_scale as close
from tests.laws.drawn import (
    BACKWARD,
    BOTH_WAYS,
    CAPTURED,
    EVERYTHING,
    FORWARD,
    Drawn,
    holding_programs,
    nested_programs,
)
from tests.laws.slopes import along, smoothly_along
from tests.laws.test_programs import dot

pytestmark = pytest.mark.usefixtures("x64")

LANES = 5
fewer = settings(max_examples=max(1, settings().max_examples // 2))


USES_ALL = Drawn(tuple((name, target) for name in CAPTURED for target in (0, 1)))
PAIRS = dict(zip(EVERYTHING, EVERYTHING[1:] + EVERYTHING[:1], strict=True))


def inside(outer, inner):
    """A program that uses all kinds of captured arrays in two operations that hold programs."""
    return Drawn((("sin", 0), (outer, Drawn((("outer", 0), (inner, USES_ALL)))), ("cos", 1)))


def test_every_operation_that_holds_programs_is_among_them():
    used = set()
    for outer, inner in PAIRS.items():
        program = phalanx.make_program(inside(outer, inner))(*USES_ALL.arguments())
        used |= {e.prim for e in program.walk() if e.prim.subprograms is not None}
    assert used == holding_programs()


@pytest.mark.spmd
@pytest.mark.parametrize("outer", PAIRS)
def test_what_programs_capture(outer):
    kinds = {outer, PAIRS[outer]}
    program = inside(outer, PAIRS[outer])
    args, ts, cts = (program.arguments(seed) for seed in range(3))
    lanes = [np.stack([a, 0.5 * a, -a], -1) for a in args]

    @phalanx.jit
    def everything(args, ts, cts, lanes):
        (m, v), (ms, vs) = args, lanes
        values = {
            "values": program(m, v),
            "lanes of both": phalanx.vmap(program, in_axes=(2, 1), out_axes=(2, 1))(ms, vs),
            "lanes of one": phalanx.vmap(program, in_axes=(None, 1))(m, vs),
        }
        if "backward_rule" not in kinds:
            values["slopes"] = phalanx.jvp(program, args, ts)[1]
            values["slopes again"] = phalanx.linearize(program, *args)[1](*ts)
        if "loop" not in kinds:
            gradient = phalanx.grad(scalar(program, cts), (0, 1))(*args)
            values["slope of the sum"] = dot(gradient, ts)
        return values

    m, v = args
    each = [program.oracle(ms, vs) for ms, vs in zip(*lanes_first(lanes), strict=True)]
    with_m = [program.oracle(m, vs) for vs in lanes_first(lanes)[1]]
    slopes = along(program.oracle, args, ts)
    expected = {
        "values": program.oracle(m, v),
        "lanes of both": [np.stack(y, -1) for y in zip(*each, strict=True)],
        "lanes of one": [np.stack(y) for y in zip(*with_m, strict=True)],
        "slopes": slopes,
        "slopes again": slopes,
        "slope of the sum": dot(cts, slopes),
    }
    for what, value in everything(args, ts, cts, lanes).items():
        close(value, expected[what], 1e-6 if "slope" in what else 1e-9)
    close(phalanx.pmap(program, in_axes=(None, 1))(m, lanes[1]), expected["lanes of one"])


@pytest.mark.parametrize("outer", BOTH_WAYS)
def test_what_rules_for_reverse_mode_capture(outer):
    program = inside(outer, "backward_rule")
    args, ts, cts = (program.arguments(seed) for seed in range(3))
    gradient = phalanx.grad(scalar(program, cts), (0, 1))
    slope = dot(cts, along(program.oracle, args, ts))
    for run in (phalanx.jit(gradient), gradient):
        close(dot(run(*args), ts), slope, 1e-6)


def lanes_first(lanes):
    return [np.moveaxis(x, -1, 0) for x in lanes]


@fewer
@given(nested_programs(EVERYTHING))
def test_values(program):
    args = program.arguments()
    expected = program.oracle(*args)
    close(program(*args), expected)
    close(phalanx.jit(program)(*args), expected)
    with phalanx.disable_jit():
        close(program(*args), expected)


@given(nested_programs())
def test_transformed_programs_are_well_typed(program):
    args, cts = program.arguments(), program.arguments(1)
    check(phalanx.make_program(lambda *xs: phalanx.vjp(program, *xs)[1](cts))(*args))


@fewer
@given(nested_programs())
def test_first_derivatives(program):
    args, ts, cts = (program.arguments(seed) for seed in range(3))

    def derivatives(args, ts, cts):
        _, tangents = phalanx.jvp(program, args, ts)
        _, pullback = phalanx.vjp(program, *args)
        return tangents, pullback(cts), phalanx.linearize(program, *args)[1](*ts)

    expected = smoothly_along(program.oracle, args, ts)
    for run in (phalanx.jit(derivatives), derivatives):
        tangents, pulled, again = run(args, ts, cts)
        close(tangents, expected, 1e-6)
        close(again, tangents)
        close(dot(pulled, ts), dot(cts, tangents))


@fewer
@given(nested_programs(FORWARD))
def test_forward_mode_with_loops_of_unknown_length(program):
    args, ts = (program.arguments(seed) for seed in range(2))
    tangents = phalanx.jit(lambda *ts: phalanx.jvp(program, args, ts)[1])(*ts)
    close(tangents, smoothly_along(program.oracle, args, ts), 1e-6)
    close(phalanx.linearize(program, *args)[1](*ts), tangents)


@fewer
@given(nested_programs(BACKWARD))
def test_reverse_mode_with_rules_for_it(program):
    args, ts, cts = (program.arguments(seed) for seed in range(3))
    slope = smoothly_along(scalar(program.oracle, cts), args, ts)
    for run in (phalanx.jit(program), program):
        pulled = phalanx.grad(scalar(run, cts), (0, 1))(*args)
        close(dot(pulled, ts), slope, 1e-6)


def scalar(f, cts):
    return lambda *args: dot(f(*args), cts)


@given(nested_programs(depth=1))
def test_second_derivatives(program):
    args, ts, us, cts = (program.arguments(seed) for seed in range(4))
    value = scalar(program, cts)

    @phalanx.jit
    def both(args):
        reverse = phalanx.grad(value, (0, 1))
        twice = phalanx.grad(lambda *args: phalanx.jvp(value, args, ts)[1], (0, 1))(*args)
        return dot(phalanx.jvp(reverse, args, ts)[1], us), dot(twice, us)

    expected = smoothly_along(scalar(program.oracle, cts), args, ts, us)
    close(both(args), (expected,) * 2, 1e-5)


@pytest.mark.spmd
@fewer
@given(nested_programs(EVERYTHING))
def test_lanes(program):
    args = program.arguments(lanes=(LANES,))
    lanes = [program.oracle(*(a[i] for a in args)) for i in range(LANES)]
    expected = [np.stack(y) for y in zip(*lanes, strict=True)]
    for mapped in (phalanx.vmap, phalanx.pmap):
        close(phalanx.jit(mapped(program))(*args), expected)
    for room in {1, 2, 3}.intersection(range(phalanx.device_count() + 1)):
        close(phalanx.pmap(program, devices=phalanx.devices()[:room])(*args), expected)


@pytest.mark.spmd
@fewer
@given(nested_programs(BACKWARD, depth=1))
def test_gradients_in_lanes_and_of_lanes(program):
    """With a mean over the lanes before, and one after."""
    args, ts = (program.arguments(seed, lanes=(LANES,)) for seed in (0, 1))
    cts = program.arguments(2)

    def lane(m, v):
        m = m - 0.5 * lax.pmean(m, "i")
        return lax.pmean(scalar(program, cts)(m, v), "i")

    def oracle(m, v):
        m = m - 0.5 * m.mean(0)
        return np.mean([scalar(program.oracle, cts)(a, b) for a, b in zip(m, v, strict=True)])

    slope = smoothly_along(oracle, args, ts)

    def outside(*args):
        return phalanx.grad(lambda *args: phalanx.pmap(lane, "i")(*args).mean(), (0, 1))(*args)

    close(dot(phalanx.jit(outside)(*args), ts), slope, 1e-6)
    inside = phalanx.pmap(lambda *xs: phalanx.grad(lane, (0, 1))(*xs), "i")(*args)
    close(dot(map(jnp.asarray, inside), ts), slope * LANES, 1e-6)  # of the sum of all lanes
