"""Loops, branches, rules and checkpoints in each other, under every transformation."""

import numpy as np
import pytest
from hypothesis import given, settings

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.check import check
from tests.laws.drawn import BACKWARD, nested_programs
from tests.laws.slopes import along, smoothly_along
from tests.laws.test_programs import close, dot

LANES = 5
fewer = settings(max_examples=max(1, settings().max_examples // 2))


@pytest.fixture(autouse=True)
def double():
    with phalanx.config.override(enable_x64=True):
        yield


@fewer
@given(nested_programs())
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

    expected = along(scalar(program.oracle, cts), args, ts, us)
    close(both(args), (expected,) * 2, 1e-5)


@pytest.mark.spmd
@fewer
@given(nested_programs(BACKWARD))
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
