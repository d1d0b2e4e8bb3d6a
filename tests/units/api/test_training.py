"""What training programs need: losses of labels, exact means, even batches, the state of a run."""

import dataclasses
import re

import numpy as np
import pytest
from scipy.special import log_softmax

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random, training


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cross_entropy_is_that_of_scipy(dtype, axis):
    rng = np.random.default_rng(0)
    logits = jnp.asarray(rng.normal(size=(3, 4, 5)) * 30, dtype)
    exact = np.moveaxis(log_softmax(np.float64(logits), axis=axis), axis, -1)
    labels = rng.integers(0, exact.shape[-1], exact.shape[:-1])
    found = phalanx.jit(training.cross_entropy, static_argnums=2)(logits, labels, axis)
    assert found.dtype == np.float32
    expected = -np.take_along_axis(exact, labels[..., None], -1)[..., 0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_its_gradient_is_what_softmax_gives_too_much():
    logits, label = np.float32([1000.0, -1000.0, 3.0]), 1
    value, grads = phalanx.value_and_grad(training.cross_entropy)(logits, label)
    assert value == 2000.0
    np.testing.assert_array_equal(grads, [1.0, -1.0, 0.0])


def test_labels_that_are_no_classes_give_nan():
    found = training.cross_entropy(np.zeros((4, 3), np.float32), np.array([-1, 0, 2, 3]))
    np.testing.assert_allclose(found, [np.nan, np.log(3), np.log(3), np.nan], rtol=1e-6)


@pytest.mark.parametrize(
    "labels, error, words",
    [
        (np.zeros(4, np.float32), TypeError, "labels must be integers, not float32"),
        (np.zeros((4, 1), int), ValueError, "(4,), not (4, 1)"),
        (np.zeros(3, int), ValueError, "(4,), not (3,)"),
    ],
)
def test_labels_that_cannot_be(labels, error, words):
    with pytest.raises(error, match=re.escape(words)):
        training.cross_entropy(np.zeros((4, 3), np.float32), labels)


@pytest.mark.spmd
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "bool"])
def test_means_of_lanes_and_batches_are_those_of_all(dtype):
    values = np.random.default_rng(0).uniform(-90, 90, 23).astype(dtype)

    def mean(x):
        return lax.psum(training.Mean.of(x), "i")

    mapped = phalanx.pmap(mean, "i", out_axes=None)
    parts = [mapped(values[:9]), mapped(values[9:18]), mapped(values[18:])]
    whole = sum(parts, training.Mean())
    assert int(whole.count) == 23
    np.testing.assert_allclose(whole.value, np.float64(values).mean(), rtol=1e-5)


def test_a_mean_leaves_out_what_is_masked():
    mean = training.Mean.of(
        jnp.array([[1.0, jnp.nan], [3.0, 4.0]]), where=jnp.array([[True, False], [True, True]])
    )
    assert (float(mean.total), int(mean.count)) == (8.0, 3)
    assert str(training.Mean.of(jnp.ones(2000))) == "2000 of 2,000: 1"
    assert np.isnan(training.Mean().value)


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
@pytest.mark.parametrize("rows, size", [(23, 7), (24, 8), (8, 7), (9, 50), (7, 7)])
def test_batches_are_even(monkeypatch, processes, rows, size):
    def of(process):
        monkeypatch.setattr(training, "process_count", lambda: processes)
        monkeypatch.setattr(
            training, "process_rows", lambda n: np.array_split(range(n), processes)[process]
        )
        return training.even_batches(rows, size, seed=1, epoch=2)

    batches = [of(process) for process in range(processes)]
    for same in zip(*batches, strict=True):
        assert all(len(batch.rows) for batch in same)
        assert {batch.of for batch in same} == {sum(len(batch.rows) for batch in same)}
    assert sorted(np.concatenate([b.rows for of_one in batches for b in of_one])) == [*range(rows)]


def test_epochs_and_seeds_shuffle_otherwise_and_again_alike():
    def order(**options):
        return [int(i) for batch in training.even_batches(50, 8, **options) for i in batch.rows]

    assert order() == [*range(50)]
    assert order(seed=1) == order(seed=1, epoch=0)
    assert len({(*order(seed=s, epoch=e),) for s in (0, 1) for e in (0, 1)}) == 4


def test_too_few_rows_are_refused(monkeypatch):
    monkeypatch.setattr(training, "process_count", lambda: 4)
    for rows, size in ((3, 8), (8, 3)):
        with pytest.raises(ValueError, match="leave some of the 4 processes without a row"):
            training.even_batches(rows, size)
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rows": 0}, "rows must be at least 1, got 0"),
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"rows": -3}, "rows must be at least 1, got -3"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"epoch": -1}, "epoch must be at least 0, got -1"),
    ],
)
def test_numbers_that_are_too_small_are_named(given, words):
    with pytest.raises(ValueError, match=f"^training.even_batches: {words}$"):
        training.even_batches(**{"rows": 9, "size": 3, "seed": 0, **given})


@pytest.mark.parametrize("name", ["rows", "size", "seed", "epoch"])
def test_what_is_no_integer_is_named(name):
    with pytest.raises(TypeError, match=f"even_batches: {name} must be an integer, got 2.5"):
        training.even_batches(**{"rows": 9, "size": 3, "seed": 0, name: 2.5})


def test_a_state_goes_on_and_is_a_tree():
    state = training.TrainState({"w": jnp.ones(2)}, (), random.key(0))

    @phalanx.jit
    def step(state):
        return state.next(params={"w": state.params["w"] * 2}), state.step_key

    first, key = step(state)
    second, other = step(first)
    assert (int(second.step), second.params["w"].tolist()) == (2, [4.0, 4.0])
    assert key == random.fold_in(random.key(0), 0) and other == random.fold_in(random.key(0), 1)
    assert second.key == state.key
    with pytest.raises(TypeError, match="param"):
        state.next(param=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.step = 3


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: training.cross_entropy(1.0, 0), ValueError, "cross_entropy: dimension -1 is out"),
        (
            lambda: training.cross_entropy(jnp.ones((2, 3)), jnp.zeros(2, int), axis=9),
            ValueError,
            "cross_entropy: dimension 9 is out",
        ),
        (
            lambda: training.cross_entropy(jnp.ones((2, 0)), jnp.zeros(2, int)),
            ValueError,
            r"cross_entropy: logits of shape \(2, 0\) have no classes along axis -1",
        ),
        (
            lambda: training.cross_entropy(jnp.ones((2, 3)) * 1j, jnp.zeros(2, int)),
            TypeError,
            "cross_entropy: logits must be real numbers, not complex64",
        ),
        (lambda: training.Mean.of(1j), TypeError, "Mean.of: values must be real numbers"),
    ],
)
def test_what_has_no_loss_is_said(call, error, words):
    with pytest.raises(error, match=words):
        call()
