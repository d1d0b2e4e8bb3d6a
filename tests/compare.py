"""When results count as equal: tolerances by name, and comparisons of trees of arrays.

A test names what may have changed the last digits, not how many there are. Numbers stand in a
test where it says why they do.
"""

from typing import NamedTuple

import numpy as np

from phalanx import random, tree


class Tolerance(NamedTuple):
    """``|actual - expected| <= atol + rtol * |expected|``, element by element."""

    rtol: float
    atol: float


ROUNDED = Tolerance(2e-6, 0)  # float32: one operation, as another library rounds it
FLOAT32 = Tolerance(1e-5, 1e-6)  # float32: a few operations
SUMS = Tolerance(1e-4, 1e-5)  # float32: sums and products of matrices, in another order
FLOAT64 = Tolerance(1e-7, 1e-9)  # float64: derivatives, with sums in another order


def close(actual, expected, within=FLOAT32, *, rtol=None, atol=None):
    """Two trees have the same leaves, of the same shapes, that differ by no more than ``within``;
    ``rtol`` and ``atol`` are for what no name is."""
    rtol, atol = within.rtol if rtol is None else rtol, within.atol if atol is None else atol
    for a, e in _pairs(actual, expected):
        assert a.shape == e.shape, f"shapes {a.shape} and {e.shape}"
        np.testing.assert_allclose(a, e, rtol=rtol, atol=atol)


def close_to_scale(actual, expected, tolerance=1e-9):
    """Elements differ by little beside the largest one: what is a difference of others, and so
    nearly zero, has their errors."""
    for a, e in _pairs(actual, expected):
        assert a.shape == e.shape, f"shapes {a.shape} and {e.shape}"
        scale = tolerance * (1 + np.abs(e).max(initial=0))
        np.testing.assert_allclose(a, e, rtol=0, atol=scale)


def _pairs(actual, expected):
    """The leaves of two trees; what is beside one array, such as a list, is an array as well."""
    if hasattr(actual, "shape") or hasattr(expected, "shape"):
        return [(_elements(actual), _elements(expected))]
    leaves = map(_elements, tree.leaves(actual)), map(_elements, tree.leaves(expected))
    return zip(*leaves, strict=True)


def _elements(x):
    is_key = str(getattr(x, "dtype", "")).startswith("key")
    return np.asarray(random.key_data(x) if is_key else x)
