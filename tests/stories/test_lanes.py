"""Axes of any size on any number of devices, as a user meets them."""

import re

import numpy as np
import pytest

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax

pytestmark = pytest.mark.spmd

ROOM = sorted({d for d in (1, 3) if d < jax.device_count()} | {jax.device_count()})
SIZES = [1, 5, 13]


def rows(n, *shape):
    return np.random.default_rng(n).uniform(-1, 1, (n, *shape)).astype(np.float32)


def on(count):
    return jax.devices()[:count]


@pytest.mark.parametrize("room", ROOM)
@pytest.mark.parametrize("n", SIZES)
def test_a_result_behaves_as_any_array(n, room):
    """It indexes, iterates, prints, converts and computes without a trace of padding."""
    x = rows(n, 2)
    y = jax.pmap(lambda x: x * 2, devices=on(room))(x)
    expected = x * 2
    assert y.shape == (n, 2) and len(y) == n and repr(y) == repr(jnp.asarray(expected))
    np.testing.assert_array_equal(np.asarray(y), expected)
    np.testing.assert_array_equal(jax.device_get(y), expected)
    for i in range(-n, n):
        np.testing.assert_array_equal(y[i], expected[i])
    for at in (slice(0, 2), slice(2, 4), slice(None, None, -1), slice(4, None)):
        np.testing.assert_array_equal(y[at], expected[at])
    np.testing.assert_array_equal(np.stack([np.asarray(r) for r in y]), expected)
    np.testing.assert_array_equal(y + 1, expected + 1)
    np.testing.assert_allclose(jax.jit(lambda y: y.sum(0))(y), expected.sum(0), rtol=1e-5)
    np.testing.assert_array_equal(jax.device_put(y, jax.devices()[-1]), expected)


@pytest.mark.parametrize("room", ROOM)
def test_parts_hold_the_lanes_and_nothing_else(room):
    y = jax.pmap(lambda x: -x, devices=on(room))(rows(13, 2))
    parts = y.addressable_shards
    assert sum(p.data.shape[0] for p in parts) == 13
    np.testing.assert_array_equal(np.concatenate([p.data for p in parts]), y)
    for p in parts:
        np.testing.assert_array_equal(p.data, np.asarray(y)[p.index])


@pytest.mark.parametrize("room", ROOM)
def test_a_result_feeds_another_pmap_where_it_lies(room):
    y = jax.pmap(lambda x: x + 1, devices=on(room))(rows(13))
    g = jax.pmap(lambda x: lax.psum(x, "i"), "i", devices=on(room))
    text = g.lower(y).compile().as_text() if room > 1 else ""
    assert "stablehlo.concatenate" not in text  # nothing is padded again
    np.testing.assert_allclose(g(y), np.full(13, (rows(13) + 1).sum()), rtol=1e-5)


def test_each_reduction_is_one_message_of_one_lane():
    devices = on(min(4, jax.device_count()))
    if len(devices) == 1:
        pytest.skip("needs two devices")

    def f(x, y):
        return lax.psum((x, y), "i")

    text = jax.pmap(f, "i", devices=devices).lower(rows(13, 6), rows(13, 2)).as_text()
    messages = re.findall(r"all_reduce.*?\((tensor<[^)]*)\) ->", text, re.DOTALL)
    assert messages == ["tensor<8xf32>"]  # both arrays, packed


def test_neighbours_exchange_only_what_crosses_between_devices():
    devices = on(min(4, jax.device_count()))
    if len(devices) == 1:
        pytest.skip("needs two devices")
    shift = [(i, (i + 1) % 16) for i in range(16)]
    f = jax.pmap(lambda x: lax.ppermute(x, "i", shift), "i", devices=devices)
    text = f.lower(rows(16, 3)).as_text()
    assert re.findall(r"collective_permute.*: \((.*)\) ->", text) == ["tensor<1x3xf32>"]
    np.testing.assert_array_equal(f(rows(16, 3)), np.roll(rows(16, 3), 1, 0))


