"""Lanes that choose differently: what a lane did not choose has no consequence for it.

The oracle of values and derivatives is each lane alone, where the lanes do not communicate, and
finite differences of a loop in NumPy where they do.
"""

from functools import partial

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.compare import SUMS
from tests.compare import close as close_within
from tests.laws.slopes import along

close = partial(close_within, within=SUMS)

X = np.array([0.0, 1.0, 4.0, 0.0, 2.0], np.float32)
W = np.float32(2.0)
ROOMS = pytest.mark.parametrize("room", [8, 3, 1])


def mappings():
    yield phalanx.vmap, {}
    for room in (8, 3, 1):
        yield phalanx.pmap, {"devices": phalanx.devices()[:room]}


def log(w, x):
    return lax.cond(x > 0, lambda x: w * jnp.log(x), lambda x: 0.0 * w * x, x)


def one_of_three(w, x):
    rest = [lambda x: 0.5 * x, lambda x: jnp.sqrt(x - 3) * w, lambda x: w / x]
    return lax.switch((x > 0).astype(int) + (x < 3) * (x > 0), rest, x)


def long(w, x):
    """A branch that is worth the question whether any lane takes it."""

    def taken(x):
        y = jnp.log(jnp.tile(x, 1000))
        return lax.fori_loop(0, 300, lambda i, c: c * 0.5 + w * y, y).mean()

    return lax.cond(x > 0, taken, lambda x: x * w, x)


def in_a_scan(w, x):
    return lax.scan(lambda c, r: (log(w, c) * r + c, None), x, jnp.arange(1.0, 3.0))[0]


def checkpointed(w, x):
    return phalanx.checkpoint(log)(w, x) * x


LANES = [log, one_of_three, long, in_a_scan, checkpointed]
lanes = pytest.mark.parametrize("lane", LANES, ids=lambda f: f.__name__)


@pytest.mark.spmd
@lanes
def test_a_branch_that_is_not_taken_has_no_derivative(lane):
    """Whichever transformation comes first, by what lanes have and by what they share."""
    alone = [phalanx.grad(lane, (0, 1))(W, x) for x in X]
    of_w, of_x = (np.array(column) for column in zip(*alone, strict=True))
    assert np.isfinite(of_w).all() and np.isfinite(of_x).all()
    for transform, options in mappings():
        mapped = transform(lane, in_axes=(None, 0), **options)
        inside = transform(phalanx.grad(lane, (0, 1)), in_axes=(None, 0), **options)
        outside = phalanx.grad(lambda w, x, f=mapped: f(w, x).sum(), (0, 1))
        close(inside(W, X), (of_w, of_x))
        close(outside(W, X), (of_w.sum(), of_x))
        close(phalanx.jit(outside)(W, X), (of_w.sum(), of_x))
        forward = phalanx.jvp(mapped, (W, X), (np.float32(1), np.ones_like(X)))[1]
        close(forward, of_w + of_x)


@lanes
def test_lanes_of_lanes(lane):
    """The predicate differs along one of the two axes of lanes."""
    ws = np.array([2.0, 3.0], np.float32)
    each = phalanx.vmap(lane, in_axes=(None, 0))
    both = phalanx.grad(lambda w, x: phalanx.vmap(each, in_axes=(0, None))(w, x).sum(), (0, 1))
    alone = [phalanx.grad(lambda w, x: each(w, x).sum(), (0, 1))(w, X) for w in ws]
    close(both(ws, X), (np.stack([g for g, _ in alone]), sum(g for _, g in alone)))


# ---- what lanes tell each other -----------------------------------------------------------------


def choosing(x):
    def taken(x):
        return jnp.sqrt(jnp.abs(x) - 0.5) * lax.pmean(jnp.sin(x), "i")

    return lax.cond(jnp.abs(x) > 0.5, taken, lambda x: x, x)


def chosen(x):
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(x) > 0.5, np.sqrt(np.abs(x) - 0.5) * np.sin(x).mean(), x)


def looping(x):
    def body(state):
        n, y = state
        return n - 1, jnp.cos(y) + lax.pmean(y, "i") * n

    return lax.while_loop(lambda state: state[0] > 0, body, (jnp.round(jnp.abs(x) * 4), x))[1]


def looped(x):
    n, y = np.round(np.abs(x) * 4), x
    while (n > 0).any():
        y, n = np.where(n > 0, np.cos(y) + y.mean() * n, y), np.where(n > 0, n - 1, n)
    return y


