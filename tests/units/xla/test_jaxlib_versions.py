"""Shardings as compilers say them: as tiles, or, newer ones, by the axes of a mesh."""

import itertools
import json

import numpy as np
import pytest
from jaxlib import _hlo

from phalanx.xla import partitioning
from phalanx.xla.jaxlib_versions import from_xla_sharding

AXES = {"a": 2, "b": 3}
ORDERS = [p for n in range(3) for p in itertools.permutations(AXES, n)]
PLACED = [dims for dims in itertools.product(ORDERS, repeat=2) if not {*dims[0]} & {*dims[1]}]


def by_axes(*dims):
    mesh = ",".join(f"'{name}'={size}" for name, size in AXES.items())
    told = ", ".join("{" + ", ".join(f"'{name}'" for name in dim) + "}" for dim in dims)
    return _hlo.HloSharding.from_string(f"{{mesh[{mesh}], [{told}]}}")


def block(dims, device):
    """The rows and columns that a device has of 6 x 6, counted by hand."""
    place = dict(zip(AXES, np.unravel_index(device, tuple(AXES.values())), strict=True))
    told = []
    for dim in dims:
        start, length = 0, 6
        for name in dim:
            length //= AXES[name]
            start += place[name] * length
        told.append((start, start + length))
    return tuple(told)


def shown(indices):
    return tuple(i.indices(6)[:2] for i in indices)


@pytest.mark.parametrize("dims", PLACED, ids=str)
def test_axes_of_a_mesh_are_read(dims):
    devices = tuple(f"device {i}" for i in range(6))
    spec = from_xla_sharding(by_axes(*dims), devices)
    has = spec.devices_indices_map((6, 6))
    assert {d: shown(has[d]) for d in devices} == {d: block(dims, i) for i, d in enumerate(devices)}


@pytest.mark.parametrize("dims", PLACED, ids=str)
def test_the_partitioner_asks_by_axes_of_a_mesh(dims):
    """What each device has of a result that lies as its operand."""
    shape = _hlo.Shape.array_shape(np.dtype(np.float32), (6, 6))
    names, sizes = [["m", "n"]], {"m": 6, "n": 6}
    config = {"operation": "optimization_barrier", "params": {}, "platform": "cpu"}
    config |= {"operands": names, "results": names, "sizes": sizes}
    said = by_axes(*dims)
    _, (taken,), given = partitioning._partition(
        [shape], [said], shape, said, json.dumps(config).encode()
    )
    assert taken == given
    devices = tuple(range(6))
    has = from_xla_sharding(given, devices).devices_indices_map((6, 6))
    assert [shown(has[d]) for d in devices] == [block(dims, d) for d in devices]