@pytest.mark.parametrize("room", ROOM)
def test_padding_repeats_a_lane_and_nobody_sees_it(room):
    """Padding lanes end loops, take logarithms and draw numbers as a real lane does."""

    def f(key, x):
        i = lax.axis_index("i")
        steps = lax.while_loop(lambda c: c[0] < i, lambda c: (c[0] + 1, c[1] * 2), (0, 1.0))[1]
        bits = jax.random.bits(jax.random.fold_in(key, i), (2,))
        return steps, bits, jnp.log(13.0 - i)

    key = jax.random.key(0)
    with jax.config.override(debug_nans=True):
        found = jax.pmap(f, "i", in_axes=(None, 0), devices=on(room))(key, rows(13, 2))
    expected = jax.vmap(f, in_axes=(None, 0), axis_name="i")(key, rows(13, 2))
    np.testing.assert_array_equal(found[0], 2.0 ** np.arange(13))
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[2], np.log(13.0 - np.arange(13)), rtol=1e-6)


@pytest.mark.parametrize("room", ROOM)
def test_infinities_stay_in_their_lane(room):
    """The last lane, which padding repeats, may hold anything."""
    x = rows(5)
    x[-1] = -np.inf
    f = jax.pmap(lambda x: (lax.psum(x, "i"), lax.pmax(x, "i"), lax.pmin(x, "i")), "i",
                 devices=on(room))  # fmt: skip
    total, largest, smallest = f(x)
    assert np.isneginf(total).all() and np.isneginf(smallest).all()
    np.testing.assert_array_equal(largest, np.full(5, x.max()))
    counts = jax.pmap(lambda x: lax.pmax(x, "i"), "i", devices=on(room))(np.arange(-5, 0))
    assert counts.tolist() == [-1] * 5


@pytest.mark.parametrize("room", ROOM)
def test_nested_axes_larger_than_the_devices(room):
    x = rows(15, 4)[:, :, None] * rows(3, 2)[0]

    def f(x):
        return x - lax.pmean(x, ("i", "j")) + lax.axis_index("i") * lax.psum(x, "j")

    inner = jax.pmap(f, "j")
    found = jax.pmap(inner, "i", devices=on(room))(x)
    expected = x - x.mean((0, 1)) + np.arange(15)[:, None, None] * x.sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("room", ROOM)
