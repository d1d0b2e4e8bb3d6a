"""Reproducible lanes on drawn programs: to the bit the same, however many devices have them.

The oracle is the same program on one device; that its values are right is the pmap law.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, pmap, vmap
from tests.laws.lanes import programs
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
    close(found, program.oracle(x, w), 1e-4)


@given(programs())
def test_values_in_lanes_of_vmap(program):
    """One device without a mesh is like the others."""
    x, w = narrow(program.arguments())
    m = replace(program.mapping, at_once=(None,) * len(program.mapping.axes))
    count = len(m.axes)

    def mapped(lane, *, axis_name, in_axes, out_axes, axis_size, **_):
        return vmap(
            lane, axis_name=axis_name, in_axes=in_axes, out_axes=out_axes, axis_size=axis_size,
            reproducible=True,
        )  # fmt: skip

    note(str(program))
    alone = phalanx.jit(m.over([mapped] * count, program.lane))(x, w)
    assert bits(alone) == bits(on_devices(program, 1)(x, w))


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


@given(programs())
def test_gradients_from_inside(program):
    x, w = narrow(program.arguments())
    leading = (0,) * len(program.mapping.axes)
    slope = phalanx.value_and_grad(loss(program), (0, 1))

    def gradients(count):
        return on_devices(program, count, slope, leading)(x, w)

    same_everywhere(program, gradients)


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
