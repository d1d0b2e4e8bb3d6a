"""Drawings of which device holds what."""

import numpy as np
import pytest

import phalanx
from phalanx import debug
from phalanx.api.visualize import tiles
from phalanx.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

LANES = """\
shape (13, 2) on 4 devices
┌────────────┐
│   CPU 0    │
│  rows 0:4  │
├────────────┤
│   CPU 1    │
│  rows 4:8  │
├────────────┤
│   CPU 2    │
│ rows 8:12  │
├────────────┤
│   CPU 3    │
│ rows 12:13 │
│ 3 padding  │
└────────────┘
"""

GRID = """\
shape (9, 5, 4) on 8 devices
┌─────────────┬─────────────┐
│   CPU 0,1   │   CPU 2,3   │
│  rows 0:5   │  rows 0:5   │
│ columns 0:3 │ columns 3:5 │
│             │  1 padding  │
├─────────────┼─────────────┤
│   CPU 4,5   │   CPU 6,7   │
│  rows 5:9   │  rows 5:9   │
│  1 padding  │  1 padding  │
│ columns 0:3 │ columns 3:5 │
│             │  1 padding  │
└─────────────┴─────────────┘
"""

DEEP = """\
shape (2, 4, 6) on 8 devices
┌─────────────┬─────────────┐
│ CPU 0,1,4,5 │ CPU 2,3,6,7 │
│  rows 0:2   │  rows 0:2   │
│ columns 0:2 │ columns 2:4 │
└─────────────┴─────────────┘
not drawn: dimension 2 in 2 parts
"""

several = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs eight devices")


def drawn(capsys, *args):
    debug.visualize_sharding(*args, use_color=False)
    return capsys.readouterr().out


def on_mesh(*spec):
    mesh = Mesh(np.array(phalanx.devices()[:8]).reshape(2, 2, 2), ("a", "b", "c"))
    return NamedSharding(mesh, PartitionSpec(*spec))


@several
def test_lanes_and_padding_of_a_mapped_result(capsys):
    y = phalanx.pmap(lambda x: x, devices=phalanx.devices()[:4])(np.zeros((13, 2)))
    debug.visualize_array_sharding(y, use_color=False)
    assert capsys.readouterr().out == LANES


@several
def test_a_grid_with_copies(capsys):
    assert drawn(capsys, (9, 5, 4), on_mesh("a", "b")) == GRID


@several
def test_dimensions_beyond_the_second_are_told_below(capsys):
    assert drawn(capsys, (2, 4, 6), on_mesh(None, "b", "c")) == DEEP


@several
def test_a_device_may_have_padding_only():
    last = tiles((9,), Sharding(phalanx.devices()[:8], (8,)))[-1]
    assert last.lines == ("CPU 7", "no rows", "2 padding")


def test_a_scalar_is_one_tile(capsys):
    text = drawn(capsys, (), Sharding(phalanx.devices()[:1]))
    assert "CPU 0" in text and "rows" not in text


def test_a_sharding_of_too_many_dimensions():
    with pytest.raises(
        ValueError, match=r"splits 2 dimensions, but an array of shape \(4,\) has 1"
    ):
        debug.visualize_sharding((4,), Sharding(["a", "b"], (1, 2)))
