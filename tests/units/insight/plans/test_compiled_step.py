"""Steps of plans that are compiled: for the CPUs of this machine, in place of chips elsewhere."""

import importlib.util

import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.insight.plans import compiled_step, plan
from phalanx.insight.plans.compiled_step import built
from phalanx.insight.plans.performance_model import Parting, load_of
from phalanx.insight.systems import machine
from phalanx.run.backend import Exchange

pytestmark = pytest.mark.skipif(ph.device_count() < 8, reason="it is parted over 8 devices")
LAYERS, WIDE, ROWS = 3, 64, 128


def of(*shape):
    return ph.ShapeDtypeStruct(shape, "float32")


def step(w, scale, x):
    def loss(w):
        return jnp.mean(lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x * scale, w)[0] ** 2)

    value, grads = ph.value_and_grad(loss)(w)
    return w - grads, scale, value


W, SCALE, X = of(LAYERS, WIDE, WIDE), of(WIDE), of(ROWS, WIDE)


@pytest.fixture
def chips(monkeypatch):
    monkeypatch.setattr(compiled_step, "devices_of", lambda _: ph.devices()[:8])
    return machine("v5e:2x4")


@pytest.fixture
def traced():
    return ph.jit(step).trace(W, SCALE, X)


@pytest.mark.parametrize("parting", [Parting(8, 1, 1), Parting(1, 8, 1), Parting(2, 4, 1)])
def test_the_compiler_parts_the_step_as_planned(chips, traced, parting):
    load = load_of(traced)
    found = built(traced, load, chips, parting)
    products = sum(load.operations.values())
    assert products == 3 * LAYERS * 2 * ROWS * WIDE * WIDE
    assert found.operations == pytest.approx(products / 8, rel=0.15)
    kinds = {c.operation for c in found.exchanged}
    assert "all-reduce" in kinds and ("all-gather" in kinds) == (parting.fsdp > 1)
    assert [row[2] for row in found.shardings] == [
        "P(None, 'fsdp')" if parting.fsdp > 1 else "whole", "whole",
        "P(('data', 'fsdp'))",
    ]  # fmt: skip
    assert found.timing.tensor == 0 and found.timing.data + found.timing.fsdp > 0
    assert found.timing.size < load.state + 8 * load.alive


def test_the_report_says_where_its_figures_are_from(chips, traced):
    report = plan.plan_of(traced, chips, Parting(8, 1, 1), compiled=True)
    assert report["summary"].as_json()["facts"]["estimated from"] == "program for v5e:2x4"
    by_trace, by_compiler = report["trace and compiled program"].as_json()["rows"]
    assert by_trace["estimated from"] == "trace" and by_compiler["FLOPs"] == by_trace["FLOPs"]
    assert report["compiled collectives"].rows
    plain = plan.plan_of(traced, chips)
    assert plain["summary"].as_json()["facts"]["estimated from"] == "trace"


