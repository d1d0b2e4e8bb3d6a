"""When two results count as equal, and the error that says where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes, tree
from phalanx.base.errors import PhalanxError
from phalanx.base.extended import is_key
from phalanx.core.types import typeof
from phalanx.primitives import random_unwrap, random_wrap


class LawBroken(PhalanxError, AssertionError):
    """A law does not hold.

    Attributes:
        who: the check, the function, and the law that is broken.
        actual: the value that was computed.
        expected: the value that the law demands.
    """

    def __init__(self, who: str, what: str, actual: Any, expected: Any) -> None:
        super().__init__(f"{who}: {what}")
        self.who = who
        self.actual = actual
        self.expected = expected


class DerivativeError(LawBroken):
    """A derivative disagrees with finite differences, or forward mode with reverse mode."""


class BatchError(LawBroken):
    """A vectorized function disagrees with a loop over its lanes."""


class PmapError(LawBroken):
    """``pmap`` of a function disagrees with ``vmap`` of it."""


class JitError(LawBroken):
    """A compiled function disagrees with the function."""


class PrimitiveError(LawBroken):
    """A rule of a primitive disagrees with what the primitive computes."""


def rounding(dtype: np.dtype) -> float:
    """The relative error that another order of the same operations may bring.

    >>> rounding(np.dtype("int32"))
    0.0
    """
    return float(dtypes.finfo(dtype).eps) ** 0.75 if dtypes.is_inexact(dtype) else 0.0


def to_numpy(x: Any) -> np.ndarray:
    """The elements of an array or a number, or the words of keys, as NumPy holds them."""
    kind = typeof(x)
    return np.asarray(random_unwrap(x) if is_key(kind.dtype) else x, kind.physical.dtype)


def of_numpy(value: np.ndarray, dtype: Any) -> Any:
    """The inverse of ``to_numpy``: an array of ``dtype``."""
    return random_wrap(value, dtype=dtype) if is_key(dtype) else value


def stacked(lanes: Sequence[Any], dim: int = 0) -> Any:
    """Arrays of one type as the lanes along a new dimension ``dim``."""
    kind = typeof(lanes[0])
    return of_numpy(np.stack(list(map(to_numpy, lanes)), dim % (kind.ndim + 1)), kind.dtype)


def wide(x: np.ndarray) -> np.ndarray:
    """``x`` in a dtype in which differences are exact enough to judge it."""
    if dtypes.is_complex(x.dtype):
        return x.astype(np.complex128)
    return x.astype(np.float64) if dtypes.is_floating(x.dtype) else x.astype(object)


def require_same(
    error: type[LawBroken],
    who: str,
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Raise ``error`` unless two trees have equal structure, types and, nearly, values.

    Args:
        error: the exception to raise.
        who: the check, the function, and the law that is broken.
        actual: a tree of arrays.
        expected: the tree that it must equal.
        rtol: the largest difference, relative to the largest element of the leaf; default by
            dtype.
        atol: the same, absolute; default ``rtol``.
    """
    leaves, treedef = tree.flatten_with_path(actual)
    wanted, expected_tree = tree.flatten(expected)
    if treedef != expected_tree:
        raise error(who, f"the structure must be {expected_tree}, got {treedef}", actual, expected)
    for (path, x), y in zip(leaves, wanted, strict=True):
        what = mismatch(x, y, rtol, atol)
        if what is not None:
            raise error(who, f"result{tree.keystr(path)}: {what}", x, y)


def mismatch(actual: Any, expected: Any, rtol: float | None, atol: float | None) -> str | None:
    """How two arrays differ, in words; None where they count as equal."""
    kind, wanted = typeof(actual), typeof(expected)
    if (kind.shape, kind.dtype) != (wanted.shape, wanted.dtype):
        return f"the type must be {wanted}, got {kind}"
    relative = rounding(kind.dtype) if rtol is None else rtol
    absolute = relative if atol is None else atol
    x, y = wide(to_numpy(actual)), wide(to_numpy(expected))
    if dtypes.is_inexact(kind.dtype):
        return _inexact_mismatch(x, y, relative, absolute)
    bad = np.argwhere(x != y)
    return _at(tuple(bad[0]), x, y, "equal") if len(bad) else None


def _inexact_mismatch(x: np.ndarray, y: np.ndarray, rtol: float, atol: float) -> str | None:
    finite = np.isfinite(x) & np.isfinite(y)
    same = finite | (x == y) | (np.isnan(x) & np.isnan(y))
    if not same.all():
        return _at(tuple(np.argwhere(~same)[0]), x, y, "equal")
    scale = np.abs(y[finite]).max(initial=0.0)
    allowed = float(atol + rtol * scale)
    error = np.where(finite, np.abs(np.where(finite, x, 0) - np.where(finite, y, 0)), 0.0)
    if not error.size or error.max() <= allowed:
        return None
    where = np.unravel_index(int(error.argmax()), error.shape)
    return _at(where, x, y, f"within {allowed:.1e}")


def _at(where: tuple[Any, ...], x: np.ndarray, y: np.ndarray, how: str) -> str:
    place = f"element {tuple(map(int, where))}" if where else "it"
    return f"{place} must be {how}: expected {y[where]}, found {x[where]}"
