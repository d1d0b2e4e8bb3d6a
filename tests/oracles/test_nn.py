"""phalanx.nn against SciPy and installed jax, and its derivatives where they are delicate."""

import numpy as np
import pytest
import scipy.special

import phalanx
import phalanx.numpy as jnp
from phalanx import grad, nn, random

jax = pytest.importorskip("jax")
F32 = np.float32
X = np.linspace(-8, 8, 41).astype(F32)
TABLE = np.random.default_rng(0).normal(size=(4, 5)).astype(F32) * 3
MASK = np.random.default_rng(1).random((4, 5)) < 0.7

ACTIVATIONS = [
    "celu",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "squareplus",
    "swish",
    "tanh",
]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    ours, theirs = getattr(nn, name), getattr(jax.nn, name)
    np.testing.assert_allclose(ours(X), theirs(X), rtol=2e-6, atol=1e-6)
    away_from_kinks = X + F32(0.01)
    slopes = phalanx.vmap(grad(lambda x: ours(x)))(away_from_kinks)
    wanted = jax.vmap(jax.grad(lambda x: theirs(x)))(away_from_kinks)
    np.testing.assert_allclose(slopes, wanted, rtol=2e-5, atol=2e-6)


def test_activations_of_integers():
    x = np.arange(-3, 4)
    assert nn.relu(x).dtype == nn.hard_tanh(x).dtype == np.int32
    unsigned = np.uint8([0, 1, 2, 255])
    np.testing.assert_array_equal(nn.hard_tanh(unsigned), np.minimum(unsigned, 1), strict=True)
    for name in set(ACTIVATIONS) - {"relu", "hard_tanh", "identity"}:
        found = getattr(nn, name)(x)
        assert found.dtype == F32, name
        np.testing.assert_allclose(found, getattr(nn, name)(x.astype(F32)), rtol=1e-6)


