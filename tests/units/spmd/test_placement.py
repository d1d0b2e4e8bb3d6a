"""Which lanes go on which devices."""

from typing import NamedTuple

import numpy as np
import pytest

import phalanx
from phalanx import lax
from phalanx.sharding import PartitionSpec as P
from phalanx.spmd import placement
from phalanx.spmd.placement import mesh_of, placements, region_inputs


def program(*axes):
    """The program of nested pmaps of these sizes, outermost first."""
    f = lambda x: x + 1  # noqa: E731
    for i in reversed(range(len(axes))):
        f = phalanx.pmap(f, f"axis {i}")
    return f.trace(phalanx.ShapeDtypeStruct(axes, np.float32)).program


class Device(NamedTuple):
    """A device that is only spoken of."""

    id: int
    platform: str = "cpu"


DEVICES = tuple(map(Device, range(8)))


@pytest.mark.parametrize(
    "axes, room, sizes",
    [
        ((8,), 8, (8,)),
        ((8,), 3, (3,)),
        ((13,), 4, (4,)),
        ((5,), 8, (5,)),
        ((2, 3), 8, (2, 3)),
        ((3, 2), 8, (3, 2)),
        ((2, 16), 8, (2, 4)),
        ((16, 2), 8, (8, 1)),
        ((1, 4), 8, (1, 4)),
        ((2, 2, 2), 8, (2, 2, 2)),
    ],
)
def test_outer_axes_are_placed_first(axes, room, sizes):
    mesh = mesh_of(program(*axes), DEVICES[:room])
    assert mesh is not None and mesh.sizes == sizes
    assert mesh.devices == DEVICES[: np.prod(sizes)]


def test_one_device_needs_no_mesh_of():
    assert mesh_of(program(13), DEVICES[:1]) is None
    assert mesh_of(program(1), DEVICES) is None
    (where,) = placements(program(13), None, DEVICES[:1])
    assert (where.devices, where.lanes, where.padding) == (DEVICES[:1], 13, 0)
    assert str(where).splitlines()[0] == "axis 'axis 0': 13 lanes, all on 1 device"


def test_the_largest_axis_of_a_program_decides():
    f, g = (phalanx.pmap(lambda x: x + 1) for _ in range(2))

    def both(x, y):
        return f(x), g(y)

    types = [phalanx.ShapeDtypeStruct((n, 2), np.float32) for n in (3, 8)]
    traced = phalanx.jit(both).trace(*types).program
    mesh = mesh_of(traced, DEVICES)
    assert mesh is not None and mesh.sizes == (8,)
    assert region_inputs(traced, mesh) == [P(("m0", "m1", "m2"))] * 2


def test_arguments_are_wanted_where_their_lanes_are():
    f = phalanx.pmap(lambda w, x: w * x, in_axes=(None, 1))
    w, x = (phalanx.ShapeDtypeStruct(s, np.float32) for s in ((), (2, 13)))
    traced = f.trace(w, x).program
    mesh = mesh_of(traced, DEVICES[:4])
    assert mesh is not None
    assert region_inputs(traced, mesh) == [P(), P(None, ("m0", "m1"))]


def test_a_placement_says_what_runs_a_few_lanes_at_a_time():
    def total(x):
        return phalanx.lax.psum(phalanx.numpy.sin(x), "i")

    one_by_one = phalanx.pmap(total, axis_name="i", devices=phalanx.devices()[:1], lanes_at_once=1)
    together = phalanx.pmap(total, axis_name="i", devices=phalanx.devices()[:1])
    where = one_by_one.placement(np.zeros((8, 2)))
    (chunk,) = where.chunked
    assert (chunk.axis, chunk.at_once) == ("i", 1)
    assert "1 at a time, up to psum at test_placement.py" in str(where)
    assert together.placement(np.zeros((8, 2))).chunked == ()


@pytest.mark.skipif(phalanx.device_count() < 3, reason="a part of the devices is to be of several")
@pytest.mark.parametrize("lanes", [1, 2])
def test_lanes_are_dealt_out_over_all_devices_where_no_compiler_takes_the_part(lanes, monkeypatch):
    part = phalanx.device_count() - 1
    monkeypatch.setattr(placement, "may_be_refused", lambda devices: len(devices) == part)

    def shares(x):
        return x / lax.psum(x, "i"), lax.axis_index("i"), lax.all_gather(x, "i")

    x = np.arange(1.0, 1 + part * lanes, dtype=np.float32)
    mapped = phalanx.pmap(shares, "i")
    got = mapped(x)
    assert len(got[0].sharding.device_set) == part + 1
    for mine, theirs in zip(got, phalanx.vmap(shares, axis_name="i")(x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    np.testing.assert_array_equal(got[1][part - 1], part - 1)
    np.testing.assert_array_equal(mapped(got[0])[1], np.arange(part * lanes))


def test_a_prompt_shows_what_is_printed():
    shown = {
        "a placement": phalanx.pmap(lambda x: x, "i").placement(np.ones(5)),
        "a program": phalanx.make_jaxpr(lambda x: x + x)(np.float32(1)),
        "a report": phalanx.explain(lambda x: x + x)(1.0),
    }
    assert all(repr(x) == str(x) for x in shown.values())
    assert repr(shown["a program"]).splitlines()[1] == "  b: f32[] = add a a"
    assert repr(shown["a placement"]).startswith("axis 'i': 5 lanes")
