"""Running products of an associative operation, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from phalanx.base import tree
from phalanx.base.source import user_location
from phalanx.base.tree import shown
from phalanx.core.program import plain
from phalanx.core.types import ArrayType, typeof
from phalanx.lax.bodies import leaves_of
from phalanx.lax.shape import concatenate, pad, slice_in_dim
from phalanx.ops.basis import BOOL, I32, add, convert, full, move
from phalanx.ops.shape import reverse

__all__ = ["associative_scan"]
_WHO = "associative_scan"

T = TypeVar("T")  # a tree of arrays


def associative_scan(
    fn: Callable[[T, T], T], elems: T, reverse: bool = False, axis: int = 0
) -> T:
    """out[i] = x[0] * x[1] * ... * x[i] for an associative operation *, in logarithmic depth.

    Adjacent elements are combined in pairs, the pairs are scanned, and the elements between
    follow from their neighbours (Blelloch, 1990).

    Args:
        fn: from two trees of arrays to one, elementwise along ``axis``.
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
    leaves, treedef = leaves_of(elems, _WHO, "elems")
    dims = [_dim(typeof(x), axis) for x in leaves]
    rows = [move(x, d, 0) for x, d in zip(leaves, dims, strict=True)]
    lengths = {typeof(x).shape[0] for x in rows}
    if len(lengths) != 1:
        what = f"must agree, got {sorted(lengths)}" if lengths else "are needed, got no arrays"
        raise ValueError(f"{_WHO}: lengths along axis {axis} {what}, at {user_location()}")
    if reverse:
        rows = [_flipped(x) for x in rows]

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        return _checked(fn(tree.unflatten(treedef, a), tree.unflatten(treedef, b)), a, treedef)

    out = _scan_pairs(combine, rows, lengths.pop())
    if reverse:
        out = [_flipped(x) for x in out]
    return tree.unflatten(treedef, [move(x, 0, d) for x, d in zip(out, dims, strict=True)])


def _dim(kind: ArrayType, axis: int) -> int:
    if not -kind.ndim <= axis < kind.ndim:
        raise ValueError(
            f"{_WHO}: elems must have the axis {axis}, got {plain(kind)}, at {user_location()}"
        )
    return axis % kind.ndim


def _checked(result: Any, given: list[Any], treedef: tree.PyTreeDef) -> list[Any]:
    """The leaves of a combination, which must be of the types that were combined."""
    leaves_out, structure = leaves_of(result, _WHO, "the result")
    types, wanted = ([str(typeof(x)) for x in leaves] for leaves in (leaves_out, given))
    if structure != treedef or types != wanted:
        raise TypeError(
            f"{_WHO}: fn must return what it combines, {shown(treedef)} of "
            f"{', '.join(wanted)}; it returns {shown(structure)} of "
            f"{', '.join(types) or 'nothing'}, at {user_location()}"
        )
    return leaves_out


def _flipped(x: Any) -> Any:
    return reverse(x, dims=(0,))


def _scan_pairs(combine: Callable[..., Any], rows: list[Any], n: int) -> list[Any]:
    if n < 2:
        return rows
    even = [slice_in_dim(x, 0, n - 1, 2) for x in rows]
    odd = [slice_in_dim(x, 1, n, 2) for x in rows]
    at_odd = _scan_pairs(combine, combine(even, odd), n // 2)
    before = at_odd if n % 2 else [slice_in_dim(x, 0, n // 2 - 1) for x in at_odd]
    later = [slice_in_dim(x, 2, n, 2) for x in rows]
    between = combine(before, later) if n > 2 else later
    at_even = [
        concatenate([slice_in_dim(x, 0, 1), y], 0) for x, y in zip(rows, between, strict=True)
    ]
    return [_interleaved(a, b, n) for a, b in zip(at_even, at_odd, strict=True)]


def _interleaved(even: Any, odd: Any, n: int) -> Any:
    """Rows of ``even`` and ``odd`` in turn, ``n`` in all."""
    zero = full((), 0, typeof(even).dtype)
    rest = [(0, 0, 0)] * (typeof(even).ndim - 1)
    dilated = pad(even, zero, [(0, (n + 1) % 2, 1), *rest])
    shifted = pad(odd, zero, [(1, n % 2, 1), *rest])
    if typeof(even).dtype == BOOL:
        return convert(
            add(convert(dilated, dtype=I32, weak=False), convert(shifted, dtype=I32, weak=False)),
            dtype=BOOL,
            weak=False,
        )
    return add(dilated, shifted)
