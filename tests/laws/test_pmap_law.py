"""The pmap law on drawn programs: pmap = vmap = the lanes one by one, under derivatives too.

The oracle of values is an interpreter in NumPy, and that of derivatives are finite differences
of it in float64.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, note, settings

import phalanx
import phalanx.numpy as jnp
from phalanx import pmap, vmap
from tests.compare import close_to_scale
from tests.laws.lanes import programs
from tests.laws.slopes import smoothly_along

close = partial(close_to_scale, tolerance=1e-8)

pytestmark = [pytest.mark.spmd, pytest.mark.usefixtures("x64")]
fewer = settings(max_examples=max(1, settings().max_examples // 2))


def nestings(program):
    """Choices of pmap or vmap for each axis: the uniform ones, and some mixed ones."""
    count = len(program.mapping.axes)
    mixed = [(pmap, vmap, pmap)[:count], (vmap, pmap, pmap)[:count]] if count > 1 else []
    for chosen in [(pmap,) * count, (vmap,) * count, *mixed]:
        note(f"{[t.__name__ for t in chosen]} {program}")
        yield chosen


@given(programs())
def test_values(program):
    x, w = program.arguments()
    expected = program.oracle(x, w)
    for chosen in nestings(program):
        f = program.mapping.over(chosen, program.lane)
        close((f if chosen[0] is pmap else phalanx.jit(f))(x, w), expected)


@fewer
@given(programs(most_steps=3))
def test_values_eagerly(program):
    """Under disable_jit, too, where every operation runs by itself."""
    x, w = program.arguments()
    expected = program.oracle(x, w)
    with phalanx.disable_jit():
        for chosen in nestings(program):
            close(program.mapping.over(chosen, program.lane)(x, w), expected)


@given(programs(most_steps=2))
def test_derivatives_by_captured_values(program):
    """The body may use what is being differentiated, or vectorized, outside."""
    m = replace(program.mapping, w_dims=(None,) * len(program.mapping.axes))
    program = replace(program, mapping=m)
    (x, w), (_, t) = program.arguments(), program.arguments(1)
    expected = program.oracle(x, w)
    slope = smoothly_along(program.oracle, (x, w), (np.zeros_like(x), t))
    ct = np.random.default_rng(2).uniform(-1, 1, slope.shape)
    for chosen in nestings(program):

        def capturing(w, chosen=chosen):
            def lane(x, _):
                return program.lane(x, w)

            return m.over(chosen, lane)(x, 0.0)

        @phalanx.jit
        def derivatives(w, t, ct, f=capturing):
            value, tangents = phalanx.jvp(f, (w,), (t,))
            (pulled,) = phalanx.vjp(f, w)[1](ct)
            return value, tangents, pulled, phalanx.vmap(f, out_axes=-1)(jnp.stack([t, w]))

        value, tangents, pulled, both = derivatives(w, t, ct)
        close(value, expected)
        close(tangents, slope, tolerance=1e-6)
        close(np.vdot(pulled, t), np.vdot(ct, slope), tolerance=1e-6)
        close(both[..., 1], expected)


@given(programs())
def test_first_derivatives_from_outside(program):
    args, ts = program.arguments(), program.arguments(1)
    slope = smoothly_along(program.oracle, args, ts)
    ct = np.random.default_rng(2).uniform(-1, 1, slope.shape)
    for chosen in nestings(program):
        f = program.mapping.over(chosen, program.lane)

        @phalanx.jit
        def derivatives(args, ts, ct, f=f):
            _, tangents = phalanx.jvp(f, args, ts)
            _, pullback = phalanx.vjp(f, *args)
            return tangents, pullback(ct)

        tangents, pulled = derivatives(args, ts, ct)
        close(tangents, slope, tolerance=1e-6)
        assert [np.shape(p) for p in pulled] == [np.shape(a) for a in args]
        close(
            sum(np.vdot(p, t) for p, t in zip(pulled, ts, strict=True)),
            np.vdot(ct, slope),
            tolerance=1e-6,
        )


@fewer
@given(programs(most_steps=2))
def test_second_derivatives_from_outside(program):
    args, ts, us = (program.arguments(seed) for seed in range(3))
    ct = np.random.default_rng(3).uniform(-1, 1, program.oracle(*args).shape)
    bend = smoothly_along(lambda x, w: np.vdot(ct, program.oracle(x, w)), args, ts, us)
    for chosen in nestings(program):
        f = program.mapping.over(chosen, program.lane)

        def slope(*args, f=f):
            return phalanx.vjp(f, *args)[1](ct)

        @phalanx.jit
        def derivatives(args, ts, us, f=f, slope=slope):
            _, forward = phalanx.jvp(slope, args, ts)
            backward = phalanx.vjp(slope, *args)[1](ts)
            _, twice = phalanx.jvp(lambda *a: phalanx.jvp(f, a, ts)[1], args, us)
            return dot(forward, us), dot(backward, us), jnp.vdot(ct, twice)

        for found in derivatives(args, ts, us):
            close(found, bend, tolerance=1e-5)


def dot(xs, ys):
    return sum(jnp.vdot(x, y) for x, y in zip(xs, ys, strict=True))


# ---- derivatives taken inside -------------------------------------------------------------------


def loss(program):
    return lambda x, w: (program.lane(x, w) ** 2).sum()


def total(program, xs, ws):
    return sum((y**2).sum() for y in program.lanes(xs, ws).values())


@given(programs())
def test_gradient_from_inside(program):
    """grad inside is the derivative of the sum over lanes by what this lane holds."""
    m, (x, w) = program.mapping, program.arguments()
    both = {"x": m.split(x, m.x_dims), "w": m.split(w, m.w_dims)}
    source, leading = np.random.default_rng(5), (0,) * len(m.axes)
    ts = {k: {c: source.uniform(-1, 1, a.shape) for c, a in v.items()} for k, v in both.items()}

    def moved(amount):
        xs, ws = ({c: a + amount * ts[k][c] for c, a in v.items()} for k, v in both.items())
        return total(program, xs, ws)

    slope = smoothly_along(moved, (np.zeros(()),), (np.ones(()),))
    for chosen in nestings(program):
        f = m.over(chosen, phalanx.grad(loss(program), (0, 1)), out_dims=leading)
        gradients = zip(ts, phalanx.jit(f)(x, w), strict=True)
        lanes = {k: m.split(np.asarray(g), leading) for k, g in gradients}
        found = sum(np.vdot(g, ts[k][c]) for k, gs in lanes.items() for c, g in gs.items())
        close(found, slope, tolerance=1e-6)


@fewer
@given(programs(most_steps=2))
def test_gradient_of_gradient_from_inside(program):
    """Outside derivatives of inside ones: of the sum over lanes of <gradient, 1>, along u."""
    m, (x, w), us = program.mapping, program.arguments(), program.arguments(1)

    def shifted(x, w, amount):
        xs = {c: a + amount for c, a in m.split(x, m.x_dims).items()}
        return total(program, xs, m.split(w, m.w_dims))

    zero, one = np.zeros(()), np.ones(())
    still = np.zeros_like(x), np.zeros_like(w)
    bend = smoothly_along(shifted, (x, w, zero), (*still, one), (*us, zero))
    for chosen in nestings(program):
        lane = phalanx.grad(loss(program))
        f = m.over(chosen, lambda x, w, lane=lane: lane(x, w).sum(), out_dims=(0,) * len(m.axes))

        @phalanx.jit
        def derivatives(args, us, f=f):
            _, tangents = phalanx.jvp(lambda *a: f(*a).sum(), args, us)
            return tangents, dot(phalanx.grad(lambda *a: f(*a).sum(), (0, 1))(*args), us)

        for found in derivatives((x, w), us):
            close(found, bend, tolerance=1e-5)


@given(programs())
def test_tangents_from_inside(program):
    """jvp inside maps tangents lane by lane, through the collectives."""
    m, (x, w), (t, _) = program.mapping, program.arguments(), program.arguments(1)
    slope = smoothly_along(program.oracle, (x, w), (t, np.zeros_like(w)))

    def tangents(x, w, t):
        return phalanx.jvp(lambda x: program.lane(x, w), (x,), (t,))[1]

    for chosen in nestings(program):
        close(phalanx.jit(m.over(chosen, tangents, m.x_dims))(x, w, t), slope, tolerance=1e-6)
