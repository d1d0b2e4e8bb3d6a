"""Optimizers against the peer, and layers against what they are made of."""

import numpy as np
import pytest
from jax import random as peer_random
from jax.example_libraries import optimizers as peer
from jax.example_libraries import stax as peer_stax

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn, random, tree
from phalanx.errors import TreeError
from phalanx.example_libraries import optimizers, stax

PARAMS = {"a": np.arange(3, dtype=np.float32), "b": np.ones((2, 2), np.float32)}
MAKERS = {
    "sgd": (0.1,), "momentum": (0.1, 0.9), "nesterov": (0.1, 0.9), "adagrad": (0.1,),
    "rmsprop": (0.1,), "rmsprop_momentum": (0.1,), "adam": (0.1,), "adamax": (0.1,), "sm3": (0.1,),
}  # fmt: skip


def trained(library, name, jit):
    init, update, get_params = getattr(library, name)(*MAKERS[name])
    state = init(PARAMS)
    for i in range(3):
        slopes = tree.map(lambda x: np.sin(np.asarray(x)), get_params(state))
        state = jit(update)(i, tree.map(lambda g, i=i: g + i, slopes), state)
    return get_params(state)


@pytest.mark.parametrize("name", MAKERS)
def test_optimizers(name):
    wanted = trained(peer, name, lambda f: f)
    for jit in (phalanx.jit, lambda f: f):
        got = trained(optimizers, name, jit)
        for key, x in wanted.items():
            np.testing.assert_allclose(got[key], x, rtol=1e-3, atol=1e-4)


def test_sizes_of_steps():
    for name, args in (
        ("polynomial_decay", (1.0, 10, 0.1, 2.0)), ("inverse_time_decay", (1.0, 10, 0.5, True)),
        ("exponential_decay", (1.0, 10, 0.5)), ("piecewise_constant", ([2, 15], [1.0, 0.5, 0.1])),
    ):  # fmt: skip
        ours, theirs = (getattr(library, name)(*args) for library in (optimizers, peer))
        for i in (0, 2, 3, 15, 20):
            np.testing.assert_allclose(ours(i), theirs(i), rtol=1e-6)
    with pytest.raises(ValueError, match="n \\+ 1"):
        optimizers.piecewise_constant([1], [2])
    with pytest.raises(TypeError, match="function"):
        optimizers.make_schedule(np.ones(2))


def test_states_and_gradients():
    init, update, get_params = optimizers.momentum(0.1, 0.9)
    state = update(0, PARAMS, init(PARAMS))
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert tree.structure(again) == tree.structure(state)
    np.testing.assert_array_equal(get_params(again)["a"], get_params(state)["a"])
    with pytest.raises(TreeError, match="structure"):
        update(0, {"a": 1.0}, state)
    for mistaken in (lambda: update(0, PARAMS, PARAMS), lambda: get_params(PARAMS)):
        with pytest.raises(TypeError, match="a state is needed"):
            mistaken()
    clipped = optimizers.clip_grads(PARAMS, 1.0)
    np.testing.assert_allclose(optimizers.l2_norm(clipped), 1, rtol=1e-6)
    assert optimizers.l2_norm(optimizers.clip_grads(PARAMS, 99.0)) == 3


def test_a_network_of_layers():
    init, apply = stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"), stax.BatchNorm(), stax.Relu,
        stax.MaxPool((2, 2), (2, 2)), stax.FanOut(2),
        stax.parallel(stax.Identity, stax.Tanh), stax.FanInSum, stax.Flatten, stax.Dense(5),
        stax.Dropout(0.5), stax.LogSoftmax,
    )  # fmt: skip
    shape, params = init(random.key(0), (-1, 8, 8, 3))
    assert shape == (-1, 5)
    x = random.normal(random.key(1), (2, 8, 8, 3))
    out = phalanx.jit(apply)(params, x, rng=random.key(2))
    np.testing.assert_allclose(jnp.exp(out).sum(-1), 1, rtol=1e-5)
    grads = phalanx.grad(lambda p: apply(p, x, rng=random.key(2))[:, 0].sum())(params)
    assert tree.structure(grads) == tree.structure(params)
    with pytest.raises(ValueError, match="rng"):
        apply(params, x)


def test_the_parameters_of_layers_are_those_of_the_peer():
    def made(library, key):
        dense = library.Dense(3)
        beside = library.serial(library.FanOut(2), library.parallel(dense, dense))
        layers = library.serial(library.Relu, dense, beside, library.FanInConcat(), dense)
        return tree.leaves(layers[0](key, (-1, 4))[1])

    for got, wanted in zip(
        made(stax, random.PRNGKey(0)), made(peer_stax, peer_random.PRNGKey(0)), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_single_layers():
    key, x = random.key(0), np.arange(24, dtype=np.float32).reshape(1, 4, 3, 2)
    shape, (w, b) = stax.ConvTranspose(5, (2, 2), (2, 2))[0](key, x.shape)
    got = stax.ConvTranspose(5, (2, 2), (2, 2))[1]((w, b), x)
    wanted = lax.conv_transpose(x, w, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    np.testing.assert_allclose(got, wanted + b, rtol=1e-5, atol=1e-5)
    assert got.shape == shape
    for pool, reduce in ((stax.SumPool, np.sum), (stax.AvgPool, np.mean), (stax.MaxPool, np.max)):
        init, apply = pool((2, 3), (2, 3))
        wanted = reduce(x.reshape(1, 2, 2, 1, 3, 2), (2, 4))
        np.testing.assert_allclose(apply((), x), wanted)
        assert init(key, (-1, 4, 3, 2))[0] == (-1, 2, 1, 2)
    init, apply = stax.BatchNorm(axis=(0, 1), center=False)
    _, params = init(key, (-1, 3, 2))
    np.testing.assert_allclose(apply(params, x[0]), nn.standardize(x[0], (0, 1)), rtol=1e-5)
    shapes = [(-1, 2), (-1, 3)]
    assert stax.FanInConcat()[0](key, shapes)[0] == (-1, 5)
    late = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
    shape, params = late[0](key, (-1, 3))
    assert shape == (-1, 6) and late[1](params, np.ones((2, 3))).shape == (2, 6)
    assert stax.Dropout(0.5, mode="test")[1]((), x) is x
