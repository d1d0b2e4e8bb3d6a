"""Plans of pipelines: turns counted one by one, times by the formulas, published runs."""

import numpy as np
import pytest
from msgspec.structs import replace

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.insight.plans.layers import NO_LAYERS, Layers
from phalanx.insight.plans.performance_model import fitted_to, load_of
from phalanx.insight.plans.pipelines import Pipeline, pipelined, pipelines
from phalanx.insight.systems import machine
from tests.units.insight.plans import published_pipelines

WIDTH, ROWS = 256, 64


def of(*shape):
    return ph.ShapeDtypeStruct(shape, "bfloat16")


def deep(w, x):
    def loss(w):
        h = x @ w["first"]
        return jnp.mean(
            lax.scan(ph.checkpoint(lambda h, m: (jnp.tanh(h @ m), None)), h, w["all"])[0]
        )

    return ph.tree.map(lambda p, g: p - g, w, ph.grad(loss)(w))


W = {"first": of(8, WIDTH), "all": of(12, WIDTH, WIDTH)}
X = of(ROWS, 8)


def turns(stages, parts, rounds):
    """When the last stage is done, if each takes the parts as they come: in groups of as many as
    there are stages, each round of a group after the one before; a turn is one group of layers."""
    free = [0] * stages
    done = {}
    for first in range(0, parts, stages):
        for turn in range(rounds):
            for part in range(first, min(first + stages, parts)):
                for stage in range(stages):
                    before = (
                        done.get((part, turn, stage - 1), 0)
                        if stage
                        else done.get((part, turn - 1, stages - 1), 0)
                    )
                    free[stage] = done[part, turn, stage] = max(free[stage], before) + 1
    return max(free)


@pytest.mark.parametrize("stages, parts, rounds", [(2, 2, 1), (4, 6, 1), (4, 8, 1), (8, 16, 1),
                                                   (2, 4, 3), (4, 8, 2), (4, 16, 4)])  # fmt: skip
def test_a_stage_waits_as_a_schedule_says(stages, parts, rounds):
    waiting = 1 - rounds * parts / turns(stages, parts, rounds)
    assert Pipeline(1, stages, 1, parts, rounds).bubble == pytest.approx(waiting)


def test_what_there_is_at_a_time():
    assert (
        Pipeline(1, 4, 1, 16).there == 4
    )  # one for each stage that it has still to come back from
    assert Pipeline(1, 4, 1, 2).there == 2
    assert Pipeline(1, 4, 1, 16, 3).there == 4 + 3 / 3


def test_layers():
    load = load_of(ph.jit(deep).trace(W, X))
    assert load.layers == Layers(12, 2 * ROWS * WIDTH)

    def written_out(w, x):
        loss = lambda w: jnp.mean(jnp.tanh(x @ w["first"] @ w["all"][0]))  # noqa: E731
        return ph.tree.map(lambda p, g: p - g, w, ph.grad(loss)(w))

    assert load_of(ph.jit(written_out).trace(W, X)).layers == NO_LAYERS
    assert "pipelines" not in {p.title for p in ph.plan(written_out, on="h100:8")(W, X).parts}


def test_pipelines_divide_layers_chips_and_the_batch():
    found = [*pipelines(Layers(12, 1.0), 64, 16, [1, 2])]
    assert found and len(found) == len({*found})
    for p in found:
        assert p.data * p.stages * p.tensor == 16 and 12 % (p.stages * p.rounds) == 0
        assert 64 % (p.data * p.parts) == 0 and p.stages > 1
        assert p.rounds == 1 or p.parts % p.stages == 0


@pytest.mark.parametrize("rounds", [1, 3])
def test_times_are_those_of_the_formulas(rounds):
    load, chips = load_of(ph.jit(deep).trace(W, X)), machine("a100:16")
    found = pipelined(load, chips, Pipeline(2, 4, 2, 8, rounds))
    products = load.products
    latency, time = chips.exchange("all-reduce", products.reduced / 2 / 4, 2)
    summed = fitted_to(chips.system).exchanging * (latency * products.count * 8 / 4 + time)
    added = sum(chips.exchange("all-reduce", products.gradients / 8, 2, 2))
    assert found.exchanging == pytest.approx(summed + added)
    handed = 2 * ROWS * WIDTH / 2 / 2  # of a copy, and of a chip of its products
    latency, time = chips.exchange("collective-permute", 2 * rounds * handed, 2, 4)
    assert found.sending == pytest.approx(2 * 8 * rounds * latency + time)
    updating = load.updating / 8 / chips.chip.bandwidth
    turn = found.computing - updating + summed
    assert found.waiting / (found.waiting + turn) == pytest.approx(found.pipeline.bubble)
    held = (load.state + products.gradients) / 8
    assert found.size_of_all - held == pytest.approx(load.alive / 16)
    assert found.size - held == pytest.approx(load.alive / 16 * found.pipeline.there / 8)


def test_a_plan_says_that_a_pipeline_would_fit():
    w = {"first": of(8, 16_384), "all": of(64, 16_384, 16_384)}
    report = ph.plan(deep, on="a100:16", batch=32)(w, of(32, 8))
    best, *_ = report["pipelines"].as_json()["rows"]
    assert best["fits"] == "yes" and best["stages"] > 1
    assert best["waiting"] > 0 and best["memory of a chip"] <= best["GPipe's"]
    assert "you write a pipeline yourself" in report["pipelines"].note
    asked = ph.plan(deep, on="a100:16", fsdp=8)(w, of(32, 8))
    assert "pipelines" not in {p.title for p in asked.parts}


def test_published_runs():
    """One number is fitted to every other row; the others are within 10 %."""
    rows = published_pipelines.FITTED_TO, published_pipelines.SHOWN
    fitted, shown = map(np.array, map(published_pipelines.errors, rows))
    assert np.abs(shown).mean() < 0.05 and np.abs(shown).max() < 0.1
    for factor in (0.97, 1.03):
        efficiency = factor * published_pipelines.FITTED.efficiency
        other = replace(published_pipelines.FITTED, efficiency=efficiency)
        worse = np.array(published_pipelines.errors(rows[0], other))
        assert (np.log1p(worse) ** 2).sum() > (np.log1p(fitted) ** 2).sum()
