"""Regions of any maker: here of one that gives every position of a mesh a device of its own."""

import contextlib

import numpy as np
import pytest

import phalanx
from phalanx import lax
from phalanx.base.errors import DeviceError
from phalanx.control.region import lower_region
from phalanx.core import primitive
from phalanx.core.axes import binding
from phalanx.core.primitive import Primitive
from phalanx.core.region import Block, Region
from phalanx.core.types import ArrayType
from phalanx.run.array import from_host
from phalanx.run.execute import compile_program, make_plan
from phalanx.spmd.placement import mesh_of, placements
from phalanx.transforms.derive import trace_closed

pytestmark = pytest.mark.spmd
COUNT = phalanx.local_device_count()
MESHES = [(n, COUNT // n) for n in range(1, COUNT + 1) if COUNT % n == 0]
F = np.dtype(np.float32)

on_a_mesh = Primitive(
    "on a mesh",
    lambda *types, region, results: results,
    lambda b, *xs, region, results: lower_region(b, *xs, region=region),
    region=lambda params: params["region"],
    multi=True,
)
del primitive.REGISTRY[on_a_mesh.name]  # of this file alone


def f32(*shape):
    return ArrayType(shape, F)


def region(function, parts, axes, in_layouts, out_layouts, devices):
    """``function`` of ``parts`` at every position of ``axes``, each on a device."""
    with contextlib.ExitStack() as scope:
        for axis in axes:
            scope.enter_context(binding(*axis))
        program = trace_closed(lambda *xs: (function(*xs), None), parts, "body").program
    block = Block(program, tuple(name for name, _ in axes))
    return Region(program, axes, in_layouts, out_layouts, devices, False, lambda blocks: block)


def whole(made, ins, results):
    """The program of one equation, which is ``made``."""
    bind = lambda *xs: (on_a_mesh(*xs, region=made, results=results), None)  # noqa: E731
    return trace_closed(bind, ins, "whole").program


def product(x, y, devices):
    """x @ y for ``x`` cut in rows and columns, and the number of each device."""

    def body(a, b):
        here = lax.axis_index("x") * y + lax.axis_index("y")
        return [lax.psum(a @ b, "y"), phalanx.numpy.full((1,), here, F)]

    return region(
        body, [f32(2, 3), f32(3, 2)], (("x", x), ("y", y)),
        ((("x",), ("y",)), (("y",),)), ((("x",),), (("y", "x"),)), devices,
    )  # fmt: skip


@pytest.mark.parametrize("x, y", MESHES)
def test_a_mesh_of_the_user_s_runs_as_a_region(x, y):
    devices = tuple(phalanx.local_devices())[::-1]
    program = whole(
        product(x, y, devices), [f32(2 * x, 3 * y), f32(3 * y, 2)], (f32(2 * x, 2), f32(COUNT))
    )
    a = np.arange(6 * COUNT, dtype=F).reshape(2 * x, 3 * y)
    b = np.arange(6 * y, dtype=F).reshape(3 * y, 2)
    arrays = [from_host(a), from_host(b)]
    sums, numbers = compile_program(program, [v._sig for v in arrays])(arrays)
    np.testing.assert_array_equal(sums, a @ b)
    np.testing.assert_array_equal(numbers, np.arange(COUNT).reshape(x, y).T.ravel())
    assert sums.sharding.devices == devices
    # column by column: the first device has position (0, 0), the next one (1, 0)
    at = [s.device for s in sorted(numbers.addressable_shards, key=lambda s: s.index[0].start or 0)]
    assert at == list(np.array(devices, object).reshape(x, y).T.ravel())


@pytest.mark.parametrize("x, y", MESHES)
def test_operands_are_laid_out_as_the_region_wants_them(x, y):
    devices = tuple(phalanx.local_devices())
    ins = [f32(2 * x, 3 * y), f32(3 * y, 2)]
    program = whole(product(x, y, devices), ins, (f32(2 * x, 2), f32(COUNT)))
    plan, _ = make_plan(program, [from_host(np.zeros(t.shape, F)).sharding for t in ins])
    if COUNT > 1:
        assert [s.tiles + (1,) * (2 - len(s.tiles)) for s in plan.in_shardings] == [(x, y), (y, 1)]
        assert [s.shard_shape(t.shape) for s, t in zip(plan.in_shardings, ins, strict=True)] == [
            (2, 3), (3, 2)
        ]  # fmt: skip
    assert not plan.independent  # it communicates
    (where,) = placements(program, mesh_of(program, devices), devices[:1])
    assert (where.axis, where.size, where.lanes, where.padding) == ("x", x, 1, 0)
    (inside,) = where.inside
    assert (inside.axis, inside.devices) == ("y", devices[:y])


@pytest.mark.skipif(COUNT % 4 != 0, reason="needs a mesh beside another axis")
def test_a_mesh_inside_lanes():
    """Each lane has a mesh of its own: it takes its parts, and gathers the results."""
    x, y = 2, COUNT // 4
    made = product(x, y, None)
    results = (f32(2 * x, 2), f32(x * y))
    f = phalanx.pmap(lambda a, b: on_a_mesh(a, b, region=made, results=results), in_axes=(0, None))
    a = np.arange(2 * 6 * x * y, dtype=F).reshape(2, 2 * x, 3 * y)
    b = np.arange(6 * y, dtype=F).reshape(3 * y, 2)
    sums, numbers = f(a, b)
    np.testing.assert_array_equal(sums, a @ b)
    order = np.arange(x * y).reshape(x, y).T.ravel()
    np.testing.assert_array_equal(numbers, [order, order])


def test_dimensions_that_do_not_divide_are_padded():
    devices = tuple(phalanx.local_devices())
    size = 3 * COUNT + 1
    rows = ((("x",),),)
    made = region(lambda v: [v * 2], [f32(4)], (("x", COUNT),), rows, rows, devices)
    program = whole(made, [f32(size)], (f32(size),))
    row = from_host(np.arange(size, dtype=F))
    (out,) = compile_program(program, [row._sig])([row])
    np.testing.assert_array_equal(out, np.arange(size) * 2)


def test_a_mesh_that_does_not_fit_is_refused():
    made = region(lambda v: [v], [f32(1)], (("x", 2), ("y", 3)), ((("x",),),), ((),), None)
    with pytest.raises(DeviceError, match=r"\{'x': 2, 'y': 3\} needs .* 6 in all"):
        made.counts(5)
    assert made.counts(6) == made.counts(7) == (2, 3)
    cuts = made.cuts((("m0", 2), ("m1", 3)))
    assert [(c.axis, c.mesh) for c in cuts] == [("x", ("m0",)), ("y", ("m1",))]
    assert all(c.blocks.length == 1 for c in cuts)
    for level in ((("m0", 3), ("m1", 2)), (("m0", 2), ("m1", 2)), (("m0", 6), ("m1", 2)), ()):
        with pytest.raises(DeviceError, match=r"\{'x': 2, 'y': 3\} do not fit the mesh"):
            made.cuts(level)