def deciding_together(x):
    """The condition communicates, and the body does not."""
    return lax.while_loop(lambda y: y + lax.pmax(y, "i") < 3 - x, lambda y: 1.1 * y + 0.3, x)


def decided_together(x):
    y, on = x, np.full(x.shape, True)
    while (on := on & (y + y.max() < 3 - x)).any():
        y = np.where(on, 1.1 * y + 0.3, y)
    return y


def bounded(x):
    n = jnp.round(jnp.abs(x) * 4).astype(int)
    return lax.fori_loop(0, n, lambda i, y: jnp.cos(y) + lax.pmean(y, "i") * (n - i), x)


PAIRS = {
    "cond": (choosing, chosen),
    "while": (looping, looped),
    "while, in the condition": (deciding_together, decided_together),
    "fori_loop": (bounded, looped),
}


@pytest.mark.spmd
@pytest.mark.parametrize("which", PAIRS)
@pytest.mark.parametrize("size", [5, 11])
def test_every_lane_takes_part(which, size):
    lane, oracle = PAIRS[which]
    with phalanx.config.override(enable_x64=True):
        x, t = (np.random.default_rng(s).uniform(-1, 1, size) for s in range(2))
        slope = along(oracle, (x,), (t,))
        for transform, options in mappings():
            mapped = phalanx.jit(transform(lane, axis_name="i", **options))
            values, tangents = phalanx.jvp(mapped, (x,), (t,))
            np.testing.assert_allclose(values, oracle(x), atol=1e-12)
            np.testing.assert_allclose(tangents, slope, atol=1e-6)
            if which == "cond":
                pulled = phalanx.vjp(mapped, x)[1](np.ones(size))[0]
                np.testing.assert_allclose(pulled @ t, slope.sum(), atol=1e-6)


@pytest.mark.spmd
@pytest.mark.parametrize("sizes", [(2, 3), (3, 2)])
def test_axes_in_axes(sizes):
    """A condition that differs along one axis or both, around what goes over one or both."""
    x = np.random.default_rng(3).uniform(-1, 1, sizes).astype(np.float32)

    def lane(x):
        over_both = lax.cond(x > 0, lambda x: lax.psum(x, ("i", "j")), jnp.sin, x)
        row = lax.pmax(x, "j")
        over_rows = lax.cond(row > 0.5, lambda x: lax.psum(x * over_both, "i"), lambda x: x, x)
        return lax.while_loop(lambda y: y < row, lambda y: y + 0.1 + lax.pmean(y, "j") ** 2,
                              over_rows)  # fmt: skip

    expected = None
    pmap, vmap = phalanx.pmap, phalanx.vmap
    for outer, inner in ((vmap, vmap), (pmap, pmap), (pmap, vmap), (vmap, pmap)):
        f = phalanx.jit(outer(inner(lane, axis_name="j"), axis_name="i"))
        values = phalanx.jvp(f, (x,), (np.cos(x),))
        expected = values if expected is None else expected
        close(values, expected)
    over_both = np.where(x > 0, x.sum(), np.sin(x))
    row = np.broadcast_to(x.max(1, keepdims=True), x.shape)
    y = np.where(row > 0.5, (x * over_both).sum(0), x)
    while (y < row).any():
        y = np.where(y < row, y + 0.1 + y.mean(1, keepdims=True) ** 2, y)
    close(expected[0], y)


@pytest.mark.spmd
@ROOMS
def test_a_rare_update_from_a_counter_of_each_lane(room):
    """Of an optimizer that renews what it needs in every third step."""

    def step(state, g):
        count, p = state
        renewed = lax.cond(
            count % 3 == 0, lambda p: p * 0.5 + lax.pmean(jnp.outer(g, g), "i"), lambda p: p, p
        )
        return (count + 1, renewed), renewed @ g

    def lane(count, gs):
        return lax.scan(step, (count, jnp.zeros((2, 2))), gs)

    gs = np.random.default_rng(1).uniform(-1, 1, (5, 4, 2)).astype(np.float32)
    counts = np.zeros(5, np.int32)
    mapped = phalanx.pmap(lane, "i", devices=phalanx.devices()[:room])
    (_, p), out = mapped(counts, gs)
    expected = np.zeros((2, 2))
    for t in range(4):
        if t % 3 == 0:
            expected = expected * 0.5 + np.mean([np.outer(g, g) for g in gs[:, t]], 0)
        np.testing.assert_allclose(out[:, t], gs[:, t] @ expected, rtol=1e-5)
    np.testing.assert_allclose(p[0], expected, rtol=1e-5)


@phalanx.custom_vjp
def shared(x):
    return x * 1