@pytest.mark.parametrize(
    "parting, groups, axis, among, near",
    [
        (Parting(8, 1, 1), ((0, 1, 2, 3), (4, 5, 6, 7)), "data", 4, 4),
        (Parting(8, 1, 1), ((0, 4), (1, 5), (2, 6), (3, 7)), "data", 2, 1),
        (Parting(2, 4, 1), ((0, 1, 2, 3), (4, 5, 6, 7)), "fsdp", 4, 4),
        (Parting(2, 1, 4), ((0, 1, 2, 3), (4, 5, 6, 7)), "tensor", 4, 4),
        (Parting(2, 2, 2), (tuple(range(8)),), "data", 8, 4),
        (Parting(2, 4, 1), None, "data", 8, 4),
    ],
)  # fmt: skip
def test_an_exchange_takes_its_time_where_those_that_exchange_are(
    parting, groups, axis, among, near
):
    slices = machine("v5e:2x2:2")
    found, count, apart = compiled_step._among(
        Exchange("all-reduce", groups, None, 2**20, 1, ""), slices, parting
    )
    assert (found, count, min(count, slices.inside // apart)) == (axis, among, near)


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs the extra tpu")
def test_what_slices_exchange_is_in_the_figures(traced):
    of_two = machine("v5e:2x2:2")
    found = built(traced, load_of(traced), of_two, Parting(2, 4, 1))
    over = {(c.operation, c.axes, c.devices) for c in found.exchanged}
    assert ("all-reduce", ("data",), 2) in over and ("all-gather", ("fsdp",), 4) in over
    network = of_two.system.between.latency
    assert found.timing.data > network > found.timing.fsdp > 0


def test_lanes_are_the_parts(chips):
    def lane(w, x):
        grads = ph.grad(lambda w: jnp.mean(jnp.tanh(x @ w)))(w)
        return w - lax.pmean(grads, "batch")

    traced = ph.pmap(lane, "batch", in_axes=(None, 0), out_axes=None).trace(
        of(WIDE, WIDE), of(8, ROWS, WIDE)
    )
    load = load_of(traced)
    found = built(traced, load, chips, Parting(8, 1, 1))
    assert found.operations == pytest.approx(sum(load.operations.values()) / 8)
    assert [row[2] for row in found.shardings] == ["whole", "P('lanes')"]
    report = plan.plan_of(traced, chips, compiled=True)
    (only,) = report["best meshes"].as_json()["rows"]
    assert (only["data"], only["fsdp"], only["tensor"]) == (8, 1, 1)
    with pytest.raises(ValueError, match="pmap of 8 lanes, of which each has all of the state"):
        plan.plan_of(traced, chips, Parting(0, 8, 0), compiled=True)


def test_of_chips_that_are_more_than_lanes_several_do_the_same(chips):
    lane = lambda w, x: w - lax.pmean(x.T @ jnp.tanh(x @ w), "batch")  # noqa: E731
    args = of(WIDE, WIDE), of(4, ROWS, WIDE)
    traced = ph.pmap(lane, "batch", in_axes=(None, 0), out_axes=None).trace(*args)
    load = load_of(traced)
    found = built(traced, load, chips, Parting(8, 1, 1))
    assert found.operations == pytest.approx(sum(load.operations.values()) / 4)
    assert [row[2] for row in found.shardings] == ["whole", "P('lanes')"]


def test_the_batch_is_cut_where_it_is(chips):
    def recurrent(w, xs, y):
        def loss(w):
            cell = lambda h, x: (jnp.tanh((h + x) @ w), None)  # noqa: E731
            return jnp.mean((lax.scan(cell, jnp.zeros_like(y), xs)[0] - y) ** 2)

        return w - ph.grad(loss)(w)

    traced = ph.jit(recurrent).trace(of(WIDE, WIDE), of(8, ROWS, WIDE), X)
    load = load_of(traced)
    found = built(traced, load, chips, Parting(8, 1, 1))
    assert [row[2] for row in found.shardings][1:] == [
        "P(None, ('data', 'fsdp'))", "P(('data', 'fsdp'))",
    ]  # fmt: skip
    assert found.operations == pytest.approx(sum(load.operations.values()) / 8, rel=0.1)


def test_what_is_not_compiled_is_told(chips, traced):
    with pytest.raises(ValueError, match="compiled=True is for TPUs"):
        built(traced, load_of(traced), machine("h100:8"), Parting(8, 1, 1))
    mesh = ph.make_mesh((2,), ("d",), devices=ph.devices()[:2])
    spec = ph.sharding.PartitionSpec("d")
    inner = ph.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=spec, out_specs=spec)
    own = ph.jit(lambda w, x: w - jnp.mean(inner(x) @ w)).trace(of(WIDE, WIDE), X)
    with pytest.raises(ValueError, match=r"says itself on which devices.*compile --for v5e:2x4"):
        built(own, load_of(own), chips, Parting(8, 1, 1))
