"""What can be reproducible, and what is refused."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax

HERE = "test_reproducible.py"


def total(x):
    return lax.psum(x * 0.1, "i")


def rows():
    return np.random.default_rng(0).normal(size=(13, 700)).astype(np.float32)


def test_the_option_is_for_pmaps_that_do_not_say():
    x = rows()
    with phalanx.config.override(reproducible=True):
        found = phalanx.pmap(total, "i").placement(x)
        apart = phalanx.pmap(total, "i", reproducible=False, lanes_at_once="all").placement(x)
    assert all(chunk.reproducible for chunk in found.chunked)
    assert found.chunked
    assert not apart.chunked


def test_what_is_stored_is_told_of_each_axis():
    f = phalanx.pmap(phalanx.pmap(lambda x: lax.pmax(total(x), "j"), "j"), "i",
                     devices=phalanx.devices()[:1], reproducible=True)  # fmt: skip
    where = f.placement(np.ones((3, 5, 4), np.float32))
    (inside,) = where.inside
    assert [(p.name.split()[0], p.stored, p.sent) for p in where.in_order] == [("psum", 3, 1)]
    assert [(p.name.split()[0], p.stored, p.sent) for p in inside.in_order] == [("pmax", 5, 1)]
    apart = phalanx.pmap(total, "i").placement(np.ones((3, 4), np.float32))
    assert apart.in_order == () and "order" not in str(apart)


@pytest.mark.parametrize("transform", [phalanx.pmap, phalanx.vmap])
def test_a_pmap_inside_is_reproducible_like_the_outer_one(transform):
    x = rows()[:12].reshape(4, 3, 700).astype("bfloat16")

    def summed(x):
        return phalanx.pmap(total, "i")(x)

    transform(summed, lanes_at_once=1)(x)  # traced of other lanes before
    found = transform(summed, reproducible=True)(x)
    alone = phalanx.pmap(total, "i", reproducible=True)
    for row, lanes in zip(np.asarray(found), x, strict=True):
        assert row.tobytes() == np.asarray(alone(lanes)).tobytes()


@pytest.mark.parametrize("transform", [phalanx.pmap, phalanx.vmap])
def test_lanes_that_run_together_are_refused(transform):
    for at_once in (2, "all"):
        with pytest.raises(ValueError, match=f"lanes_at_once={at_once!r} and reproducible.*{HERE}"):
            transform(jnp.sin, lanes_at_once=at_once, reproducible=True)(rows())
    np.testing.assert_array_equal(
        transform(jnp.cos, lanes_at_once=1, reproducible=True)(rows()),
        transform(jnp.cos, reproducible=True)(rows()),
    )


@pytest.mark.spmd
def test_what_the_compiler_divides_is_refused():
    count = phalanx.device_count() // 2 * 2
    if not count:
        pytest.skip("one device")
    mesh = phalanx.make_mesh((2, count // 2), ("i", "rest"), devices=phalanx.devices()[:count])
    if count > 2:
        f = phalanx.pmap(total, "i", mesh=mesh, reproducible=True)
        with pytest.raises(ValueError, match=f"reproducible lanes, at {HERE}"):
            f(rows()[:2])

    def over_mesh(x):
        spread = phalanx.shard_map(total, mesh=mesh, in_specs=P("i"), out_specs=P())
        return spread(x)

    f = phalanx.pmap(
        over_mesh, "lanes", mesh=phalanx.make_mesh((1,), ("lanes",)), reproducible=True
    )
    with pytest.raises(ValueError, match="both must be over the same mesh"):
        f(rows()[:1, None])


@pytest.mark.parametrize("transform", [phalanx.pmap, phalanx.vmap])
def test_a_pmap_inside_that_is_not_reproducible_is_refused(transform):
    inside = phalanx.pmap(total, "i", reproducible=False)
    f = transform(lambda x: inside(x), reproducible=True)
    with pytest.raises(ValueError, match=rf"total, at {HERE}.* not reproducible itself.*{HERE}"):
        f(rows()[:4].reshape(2, 2, 700))


def test_lanes_of_vmap_are_on_one_device_with_all_that_is_inside():
    """A pmap inside has its lanes there, and what stands beside it adds up as one device does."""
    x = rows()[:, :96].reshape(13, 12, 8)

    def lane(x):
        y = phalanx.pmap(lambda row: row * lax.pmean(row, ("i", "j")), "j")(x)
        return lax.pmean((jnp.sin(y) * 0.7).sum(), "i"), y

    over = phalanx.pmap(lane, "i", reproducible=True)(x)
    alone = phalanx.jit(phalanx.vmap(lane, axis_name="i", reproducible=True))(x)
    for a, b in zip(alone, over, strict=True):
        assert len(a.devices()) == 1
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()

    def on_its_own(x):
        return phalanx.pmap(jnp.sin, "j", devices=phalanx.devices()[:1])(x)

    with pytest.raises(ValueError, match=f"sin, at {HERE}.* devices of its own.*{HERE}"):
        phalanx.vmap(on_its_own, reproducible=True)(x)


def _by_vjp(slope):
    f = phalanx.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (slope(ct * x),))
    return f


def _by_jvp(slope):
    f = phalanx.custom_jvp(jnp.sin)
    f.defjvp(lambda xs, ts: (jnp.sin(*xs), slope(*ts) * xs[0]))
    return f


@pytest.mark.spmd
@pytest.mark.parametrize("lanes", [2, 3])
@pytest.mark.parametrize("ruled", [_by_vjp, _by_jvp])
def test_a_pmap_in_a_rule_is_reproducible_like_the_lanes_it_is_for(ruled, lanes):
    """The rule runs when the function has been traced already."""
    x = rows()[:12].reshape(1, 12, 700)[[0] * lanes] * np.arange(1, 1 + lanes)[:, None, None]
    x = x.astype(np.float32)

    def slope(t):
        return phalanx.pmap(lambda t: t * 3 - lax.pmean(t * 0.1, "j") + t.sum(), "j")(t)

    f = ruled(slope)
    every = [
        phalanx.pmap(f, "i", devices=phalanx.devices()[:n], reproducible=True)
        for n in (1, phalanx.device_count())
    ]
    found = [phalanx.vjp(g, x)[1](x)[0] for g in (*every, phalanx.vmap(f, reproducible=True))]
    assert {np.asarray(y).tobytes() for y in found} == {np.asarray(found[0]).tobytes()}


@pytest.mark.parametrize("ruled", [_by_vjp, _by_jvp])
def test_what_a_rule_divides_over_devices_is_refused(ruled):
    x = rows()[:12].reshape(3, 4, 700)
    mesh = phalanx.make_mesh((1,), ("d",), devices=phalanx.devices()[:1])
    over_mesh = phalanx.shard_map(jnp.sin, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    on_its_own = phalanx.pmap(jnp.sin, devices=phalanx.devices()[:1])
    for slope, transform in [
        (over_mesh, phalanx.vmap),
        (over_mesh, phalanx.pmap),
        (on_its_own, phalanx.vmap),
    ]:
        f = transform(ruled(lambda t: slope(t)), reproducible=True)  # noqa: B023 (called at once)
        with pytest.raises(ValueError, match=f"sin, at {HERE}.* devices of its own.*{HERE}"):
            phalanx.vjp(f, x)[1](x)


@pytest.mark.spmd
def test_one_lane_around_several_is_not_divided_over_devices():
    x = np.random.default_rng(0).normal(size=(1, 6, 8)).astype(np.float32)

    def lane(x):
        y = phalanx.pmap(lambda row: jnp.sin(row) * row, "j")(x)
        return (jnp.sin(y) * 0.7).sum()

    with phalanx.config.override(disable_most_optimizations=True):
        found = [
            phalanx.pmap(lane, "i", devices=phalanx.devices()[:n], reproducible=True)(x)
            for n in range(1, phalanx.device_count() + 1)
        ]
    assert {np.asarray(y).tobytes() for y in found} == {np.asarray(found[0]).tobytes()}


def test_lanes_that_are_cut_by_negative_padding_can_be_compiled_quickly():
    def lane(x):
        return lax.pad(x * 2, jnp.float32(7), ((-1, 3, 0), (2, -3, 1)))

    x = rows()[:6].reshape(2, 3, 700)
    with phalanx.config.override(disable_most_optimizations=True):
        found = phalanx.pmap(lane, reproducible=True)(x)
    whole = np.full((2, 6, 2 + 1399 + 3), 7, np.float32)
    whole[:, :3, 2:1401:2] = x * 2
    np.testing.assert_array_equal(found, whole[:, 1:, : 2 + 1399 - 3])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32", "complex64"])
def test_dtypes_are_added_up_as_one_device_does(dtype):
    """Small numbers beside large ones, in 32 bits where there are fewer."""
    x = (rows() * 100).astype(dtype)

    def f(x):
        return lax.psum((x, x.ravel()[:3] * 2), "i")

    every = [
        phalanx.pmap(f, "i", devices=phalanx.devices()[:n], reproducible=True)(x)
        for n in {1, min(3, phalanx.device_count()), phalanx.device_count()}
    ]
    for found in every:
        for a, b in zip(found, every[0], strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    wide = np.asarray(x).astype(np.complex128).sum(0)
    near = {"bfloat16": 1e-2, "float16": 2e-3}.get(dtype, 1e-5)
    np.testing.assert_allclose(np.asarray(every[0][0])[0].astype(complex), wide, near, 1000 * near)


def test_the_greatest_numbers_in_a_loop():
    """Both results of ``top_k`` leave a loop over lanes that is in another loop."""
    greatest = phalanx.pmap(lambda x: (x, lax.top_k(x, 2)), "i", reproducible=True)
    x = rows()
    none = np.zeros((13, 2), np.float32), np.zeros((13, 2), np.int32)

    @phalanx.jit
    def twice(x):
        return lax.while_loop(
            lambda c: c[0] < 2, lambda c: (c[0] + 1, *greatest(c[1])), (0, x, none)
        )

    values, places = twice(x)[2]
    np.testing.assert_array_equal(places, np.argsort(-x, 1)[:, :2])
    np.testing.assert_array_equal(values, -np.sort(-x, 1)[:, :2])
