"""Reverse, concatenate, pad, slice, iota and what is combined of them, against NumPy."""

import numpy as np
import pytest

from phalanx import primitives as ops
from phalanx.primitives import shape

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


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
