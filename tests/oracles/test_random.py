"""Random numbers against those of installed jax: the same bits, in every form of use."""

import math

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import random

jax = pytest.importorskip("jax")


def same(name, *args, seed=5, **kwargs):
    """Bit for bit what jax draws for the same arguments."""
    found = getattr(random, name)(random.key(seed), *args, **kwargs)
    wanted = getattr(jax.random, name)(jax.random.key(seed), *args, **kwargs)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert np.array_equal(np.asarray(found), np.asarray(wanted))


# ---- keys -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, -1, 2**31, 2**32 - 1, 2**33 + 5, np.int32(-7), np.uint8(9)])
def test_seeds(seed):
    assert np.array_equal(random.PRNGKey(seed), jax.random.PRNGKey(seed))
    assert np.array_equal(random.key_data(random.key(seed)), random.PRNGKey(seed))


def test_seeds_of_64_bits():
    with phalanx.config.override(enable_x64=True):
        for seed in (2**33 + 5, -1, -(2**40)):
            with jax.enable_x64(True):
                wanted = np.asarray(jax.random.PRNGKey(seed))
            assert np.array_equal(random.PRNGKey(seed), wanted)
            assert np.array_equal(random.PRNGKey(jnp.asarray(seed)), wanted)


@pytest.mark.parametrize("num", [1, 2, 7, (2, 3), ()])
def test_split(num):
    wanted = jax.random.split(jax.random.PRNGKey(3), num)
    assert np.array_equal(random.split(random.PRNGKey(3), num), wanted)
    typed = random.split(random.key(3), num)
    assert isinstance(typed, phalanx.Array) and typed.shape == wanted.shape[:-1]
    assert np.array_equal(random.key_data(typed), wanted)


@pytest.mark.parametrize("data", [0, 1, 77, 2**32 - 1])
def test_fold_in(data):
    wanted = jax.random.fold_in(jax.random.PRNGKey(3), data)
    assert np.array_equal(random.fold_in(random.PRNGKey(3), data), wanted)
    assert np.array_equal(random.key_data(random.fold_in(random.key(3), data)), wanted)
    assert np.array_equal(random.fold_in(random.PRNGKey(3), jnp.uint32(data)), wanted)


def test_typed_keys_are_arrays_of_keys():
    keys = random.split(random.key(0), (2, 3))
    assert (keys.shape, keys.ndim, keys.size, len(keys)) == ((2, 3), 2, 6, 2)
    assert str(keys.dtype) == "key<fry>" and "key<fry>" in repr(keys)
    assert keys[0].shape == (3,) and keys[1, 2].shape == () and keys[:, 1:].shape == (2, 2)
    assert keys[..., 0].shape == (2,) and keys[None].shape == (1, 2, 3)
    assert keys.reshape(3, 2).shape == keys.reshape((3, -1)).shape == (3, 2)
    assert [k.shape for k in keys] == [(3,), (3,)] and keys.ravel().shape == (6,)
    assert bool((keys == random.wrap_key_data(random.key_data(keys))).all())
    with pytest.raises(IndexError, match="too many indices"):
        keys[0, 0, 0]
    with pytest.raises(TypeError, match="without dimensions"):
        len(keys[0, 0])


