"""The examples on meshes give what a single device gives, and devices hold only their parts."""

import numpy as np
import pytest

import phalanx
from phalanx.cli.demo import load_example
from phalanx.insight.checks.running_programs import checking_compiled

pytestmark = pytest.mark.skipif(phalanx.device_count() != 8, reason="they are for eight devices")


@pytest.fixture(autouse=True)
def nothing_wrong():
    """Nothing that the examples compile has findings."""
    with checking_compiled() as found:
        yield
    assert not found


def close(tree, expected, tolerance=1e-5):
    pairs = zip(phalanx.tree.leaves(tree), phalanx.tree.leaves(expected), strict=True)
    for x, y in pairs:
        np.testing.assert_allclose(np.reshape(x, y.shape), y, rtol=tolerance, atol=tolerance)


def test_a_transformer_learns_the_same_in_five_ways():
    transformer = load_example("transformer")
    ways = transformer.ways(transformer.init())
    found = {name: transformer.train(*way, steps=3) for name, way in ways.items()}
    losses, params = found.pop("one device")
    assert len(found) == 4
    for others, moved in found.values():
        np.testing.assert_allclose(others, losses, rtol=1e-5)
        close(moved, params)


def test_what_is_passed_around_a_ring_is_the_product():
    ring = load_example("ring_matmul")
    x, w = ring.operands()
    for count in (8, 3):
        mesh = phalanx.make_mesh((count,), ("ring",), devices=phalanx.devices()[:count])
        shape = ring.ROWS - ring.ROWS % count, ring.COLUMNS - ring.COLUMNS % count
        for function in (ring.gathered, ring.passed_on):
            close(ring.over(mesh, function)(x[: shape[0]], w[:, : shape[1]]),
                  (x @ w)[: shape[0], : shape[1]])  # fmt: skip


def test_parameters_that_are_cut_learn_the_same():
    fsdp = load_example("fsdp")
    mesh = phalanx.make_mesh((8,), ("data",))
    state = fsdp.init()
    losses, params = fsdp.train(phalanx.jit(fsdp.step), state)
    placed = phalanx.device_put(state, fsdp.fully_sharded(mesh, state))
    cut_losses, cut = fsdp.train(fsdp.sharded_step(mesh, state), placed)
    np.testing.assert_allclose(cut_losses, losses, rtol=1e-5)
    close(cut, params, 1e-4)  # Adam divides by what is small
    assert all(
        x.addressable_shards[0].data.size == x.size // (8 if x.ndim else 1)
        for x in phalanx.tree.leaves(cut)
    )


@pytest.mark.parametrize(
    "name, shape, axes", [("pipeline", (2, 4), ("data", "stage")), ("experts", (8,), ("expert",))]
)
def test_layers_on_several_devices_have_the_gradients_of_one(name, shape, axes):
    module = load_example(name)
    layers = module.on_one_device, module.over(phalanx.make_mesh(shape, axes))
    steps = [phalanx.jit(phalanx.value_and_grad(module.loss_of(layer))) for layer in layers]
    expected, found = (step(*module.operands()) for step in steps)
    close(found, expected)
    assert all(np.abs(x).max() > 1e-3 for x in phalanx.tree.leaves(found))
