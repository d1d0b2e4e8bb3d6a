"""Rules of custom_jvp that compute values and tangents in one loop serve both modes.

Each rule runs the loop of its function, with values and tangents in place of values. What comes
out is compared with differences of a NumPy function.
"""

from functools import partial

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.errors import MissingRule
from tests.compare import SUMS, close
from tests.laws.slopes import along

near = partial(close, within=SUMS)

POINT, T, U = (0.7, 0.4), (0.5, -1.1), (0.3, 0.8)


def step(w, z, m=jnp):
    return w, m.sin(w * z) + z / 2


def repeated(step, state):
    return lax.fori_loop(0, 3, lambda i, s: step(s), state)


def reversed_rows(step, state):
    return lax.scan(lambda s, _: (step(s), None), state, jnp.arange(3), reverse=True)[0]


def given_as_rows(step, state):
    """Each run gives what it carries, also as a row."""
    _, rows = lax.scan(lambda s, _: (step(s),) * 2, state, length=3)
    return px.tree.map(lambda r: r[-1], rows)


def taken_as_rows(step, state):
    rows = px.tree.map(lambda s: jnp.stack([0 * s, s]), state)
    _, rows = lax.scan(lambda c, row: (c, step(row)), 0, rows)
    return px.tree.map(lambda r: r[1], rows)


def nested(step, state):
    return lax.fori_loop(0, 2, lambda i, s: repeated(step, s), state)


def chosen_in_runs(step, state):
    return lax.fori_loop(0, 4, lambda i, s: lax.cond(i % 2 == 0, step, lambda s: s, s), state)


def chosen(step, state):
    return lax.switch(1, [step, lambda s: repeated(step, s)], state)


def in_lanes(step, state):
    lanes = px.tree.map(lambda s: jnp.stack([0 * s, s]), state)
    return px.tree.map(lambda s: s[1], px.vmap(lambda s: repeated(step, s))(lanes))


def over_devices(step, state):
    lanes = px.tree.map(lambda s: jnp.stack([0 * s, s]), state)
    return px.tree.map(lambda s: s[1], px.pmap(lambda s: repeated(step, s))(lanes))


def jitted(step, state):
    return px.jit(lambda s: nested(step, s))(state)


def checkpointed(step, state):
    return px.checkpoint(lambda s: nested(step, s))(state)


LOOPS = {
    repeated: 3, reversed_rows: 3, given_as_rows: 3, taken_as_rows: 1, nested: 6,
    chosen_in_runs: 2, chosen: 3, in_lanes: 3, over_devices: 3, jitted: 6, checkpointed: 6,
}  # fmt: skip
every_loop = pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)


def ruled(loop):
    """The last value, as a function whose rule runs ``loop`` with pairs."""

    @px.custom_jvp
    def f(w, z):
        return loop(lambda s: step(*s), (w, z))[1]

    @f.defjvp
    def rule(primals, tangents):
        (_, z), (_, t) = loop(lambda pair: px.jvp(step, *pair), (primals, tangents))
        return z, t

    return f


def slope(loop, *directions, point=POINT):
    """By NumPy."""

    def last(w, z):
        for _ in range(LOOPS[loop]):
            w, z = step(w, z, np)
        return z

    return along(last, point, *directions)


def dot(gradient, t):
    return sum(a * b for a, b in zip(gradient, t, strict=True))


@every_loop
def test_both_modes_give_the_slope(loop):
    f = ruled(loop)
    wanted = slope(loop, T)
    near(px.jvp(f, POINT, T)[1], wanted)
    for gradient in (px.grad(f, (0, 1)), px.jit(px.grad(f, (0, 1))), px.grad(px.jit(f), (0, 1))):
        near(dot(gradient(*POINT), T), wanted)


@every_loop
@pytest.mark.parametrize("lanes", [px.vmap, px.pmap])
def test_in_lanes(loop, lanes):
    f = ruled(loop)
    points = [np.array([p, p / 2], np.float32) for p in POINT]
    wanted = [slope(loop, T), slope(loop, T, point=[p / 2 for p in POINT])]
    near(dot(lanes(px.grad(f, (0, 1)))(*points), T), wanted)
    near(dot(px.grad(lambda w, z: lanes(f)(w, z).sum(), (0, 1))(*points), T), wanted)


@every_loop
def test_twice(loop):
    f = ruled(loop)
    wanted = slope(loop, T, U)

    def along_t(*point):
        return dot(px.grad(f, (0, 1))(*point), T)

    near(dot(px.grad(along_t, (0, 1))(*POINT), U), wanted)
    near(px.jvp(along_t, POINT, U)[1], wanted)
    near(dot(px.jit(px.grad(lambda *p: px.jvp(f, p, T)[1], (0, 1)))(*POINT), U), wanted)


def test_the_values_are_computed_once():
    """The loop that runs backwards takes them, and computes no sine."""
    program = str(px.make_program(px.grad(ruled(repeated)))(*POINT))
    assert program.count("= scan[") == 2
    assert program.count("= sin ") == 1


def test_a_loop_of_unknown_length_is_refused():
    def unknown(step, state):
        goes_on, run = lambda c: c[0] < 3, lambda c: (c[0] + 1, step(c[1]))
        return lax.while_loop(goes_on, run, (0, state))[1]

    f = ruled(unknown)
    assert np.isfinite(px.jvp(f, POINT, T)[1])
    with pytest.raises(MissingRule, match="number of iterations is not known"):
        px.grad(f)(*POINT)