def test_errors():
    with pytest.raises(TypeError, match=r"uniform: a key is needed.*got 3"):
        random.uniform(3)
    with pytest.raises(TypeError, match=r"normal: a key is needed.*got f32\[2\]"):
        random.normal(np.zeros(2, np.float32))
    with pytest.raises(ValueError, match=r"a single key is needed, got keys of shape \(4,\)"):
        random.uniform(random.split(random.key(0), 4))
    with pytest.raises(ValueError, match=r"fold_in: a single key is needed.* shape \(4,\)"):
        random.fold_in(random.split(random.key(0), 4), jnp.arange(4))
    with pytest.raises(TypeError, match=r"fold_in: data must be a single integer, got i32\[4\]"):
        random.fold_in(random.key(0), jnp.arange(4))
    with pytest.raises(TypeError, match="seed must be a single integer"):
        random.key(1.5)
    with pytest.raises(TypeError, match="dtype must be a floating-point dtype"):
        random.uniform(random.key(0), (3,), "int32")
    with pytest.raises(ValueError, match=r"for broadcasting: .* requested shape \(3,\)"):
        random.uniform(random.key(0), (3,), minval=np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="without repetition"):
        random.choice(random.key(0), 3, (4,), replace=False)
    with pytest.raises(ValueError, match="impl must be"):
        random.key(0, impl="philox")
    for num in (-1, (2, -3)):
        with pytest.raises(ValueError, match="split: the lengths in a shape must not be negative"):
            random.split(random.key(0), num)


# ---- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3, 4), (0, 3)])
def test_bits(shape, dtype):
    same("bits", shape, dtype)


