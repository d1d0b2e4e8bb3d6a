"""Machines by name, and how long what they exchange takes: the formulas, on paper."""

import math

import numpy as np
import pytest

from phalanx.cli.measuring import table
from phalanx.insight.systems import machine, systems


@pytest.mark.parametrize(
    "name, chips, shape, slices",
    [
        ("v5p:8x8x8", 512, (8, 8, 8), 1), ("v5e:16x16:4", 1024, (16, 16), 4),
        ("v5p:64", 64, (4, 4, 4), 1), ("h100", 1, (1,), 1), ("h100:8", 8, (8,), 1),
        ("h100:64", 64, (8,), 8), ("h100:4x8", 32, (8,), 4), ("h100:2x4", 8, (4,), 2),
        ("h100:4:2", 8, (4,), 2), ("V5E:4", 4, (2, 2), 1),
    ],
)  # fmt: skip
def test_machines(name, chips, shape, slices):
    found = machine(name)
    assert (found.chips, found.shape, found.slices) == (chips, shape, slices)


@pytest.mark.parametrize(
    "name, said",
    [
        ("v5pp:8", "Did you mean 'v5p'"), ("tpu", "The systems are"), ("v5e:16x32", "v5e:16x16:2"),
        ("v5e:4x4x4", "2 dimensions.* v5e:8x8$"), ("v5e:32x32", "v5e:16x16:4$"),
        ("h100:12", "multiple"), ("h100:", "there"),
        ("h100:4x16", "h100:64"),
        ("v5p:axb", "a shape follows"), ("v5p:0x4", "a shape follows"), ("v5p:4:0", "a shape"),
        (None, "a machine is called by its system"), (8, "of type int"),
    ],
)  # fmt: skip
def test_machines_that_do_not_exist(name, said):
    if name == "h100:":
        assert machine(name).chips == 1
        return
    with pytest.raises(ValueError, match=said):
        machine(name)


PRODUCTS = {"bfloat16": 2e11, "float32": 1e11, "float64": 5e10}
ALONE = {"products": PRODUCTS, "bandwidth": 8e9, "launch": 4e-8}
TWO = {"exchanges": {"4": 1e-3, "1000000": 3e-3}, "products": 1e11, "bandwidth": 8e9}
FOUR = {"exchanges": {"4": 2e-3, "1000000": 8e-3}, "products": 1e11, "bandwidth": 8e9}
TABLE = table(ALONE, {2: TWO, 4: FOUR})


def test_processes_share_a_computer(tmp_path):
    path = tmp_path / "cpu.toml"
    path.write_text(TABLE)
    one, four = machine(f"{path}"), machine(f"{path}:4")
    f32, size = np.dtype("float32"), 1e6
    assert (one.chips, four.chips, four.slices) == (1, 4, 1)
    assert one.chip.peak(f32) == 4 * four.chip.peak(f32) == 1e11
    assert four.chip.peak(np.dtype("float64")) == 5e10 / 4
    assert four.roofline(1e9, 0, f32) == pytest.approx(0.04)
    assert four.roofline(0, 1e9, f32) == pytest.approx(0.5)
    # what was measured comes out: 2 (n - 1) times the bytes over all links together
    assert machine(f"{path}:2").exchange("all-reduce", size, 2) == pytest.approx((1e-3, 2e-3))
    assert four.exchange("all-reduce", size, 4) == pytest.approx((2e-3, 6e-3))


def test_processes_do_more_together_than_one_alone(tmp_path):
    path = tmp_path / "cpu.toml"
    two, eight = TWO | {"products": 1.6e11, "bandwidth": 12e9}, FOUR | {"products": 0.4e11}
    path.write_text(table(ALONE, {2: two, 8: eight}))
    f32 = np.dtype("float32")
    peaks = {n: n * machine(f"{path}:{n}").chip.peak(f32) for n in (1, 2, 4, 8, 16)}
    # between what was measured the geometric mean, beyond it what was measured last
    assert peaks == pytest.approx({1: 1e11, 2: 1.6e11, 4: 0.8e11, 8: 0.4e11, 16: 0.4e11})
    assert 2 * machine(f"{path}:2").chip.bandwidth == pytest.approx(12e9)
    # a latency for each doubling, bytes over all links: as they were measured with so many
    for count, seconds in ((2, (1e-3, 2e-3)), (8, (2e-3, 6e-3))):
        found = machine(f"{path}:{count}").exchange("all-reduce", 1e6, count)
        assert found == pytest.approx(seconds, rel=0.01)  # as the file has them


def test_files_that_have_no_system(tmp_path):
    path = tmp_path / "cpu.toml"
    for text, said in (
        (None, "phalanx measure --out"), ("= 3", "one table"), (TABLE * 2, "one table"),
        ("[cpu]\ntitle = 'x'\n", "one table"), (TABLE.replace("[cpu]", ""), "one table"),
    ):  # fmt: skip
        if text is not None:
            path.write_text(text)
        with pytest.raises(ValueError, match=said):
            machine(f"{path}:4")


def test_every_figure_has_a_source():
    for system in systems().values():
        assert system.sources and all(s.startswith("https://") for s in system.sources)
        assert system.peak(np.dtype("float32")) <= system.peak(np.dtype("float16"))
        assert system.peak(np.dtype("float64")) <= system.peak(np.dtype("float32"))


def test_a_ring_of_a_torus():
    v5p, size = machine("v5p:8x8x8"), 1e9
    latency, time = v5p.exchange("all-reduce", size, 8)  # one dimension, both ways
    assert time == pytest.approx(2 * size * 7 / 8 / 200e9)
    assert latency == pytest.approx(4e-6)
    assert v5p.exchange("all-gather", size, 8)[1] == pytest.approx(time / 2)
    assert v5p.exchange("reduce-scatter", size / 8, 8)[1] == pytest.approx(time / 2)
    whole = v5p.exchange("all-gather", size, 512)[1]  # all three dimensions
    assert whole == pytest.approx(size * 511 / 512 / 600e9)
    assert v5p.exchange("all-to-all", size, 8)[1] == pytest.approx(size * 8 / 8 / 100e9)
    assert v5p.exchange("all-reduce", size, 1) == (0.0, 0.0)


def test_machines_on_a_network():
    h100, size = machine("h100:64"), 1e9
    inside = 2 * size * 7 / 8 / 450e9
    latency, time = h100.exchange("all-reduce", size, 64)
    assert time == pytest.approx(inside + 2 * size / 8 * 7 / 8 / 50e9)
    assert latency == pytest.approx(math.log2(8) * 3e-6 + math.log2(8) * 10e-6)
    assert h100.exchange("all-reduce", size, 8)[1] == pytest.approx(inside)
    assert h100.exchange("collective-permute", size, 2)[1] == pytest.approx(size / 450e9)
