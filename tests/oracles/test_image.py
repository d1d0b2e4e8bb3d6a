"""Images sampled anew, against the peer, and against what constants and lines become."""

import jax
import jax.image
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import image, laws

SOURCE = np.random.default_rng(0)
X = SOURCE.normal(size=(2, 7, 5, 3)).astype(np.float32)
METHODS = ["linear", "cubic", "lanczos3", "lanczos5"]
SHAPES = [(2, 3, 9, 3), (1, 7, 5, 4)]


@pytest.mark.parametrize("method", ["nearest", *METHODS])
def test_resize_as_the_peer(method):
    for shape, antialias in ((SHAPES[0], True), (SHAPES[0], False), (SHAPES[1], True)):
        got = image.resize(X, shape, method, antialias)
        wanted = jax.image.resize(X, shape, method, antialias)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_scaled_and_moved_as_the_peer(method):
    scale, move = np.float32([0.7, 1.8]), np.float32([1.3, -0.6])
    options = ((2, 6, 8, 3), (1, 2), scale, move, method)
    got, wanted = (f.scale_and_translate(X, *options) for f in (image, jax.image))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_area_is_the_mean_over_a_pixel():
    x = np.arange(12.0, dtype=np.float32)
    np.testing.assert_allclose(image.resize(x, (4,), "area"), x.reshape(4, 3).mean(1))
    np.testing.assert_allclose(image.resize(x[:3], (6,), "area"), np.repeat(x[:3], 2))


def test_the_cubic_kernel_with_repeated_borders():
    """The kernel of Keys with a = -3/4, written out at each place."""
    x, new = SOURCE.normal(size=6), 11
    wanted = []
    for i in range(new):
        place = (i + 0.5) * 6 / new - 0.5
        first = int(np.floor(place)) - 1
        total = 0.0
        for j in range(first, first + 4):
            d = abs(place - j)
            near = 1.25 * d**3 - 2.25 * d**2 + 1
            far = -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
            total += x[np.clip(j, 0, 5)] * (near if d < 1 else far)
        wanted.append(total)
    got = image.resize(x.astype(np.float32), (new,), "bicubic-pytorch", antialias=False)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_dtypes_and_sizes():
    assert image.resize(jnp.arange(5), (3,), "nearest").dtype == np.int32
    assert image.resize(jnp.arange(5), (3,), "linear").dtype == np.float32
    assert image.resize(jnp.ones(5, "bfloat16"), (3,), "linear").dtype == jnp.bfloat16
    assert image.resize(jnp.ones((5, 2)), (0, 2), "linear").shape == (0, 2)
    assert image.resize(jnp.ones((0, 2)), (0, 3), "nearest").shape == (0, 3)
    np.testing.assert_allclose(image.resize(1j * X[0], (3, 5, 3), "cubic").real, 0, atol=1e-6)
    for method in image.ResizeMethod:
        np.testing.assert_allclose(image.resize(np.ones(1), (4,), method), 1, rtol=1e-6)
        np.testing.assert_allclose(image.resize(np.ones(9), (4,), method), 1, rtol=1e-6)


def test_transformed():
    resized = phalanx.jit(lambda x: image.resize(x, (3, 9), "cubic"))
    many = phalanx.vmap(resized)(X[..., 0])
    np.testing.assert_allclose(many[1], resized(X[1, ..., 0]), rtol=1e-5, atol=1e-6)
    laws.check_grads(resized, (X[0, ..., 0],), order=1)
    laws.check_grads(
        lambda s, t: image.scale_and_translate(X[0, :, 0, 0], (6,), (0,), s, t, "cubic"),
        (np.array([1.37]), np.array([0.41])), order=1,
    )  # fmt: skip


def test_what_is_refused():
    with pytest.raises(ValueError, match="length for each dimension"):
        image.resize(X, (2, 3), "linear")
    with pytest.raises(ValueError, match="'bilinaer'"):
        image.resize(X, X.shape, "bilinaer")
    with pytest.raises(ValueError, match="no samples"):
        image.resize(np.ones(0), (3,), "linear")
    with pytest.raises(ValueError, match="nearest"):
        image.scale_and_translate(X, X.shape, (1,), np.ones(1), np.ones(1), "nearest")
    with pytest.raises(ValueError, match="a scale and a translation"):
        image.scale_and_translate(X, X.shape, (1,), np.ones(2), np.ones(1), "linear")
