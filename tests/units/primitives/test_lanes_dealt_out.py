"""Lanes that are dealt out unevenly, as processes do that have different numbers of them."""

import numpy as np
import pytest

import phalanx
from phalanx import lax
from phalanx.control.mapped import mapped
from phalanx.core import axes
from phalanx.core.blocks import UnevenBlocks
from phalanx.core.roles import slices
from phalanx.core.types import ArrayType
from phalanx.transforms.stage import stage

NAMES = ("index", "size", "psum", "pmax", "all_gather", "ppermute", "psum_scatter", "all_to_all")


def f(x, total):
    i = lax.axis_index("i")
    shifted = [(k, (k + 1) % total) for k in range(total)]
    return (
        i + 0 * x[0].astype(np.int32),
        lax.psum(1, "i") + 0 * x[0],
        lax.psum(x, "i"),
        lax.pmax(x, "i"),
        lax.all_gather(x, "i"),
        lax.ppermute(x, "i", shifted[: total // 2 + 1]),
        lax.psum_scatter(np.arange(total) * x[0], "i"),
        lax.all_to_all(np.arange(total) + x[0], "i", 0, 0),
    )


@pytest.mark.parametrize("counts", [(2, 1, 3), (1, 2), (2, 2, 1), (4,)])
def test_every_device_has_its_own_number_of_lanes(counts):
    lane_blocks, devices = UnevenBlocks.of(counts), tuple(phalanx.devices()[: len(counts)])
    total = lane_blocks.size
    x = np.random.default_rng(0).normal(size=(total, 3)).astype(np.float32)
    lane = ArrayType((3,), np.dtype(np.float32))
    with axes.binding(("i", total)):
        program, _ = stage(lambda x: list(f(x, total)), (lane,), "f", ["x"])
    cut = slices((("i",),))
    padded = x[list(lane_blocks.held)]
    found = mapped(
        padded, program=program, axes=(("i", total),), ins=(cut,), outs=(cut,) * len(NAMES),
        devices=devices, mesh=None, at_once=None, lane_blocks=lane_blocks,
    )  # fmt: skip
    wanted = phalanx.vmap(lambda x: f(x, total), axis_name="i")(x)
    for name, y, z in zip(NAMES, found, wanted, strict=True):
        rows = np.asarray(y)[list(lane_blocks.places)]
        np.testing.assert_allclose(rows, z, atol=1e-5, err_msg=name)
