"""Functions by platform, functions with a name, functions at positions, exchanges of slices."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.laws import check_grads

SINGLE = lax.ScatterDimensionNumbers((), (0,), (0,))


def by_platform(x):
    return lax.platform_dependent(x, tpu=jnp.cos, cpu=jnp.sin, default=jnp.tan)


def test_the_function_for_this_platform_runs():
    x = np.float32([0.5, 1.0])
    for f in (by_platform, phalanx.jit(by_platform), phalanx.vmap(by_platform)):
        np.testing.assert_allclose(f(x), np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(phalanx.pmap(phalanx.grad(by_platform))(x), np.cos(x), rtol=1e-6)
    assert lax.platform_dependent(1.0, tpu=jnp.cos, default=lambda x: x + 1) == 2


def test_each_kind_of_gpu_has_a_function_of_its_own():
    def text(*, on, **functions):
        traced = phalanx.jit(lambda x: lax.platform_dependent(x, **functions)).trace(1.0)
        return traced.lower(lowering_platforms=on).as_text()

    both = {"cuda": jnp.sin, "rocm": jnp.cos}
    assert "cosine" in text(on="rocm", **both) and "cosine" not in text(on="cuda", **both)
    assert "cosine" in text(on="rocm", gpu=jnp.sin, rocm=jnp.cos)
    assert "sine" in text(on="rocm", gpu=jnp.sin, cuda=jnp.cos)
    assert "sine" in text(on="gpu", **both)  # CUDA's, where there is no other here
    several = text(on=("rocm", "cuda"), **both)
    assert several.index("cosine") < several.index("sine ")
    with pytest.raises(NotImplementedError, match="compiled for rocm"):
        text(on="rocm", cuda=jnp.sin)


def test_a_platform_without_a_function():
    with pytest.raises(NotImplementedError, match="there is a function for tpu, and no default"):
        lax.platform_dependent(1.0, tpu=jnp.cos)
    with pytest.raises(TypeError, match="no function is given"):
        lax.platform_dependent(1.0)


def tangent(x, *, scale=None):
    return (1 if scale is None else scale) * jnp.sin(x) / jnp.cos(x)


def test_a_function_with_a_name_is_that_function():
    f = lax.composite(tangent, "my.tangent", 2)
    x = np.float32([0.5, 1.0])
    for g in (f, phalanx.jit(f), phalanx.vmap(f), phalanx.pmap(f)):
        np.testing.assert_allclose(g(x), np.tan(x), rtol=1e-6)
    np.testing.assert_allclose(f(x, scale=3), 3 * np.tan(x), rtol=1e-6)
    check_grads(f, (x,))
    text = phalanx.jit(lambda x: f(x, scale=3)).lower(x).as_text()
    assert 'stablehlo.composite "my.tangent"' in text and "scale = 3" in text
    assert "version = 2" in text
    assert "composite" not in phalanx.jit(phalanx.vmap(f)).lower(x).as_text()
    with pytest.raises(TypeError, match="the attribute scale must be a number"):
        f(x, scale=x)


@pytest.mark.parametrize("mode", ["drop", "clip"])
def test_a_function_is_applied_as_often_as_windows_cover_an_element(mode):
    x, where = np.float32([1, 2, 3, 4]), np.int32([[2], [0], [2], [9], [3]])

    def f(x):
        return lax.scatter_apply(x, where, lambda v: v * 10, SINGLE, update_shape=(5,), mode=mode)

    expected = [10, 2, 300, 40 if mode == "drop" else 400]
    np.testing.assert_array_equal(f(x), expected)
    np.testing.assert_array_equal(phalanx.vmap(f)(np.stack([x, -x]))[1], -np.float32(expected))
    np.testing.assert_array_equal(phalanx.jvp(f, (x,), (x,))[1], expected)


def test_where_it_is_not_applied_its_derivative_plays_no_part():
    def f(x):
        return lax.scatter_apply(
            x, np.int32([[1]]), jnp.sqrt, SINGLE, update_shape=(1,), unique_indices=True
        ).sum()

    np.testing.assert_array_equal(phalanx.grad(f)(np.float32([0, 4])), [1, 0.25])


N, M, SLICES = 4, 9, 2


def lanes_of_slices(lanes, source):
    """Slices of random lengths from each lane to each, that tile the results one after another."""
    sizes = source.integers(0, 3, (lanes, lanes, SLICES))
    begins = source.integers(0, N - 2, sizes.shape)
    received = sizes.transpose(1, 0, 2).reshape(lanes, -1)
    places = np.cumsum(received, 1) - received
    sent = places.reshape(lanes, lanes, SLICES).transpose(1, 0, 2)
    rows = [begins, sizes, sent, received.reshape(lanes, lanes, SLICES)]
    return [r.reshape(lanes, -1).astype(np.int32) for r in rows]


def by_loops(x, out, begins, sizes, places):
    out, lanes = out.copy(), len(x)
    for sender in range(lanes):
        for i in range(lanes * SLICES):
            at, size, to = begins[sender, i], sizes[sender, i], places[sender, i]
            out[i // SLICES, to : to + size] = x[sender, at : at + size]
    return out


@pytest.mark.parametrize("mapping", [phalanx.vmap, phalanx.pmap])
def test_slices_arrive_where_they_are_sent(mapping):
    source = np.random.default_rng(0)
    x, out = source.normal(size=(3, N, 2)), source.normal(size=(3, 12, 2))
    x, out = np.float32(x), np.float32(out)
    begins, sizes, places, received = lanes_of_slices(3, source)
    f = mapping(lambda *xs: lax.ragged_all_to_all(*xs, axis_name="i"), axis_name="i")
    found = f(x, out, begins, sizes, places, received)
    np.testing.assert_array_equal(found, by_loops(x, out, begins, sizes, places))


def test_derivatives_of_slices_go_back_where_they_came_from():
    source = np.random.default_rng(0)
    x, out = np.float32(source.normal(size=(2, N))), np.float32(source.normal(size=(2, 9)))
    rest = lanes_of_slices(2, source)
    f = phalanx.vmap(lambda *xs: lax.ragged_all_to_all(*xs, axis_name="i"), axis_name="i")
    check_grads(lambda x, out: f(x, out, *rest), (x, out), order=1)


def test_slices_within_groups():
    x = np.arange(4, dtype=np.int32)[:, None]
    one, zero = np.ones((4, 2), np.int32), np.zeros((4, 2), np.int32)
    place = np.tile(np.int32([[0], [1], [0], [1]]), (1, 2))
    f = phalanx.vmap(
        lambda x, *rest: lax.ragged_all_to_all(
            x, jnp.zeros(2, jnp.int32), *rest, axis_name="i", axis_index_groups=[[0, 1], [2, 3]]
        ),
        axis_name="i",
    )
    np.testing.assert_array_equal(f(x, zero, one, place, one), [[0, 1], [0, 1], [2, 3], [2, 3]])
