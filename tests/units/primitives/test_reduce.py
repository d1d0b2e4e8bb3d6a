"""Reductions, positions of extrema, cumulative and windowed reductions."""

import itertools

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
    enable_x64,
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
from tests.laws.slopes import along

F32 = np.float32
X = np.random.default_rng(0).uniform(-2, 2, (3, 4, 5)).astype(F32)


def total(x):
    return ops.reduce_sum(x, dims=tuple(range(x.ndim)))


# ---- reductions -------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [(), (0,), (1, 2), (0, 1, 2)])
def test_values(dims):
    np.testing.assert_allclose(ops.reduce_prod(X, dims=dims), X.prod(dims), rtol=1e-5)
    assert np.array_equal(ops.reduce_max(X, dims=dims), X.max(dims))
    assert np.array_equal(ops.reduce_min(X, dims=dims), X.min(dims))
    flags = X > 0
    assert np.array_equal(ops.reduce_and(flags, dims=dims), flags.all(dims))
    assert np.array_equal(ops.reduce_or(flags, dims=dims), flags.any(dims))
    assert np.array_equal(ops.reduce_xor(flags, dims=dims), np.logical_xor.reduce(flags, dims))


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


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_positions(dim):
    rounded = np.round(X)
    params = {"dim": dim, "index_dtype": np.dtype("int32")}
    for x in (X, rounded, rounded.astype(np.int32), X > 0):
        assert np.array_equal(ops.argmax(x, **params), x.argmax(dim))
        assert np.array_equal(ops.argmin(x, **params), x.argmin(dim))


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

CUMULATIVE = [
    (ops.cumsum, np.cumsum),
    (ops.cumprod, np.cumprod),
    (ops.cummax, np.maximum.accumulate),
    (ops.cummin, np.minimum.accumulate),
    (ops.cumlogsumexp, np.logaddexp.accumulate),
]


@pytest.mark.parametrize("op, reference", CUMULATIVE, ids=[op.name for op, _ in CUMULATIVE])
@pytest.mark.parametrize("dim", [0, 2])
def test_cumulative(op, reference, dim):
    wanted = reference(X.astype(np.float64), axis=dim)
    np.testing.assert_allclose(op(X, dim=dim, reverse=False), wanted, rtol=2e-5, atol=1e-5)
    wanted = np.flip(reference(np.flip(X.astype(np.float64), dim), axis=dim), dim)
    np.testing.assert_allclose(op(X, dim=dim, reverse=True), wanted, rtol=2e-5, atol=1e-5)


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


def windows_by_hand(x, reference, fill, window, strides, padding, base_dilation, window_dilation):
    """The definition, with loops."""
    for dim, (d, (low, high)) in enumerate(zip(base_dilation, padding, strict=True)):
        n = x.shape[dim]
        dilated = np.full((*x.shape[:dim], (n - 1) * d + 1, *x.shape[dim + 1 :]), fill, x.dtype)
        index = [np.s_[:]] * x.ndim
        index[dim] = np.s_[::d]
        dilated[tuple(index)] = x
        width = [(0, 0)] * x.ndim
        width[dim] = (max(low, 0), max(high, 0))
        x = np.pad(dilated, width, constant_values=fill)
        x = x.take(range(max(-low, 0), x.shape[dim] - max(-high, 0)), dim)
    reach = [(w - 1) * d + 1 for w, d in zip(window, window_dilation, strict=True)]
    counts = [(n - r) // s + 1 for n, r, s in zip(x.shape, reach, strides, strict=True)]
    out = np.zeros(counts, x.dtype)
    for place in itertools.product(*map(range, counts)):
        cut = tuple(
            np.s_[p * s : p * s + r : d]
            for p, s, r, d in zip(place, strides, reach, window_dilation, strict=True)
        )
        out[place] = reference(x[cut])
    return out


GEOMETRIES = [
    plain_windows((2, 3)),
    plain_windows((2, 2), strides=(2, 2)),
    plain_windows((3, 2), strides=(2, 1), padding=((1, 1), (0, 2))),
    plain_windows((2, 2), padding=((-1, 2), (1, -1)), base_dilation=(2, 3)),
    plain_windows((2, 2), strides=(1, 2), padding=((1, 0), (0, 1)), window_dilation=(2, 3)),
]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_windows(geometry):
    x = X[0]
    for op, reference, fill in (
        (ops.reduce_window_sum, np.sum, 0),
        (ops.reduce_window_max, np.max, -np.inf),
        (ops.reduce_window_min, np.min, np.inf),
    ):
        wanted = windows_by_hand(x, reference, fill, **geometry)
        np.testing.assert_allclose(op(x, **geometry), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_derivatives_of_windows(geometry):
    x, t = X[0].astype(float), X[1].astype(float)
    for op in (ops.reduce_window_sum, ops.reduce_window_max, ops.reduce_window_min):
        weights = np.cos(np.arange(np.size(op(x, **geometry))))

        def f(x, op=op, weights=weights):
            out = op(x, **geometry)
            out = ops.select(ops.is_finite(out), out, 0)  # some windows hold no element
            return total(ops.mul(ops.reshape(out, shape=(out.size,)), weights))

        with enable_x64(True):
            wanted = along(lambda x, f=f: np.asarray(f(x)), (x,), (t,))
            forward, backward = jvp(f, (x,), (t,))[1], grad(f)(x)
        assert float(forward) == pytest.approx(wanted, rel=1e-6, abs=1e-6)
        assert np.vdot(backward, t) == pytest.approx(wanted, rel=1e-6, abs=1e-6)


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