FLOATS = ["float32", "float16", "bfloat16"]
STANDARD = ["uniform", "normal", "gumbel", "exponential", "laplace", "logistic", "cauchy"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", STANDARD)
def test_standard_distributions(name, dtype):
    same(name, (500,), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_distributions_with_parameters(dtype):
    same("uniform", (200,), dtype, minval=-2.5, maxval=3.1)
    same("truncated_normal", -2.0, 1.5, (200,), dtype)
    same("lognormal", 0.5, (200,), dtype)


def test_parameters_that_are_arrays():
    low = np.linspace(-3, 0, 5).astype(np.float32)
    same("uniform", (4, 5), minval=low, maxval=1.0)
    same("truncated_normal", low, low + 2)
    same("bernoulli", np.linspace(0, 1, 100).astype(np.float32))


@pytest.mark.parametrize("shape", [(4, 5), (200, 5), (3, 4, 5)])
def test_numbers_between_arrays_are_the_same_in_every_program(shape):
    low = np.linspace(-3, 0, 5).astype(np.float32)
    same("uniform", shape, minval=low, maxval=low + 3.1)

    def draw(key, low):
        return random.uniform(key, shape, minval=low, maxval=low + 3.1)

    key = random.key(5)
    assert np.array_equal(phalanx.jit(draw)(key, low), draw(key, low))


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
@pytest.mark.parametrize("name", ["normal", "gumbel", "laplace"])
def test_bits_are_stored_only_where_the_compiler_rounds_as_it_suits_a_loop(name, platform):
    """Elsewhere drawing takes one loop, which writes what is drawn and nothing else."""
    draw = phalanx.jit(lambda key: getattr(random, name)(key, (100,)))
    lowered = draw.trace(random.key(0)).lower(lowering_platforms=(platform,))
    assert ("optimization_barrier" in lowered.as_text()) == (platform == "cpu")


def test_complex_normal():
    same("normal", (100,), "complex64")


@pytest.mark.parametrize("name", ["bits", "uniform", "normal"])
def test_64_bits(name):
    with phalanx.config.override(enable_x64=True), jax.enable_x64(True):
        same(name, (100,))


@pytest.mark.parametrize(
    "dtype, low, high",
    [
        ("int32", 0, 10),
        ("int32", -5, 1000000),
        ("int32", 5, 2),
        ("uint8", 0, 256),
        ("uint8", 0, 255),
        ("int8", -128, 128),
        ("int16", 3, 3),
        ("uint32", 0, 2**31 - 1),
    ],
)
def test_randint(dtype, low, high):
    same("randint", (500,), low, high, dtype)


def test_randint_over_the_whole_range():
    found = np.asarray(random.randint(random.key(0), (2000,), 0, 2**32, "uint32"))
    assert found.max() > 2**32 - 2**24 and found.min() < 2**24
    same("randint", (20,), np.arange(20, dtype=np.int32), 50)


def test_bounds_of_integers_may_be_floats_whose_fraction_is_cut():
    low, high = np.float32([-2.7, 0.0, 3.9]), np.float32([2.7, 4.7, 3.2])
    same("randint", (50, 3), low, high)
    same("randint", (50, 3), -2.7, np.float16([2.7, 4.7, 3.2]))
    found = random.randint(random.key(0), (2000,), 0, jnp.float32(1e20))
    assert found.max() > 2**31 - 2**24 and found.min() >= 0
    with pytest.raises(TypeError, match=r"maxval must be integer, got c64"):
        random.randint(random.key(0), (2,), 0, jnp.array(3j))


def test_coins():
    same("bernoulli", 0.3, (500,))
    same("bernoulli")
    same("rademacher", (100,))
    same("rademacher", (100,), "float32")


# ---- orders and choices -----------------------------------------------------------------------


def test_permutation():
    table = np.arange(12).reshape(3, 4)
    same("permutation", 10)
    same("permutation", 70_000)
    same("permutation", table)
    same("permutation", table, axis=1)
    same("permutation", table, 1, independent=True)
    same("permutation", np.float32([1, 2, 3]))


def test_choice():
    values = np.arange(20, dtype=np.float32)
    table = values.reshape(5, 4)
    p = np.float32([0.1, 0.0, 0.4, 0.2, 0.3])
    same("choice", 10, (100,))
    same("choice", 10, (5,), replace=False)
    same("choice", values, (5,), replace=False)
    same("choice", table, (3,), replace=False)
    same("choice", table, (2, 3), axis=1)
    same("choice", 5, (1000,), p=p)
    same("choice", table, (6,), p=p)
    same("choice", 5, (3,), p=p, replace=False)


def test_categorical():
    logits = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    same("categorical", logits)
    same("categorical", logits, axis=0)
    same("categorical", logits, shape=(3, 4))
    same("categorical", logits[0], shape=(200,))
    same("categorical", logits, axis=0, shape=(3, 5), replace=False)
    same("categorical", logits[..., None], axis=1, shape=(len(logits), 10))


# ---- matrices ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape, m", [((), None), ((2,), 5), ((), 2), ((3,), 0)])
def test_orthogonal(shape, m):
    same("orthogonal", 3, shape, None, m)


def test_unitary():
    same("orthogonal", 4, (), "complex64")


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_normal_vectors(method):
    cov = np.float32([[2, 0.5], [0.5, 1]])
    same("multivariate_normal", np.zeros(2), cov, (4,), method=method)
    same("multivariate_normal", np.ones((3, 2)), np.stack([cov] * 3), method=method)


def test_normal_vectors_that_are_refused():
    for mean, cov in ((np.zeros(()), np.eye(2)), (np.zeros(2), np.eye(3)), (np.zeros(2), 1.0)):
        with pytest.raises(ValueError, match=r"mean must have shape \[..., n\]"):
            random.multivariate_normal(random.key(0), mean, cov)
    with pytest.raises(ValueError, match="method must be one of"):
        random.multivariate_normal(random.key(0), np.zeros(2), np.eye(2), method="lu")


@pytest.mark.parametrize("axis", [-1, 0])
def test_orthogonal_weights(axis):
    for shape in ((4, 4), (3, 5), (2, 3, 4)):
        found = phalanx.nn.initializers.orthogonal(2.0, axis)(random.key(1), shape)
        wanted = jax.nn.initializers.orthogonal(2.0, axis)(jax.random.key(1), shape)
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(3, 4, 4), (2, 3, 2, 4), (2, 3, 3, 2, 2)])
def test_orthogonal_weights_of_convolutions(shape):
    found = phalanx.nn.initializers.delta_orthogonal(2.0)(random.key(1), shape)
    wanted = jax.nn.initializers.delta_orthogonal(2.0)(jax.random.key(1), shape)
    assert np.array_equal(found, wanted)


