"""Gather, scatter and dynamic slices against NumPy's indexing."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx import primitives as ops
from phalanx.laws import check_grads
from phalanx.primitives.index import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    canonical_mode,
    fill_value_of,
)

X = np.arange(12, dtype=np.float32).reshape(3, 4)
ROWS = GatherDimensionNumbers((1,), (0,), (0,))
INDICES = np.int32([[2], [0], [7], [2], [-1]])


def rows(x, indices, mode="clip", **hints):
    return ops.gather(x, indices, numbers=ROWS, slice_sizes=(1, 4), mode=mode, **hints)


def put(prim, x, indices, updates, mode="fill", **hints):
    return prim(x, indices, updates, numbers=ROWS.of_scatter(), mode=mode, **hints)


# ---- gather -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype, expected", [("int32", -(2**31)), ("uint8", 255), ("bool", True), ("int8", -128)]
)
def test_fill_of_other_dtypes(dtype, expected):
    found = rows(X.astype(dtype), np.int32([[9]]), "fill")
    np.testing.assert_array_equal(found, np.full((1, 4), expected, dtype))


def test_a_window_that_reaches_outside_is_filled_whole():
    numbers = GatherDimensionNumbers((1,), (), (0,))
    found = ops.gather(
        np.float32([1, 2, 3]), np.int32([[2]]), numbers=numbers, slice_sizes=(2,), mode="fill"
    )
    np.testing.assert_array_equal(found, np.full((1, 2), np.nan))


def test_narrow_indices_reach_all_of_a_long_operand():
    x = np.arange(300, dtype=np.float32)
    numbers = GatherDimensionNumbers((), (0,), (0,))
    for indices in (np.uint8([[255]]), np.int8([[127]])):
        found = ops.gather(x, indices, numbers=numbers, slice_sizes=(1,), mode="fill")
        np.testing.assert_array_equal(found, indices[0].astype(np.float32))


def test_second_derivatives_through_the_indexed():
    def square(x):
        return ops.mul(rows(x, INDICES), rows(x, INDICES))

    def total(x):
        return ops.reduce_sum(square(x), dims=(0, 1))

    _, tangent = phalanx.jvp(phalanx.grad(total), (X,), (np.ones_like(X),))
    np.testing.assert_array_equal(tangent, 2 * np.float32([2, 0, 3])[:, None].repeat(4, 1))


# ---- scatter ------------------------------------------------------------------------------------

UPDATES = np.arange(20, dtype=np.float32).reshape(5, 4) - 9.5


def test_the_derivative_follows_the_update_that_wins():
    """out = X but for rows 0 and 2; the tangent comes from the very update that is there."""
    out, tangent = phalanx.jvp(
        lambda x, u: put(ops.scatter, x, INDICES, u),
        (X, UPDATES),
        (np.zeros_like(X), np.arange(20, dtype=np.float32).reshape(5, 4)),
    )
    np.testing.assert_array_equal(np.asarray(out)[1], X[1])
    np.testing.assert_array_equal(np.asarray(tangent)[1], 0 * X[1])
    for row in (0, 2):
        np.testing.assert_array_equal(np.asarray(tangent)[row], np.asarray(out)[row] + 9.5)


def test_cotangents_of_scatter_reach_only_the_winners():
    _, pull = phalanx.vjp(lambda x, u: put(ops.scatter, x, INDICES, u), X, UPDATES)
    ct_x, ct_u = map(np.asarray, pull(np.ones_like(X)))
    np.testing.assert_array_equal(ct_x, np.float32([0, 1, 0])[:, None].repeat(4, 1))
    assert ct_u[1].tolist() == [1] * 4 and ct_u[[2, 4]].sum() == 0
    np.testing.assert_array_equal(ct_u[0] + ct_u[3], np.ones(4))


def test_an_extremum_shared_by_several_shares_its_derivative():
    x, u = np.float32([1.0, 5.0]), np.float32([1.0, 1.0, 3.0])
    numbers = ScatterDimensionNumbers((), (0,), (0,))

    def f(x, u):
        return ops.scatter_max(x, np.int32([[0], [0], [1]]), u, numbers=numbers, mode="clip")

    _, pull = phalanx.vjp(f, x, u)
    ct_x, ct_u = pull(np.float32([3.0, 1.0]))
    np.testing.assert_allclose(ct_x, [1.0, 1.0])
    np.testing.assert_allclose(ct_u, [1.0, 1.0, 0.0])


def test_products_differentiate_by_updates_only_where_none_meet():
    x, u = X + 1, np.ones((2, 4), np.float32)
    unique = np.int32([[2], [0]])

    def f(u):
        return put(ops.scatter_mul, x, unique, u, unique_indices=True)

    _, pull = phalanx.vjp(f, u)
    np.testing.assert_array_equal(pull(np.ones_like(x))[0], x[[2, 0]])
    with pytest.raises(NotImplementedError, match="pass unique_indices=True if so"):
        phalanx.vjp(lambda u: put(ops.scatter_mul, x, unique, u), u)


def test_lanes_of_indices_batch_without_repeating_the_operand():
    indices = np.stack([INDICES, INDICES[::-1]])
    found = phalanx.vmap(lambda i: rows(X, i))(indices)
    np.testing.assert_array_equal(found, X[np.clip(indices[..., 0], 0, 2)])
    program = str(phalanx.make_program(phalanx.vmap(lambda i: rows(X, i)))(indices))
    assert program.count(" = ") == 1 and "gather" in program


# ---- parameters ---------------------------------------------------------------------------------


def test_modes():
    words = ("drop", "FILL", "clip", "promise_in_bounds", ops.index.GatherScatterMode.CLIP)
    assert [canonical_mode("f", w) for w in words] == ["fill", "fill", "clip", "promise", "clip"]
    with pytest.raises(ValueError, match="f: mode must be 'clip', 'fill', 'drop'"):
        canonical_mode("f", "wrap")


def test_a_fill_of_nan_is_the_default():
    assert fill_value_of(np.dtype("float32"), float("nan")) is None
    assert fill_value_of(np.dtype("int8"), 3) == np.int8(3)


def test_numbers_are_tuples_of_ints():
    numbers = GatherDimensionNumbers([np.int64(1)], [0], [0])
    assert numbers == ROWS and hash(numbers) == hash(ROWS)


@pytest.mark.parametrize(
    "indices, numbers, sizes, error, message",
    [
        (INDICES * 1.0, ROWS, (1, 4), TypeError, r"indices must be integers, got f32\[5,1\]"),
        (INDICES[:, 0], ROWS, (1, 4), ValueError, "must hold one coordinate for each"),
        (INDICES, ROWS, (2, 4), ValueError, "at most 1 in dimensions"),
        (INDICES, ROWS, (1, 5), ValueError, "do not fit the operand"),
        (INDICES, ROWS, (1,), ValueError, "do not fit the operand"),
        (
            INDICES,
            GatherDimensionNumbers((0, 1), (0,), (0,)),
            (1, 4),
            ValueError,
            "offset_dims must name",
        ),
        (
            INDICES,
            GatherDimensionNumbers((5,), (0,), (0,)),
            (1, 4),
            ValueError,
            "must be increasing",
        ),
        (
            INDICES,
            GatherDimensionNumbers((1,), (0, 0), (0,)),
            (1, 4),
            ValueError,
            "must be distinct",
        ),
    ],
)
def test_gather_refuses(indices, numbers, sizes, error, message):
    with pytest.raises(error, match=message):
        ops.gather(
            X, indices.astype(indices.dtype), numbers=numbers, slice_sizes=sizes, mode="clip"
        )


@pytest.mark.parametrize(
    "updates, error, message",
    [
        (UPDATES.astype(np.int32), TypeError, "must have the dtype of the operand"),
        (UPDATES[:4], TypeError, r"must have the shape \(5,\) of the indices' batch dimensions"),
        (UPDATES[0], ValueError, "must have a window dimension for each"),
        (np.zeros((5, 5), np.float32), ValueError, "do not fit the operand"),
    ],
)
def test_scatter_refuses(updates, error, message):
    with pytest.raises(error, match=f"scatter_add: .*{message}"):
        put(ops.scatter_add, X, INDICES, updates)


# ---- dynamic slices -----------------------------------------------------------------------------


STARTS = [
    (s, t) for s in (-5, 0, 1, 2, 9) for t in ("int8", "int32", "uint16") if s >= 0 or t[0] == "i"
]


@pytest.mark.parametrize(("start", "dtype"), STARTS)
def test_dynamic_slices_stay_inside(start, dtype):
    x = np.arange(300, dtype=np.float32)
    inside = int(np.clip(start, 0, 298))
    s = np.dtype(dtype).type(start)
    np.testing.assert_array_equal(ops.dynamic_slice(x, s, sizes=(2,)), x[inside : inside + 2])
    expected = x.copy()
    expected[inside : inside + 2] = -1
    found = ops.dynamic_update_slice(x, np.float32([-1, -1]), s)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dim", [0, 1])
def test_lanes_with_one_start_stay_dynamic_slices(dim):
    f = phalanx.vmap(lambda x: ops.dynamic_slice(x, np.int32(1), sizes=(2,)), dim)
    assert "gather" not in str(phalanx.make_program(f)(X))
    lanes = X if dim == 0 else X.T
    np.testing.assert_array_equal(f(X), lanes[:, 1:3])


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: ops.dynamic_slice(X, 0, sizes=(1, 1)), ValueError, "needs a start and a length"),
        (lambda: ops.dynamic_slice(X, 0, 0, sizes=(1, 5)), ValueError, "length 5 does not fit dim"),
        (
            lambda: ops.dynamic_slice(X, 0, np.float32(0), sizes=(1, 1)),
            TypeError,
            "must be integer scalars",
        ),
        (
            lambda: ops.dynamic_slice(X, np.int32(0), np.int8(0), sizes=(1, 1)),
            TypeError,
            "of one dtype, got i32",
        ),
        (
            lambda: ops.dynamic_update_slice(X, X[0], 0, 0),
            TypeError,
            "must have the rank and the dtype",
        ),
    ],
)
def test_dynamic_slices_refuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- outside of the array -----------------------------------------------------------------------

OUTSIDE = np.array([0, 9, -9, -1, 4], np.int32)
READS = {
    "index": lambda x: jnp.asarray(x)[OUTSIDE],
    "point": lambda x: jnp.asarray(x)[9],
    "clip": lambda x: jnp.asarray(x).at[OUTSIDE].get(mode="clip"),
    "fill": lambda x: jnp.asarray(x).at[OUTSIDE].get(mode="fill", fill_value=2.0),
    "wrap": lambda x: jnp.take(x, OUTSIDE, mode="wrap"),
    "take": lambda x: jnp.nan_to_num(jnp.take(x, OUTSIDE)),
    "along": lambda x: jnp.nan_to_num(jnp.take_along_axis(jnp.asarray(x), OUTSIDE, 0)),
    "slice": lambda x: lax.dynamic_slice(x, (9,), (2,)),
    "before": lambda x: lax.dynamic_slice(x, (-9,), (2,)),
    "set": lambda x: jnp.asarray(x).at[OUTSIDE[1:]].set(3 * x[:4]),
    "set, clip": lambda x: jnp.asarray(x).at[OUTSIDE[1:3]].set(3 * x[:2], mode="clip"),
    "add": lambda x: jnp.asarray(x).at[OUTSIDE].add(3 * x),
    "max": lambda x: jnp.asarray(x).at[OUTSIDE[:2]].max(3 * x[:2]),
    "update": lambda x: lax.dynamic_update_slice(x, 3 * x[:2], (9,)),
}


@pytest.mark.parametrize("name", READS)
def test_derivatives_are_slopes_also_outside(name):
    """A read that is moved inside has the derivative of what it reads; one that is filled, and a
    write that is dropped, have none."""
    x = np.float32([1, 2, 4, 7, 11])
    check_grads(READS[name], (x,), order=2)
    rows = np.stack([x, x + 1])
    check_grads(lambda rows: phalanx.vmap(READS[name])(rows), (rows,), order=1)


def test_windows_of_updates_that_are_not_there_are_told():
    numbers = lax.ScatterDimensionNumbers((5,), (), (0,))
    with pytest.raises(ValueError, match=r"window dimensions must be .*below 2, got \(5,\)"):
        lax.scatter(jnp.arange(6.0), jnp.array([[4]]), jnp.ones((1, 2)), numbers)
