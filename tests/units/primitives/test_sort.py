"""Sorting: the order of every dtype, companions, stability, derivatives; the k largest."""

import ml_dtypes
import numpy as np
import pytest

from phalanx import config, grad
from phalanx import primitives as ops

F32 = np.float32
ROW = {"dim": 0, "num_keys": 1, "stable": True}


def ordered(x, **params):
    return np.asarray(ops.sort(x, **{**ROW, **params})[0])


def order(x, **params):
    ids = np.arange(x.size, dtype=np.int32)
    return np.asarray(ops.sort(x, ids, **{**ROW, **params})[1])


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "int32", "uint32", "bool", "float16", "float32"]
)
def test_dtypes(dtype):
    kind = np.dtype(dtype)
    source = np.random.default_rng(0)
    x = source.integers(0, 256, 64 * kind.itemsize).astype(np.uint8).view(kind)
    x = x > 127 if dtype == "bool" else x
    assert np.array_equal(ordered(x), np.sort(x), equal_nan=kind.kind == "f")
    assert np.array_equal(order(x), np.argsort(x, kind="stable"))


def test_narrow_dtypes():
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"):
        x = np.random.default_rng(0).uniform(-7, 7, 50).astype(getattr(ml_dtypes, name))
        wide = x.astype(F32)
        assert np.array_equal(ordered(x).astype(F32), np.sort(wide)), name
        assert np.array_equal(order(x), np.argsort(wide, kind="stable")), name


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex64", "complex128"])
def test_wide_dtypes(dtype):
    x = np.random.default_rng(0).normal(size=40) * 1e6
    x = np.round(x / 1e5) * 1e5 + (1j * np.round(x % 7) if "complex" in dtype else 0)
    x = np.abs(x).astype(dtype) if dtype == "uint64" else x.astype(dtype)
    with config.override(enable_x64=True):
        assert np.array_equal(ordered(x), np.sort(x))
        assert np.array_equal(order(x), np.argsort(x, kind="stable"))


def test_special_numbers():
    negative_nan = np.array(-1, np.int32).view(F32)
    x = np.array([np.nan, 1, np.inf, negative_nan, -np.inf, -0.0, 0.0, -1], F32)
    assert np.array_equal(ordered(x), np.sort(x), equal_nan=True)
    assert order(x).tolist() == [4, 7, 5, 6, 1, 2, 0, 3]
    zeros = ordered(np.array([0.0, -0.0], F32))
    assert sorted(np.signbit(zeros).tolist()) == [False, True]


def test_several_keys():
    source = np.random.default_rng(0)
    a, b = source.integers(0, 3, 40).astype(np.int32), source.integers(0, 3, 40).astype(F32)
    b[5] = np.nan
    ids = np.arange(40, dtype=np.int32)
    found = ops.sort(a, b, ids, dim=0, num_keys=2, stable=True)[2]
    assert np.array_equal(found, np.lexsort((b, a)))


def test_errors():
    with pytest.raises(ValueError, match="sort: there is no dimension 1"):
        ops.sort(np.zeros(3, F32), **{**ROW, "dim": 1})
    with pytest.raises(ValueError, match="num_keys must be at least 1"):
        ops.sort(np.zeros(3, F32), **{**ROW, "num_keys": 2})
    with pytest.raises(TypeError, match="operands must have one shape"):
        ops.sort(np.zeros(3, F32), np.zeros(4, F32), **ROW)


def test_top_k():
    x = np.array([[1, 5, 3, 5], [4, 2, 9, 0]], F32)
    values, positions = ops.top_k(x, k=2)
    assert values.tolist() == [[5, 5], [9, 4]] and positions.tolist() == [[1, 3], [2, 0]]
    best = grad(lambda x: ops.reduce_sum(ops.top_k(x, k=2)[0], dims=(0, 1)))
    assert best(x).tolist() == [[0, 1, 0, 1], [1, 0, 1, 0]]
    with pytest.raises(ValueError, match="top_k: k must be between 0"):
        ops.top_k(x, k=5)
