"""Operations on arrays without elements: what they give, and that XLA is not asked."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

NONE = np.zeros(0, np.int32)
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
ROWS_OUT = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def empty(*shape):
    return np.zeros(shape, np.float32)


def test_nothing_is_read_from_an_empty_array():
    assert lax.gather(empty(0, 3), np.zeros((0, 1), np.int32), ROWS, (1, 3)).shape == (0, 3)
    assert jnp.take(empty(0), NONE).shape == (0,)
    assert jnp.array(empty(0, 3))[NONE].shape == (0, 3)
    assert jnp.array(empty(0))[np.zeros(0, bool)].shape == (0,)
    assert phalanx.grad(lambda x: x[NONE].sum())(empty(0)).shape == (0,)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x[0],
        lambda x: x[jnp.array(0)],
        lambda x: x[np.array([0])],
        lambda x: jnp.take(x, 0),
    ],
)
def test_an_element_of_an_empty_array_is_out_of_bounds(read):
    for call in (read, phalanx.jit(read)):
        with pytest.raises(IndexError, match=r"f32\[0\]"):
            call(jnp.array(empty(0)))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_a_mask_without_elements_selects_nothing(shape):
    x, mask = np.ones((2, 3), np.float32), np.zeros(shape, bool)
    assert jnp.asarray(x)[mask].shape == x[mask].shape
    np.testing.assert_array_equal(jnp.asarray(x).at[mask].set(5.0), x)
    with pytest.raises(IndexError, match=r"a mask of shape \(0, 5\) does not fit"):
        jnp.asarray(x)[np.zeros((0, 5), bool)]


def test_nothing_is_written_where_there_is_no_place_or_no_update():
    row = np.zeros((2, 1), np.int32)
    assert lax.scatter_add(empty(0, 3), row, empty(2, 3), ROWS_OUT).shape == (0, 3)
    kept = lax.scatter(np.ones((2, 3), np.float32), row[:0], empty(0, 3), ROWS_OUT)
    np.testing.assert_array_equal(kept, np.ones((2, 3)))
    assert jnp.array(empty(0)).at[jnp.array([0, 1])].add(1.0).shape == (0,)


@pytest.mark.parametrize("lanes", ["images", "kernels", "both"])
@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}])
def test_convolutions_of_no_lanes(lanes, groups):
    features = 4 // groups.get("feature_group_count", 1)
    images, kernels = empty(2, 4, 5, 5), empty(6, features, 3, 3)
    axes = {"images": (0, None), "kernels": (None, 0), "both": (0, 0)}[lanes]
    whole = [
        empty(0, *x.shape) if a == 0 else x for x, a in zip((images, kernels), axes, strict=True)
    ]

    def f(x, k):
        return lax.conv_general_dilated(x, k, (1, 1), "SAME", **groups)

    out = phalanx.vmap(f, axes)(*whole)
    assert out.shape == (0, *phalanx.eval_shape(f, images, kernels).shape)
    gradient = phalanx.grad(lambda *args: phalanx.vmap(f, axes)(*args).sum(), (0, 1))(*whole)
    assert [g.shape for g in gradient] == [x.shape for x in whole]


def test_sums_of_nothing_are_zero():
    out = lax.conv_general_dilated(empty(1, 0, 5), empty(3, 0, 2), (1,), "VALID")
    np.testing.assert_array_equal(out, np.zeros((1, 3, 4)))


def test_operations_without_elements_are_not_written():
    text = phalanx.jit(lambda x: jnp.sort(jnp.sin(x[NONE]))).lower(empty(3)).as_text()
    assert "sort" not in text and "gather" not in text and "constant" in text


def test_effects_of_arrays_without_elements_happen():
    seen = []
    phalanx.jit(lambda x: phalanx.debug.callback(lambda y: seen.append(y.shape), x))(empty(0))
    out = phalanx.ShapeDtypeStruct((0,), np.float32)
    phalanx.jit(lambda x: phalanx.io_callback(lambda y: seen.append(y.shape) or y, out, x))(
        empty(0)
    )
    phalanx.effects_barrier()
    assert seen == [(0,), (0,)]


def test_positions_are_integers():
    with pytest.raises(TypeError, match="index_dtype must be an integer dtype, got bool"):
        lax.argmax(empty(3), 0, np.bool_)


TRANSFORMS = ["fft", "ifft", "irfft", "hfft"]


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_of_nothing_is_nothing(name, norm):
    def f(x):
        return getattr(jnp.fft, name)(x, norm=norm)

    for call in (f, phalanx.jit(f), phalanx.vmap(f)):
        assert call(empty(3, 0)).shape == (3, 0)
    slope = phalanx.grad(lambda x: abs(f(x)).sum())(empty(3, 0))
    assert slope.shape == (3, 0)


def test_a_transform_of_no_rows_is_one_of_no_rows():
    assert jnp.fft.fft2(empty(0, 4)).shape == jnp.fft.ifftn(empty(0, 4)).shape == (0, 4)
    assert jnp.fft.rfft2(empty(0, 4)).shape == (0, 3)
    assert jnp.fft.irfft2(empty(0, 3)).shape == (0, 4)
    np.testing.assert_array_equal(jnp.fft.fft(empty(2, 0), n=3), np.zeros((2, 3)))


@pytest.mark.parametrize("name", ["rfft", "ihfft", "rfft2", "rfftn"])
def test_the_frequency_that_nothing_would_have_is_not_made_up(name):
    with pytest.raises(ValueError, match=f"{name}: the lengths must be at least 1"):
        getattr(jnp.fft, name)(empty(2, 0))


@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft", "rfft", "ihfft"])
def test_nothing_is_no_length_to_ask_for(name):
    with pytest.raises(ValueError, match=rf"{name}: the lengths must be at least 1, got \(0,\)"):
        getattr(jnp.fft, name)(np.ones((2, 3), np.float32), n=0)
