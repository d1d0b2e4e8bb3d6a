"""Operands of linear algebra, and when its results count as equal."""

import numpy as np


def drawn(shape, kind, seed=0):
    """An array of ``kind`` with elements of a normal distribution."""
    source = np.random.default_rng([seed, *shape])
    x = source.normal(size=shape)
    if np.dtype(kind).kind == "c":
        x = x + 1j * source.normal(size=shape)
    return x.astype(kind)


def exact(x):
    """``x`` with 64 bits to each part, for oracles."""
    if not np.issubdtype(x.dtype, np.inexact):
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def close(results, expected, operands):
    """Raise unless results are near to those expected, for the precision of the operands."""
    epsilon = max(np.finfo(x.dtype).eps for x in operands if x.dtype.kind in "fc")
    assert len(results) == len(expected)
    for x, y in zip(map(np.asarray, results), map(np.asarray, expected), strict=True):
        assert x.shape == y.shape
        scale = 1 + np.abs(y).max(initial=0)
        difference = np.abs(x - y).max(initial=0) / scale
        assert difference <= 2000 * epsilon, (difference / epsilon, operands[0].shape, x.dtype)
