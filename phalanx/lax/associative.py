"""Running products of an associative operation, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from phalanx.base import tree
from phalanx.base.errors import InconclusiveDimensionOperation
from phalanx.base.lengths import symbolic
from phalanx.base.source import user_location
from phalanx.base.tree import shown
from phalanx.core.types import ArrayType, typeof
from phalanx.lax.bodies import check_functions, leaves_of
from phalanx.lax.shape import concatenate
from phalanx.lax.slicing import slice_in_dim
from phalanx.primitives.cumulative import interleaved
from phalanx.primitives.shape import reverse as flip

__all__ = ["associative_scan"]
_WHO = "associative_scan"

T = TypeVar("T")  # a tree of arrays


def associative_scan(fn: Callable[[T, T], T], elems: T, reverse: bool = False, axis: int = 0) -> T:
    """A prefix scan x[0] * x[1] * ... * x[i] by an associative operation *, in logarithmic depth.

    Adjacent elements are combined in pairs, the pairs are scanned, and the elements between
    follow from their neighbours (Blelloch, 1990).

    Args:
        fn: from two trees of arrays to one, elementwise along ``axis``. It is given parts of
            ``elems``, which are shorter along that axis.
        elems: a tree of arrays of equal length along ``axis``.
        reverse: whether to start from the end: out[i] = x[-1] * x[-2] * ... * x[i].
        axis: the dimension to scan over.

    Returns:
        A tree like ``elems``.

    Raises:
        ValueError: an array lacks the axis, or is of another length there.
        TypeError: ``fn`` returns another structure or other types than it is given.

    >>> import phalanx.numpy as jnp
    >>> associative_scan(lambda a, b: a * b, jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    check_functions(_WHO, fn)
    leaves, treedef = leaves_of(elems, _WHO, "elems")
    dims = [_dim(typeof(x), axis) for x in leaves]
    lengths = {typeof(x).shape[d] for x, d in zip(leaves, dims, strict=True)}
    if len(lengths) != 1:  # "same first dimension" is the field's, for matching
        what = f"got lengths {sorted(lengths)}" if lengths else "got no arrays"
        raise ValueError(
            f"{_WHO}: arrays of the same first dimension, along axis {axis}, are needed, {what}, "
            f"at {user_location()}"
        )

    (length,) = lengths
    if symbolic((length,)):
        raise InconclusiveDimensionOperation(
            f"{_WHO}: elems have the symbolic length {length} along axis {axis}, and how often "
            "pairs are combined follows from its number; cumsum, cumprod, cummax, cummin and "
            f"cumlogsumexp take any length, and so does lax.scan, at {user_location()}"
        )

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        return _checked(fn(tree.unflatten(treedef, a), tree.unflatten(treedef, b)), a, treedef)

    def turned(rows: list[Any]) -> list[Any]:
        return [flip(x, dims=(d,)) if reverse else x for x, d in zip(rows, dims, strict=True)]

    out = _scan_pairs(combine, turned(leaves), dims, length)
    return tree.unflatten(treedef, turned(out))


def _dim(kind: ArrayType, axis: int) -> int:
    if not -kind.ndim <= axis < kind.ndim:
        raise ValueError(
            f"{_WHO}: elems must have the axis {axis}, got {kind}, at {user_location()}"
        )
    return axis % kind.ndim


def _checked(result: Any, expected: list[Any], treedef: tree.PyTreeDef) -> list[Any]:
    """The leaves of a combination, which must be of the types that were combined."""
    leaves_out, structure = leaves_of(result, _WHO, "the result")
    types, wanted = ([str(typeof(x)) for x in leaves] for leaves in (leaves_out, expected))
    if structure != treedef or types != wanted:
        raise TypeError(
            f"{_WHO}: fn must return what it combines, {shown(treedef)} of "
            f"{', '.join(wanted)}; it returns {shown(structure)} of "
            f"{', '.join(types) or 'nothing'}, at {user_location()}"
        )
    return leaves_out


def _scan_pairs(combine: Callable[..., Any], rows: list[Any], dims: list[int], n: int) -> list[Any]:
    """The scan of ``n`` rows, which lie along ``dims``."""

    def part(of: list[Any], *bounds: int) -> list[Any]:
        return [slice_in_dim(x, *bounds, axis=d) for x, d in zip(of, dims, strict=True)]

    if n < 2:
        return rows
    at_odd = _scan_pairs(
        combine, combine(part(rows, 0, n - 1, 2), part(rows, 1, n, 2)), dims, n // 2
    )
    before = at_odd if n % 2 else part(at_odd, 0, n // 2 - 1)
    later = part(rows, 2, n, 2)
    between = combine(before, later) if n > 2 else later
    return [
        interleaved(concatenate([first, x], d), odd, d)
        for first, x, odd, d in zip(part(rows, 0, 1), between, at_odd, dims, strict=True)
    ]
