"""Reverse, concatenate, pad, slice, iota and what is combined of them, against NumPy."""

import numpy as np
import pytest

import phalanx
from phalanx import primitives as ops
from phalanx.primitives import shape

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def linear_pair(f, x):
    """f'(x) t and its transpose applied to the same, as NumPy arrays, for t = x + 1."""
    _, tangent = phalanx.jvp(f, (x,), (x + 1,))
    _, pull = phalanx.vjp(f, x)
    (back,) = pull(tangent)
    return np.asarray(tangent), np.asarray(back)


def test_reverse():
    np.testing.assert_array_equal(ops.reverse(X, dims=(0, 2)), X[::-1, :, ::-1])


def test_concatenate():
    parts = [X, X[:, :1], X[:, :0]]
    np.testing.assert_array_equal(ops.concatenate(*parts, dim=1), np.concatenate(parts, 1))


def test_concatenate_of_one_differentiated_operand():
    tangent, back = linear_pair(lambda x: ops.concatenate(X, x, dim=0), X)
    np.testing.assert_array_equal(tangent, np.concatenate([0 * X, X + 1]))
    np.testing.assert_array_equal(back, X + 1)


@pytest.mark.parametrize(
    "config, expected",
    [
        ([(1, 0, 0)], [9, 1, 2, 3]),
        ([(0, 1, 2)], [1, 9, 9, 2, 9, 9, 3, 9]),
        ([(-1, 0, 0)], [2, 3]),
        ([(-1, -1, 1)], [9, 2, 9]),
        ([(2, -3, 0)], [9, 9]),
        ([(-3, 0, 0)], []),
        ([(-2, 4, 1)], [2, 9, 3, 9, 9, 9, 9]),
    ],
)
def test_pad(config, expected):
    x, value = np.int32([1, 2, 3]), np.int32(9)
    np.testing.assert_array_equal(ops.pad(x, value, config=tuple(config)), expected)


@pytest.mark.parametrize("config", [(1, 2, 1), (-1, 3, 2), (2, -4, 1), (-2, -1, 0), (0, 0, 0)])
def test_pad_transposes_to_where_elements_went(config):
    """<pad(x), c> = <x, ct_x> + value ct_value for every unit cotangent c."""
    x, value = np.float32([1, 2, 4, 8]), np.float32(16)
    out, pull = phalanx.vjp(lambda x, v: ops.pad(x, v, config=(config,)), x, value)
    for i, unit in enumerate(np.eye(out.shape[0], dtype=np.float32)):
        ct_x, ct_value = pull(unit)
        assert np.dot(ct_x, x) + float(ct_value) * value == np.asarray(out)[i]


def test_slice():
    found = ops.slice(X, start=(0, 1, 0), limit=(2, 3, 4), strides=(1, 1, 3))
    np.testing.assert_array_equal(found, X[:, 1:3, ::3])


@pytest.mark.parametrize("start, limit, stride", [(0, 7, 3), (1, 7, 3), (2, 6, 2), (3, 3, 2)])
def test_slice_transposes_to_zeros_around(start, limit, stride):
    x = np.arange(7, dtype=np.float32)
    _, back = linear_pair(lambda x: shape.slice_dim(x, start, limit, 0, stride), x)
    expected = np.zeros_like(x)
    expected[start:limit:stride] = (x + 1)[start:limit:stride]
    np.testing.assert_array_equal(back, expected)


def test_iota():
    found = ops.iota(dtype=np.dtype("float32"), shape=(2, 3), dim=1)
    np.testing.assert_array_equal(found, [[0, 1, 2]] * 2)


def test_combinations():
    np.testing.assert_array_equal(ops.expand_dims(X, (0, 3)), np.expand_dims(X, (0, 3)))
    np.testing.assert_array_equal(ops.squeeze(X[:1, :, :1], (0, 2)), X[0, :, 0])
    np.testing.assert_array_equal(
        ops.broadcast_to(X, (5, 2, 3, 4)), np.broadcast_to(X, (5, 2, 3, 4))
    )
    np.testing.assert_array_equal(ops.stack([X, X + 1], 1), np.stack([X, X + 1], 1))
    found = ops.split(X, (1, 2), 1)
    assert [p.shape for p in found] == [(2, 1, 4), (2, 2, 4)]
    np.testing.assert_array_equal(
        shape.merge_dims(shape.split_dim(X, 2, (2, 2)), 1), X.reshape(2, 6, 2)
    )


def test_what_changes_nothing_costs_nothing():
    assert shape.slice_dim(X, 0, 3, 1) is X
    assert shape.reorder(X, (0, 1, 2)) is X
    assert ops.broadcast_to(X, X.shape) is X


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: ops.reverse(X, dims=(3,)), ValueError, r"reverse: \(3,\) are not distinct"),
        (
            lambda: ops.concatenate(X, X[:, :2], dim=0),
            TypeError,
            r"concatenate: operands must have equal shapes but for dimension 0, "
            r"got f32\[2,3,4\] and f32\[2,2,4\]",
        ),
        (
            lambda: ops.concatenate(X, X.astype(np.int32), dim=0),
            TypeError,
            r"one dtype, got f32\[2,3,4\] and i32\[2,3,4\]",
        ),
        (lambda: ops.concatenate(dim=0), ValueError, "at least one operand"),
        (
            lambda: ops.pad(X, np.int32(0), config=((0, 0, 0),) * 3),
            TypeError,
            "scalar of its dtype",
        ),
        (lambda: ops.pad(X, np.float32(0), config=((-3, 0, 0),) * 3), ValueError, "takes more"),
        (
            lambda: ops.slice(X, start=(0, 0, 0), limit=(2, 3, 5), strides=None),
            ValueError,
            r"slice: dimension 2 of an operand f32\[2,3,4\] has no part 0:5:1",
        ),
        (
            lambda: ops.iota(dtype=np.dtype(bool), shape=(2,), dim=0),
            TypeError,
            "must be a number's, got bool",
        ),
        (lambda: shape.dimension("who", 3, 3), ValueError, "who: dimension 3 is out of bounds"),
        (lambda: shape.dimension("who", 1.0, 3), TypeError, "must be an integer, got 1.0"),
        (lambda: shape.dimensions("who", (0, -3), 3), ValueError, "must be distinct"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
