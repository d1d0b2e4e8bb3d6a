"""Checksums of values that processes compare."""

import ml_dtypes
import numpy as np
import pytest

from phalanx.run.replicas import Replica, digest

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def test_a_digest_is_of_elements_in_order_wherever_they_lie():
    apart = np.zeros((8, 12), np.float32)
    apart[::2, ::2] = X
    for same in (X.copy(), np.asfortranarray(X), apart[::2, ::2]):
        assert digest(same) == digest(X)
    for other in (X[::-1], X[:, ::-1], X.T, -X, np.where(X == 5, np.nan, X)):
        assert digest(other) != digest(X)


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float8_e4m3fn", "complex64", "uint64"])
def test_a_digest_is_of_any_dtype(dtype):
    one, other = np.array([0, 1, 1]).astype(dtype), np.array([1, 0, 1]).astype(dtype)
    assert digest(one) == digest(one.copy()) != digest(other)
    assert digest(one[:0]) == digest(other[:0])


def test_a_nan_is_its_bits():
    one, other = np.uint32([0x7FC00000, 0x7FC00001]).view(np.float32)
    assert digest(np.array(one)) == digest(np.array(one)) != digest(np.array(other))


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint2])
def test_bits_beside_those_of_narrow_integers_do_not_count(dtype):
    clean = np.array([1, 0, 1], np.uint8)
    assert digest((clean | 0xF0).view(dtype)) == digest(clean.view(dtype))


def test_an_element_is_told_by_its_place_in_the_whole():
    part = Replica(0, "w", "part", lambda: X[2:, 3:], start=(2, 3), rank=2)
    assert part.element(4)[:2] == ["w[3, 4]", "22.0"]
    words = Replica(0, "keys", "", lambda: np.arange(6).reshape(3, 2), rank=1)
    assert words.element(3)[:2] == ["keys[1]", "3"]
