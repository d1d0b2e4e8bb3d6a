"""Training with reproducible lanes: the same bits on any devices, in processes, and continued."""

import textwrap

import numpy as np
import pytest

import phalanx
from tests.stories.test_processes import launch  # noqa: F401  (a fixture)

# 13 lanes: a network with dropout, of which the loss and the mean gradient are taken in the lanes
TRAINING = """
import numpy as np
import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn, random

LANES = 13
source = np.random.default_rng(0)
XS = source.normal(size=(LANES, 6, 16)).astype(np.float32)
YS = source.normal(size=(LANES, 6)).astype(np.float32)

def weights():
    source = np.random.default_rng(1)
    shapes = {"first": (16, 40), "second": (40, 32), "last": (32,)}
    return {k: source.normal(0, 0.2, s).astype(np.float32) for k, s in shapes.items()}

def loss(w, x, y, key):
    x = nn.gelu(x @ w["first"])
    x = jnp.where(random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)
    x = lax.fori_loop(0, 3, lambda _, x: jnp.tanh(x) * 1.1, x @ w["second"])
    return jnp.mean((nn.softmax(x) @ w["last"] - y) ** 2)

def step(w, x, y, key):
    key = random.fold_in(key, lax.axis_index("i"))
    value, slope = phalanx.value_and_grad(loss)(w, x, y, key)
    value, slope = lax.pmean((value, slope), "i")
    length = jnp.sqrt(sum(jnp.vdot(s, s) for s in slope.values()))
    return {k: w[k] - 0.3 * slope[k] / (1 + length) for k in w}, value

def trained(devices, state, start, stop, mine=slice(None)):
    f = phalanx.pmap(
        step, "i", in_axes=(None, 0, 0, None), out_axes=None, devices=devices, reproducible=True
    )
    w, losses = state
    for number in range(start, stop):
        w, value = f(w, XS[mine], YS[mine], random.key(number))
        losses = [*losses, np.asarray(value)]
    return w, losses

def bits(state):
    return "".join(np.asarray(x).tobytes().hex() for x in phalanx.tree.leaves(state))
"""
here: dict = {}
exec(TRAINING, here)  # the script of processes, here
trained, bits, weights = here["trained"], here["bits"], here["weights"]


@pytest.fixture(scope="module")
def alone():
    """What six steps on one device give."""
    return bits(trained(phalanx.devices()[:1], (weights(), []), 0, 6))


@pytest.mark.spmd
@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_training_on_any_number_of_devices(alone, count):
    if count > phalanx.device_count():
        pytest.skip("fewer devices")
    found = bits(trained(phalanx.devices()[:count], (weights(), []), 0, 6))
    assert found == alone


@pytest.mark.spmd
def test_a_checkpoint_is_continued_on_other_devices(alone, tmp_path):
    from phalanx.experimental import checkpoint

    state = trained(phalanx.devices(), (weights(), []), 0, 3)
    checkpoint.save(tmp_path, 3, state)
    state = checkpoint.restore(tmp_path)
    assert bits(trained(phalanx.devices()[:3], state, 3, 6)) == alone


@pytest.mark.parametrize(("count", "devices"), [(2, 3), (3, 1)])
def test_training_in_processes(launch, alone, count, devices):  # noqa: F811
    """With so many devices each, and rows that are not equally many."""
    story = """
        rows = [0, 6, 13] if count == 2 else [0, 2, 9, 13]
        mine = slice(rows[me], rows[me + 1])
        tell(bits(trained(None, (weights(), []), 0, 6, mine)))
    """
    ended = launch(count, TRAINING + textwrap.dedent(story), devices=devices)
    assert ended.status == 0, ended.output
    for me in range(count):
        assert ended.told[me] == [alone]


def test_lanes_that_are_not_reproducible_differ():
    """What is asked for is not what there is anyway."""
    x = np.random.default_rng(0).normal(size=(13, 1000)).astype(np.float32)

    def f(x):
        return phalanx.lax.psum(x * 0.1, "i")

    found = [
        np.asarray(phalanx.pmap(f, "i", devices=phalanx.devices()[:n], lanes_at_once=at_once)(x))
        for n, at_once in [(1, 1), (1, "all"), (phalanx.device_count(), "all")]
    ]
    assert any(np.any(y != found[0]) for y in found)