def test_softplus_of_complex_numbers():
    z, t = (
        np.array([0.3 + 0.2j, -0.7 + 1.1j, 2.0, -1.5 - 0.4j], "c8"),
        np.array([1, 1j, 1j, 1], "c8"),
    )
    out, slope = phalanx.jvp(nn.softplus, (z,), (t,))
    np.testing.assert_allclose(out, np.log1p(np.exp(z)), rtol=2e-6)
    np.testing.assert_allclose(slope, t / (1 + np.exp(-z)), rtol=2e-6)
    np.testing.assert_allclose(nn.log_sigmoid(z), -np.log1p(np.exp(-z)), rtol=2e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_activations_keep_the_dtype(dtype):
    x = jnp.asarray(X, dtype)
    for name in ACTIVATIONS:
        assert getattr(nn, name)(x).dtype == x.dtype, name


def test_activations_with_options():
    np.testing.assert_allclose(
        nn.gelu(X, approximate=False), X * scipy.special.ndtr(X), rtol=1e-4, atol=1e-7
    )
    for name, option in (("elu", 0.3), ("celu", 0.3), ("leaky_relu", 0.2), ("squareplus", 2.0)):
        found, wanted = getattr(nn, name)(X, option), getattr(jax.nn, name)(X, option)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(nn.glu(TABLE, 0), jax.nn.glu(TABLE, 0), rtol=1e-6)
    with pytest.raises(ValueError, match="length of axis -1 must be even"):
        nn.glu(TABLE)


def test_derivatives_at_kinks_and_far_out():
    assert float(grad(nn.relu)(0.0)) == 0.0 and float(grad(nn.relu6)(6.0)) == 0.0
    far = np.array([-1e4, -200, 0, 200, 1e4], F32)
    for name in ACTIVATIONS:
        slopes = np.asarray(phalanx.vmap(grad(getattr(nn, name)))(far))
        assert np.isfinite(slopes).all(), name
    assert np.isnan(float(nn.relu(np.nan)))


# ---- logsumexp, softmax -----------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp(axis, keepdims):
    wanted = scipy.special.logsumexp(TABLE, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(nn.logsumexp(TABLE, axis, keepdims=keepdims), wanted, rtol=1e-5)
    b = TABLE[::-1]
    log, sign = nn.logsumexp(TABLE, axis, b, keepdims, return_sign=True)
    wanted = scipy.special.logsumexp(TABLE, axis, b, keepdims, return_sign=True)
    np.testing.assert_allclose(log, wanted[0], rtol=1e-4)
    assert np.array_equal(sign, wanted[1])


@pytest.mark.parametrize("factor", [None, 2.0, [2, -1, 3], [2, -1j, 0.5 + 1j]], ids=str)
@pytest.mark.parametrize("kind", [F32, np.complex64])
def test_logsumexp_of_complex_numbers(kind, factor):
    a = np.array([1 + 2j, 2 - 0.5j, 0.3 + 3j])
    a = (a if kind is np.complex64 else a.real).astype(kind)
    b = factor if factor is None or isinstance(factor, float) else np.array(factor, np.complex64)
    for return_sign in (False, True):
        found = nn.logsumexp(a, b=b, return_sign=return_sign)
        wanted = scipy.special.logsumexp(a, b=b, return_sign=return_sign)
        for part, other in zip(np.atleast_1d(found), np.atleast_1d(wanted), strict=True):
            np.testing.assert_allclose(part, other, rtol=1e-5)
    if return_sign:
        assert found[0].dtype == F32


@pytest.mark.parametrize("factor", ["int8", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("kind", ["int8", "float16", "float32"])
def test_logsumexp_has_the_dtype_of_the_products(kind, factor):
    a, b = jnp.ones(3, kind), jnp.ones(3, factor)
    product = (b * a).dtype
    wanted = product if jnp.issubdtype(product, jnp.inexact) else F32
    assert nn.logsumexp(a, b=b).dtype == wanted


def test_logsumexp_where():
    found = nn.logsumexp(TABLE, 1, where=MASK)
    wanted = scipy.special.logsumexp(np.where(MASK, TABLE, -np.inf), 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_logsumexp_of_extremes():
    x = np.array([[-np.inf, -np.inf], [1e4, -np.inf], [np.inf, 0], [-1e4, -1e4]], F32)
    wanted = [-np.inf, 1e4, np.inf, -1e4 + np.log(2)]
    np.testing.assert_allclose(nn.logsumexp(x, 1), wanted, rtol=1e-6)
    slopes = grad(lambda x: nn.logsumexp(x, 1).sum())(x[[0, 1, 3]])
    np.testing.assert_allclose(slopes, [[0, 0], [1, 0], [0.5, 0.5]], atol=1e-6)
    assert np.isnan(float(nn.logsumexp(np.zeros(2, F32), b=np.array([1, -2], F32))))
    assert float(nn.logsumexp(np.array([0, 1e9], F32), b=np.array([1, 0], F32))) == 0.0


@pytest.mark.parametrize("axis", [0, -1, (0, 1)])
def test_softmax(axis):
    np.testing.assert_allclose(
        nn.softmax(TABLE, axis), scipy.special.softmax(TABLE, axis), rtol=1e-5
    )
    np.testing.assert_allclose(
        nn.log_softmax(TABLE, axis), scipy.special.log_softmax(TABLE, axis), rtol=1e-5
    )
    for name in ("softmax", "log_softmax"):
        ours = getattr(nn, name)(TABLE, axis, where=MASK)
        theirs = getattr(jax.nn, name)(TABLE, axis, where=MASK)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float4_e2m1fn"])
def test_softmax_of_floats_of_a_byte(dtype):
    """They are those of their numbers in float32, rounded, masked places too."""
    x = jnp.array([[0.5, 1, 2, 4], [4, 4, 1, 0]]).astype(dtype)
    mask = np.array([[True, True, False, True], [True, True, True, True]])
    wide = np.asarray(x.astype("float32"))
    for where in (None, mask):
        kept = wide if where is None else np.where(where, wide, -np.inf)
        for name in ("softmax", "log_softmax", "logsumexp"):
            got = getattr(nn, name)(x, axis=1, where=where)
            right = getattr(scipy.special, name)(kept, axis=1).astype("float32")
            np.testing.assert_array_equal(
                np.asarray(got.astype("float32")), right.astype(x.dtype).astype("float32")
            )


def test_softmax_of_large_values():
    x = np.array([1e30, 1e30, -1e30, 0], F32)
    assert nn.softmax(x).tolist() == [0.5, 0.5, 0, 0]
    slopes = grad(lambda x: nn.softmax(x)[0])(x)
    assert slopes.tolist() == [0.25, -0.25, 0, 0]
    assert nn.softmax(TABLE, where=np.zeros_like(MASK)).tolist() == np.zeros((4, 5)).tolist()


def test_softmax_is_in_the_way_of_no_fusion():
    """Its derivative keeps its result alone, and nothing stands between maximum and terms."""
    kept = phalanx.ad_checkpoint.saved_residuals(nn.softmax, TABLE)
    assert [type.shape for type, _ in kept] == [TABLE.shape]
    for f in (nn.softmax, nn.log_softmax):
        assert "is_finite" not in phalanx.jit(f).lower(TABLE).as_text()
        assert np.isnan(f(jnp.full(3, -jnp.inf))).all()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "standardize"])
def test_derivatives_of_softmax(name):
    weights = np.cos(np.arange(4)).astype(F32)
    ours, theirs = getattr(nn, name), getattr(jax.nn, name)
    found = grad(lambda x: (ours(x, axis=-1).T * weights).sum())(TABLE)
    wanted = jax.grad(lambda x: (theirs(x, axis=-1).T * weights).sum())(TABLE)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_standardize():
    np.testing.assert_allclose(
        nn.standardize(TABLE, 0), jax.nn.standardize(TABLE, 0), rtol=1e-4, atol=1e-5
    )
    found = nn.standardize(TABLE, where=MASK, epsilon=0.1)
    wanted = jax.nn.standardize(TABLE, where=MASK, epsilon=0.1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    found = nn.standardize(TABLE, mean=np.ones(5, F32), variance=np.ones(5, F32))
    np.testing.assert_allclose(found, (TABLE - 1) / np.sqrt(1 + 1e-5), rtol=1e-5)


def test_one_hot():
    x = np.array([[0, 2], [3, -1]])
    for axis in (-1, 0, 1):
        wanted = jax.nn.one_hot(x, 3, axis=axis)
        assert np.array_equal(nn.one_hot(x, 3, axis=axis), wanted)
    assert nn.one_hot(x, 3, dtype=bool).dtype == bool


# ---- initial weights --------------------------------------------------------------------------

SCALED = [
    f"{name}_{kind}"
    for name in ("glorot", "xavier", "he", "kaiming", "lecun")
    for kind in ("uniform", "normal")
]


@pytest.mark.parametrize("initializer", SCALED)  # cases of one statement
def test_scaled_initializers(initializer):
    for shape in ((30, 20), (3, 3, 4, 8)):
        ours = getattr(nn.initializers, initializer)()(random.key(3), shape)
        theirs = getattr(jax.nn.initializers, initializer)()(jax.random.key(3), shape)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_variance_scaling():
    for mode in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg"):
        args = (2.0, mode, "normal", (0, 2), 1, 3)
        ours = nn.initializers.variance_scaling(*args)(random.key(3), (3, 4, 5, 2))
        theirs = jax.nn.initializers.variance_scaling(*args)(jax.random.key(3), (3, 4, 5, 2))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    with pytest.raises(ValueError, match="mode must be one of"):
        nn.initializers.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(ValueError, match="at least two axes"):
        nn.initializers.he_normal()(random.key(0), (3,))


@pytest.mark.parametrize("name", ["uniform", "normal", "truncated_normal"])
def test_plain_initializers(name):
    ours = getattr(nn.initializers, name)(0.3)(random.key(3), (20,))
    theirs = getattr(jax.nn.initializers, name)(0.3)(jax.random.key(3), (20,))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_constant_initializers():
    key = random.key(0)
    assert nn.initializers.zeros(key, (2,)).tolist() == [0, 0]
    assert nn.initializers.ones(key, (2,), "int32").dtype == np.int32
    assert nn.initializers.constant(3)(key, (2,)).dtype == np.float32


def test_classes_that_a_dtype_does_not_hold_are_nobodys():
    labels = np.array([-1, 44, 127], np.int8)
    expected = np.arange(300) == labels[:, None]
    np.testing.assert_array_equal(nn.one_hot(jnp.asarray(labels), 300), expected)
    assert nn.one_hot(jnp.uint8(200), 300).argmax() == 200