shared.defvjp(lambda x: (x, None), lambda _, ct: (lax.psum(ct, "i"),))


@pytest.mark.spmd
@ROOMS
def test_a_rule_that_communicates_in_a_branch(room):
    """A lane that does not take it has no cotangent to tell the others."""

    def lane(x):
        return lax.cond(x > 0, lambda x: shared(2 * x), lambda x: 3 * x, x)

    x = np.array([-1.0, 2.0, 3.0, -0.5, 1.0], np.float32)
    ct = np.arange(1.0, 6.0, dtype=np.float32)
    expected = np.where(x > 0, 2 * ct[x > 0].sum(), 3 * ct)
    for mapped in (
        phalanx.vmap(lane, axis_name="i"),
        phalanx.pmap(lane, "i", devices=phalanx.devices()[:room]),
    ):
        assert phalanx.vjp(mapped, x)[1](ct)[0].tolist() == expected.tolist()


def test_what_lanes_share_is_not_repeated():
    def lane(w, x):
        return lax.cond(x[0] > 0, lambda x: w @ x, lambda x: x, x)

    mapped = phalanx.vmap(lane, in_axes=(None, 0))
    arguments = np.ones((30, 30), np.float32), np.ones((50, 30), np.float32)
    for f in (mapped, phalanx.grad(lambda w, x: mapped(w, x).sum(), (0, 1))):
        assert "f32[50,30,30]" not in str(phalanx.make_program(f)(*arguments))


@pytest.mark.parametrize("size, asks", [(4, False), (2000, True)])
def test_lanes_are_asked_where_it_can_save_something(size, asks):
    def lane(x):
        return lax.cond(x[0] > 0, lambda x: jnp.outer(x, x) @ x, lambda x: x, x)

    lowered = phalanx.jit(phalanx.vmap(lane)).lower(np.ones((3, size), np.float32))
    assert ("stablehlo.case" in lowered.as_text()) == asks


# ---- groups of lanes that choose differently ----------------------------------------------------

PERM = [(0, 1)]


def shifted_if(x):
    """An exchange over "j" that only some positions of "i" run."""
    return lax.cond(x > 0, lambda x: lax.ppermute(x, "j", PERM) + x, lambda x: x * 2, x)


def shifted_while(x):
    """The same in a loop of which the lengths differ along "i"."""
    return lax.while_loop(lambda x: x < 8, lambda x: lax.ppermute(x, "j", PERM) + 2 * x, x)


def shifted_in_a_call(x):
    exchange = phalanx.jit(lambda x: lax.ppermute(x, "j", PERM))
    return exchange(x) + lax.cond(x > 0, exchange, lambda x: -x, x)


@pytest.mark.spmd
@pytest.mark.parametrize("lane", [shifted_if, shifted_while, shifted_in_a_call])
def test_an_exchange_waits_only_for_its_group(lane):
    x = np.array([[1.0, 3.0], [-2.0, -5.0], [8.0, 9.0]], np.float32)
    if lane is shifted_while:
        x = np.abs(x)
    nested = [f(f(lane, axis_name="j"), axis_name="i") for f in (phalanx.vmap, phalanx.pmap)]
    wanted, given = (np.asarray(f(x)) for f in nested)
    rows = [np.asarray(phalanx.vmap(lane, axis_name="j")(row)) for row in x]
    np.testing.assert_array_equal(wanted, rows)
    np.testing.assert_array_equal(given, rows)


@pytest.mark.skipif(phalanx.device_count() < 6, reason="the axes would share devices")
def test_an_exchange_that_all_groups_run_is_a_permutation():
    shift = lambda x: lax.ppermute(x, "j", PERM)  # noqa: E731
    for lane, permutes in ((shift, True), (shifted_while, False)):
        nested = phalanx.pmap(phalanx.pmap(lane, axis_name="j"), axis_name="i")
        text = nested.lower(np.ones((3, 2), np.float32)).as_text()
        assert ("collective_permute" in text) == permutes


def test_many_lanes_of_scalars_loop_together():
    """One by one they would leave vector registers empty; few of them, or wide ones, would not."""

    def root(x):
        better = lambda y: (y + x / y) / 2  # noqa: E731
        return lax.while_loop(lambda y: (abs(y * y - x) > 1e-3).any(), better, x)

    one = phalanx.devices()[:1]
    for shape, at_once in [((5000,), []), ((100,), [1]), ((5000, 20), [1])]:
        x = np.ones(shape, np.float32)
        chunks = phalanx.pmap(root, devices=one).placement(x).chunked
        assert [c.at_once for c in chunks] == at_once
