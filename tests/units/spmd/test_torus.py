"""Meshes along the links of their devices."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from phalanx.api.meshes import create_device_mesh, create_hybrid_device_mesh
from phalanx.core import platforms
from phalanx.spmd.torus import along_torus, may_be_refused


def chips(*box, cores=1, slices=1):
    """Devices of tori, in the order in which a runtime may number them: x fastest."""
    places = itertools.product(range(slices), *map(range, reversed(box)), range(cores))
    return [
        SimpleNamespace(id=i, coords=[*reversed(place)], core_on_chip=core, slice_index=part)
        for i, (part, *place, core) in enumerate(places)
    ]


def steps(grid, axis):
    """In how many coordinates neighbours along an axis of the mesh differ, at most."""
    rows = np.moveaxis(grid, axis, -1).reshape(-1, grid.shape[axis])
    pairs = ((a, b) for row in rows for a, b in itertools.pairwise(row))
    return max(
        (sum(x != y for x, y in zip((*a.coords, a.core_on_chip), (*b.coords, b.core_on_chip),
                                    strict=True)) for a, b in pairs),
        default=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("box", "shape"),
    [
        ((4, 4, 4), (4, 4, 4)), ((4, 4, 4), (16, 4)), ((4, 4, 4), (4, 16)), ((4, 4, 4), (64,)),
        ((2, 4, 1), (4, 2)), ((2, 4, 1), (2, 4)), ((8, 16, 1), (16, 8)), ((4, 8, 2), (8, 1, 8)),
    ],
)  # fmt: skip
def test_axes_go_along_those_of_the_torus(box, shape):
    devices = chips(*box)
    grid = along_torus(shape, devices)
    assert grid.shape == shape
    assert {d.id for d in grid.flat} == {d.id for d in devices}
    assert all(steps(grid, axis) <= 1 for axis in range(len(shape)))


def test_what_stands_for_chips_lies_as_they_do(monkeypatch):
    """CPUs on which programs are traced that are compiled for chips."""
    monkeypatch.setattr(platforms, "_described", {})
    platforms.describe_devices(chips(2, 2, 1, slices=2))
    cpus = [SimpleNamespace(id=i, platform="cpu") for i in range(8)]
    grid = along_torus((4,), cpus[:4])
    assert [d.id for d in grid] == [0, 2, 3, 1]
    assert create_hybrid_device_mesh((4,), (2,), cpus).tolist() == [
        *grid, *(cpus[4 + d.id] for d in grid)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "every", "count", "refused"),
    [
        ("TPU v5 lite", 8, 6, True), ("TPU v5 lite", 8, 5, False), ("TPU v6 lite", 16, 4, True),
        ("TPU v5 lite", 64, 63, True), ("TPU v5 lite", 64, 64, False),
        ("TPU v5 lite", 64, 1, False), ("TPU v5", 64, 8, False), ("cpu", 64, 8, False),
    ],
)  # fmt: skip
def test_parts_of_a_slice_that_compilers_may_refuse(kind, every, count, refused):
    client = SimpleNamespace(device_count=lambda: every)
    chip = SimpleNamespace(device_kind=kind, platform="tpu", client=client)
    assert may_be_refused([chip] * count) == refused


def hops(grid, axis):
    """How many links lie between neighbours along an axis of the mesh, at most."""
    rows = np.moveaxis(grid, axis, -1).reshape(-1, grid.shape[axis])
    pairs = [(a.coords, b.coords) for row in rows for a, b in itertools.pairwise(row)]
    return max(sum(abs(x - y) for x, y in zip(a, b, strict=True)) for a, b in pairs)


@pytest.mark.parametrize(
    ("box", "shape", "farthest"),
    [
        ((2, 4, 1), (8,), [1]), ((4, 4, 4), (64,), [1]), ((4, 4, 4), (16, 4), [1, 1]),
        ((8, 8, 1), (64,), [1]), ((4, 4, 1), (8, 2), [2, 1]), ((4, 4, 4), (8, 8), [2, 1]),
        ((4, 4, 1), (2, 8), [1, 2]),
    ],
)  # fmt: skip
def test_an_axis_over_several_of_the_torus_turns_round_at_their_ends(box, shape, farthest):
    grid = along_torus(shape, chips(*box))
    assert [hops(grid, axis) for axis in range(len(shape))] == farthest


def test_eight_chips_in_two_rows_are_a_ring():
    ring = create_device_mesh((8,), chips(2, 4, 1))
    assert hops(np.append(ring, ring[0]), 0) == 1


def test_an_axis_of_the_torus_is_parted_where_it_may_be():
    devices = chips(4, 4, 1)
    grid = along_torus((2, 8), devices)
    assert grid.shape == (2, 8)
    assert along_torus((2, 8), devices, split=False) is None
    assert create_device_mesh((2, 8), devices, allow_split_physical_axes=False).shape == (2, 8)


def test_cores_of_a_chip_lie_together():
    grid = along_torus((4, 2), chips(2, 2, 1, cores=2))
    assert all(a.coords == b.coords for a, b in grid)


def test_what_is_no_torus_keeps_its_order():
    assert along_torus((4,), chips(2, 2, 1)[:3]) is None
    assert along_torus((3,), chips(2, 2, 1)[:3]) is None  # a place of the box is empty
    plain = [SimpleNamespace(id=i, process_index=i // 2) for i in range(4)]
    assert along_torus((4,), plain) is None
    assert create_device_mesh((2, 2), plain).ravel().tolist() == plain


def test_axes_of_gpus_fill_the_last_ones_from_one_machine():
    gpus = [
        SimpleNamespace(id=i, process_index=i // 8, coords=[0, i // 8, i % 8]) for i in range(32)
    ]
    for shape in ((8, 4), (4, 8), (2, 16), (32,)):
        assert create_device_mesh(shape, gpus).ravel().tolist() == gpus


def test_slices_are_the_slow_part_of_an_axis():
    devices = chips(2, 2, 1, slices=4)
    grid = create_hybrid_device_mesh((2, 2), (4, 1), devices)
    assert grid.shape == (8, 2)
    assert [[d.slice_index for d in row] for row in grid] == [[i // 2] * 2 for i in range(8)]
    columns = create_hybrid_device_mesh((2, 4), (4, 1), chips(2, 4, 1, slices=4))
    assert all(steps(part, axis) == 1 for part in columns.reshape(4, 2, 4) for axis in (0, 1))
    both = create_hybrid_device_mesh((2, 2), (2, 2), devices)
    assert [[d.slice_index for d in row] for row in both] == [
        [0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3],
    ]  # fmt: skip


def test_processes_may_take_the_place_of_slices():
    gpus = [SimpleNamespace(id=i, process_index=i // 4) for i in range(8)]
    grid = create_hybrid_device_mesh((1, 4), (2, 1), gpus, process_is_granule=True)
    assert [[d.id for d in row] for row in grid] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(ValueError, match=r"needs 2 slices, and there are 1.*process_is_granule"):
        create_hybrid_device_mesh((1, 4), (2, 1), gpus)
    with pytest.raises(ValueError, match=r"\(4,\) and dcn_mesh_shape \(2, 1\) must have as many"):
        create_hybrid_device_mesh((4,), (2, 1), gpus)


def test_every_shape_has_a_grid_of_all_devices():
    devices = chips(4, 2, 2)
    for shape in {s for s in itertools.product((1, 2, 4, 8, 16), repeat=3) if math.prod(s) == 16}:
        grid = create_device_mesh(shape, devices)
        assert grid.shape == shape
        assert len({d.id for d in grid.flat}) == 16