def test_weights_that_are_refused():
    for make, shape in (("orthogonal", (3,)), ("delta_orthogonal", (3, 4, 2)),
                        ("delta_orthogonal", (2, 2))):  # fmt: skip
        with pytest.raises(ValueError, match=make):
            getattr(phalanx.nn.initializers, make)()(random.key(0), shape)


@pytest.mark.parametrize("name", ["double_sided_maxwell", "weibull_min"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_parameters_that_are_arrays_beside_a_shape(name, shape):
    same(name, 1.5, 2.0, shape)
    same(name, np.float32([1, 2, 3]), 2.0, shape)


# ---- composition ------------------------------------------------------------------------------


def test_jit_and_vmap_draw_the_same():
    key = random.key(1)
    eager = random.normal(key, (3, 2))
    assert np.array_equal(phalanx.jit(lambda k: random.normal(k, (3, 2)))(key), eager)
    keys = random.split(key, 4)
    mapped = phalanx.vmap(lambda k: random.normal(k, (3,)))(keys)
    assert np.array_equal(mapped, np.stack([random.normal(k, (3,)) for k in keys]))
    old = phalanx.vmap(random.fold_in, in_axes=(None, 0))(random.PRNGKey(1), jnp.arange(3))
    assert np.array_equal(old, np.stack([random.fold_in(random.PRNGKey(1), i) for i in range(3)]))
    shuffled = phalanx.vmap(lambda k: random.permutation(k, 6))(keys)
    assert np.array_equal(shuffled, np.stack([random.permutation(k, 6) for k in keys]))


@pytest.mark.spmd
def test_pmap_draws_the_same():
    keys = random.split(random.key(1), 6)

    def draw(key):
        return random.normal(random.fold_in(key, phalanx.lax.axis_index("i")), (2,))

    found = phalanx.pmap(draw, axis_name="i")(keys)
    wanted = np.stack([random.normal(random.fold_in(k, i), (2,)) for i, k in enumerate(keys)])
    assert np.array_equal(found, wanted)


def test_parameters_have_derivatives():
    key = random.key(0)
    u = float(random.uniform(key))
    slope = phalanx.grad(lambda high: random.uniform(key, maxval=high))(2.0)
    assert float(slope) == pytest.approx(u)


def test_moments():
    x = np.asarray(random.normal(random.key(2), (20_000,)))
    assert abs(x.mean()) < 0.03 and abs(x.std() - 1) < 0.03
    y = np.asarray(random.logistic(random.key(2), (20_000,)))
    assert abs(y.std() - math.pi / math.sqrt(3)) < 0.05


# ---- generators of XLA ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"])
@pytest.mark.parametrize("dtype", ["uint8", "uint32"])
def test_generators_with_a_state(name, dtype):
    key = np.arange(3, 7, dtype=np.uint32)
    algorithm = phalanx.lax.RandomAlgorithm[name]
    found = phalanx.lax.rng_bit_generator(key, (5, 3), dtype, algorithm)
    wanted = jax.lax.rng_bit_generator(key, (5, 3), dtype, jax.lax.RandomAlgorithm[name])
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == y.dtype and np.array_equal(x, y)


def test_each_lane_has_a_generator_of_its_own():
    keys = np.arange(12, dtype=np.uint32).reshape(3, 4)
    found = phalanx.vmap(lambda key: phalanx.lax.rng_bit_generator(key, (5,)))(keys)
    wanted = [phalanx.lax.rng_bit_generator(key, (5,)) for key in keys]
    assert np.array_equal(found[0], [state for state, _ in wanted])
    assert np.array_equal(found[1], [bits for _, bits in wanted])


def test_generators_without_a_state():
    draw = phalanx.vmap(lambda low: phalanx.lax.rng_uniform(low, low + 1, (1000,)))
    found = np.asarray(draw(jnp.float32([0, 5])))
    assert ((found >= [[0], [5]]) & (found <= [[1], [6]])).all()
    assert np.abs(found.mean(1) - [0.5, 5.5]).max() < 0.1
    assert not np.array_equal(found[0], found[1] - 5)
