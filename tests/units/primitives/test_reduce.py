"""Reductions, positions of extrema, cumulative and windowed reductions."""

import numpy as np
import pytest

import phalanx.numpy as jnp
from phalanx import (
    NamedSharding,
    P,
    ShapeDtypeStruct,
    device_count,
    device_put,
    devices,
    export,
    grad,
    jit,
    jvp,
    lax,
    make_mesh,
)
from phalanx import primitives as ops
from phalanx.errors import InconclusiveDimensionOperation
from phalanx.primitives.window import plain_windows

F32 = np.float32
X = np.random.default_rng(0).uniform(-2, 2, (3, 4, 5)).astype(F32)


def total(x):
    return ops.reduce_sum(x, dims=tuple(range(x.ndim)))


# ---- reductions -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_bitwise_reductions_of_integers(dtype):
    x = np.random.default_rng(1).integers(0, 127, (4, 3)).astype(dtype)
    for op, reference in (
        (ops.reduce_and, np.bitwise_and),
        (ops.reduce_or, np.bitwise_or),
        (ops.reduce_xor, np.bitwise_xor),
    ):
        assert np.array_equal(op(x, dims=(0,)), reference.reduce(x, 0))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "int8"])
def test_extrema_of_nothing_are_the_identities(dtype):
    from phalanx import dtypes

    empty = np.zeros((0,), dtypes.canonical(dtype))
    low = float(ops.reduce_max(empty, dims=(0,)))
    high = float(ops.reduce_min(empty, dims=(0,)))
    limits = {"int8": (-128, 127), "float8_e4m3fn": (-448, 448)}
    assert (low, high) == limits.get(dtype, (-np.inf, np.inf))


def test_nan_wins():
    x = np.array([1, np.nan, 3], F32)
    assert np.isnan(float(ops.reduce_max(x, dims=(0,))))
    assert np.isnan(float(ops.reduce_min(x, dims=(0,))))


def test_extrema_share_the_derivative_among_ties():
    x = np.array([1, 3, 3, 2], F32)
    assert grad(lambda x: ops.reduce_max(x, dims=(0,)))(x).tolist() == [0, 0.5, 0.5, 0]
    assert grad(lambda x: ops.reduce_min(-x, dims=(0,)))(x).tolist() == [0, -0.5, -0.5, 0]


@pytest.mark.parametrize("zeros", [0, 1, 2])
@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_derivative_of_a_product_with_zeros(n, zeros):
    x = np.arange(1, n + 1).astype(F32)
    x[:zeros] = 0
    wanted = [np.prod(np.delete(x, i)) for i in range(n)]
    np.testing.assert_allclose(grad(lambda x: ops.reduce_prod(x, dims=(0,)))(x), wanted, rtol=1e-6)


def test_second_derivative_of_a_product_with_zeros():
    x = np.array([0, 0, 3, 4], F32)
    first = grad(lambda x: ops.reduce_prod(x, dims=(0,)))
    _, second = jvp(first, (x,), (np.array([1, 0, 0, 0], F32),))
    assert second.tolist() == [0, 12, 0, 0]


# ---- positions --------------------------------------------------------------------------------


def test_positions_of_nan_and_infinity():
    params = {"dim": 0, "index_dtype": np.dtype("int32")}
    for x in ([1, np.nan, np.inf, np.nan], [-np.inf, -np.inf], [np.inf, np.inf]):
        x = np.array(x, F32)
        assert int(ops.argmax(x, **params)) == x.argmax()
        assert int(ops.argmin(x, **params)) == x.argmin()


@pytest.mark.spmd
@pytest.mark.parametrize("place", range(4))
def test_positions_of_nan_in_any_part(place):
    count = min(device_count(), 2)
    mesh = make_mesh((count,), ("a",), devices=devices()[:count])
    x = np.array([1, 2, 0, 3], F32)
    x[place] = np.nan
    parted = device_put(x, NamedSharding(mesh, P("a")))
    assert int(jnp.argmax(parted)) == int(jit(jnp.argmin)(parted)) == place


def test_position_in_nothing():
    with pytest.raises(ValueError, match="argmax: dimension 0 of f32\\[0\\] is empty"):
        ops.argmax(np.zeros(0, F32), dim=0, index_dtype=np.dtype("int32"))


# ---- cumulative -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 3, 1000])
def test_cumulative_lengths(n):
    x = np.arange(n, dtype=np.int32)
    assert np.array_equal(ops.cumsum(x, dim=0, reverse=False), np.cumsum(x, dtype=np.int32))


def test_cumprod_differentiates_at_zeros():
    x = np.array([2, 0, 3, 0, 5], F32)
    wanted = [1 + 0, 2 + 6 + 0 + 0, 0.0, 0.0, 0.0]
    found = grad(lambda x: total(ops.cumprod(x, dim=0, reverse=False)))(x)
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_derivative_leaves_the_running_value_as_it_is(name, reverse):
    inf, nan = np.inf, np.nan
    for x in ([-1, 0, 5, -0.0], [-0.0, -0.0, -1], [-0.0] * 5, [2, -inf, 3], [-1, nan, -0.0, inf]):
        x = np.array(x, F32)
        op = jit(lambda x: getattr(ops, name)(x, dim=0, reverse=reverse))
        wanted, found = np.asarray(op(x)), np.asarray(jvp(op, (x,), (x,))[0])
        np.testing.assert_array_equal(found, wanted)
        signs = np.signbit([found, wanted])[:, ~np.isnan(wanted)]
        assert (signs[0] == signs[1]).all(), (x, found, wanted)


@pytest.mark.parametrize("op", [ops.cummax, ops.cummin])
def test_equals_share_the_slope_of_a_running_extreme(op):
    found = grad(lambda x: op(x, dim=0, reverse=False)[3])(np.ones(6, F32))
    np.testing.assert_array_equal(found, [0.25, 0.25, 0.25, 0.25, 0, 0])


def test_slopes_of_running_results_need_a_length_in_numbers():
    n = export.symbolic_shape("n")
    with pytest.raises(InconclusiveDimensionOperation, match=r"cumprod: the length .* in numbers"):
        jit(grad(lambda x: jnp.cumprod(x).sum())).trace(ShapeDtypeStruct(n, F32))


def test_cumlogsumexp_of_nothing_yet():
    x = np.array([-np.inf, -np.inf, 0, -np.inf, 1], F32)
    found = ops.cumlogsumexp(x, dim=0, reverse=False)
    np.testing.assert_allclose(found, [-np.inf, -np.inf, 0, 0, np.logaddexp(0, 1)], rtol=1e-6)
    slopes = grad(lambda x: ops.cumlogsumexp(x, dim=0, reverse=False)[4])(x)
    np.testing.assert_allclose(slopes, [0, 0, 1 / (1 + np.e), 0, np.e / (1 + np.e)], rtol=1e-5)


# ---- windows ----------------------------------------------------------------------------------


def test_a_window_gives_its_derivative_to_the_first_maximum():
    x = np.array([0, 2, 2, 0], F32)
    pooled = grad(lambda x: total(ops.reduce_window_max(x, **plain_windows((4,)))))(x)
    assert pooled.tolist() == [0, 1, 0, 0]


def test_window_errors():
    with pytest.raises(ValueError, match="reduce_window_sum: strides must have one entry"):
        ops.reduce_window_sum(X[0], **plain_windows((2, 2), strides=(1,)))


def test_positions_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"go up to 199, but index_dtype=int8 ends at 127"):
        lax.argmax(np.zeros(200, np.float32), 0, np.int8)