def test_gradients_inside_and_outside(room):
    w, x = rows(3, 2)[0], rows(7, 2)

    def loss(w, x):
        return jnp.sin(x @ w) ** 2

    mean = jax.pmap(
        lambda w, x: lax.pmean(jax.grad(loss)(w, x), "i"), "i", in_axes=(None, 0), out_axes=None,
        devices=on(room),
    )  # fmt: skip
    s = x @ w
    expected = (np.sin(2 * s)[:, None] * x).mean(0)
    np.testing.assert_allclose(mean(w, x), expected, rtol=1e-4, atol=1e-6)
    whole = jax.grad(lambda w: jax.pmap(loss, in_axes=(None, 0), devices=on(room))(w, x).mean())
    np.testing.assert_allclose(whole(w), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("out", [0, 1, -1])
def test_lanes_leave_along_any_dimension(out):
    found = jax.pmap(lambda x: x + 1, in_axes=1, out_axes=out)(rows(2, 11))
    np.testing.assert_array_equal(found, np.moveaxis(rows(2, 11).T + 1, 0, out))


def test_the_data_may_come_from_another_number_of_devices():
    x = rows(13, 2)
    for count in ROOM:
        placed = jax.device_put(x, on(count))
        np.testing.assert_array_equal(placed, x)
        found = jax.pmap(lambda x: lax.psum(x, "i"), "i")(placed)
        np.testing.assert_allclose(found[3], x.sum(0), rtol=1e-5)


def test_an_array_without_rows_may_be_split_and_sliced():
    split = jax.sharding.NamedSharding(
        jax.sharding.Mesh(jax.devices(), ("i",)), jax.sharding.PartitionSpec("i")
    )
    empty = jax.device_put(np.zeros((0, 2), np.float32), split)
    assert empty[0:0].shape == empty[:].shape == (0, 2)
    np.testing.assert_array_equal(empty, np.zeros((0, 2)))


def test_donation_and_static_arguments():
    f = jax.pmap(
        lambda x, k: x * k, static_broadcasted_argnums=1, donate_argnums=0, devices=on(ROOM[-1])
    )
    x = jax.pmap(lambda x: x)(rows(13))
    np.testing.assert_array_equal(f(x, 3), rows(13) * 3)
    assert x.is_deleted()


def test_ahead_of_time():
    f = jax.pmap(lambda x: x - lax.pmean(x, "i"), "i", devices=on(ROOM[-1]))
    compiled = f.lower(jax.ShapeDtypeStruct((13, 2), np.float32)).compile()
    x = rows(13, 2)
    np.testing.assert_allclose(compiled(x), x - x.mean(0), rtol=1e-5, atol=1e-6)


def test_a_body_is_traced_once_whatever_the_number_of_lanes():
    traced = []

    def f(x):
        traced.append(x.shape)
        return x + 1

    jax.pmap(f)(np.zeros((1024, 2)))
    assert traced == [(2,)]


def test_several_sizes_in_one_program():
    @jax.jit
    def f(x, y):
        a = jax.pmap(lambda x: lax.psum(x, "i"), "i")(x)
        b = jax.pmap(lambda y: lax.psum(y, "i") + lax.axis_index("i"), "i")(y)
        return a, b, jax.pmap(lambda a: a * 2)(a[: y.shape[0]]) + b

    x, y = rows(13), rows(3)
    a, b, c = f(x, y)
    np.testing.assert_allclose(a, np.full(13, x.sum()), rtol=1e-5)
    np.testing.assert_allclose(b, y.sum() + np.arange(3), rtol=1e-5)
    np.testing.assert_allclose(c, 2 * x.sum() + y.sum() + np.arange(3), rtol=1e-5)


def test_inside_loops_and_branches():
    def step(c, x):
        c = jax.pmap(lambda c: c + lax.pmean(c, "i") * x, "i")(c)
        return c, c.sum()

    c, totals = jax.jit(lambda c: lax.scan(step, c, jnp.arange(3.0)))(rows(5))
    expected, sums = rows(5), []
    for i in range(3):
        expected = expected + expected.mean() * i
        sums.append(expected.sum())
    np.testing.assert_allclose(c, expected, rtol=1e-5)
    np.testing.assert_allclose(totals, sums, rtol=1e-5)
    chosen = jax.jit(
        lambda p, c: lax.cond(p, jax.pmap(lambda c: c * 2), lambda c: c, c)
    )(True, rows(5))  # fmt: skip
    np.testing.assert_array_equal(chosen, rows(5) * 2)


@pytest.mark.skipif(jax.device_count() < 4, reason="needs four devices")
def test_placement_tells_where_lanes_run():
    inner = jax.pmap(lambda x: x, "inner")
    where = jax.pmap(inner, "outer", devices=on(4)).placement(np.zeros((2, 5)))
    assert (where.axis, where.size, where.lanes, where.padding) == ("outer", 2, 1, 0)
    (inside,) = where.inside
    assert (inside.axis, inside.size, inside.lanes, inside.padding) == ("inner", 5, 3, 1)
    assert inside.devices == tuple(on(2))
    text = str(jax.pmap(lambda x: x, "i", devices=on(4)).placement(np.zeros(13)))
    assert text.splitlines()[0] == "axis 'i': 13 lanes, 4 on each of 4 devices, 3 of padding"
    assert text.splitlines()[-1].endswith("lane 12")
