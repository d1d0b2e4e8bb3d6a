"""Reproducible lanes on drawn programs: to the bit the same, however many devices have them.

The oracle is the same program on one device; that its values are right is the pmap law.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, pmap, vmap
from tests.laws.lanes import Mapping, Program, Step, programs
from tests.laws.test_pmap_law import close, loss

pytestmark = pytest.mark.spmd
fewer = settings(max_examples=max(1, settings().max_examples // 2))
COUNTS = [n for n in (1, 2, 3, 4, 8) if n <= phalanx.device_count()]


def bits(tree):
    """The leaves as integers; all NaNs count as one."""
    leaves = map(np.asarray, phalanx.tree.leaves(tree))
    return [np.where(np.isnan(x), np.nan, x).astype(x.dtype).tobytes() for x in leaves]


def narrow(arrays):
    return [np.asarray(a, np.float32) for a in arrays]


def on_devices(program, count, lane=None, out_dims=None):
    """The lanes of ``program`` over so many devices."""
    m = program.mapping
    m = replace(m, room=count, at_once=(None,) * len(m.axes))
    return m.over([reproducible] * len(m.axes), lane or program.lane, out_dims=out_dims)


def reproducible(*args, **options):
    return pmap(*args, reproducible=True, **options)


def same_everywhere(program, function):
    """``function`` of the number of devices gives the same bits for each; it gives what one
    does."""
    note(str(program))
    first = function(1)
    for count in COUNTS[1:]:
        assert bits(function(count)) == bits(first), count
    return first


@given(programs())
def test_values(program):
    x, w = narrow(program.arguments())
    found = same_everywhere(program, lambda n: on_devices(program, n)(x, w))
    close(found, program.oracle(x, w), tolerance=1e-4)


def in_lanes_of_vmap(program, inner=()):
    """The lanes of ``program`` on one device, without a mesh: those of ``vmap`` and, inside these,
    of ``inner``."""
    m = replace(program.mapping, at_once=(None,) * len(program.mapping.axes))

    def level(transform):
        def mapped(lane, *, axis_name, in_axes, out_axes, axis_size, **_):
            return transform(
                lane, axis_name=axis_name, in_axes=in_axes, out_axes=out_axes, axis_size=axis_size,
                reproducible=True,
            )  # fmt: skip

        return mapped

    transforms = [vmap, *inner, *[vmap] * len(m.axes)][: len(m.axes)]
    note(f"{program}, in {[t.__name__ for t in transforms]}")
    return phalanx.jit(m.over([level(t) for t in transforms], program.lane))


inner = st.lists(st.sampled_from([pmap, vmap]), max_size=2)


@given(programs(), inner)
def test_values_in_lanes_of_vmap(program, inner):
    x, w = narrow(program.arguments())
    assert bits(in_lanes_of_vmap(program, inner)(x, w)) == bits(on_devices(program, 1)(x, w))


@fewer
@given(programs(most_steps=3), inner)
def test_derivatives_in_lanes_of_vmap(program, inner):
    args = narrow(program.arguments())
    ct = np.random.default_rng(2).uniform(-1, 1, program.oracle(*args).shape).astype(np.float32)

    def slopes(f):
        return phalanx.vjp(f, *args)[1](ct)

    assert bits(slopes(in_lanes_of_vmap(program, inner))) == bits(slopes(on_devices(program, 1)))


def test_cotangents_of_a_shared_result_in_lanes_of_vmap():
    """They are added in the order of lanes, wherever the result is placed."""
    x, w = np.random.default_rng(0).normal(size=(2, 47, 8, 6)).astype("bfloat16")

    def lane(x):
        return lax.psum(x * x, "i")

    for place in (0, -1):
        alone, over = [
            phalanx.vjp(transform(lane, axis_name="i", out_axes=place, reproducible=True), x)
            for transform in (vmap, pmap)
        ]
        ct = w if place == 0 else np.moveaxis(w, 0, -1)
        assert bits(alone[0]) == bits(over[0])
        assert bits(alone[1](ct)) == bits(over[1](ct))


@fewer
@given(programs())
def test_derivatives_from_outside(program):
    args, ts = narrow(program.arguments()), narrow(program.arguments(1))

    def derivatives(count):
        f = on_devices(program, count)
        out, pullback = phalanx.vjp(f, *args)
        ct = np.random.default_rng(2).uniform(-1, 1, out.shape).astype(np.float32)
        return phalanx.jvp(f, tuple(args), tuple(ts)), pullback(ct)

    same_everywhere(program, derivatives)


@fewer
@given(programs(most_steps=3))
def test_compiled_derivatives(program):
    args, ts = narrow(program.arguments()), narrow(program.arguments(1))
    shape = program.oracle(*args).shape
    ct = np.random.default_rng(2).uniform(-1, 1, shape).astype(np.float32)

    def derivatives(count):
        f = on_devices(program, count)

        @phalanx.jit
        def both(args, ts, ct):
            return phalanx.jvp(f, args, ts), phalanx.vjp(f, *args)[1](ct)

        return both(tuple(args), tuple(ts), ct)

    same_everywhere(program, derivatives)


@fewer
@given(programs())
def test_gradients_from_inside(program):
    x, w = narrow(program.arguments())
    leading = (0,) * len(program.mapping.axes)
    slope = phalanx.value_and_grad(loss(program), (0, 1))

    def gradients(count):
        return on_devices(program, count, slope, leading)(x, w)

    same_everywhere(program, gradients)


def test_compiled_quickly():
    """Sums of products, which without optimization were fused in some functions and not in others
    of the same operations."""
    mapping = Mapping(
        axes=(("i", 3), ("j", 4)), x_dims=(-1, -1), w_dims=(1, 0), out_dims=(4, -1)
    )  # fmt: skip
    steps = (
        Step("transpose"),
        Step("pmax", ("j", "i"), {"axis_index_groups": None}, decided=True),
        Step("call"),
        Step("pswapaxes", ("j", "i"), {"axis": 1, "axis_index_groups": None}, decided=True),
        Step("pbroadcast", ("j",), {"source": 3}, decided=True),
    )
    program = Program(mapping, (12, 2), (3,), steps)
    slope = phalanx.grad(loss(program))
    with phalanx.config.override(disable_most_optimizations=True):
        found = [
            bits(on_devices(program, count, slope, (0, 0))(*narrow(program.arguments())))
            for count in COUNTS
        ]
    assert found == found[:1] * len(COUNTS)


def test_lanes_of_few_bytes_and_of_many():
    """A device with all lanes has arrays that the compiler no longer counts as small."""
    x = np.random.default_rng(0).uniform(-1, 1, (24, 24, 2)).astype(np.float32)

    def from_the_last(x):
        return lax.pbroadcast(x, "i", 23)

    def lane(x):
        for_all = lax.scan(lambda x, _: (from_the_last(jnp.tanh(x) * 0.3), None), x, length=3)[0]
        x = lax.cond(for_all.sum() > 0.1, from_the_last, lambda x: x * 0.5, for_all)
        return (x**2).sum()

    def slopes(count):
        f = phalanx.value_and_grad(lane)
        return reproducible(f, "i", devices=phalanx.devices()[:count])(x)

    for count in COUNTS[1:]:
        assert bits(slopes(count)) == bits(slopes(1)), count


@pytest.mark.parametrize(
    ("lanes", "dtype"),
    [(8, "float32"), (16, "bfloat16"), (4, "complex64"), (13, "float32"), (24, "bfloat16")],
)
def test_sums_of_large_values(lanes, dtype):
    """Which devices exchange in another way than small ones."""
    source = np.random.default_rng(lanes)
    x, y = source.normal(size=(lanes, 4, 9000)), source.normal(size=(lanes, 21, 8, 100))

    def lane(x, y):
        y = y.reshape(y.size // 100, 100)
        return lax.psum((x, y[0], y), "i"), lax.pmean(y, "i"), lax.pmax(abs(y), "i")

    def on(count):
        f = reproducible(lane, "i", out_axes=None, devices=phalanx.devices()[:count])
        return f(jnp.asarray(x, dtype), jnp.asarray(y, dtype))

    first = on(1)
    for count in COUNTS[1:]:
        assert bits(on(count)) == bits(first), count
    (total, _, _), mean, _ = first
    narrow = {"bfloat16": 0.05}.get(dtype, 1e-4)
    close(np.asarray(total.astype(complex)), x.sum(0), tolerance=narrow)
    close(np.asarray(mean.astype(complex)), y.reshape(lanes, -1, 100).mean(0), tolerance=narrow)


@pytest.mark.parametrize("shape", [(4, 2), (8, 3)])
def test_large_sums_over_two_axes(shape):
    x = np.random.default_rng(0).normal(size=(*shape, 32, 700)).astype(np.float32)

    def lane(x):
        total = lax.psum(x, ("i", "j"))
        return total, lax.psum_scatter(x * total, "i", tiled=True)

    def on(count):
        inner = pmap(lane, "j", out_axes=(None, 0))
        return reproducible(inner, "i", out_axes=(None, 0), devices=phalanx.devices()[:count])(x)

    first = on(1)
    for count in COUNTS[1:]:
        assert bits(on(count)) == bits(first), count
    close(np.asarray(first[0]), x.sum((0, 1), np.float64), tolerance=1e-4)


@pytest.mark.parametrize("count, lanes, sent", [(2, 13, 7), (3, 8, 3), (4, 24, 3), (2, 8, 1)])
def test_the_price_is_told(count, lanes, sent):
    """As many rows as the compiled program exchanges, of values that are large."""
    if count > phalanx.device_count():
        pytest.skip("too few devices")
    here = -(-lanes // count)
    x = np.ones((lanes, 2400), np.float32)
    f = reproducible(lambda x: lax.psum(x * 0.1, "i"), "i", devices=phalanx.devices()[:count])
    where = f.placement(x)
    (price,) = where.in_order
    assert price.name.startswith("psum at test_reproducible.py") and price.stored == here
    exchanged = f.lower(x).compile().collectives()
    (rows,) = [c.bytes for c in exchanged if c.operation == "all-to-all"]
    assert price.sent == sent == rows / x[0].nbytes
    assert f"compiled for one lane and run {here} times" in str(where)
    assert (f"exchanges {sent} rows instead of 1" in str(where)) == (sent > 1)
