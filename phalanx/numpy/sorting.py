"""Order: sort, partition, and positions in sorted arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import INEXACT
from phalanx.base.lengths import Length, integer
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.indexing import compress, take
from phalanx.numpy.logic import isnan, less
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_array,
    convert,
    dim,
    literal,
    promote_arrays,
)

# ---- sort -----------------------------------------------------------------------------------


@one_program
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements in increasing order along ``axis``, nan last; None flattens the array.

    Args:
        a: an array, or a number.
        axis: the axis along which to sort; None flattens the array first.
        kind: has no meaning: there is one algorithm, which is stable.
        order: has no meaning: arrays have no fields.
        stable: whether equal elements keep their order.
        descending: whether the largest come first.

    Returns:
        An array of the shape and dtype of ``a``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.sort(jnp.array([3, 1, 2])))
    [1 2 3]
    """
    x, d = _line("sort", a, axis)
    (out,) = ops.sort(x, dim=d, num_keys=1, stable=stable)
    return ops.reverse(out, dims=(d,)) if descending else out


@one_program
def sort_complex(a: ArrayLike) -> Array:
    """The elements in increasing order, by real part and then by imaginary part, as complex ones.

    Args:
        a: an array, or a number.

    Returns:
        Complex numbers of the shape of ``a``.

    >>> print(jnp.sort_complex(jnp.array([2, 1])))
    [1.+0.j 2.+0.j]
    """
    x = as_array("sort_complex", a)
    return sort(convert(x, dtypes.to_complex(x.aval.dtype)))


@one_program
def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """The k largest or smallest elements along ``axis``, in that order, and their positions.

    Args:
        a: an array of real numbers.
        k: how many elements, a Python integer.
        axis: the dimension along which they are compared.
        mode: "largest" or "smallest".
        sorted: has no meaning: they are.

    Returns:
        Two arrays, which are ``k`` long along ``axis``: elements of the dtype of ``a``, and int32,
        or int64 with ``enable_x64``.

    Raises:
        ValueError: ``k`` is negative, or more than there are elements; or there is no such mode.

    >>> [x.tolist() for x in jnp.top_k(jnp.array([3, 1, 2, 5]), 2)]
    [[5, 3], [3, 0]]
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    x, d = _line("top_k", a, axis)
    k = integer("top_k", "k", k)
    if not 0 <= k <= x.shape[d]:
        raise ValueError(f"top_k: k must be from 0 to {x.shape[d]}, got {k}")
    if mode == "largest":
        found = ops.top_k(ops.move(x, d, x.ndim - 1), k=k)
        values, places = (ops.move(v, x.ndim - 1, d) for v in found)
        return values, convert(places, dtypes.default_int())
    places = ops.iota(dtype=dtypes.default_int(), shape=x.shape, dim=d)
    ordered = ops.sort(x, places, dim=d, num_keys=1, stable=True)
    values, places = (ops.slice_dim(v, 0, k, d) for v in ordered)
    return values, places


@one_program
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The positions of the elements in increasing order along ``axis``; equal ones stay in order.

    They are of ``dtype``, by default int32, or int64 under ``enable_x64``.

    Args:
        a: an array, or a number.
        axis: the axis along which to sort; None flattens the array first.
        kind: has no meaning: there is one algorithm, which is stable.
        order: has no meaning: arrays have no fields.
        stable: whether equal elements keep their order.
        descending: whether the largest come first.
        dtype: the integer dtype of the positions.

    Returns:
        Integers of the shape of ``a``, int32 if ``dtype`` is None.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.argsort(jnp.array([3, 1, 2])))
    [1 2 0]
    """
    x, d = _line("argsort", a, axis)
    places = ops.iota(dtype=dtypes.default_int(), shape=x.shape, dim=d)
    if descending:  # backwards and back: so that equal elements stay in order
        x, places = (ops.reverse(v, dims=(d,)) for v in (x, places))
    _, out = ops.sort(x, places, dim=d, num_keys=1, stable=stable)
    out = ops.reverse(out, dims=(d,)) if descending else out
    return out if dtype is None else convert(out, dtypes.requested(dtype))


def _line(who: str, a: Any, axis: int | None) -> tuple[Any, int]:
    x = as_array(who, a)
    if axis is None:
        return ops.reshape(x, shape=(x.size,)), 0
    return x, dim(who, axis, x)


@one_program
def lexsort(keys: Sequence[ArrayLike], axis: int = -1, *, batch_size: int = 16) -> Array:
    """The positions in the order of the last key, where it is equal of the one before, ...

    ``batch_size`` has no meaning: all keys are compared at once.

    Args:
        keys: arrays of one shape; the last one decides first.
        axis: the axis along which to sort.
        batch_size: has no meaning.

    Returns:
        int32, of the shape of one key.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: there is no key.

    >>> print(jnp.lexsort((jnp.array([2, 1, 0]), jnp.array([0, 0, 1]))))
    [1 0 2]
    """
    if isinstance(keys, (Array, np.ndarray)):
        x = as_array("lexsort", keys)
        xs = [ops.squeeze(k, (0,)) for k in ops.split(x, (1,) * x.shape[0], 0)]
    else:
        xs = [as_array("lexsort", k) for k in keys]
    if not xs:
        raise TypeError("lexsort: at least one key is needed")
    if not xs[0].ndim:  # one element is in order
        return ops.full((), 0, dtypes.default_int())
    d = dim("lexsort", axis, xs[0])
    places = ops.iota(dtype=dtypes.default_int(), shape=xs[0].shape, dim=d)
    return ops.sort(*reversed(xs), places, dim=d, num_keys=len(xs), stable=True)[-1]


@one_program
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The elements along ``axis`` with the ``kth`` where it is in sorted order.

    Smaller ones stand before it, larger ones behind; here, all in order.

    Args:
        a: an array, or a number.
        kth: the position in the sorted order that is right; smaller elements are before it.
        axis: the axis along which it works, counted from the end if negative.

    Returns:
        An array of the shape and dtype of ``a``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> int(jnp.partition(jnp.array([3, 1, 2]), 1)[1])
    2
    """
    return sort(a, axis)


@one_program
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions of the elements in the order of ``partition``.

    Args:
        a: an array, or a number.
        kth: the position in the sorted order that is right; smaller elements are before it.
        axis: the axis along which it works, counted from the end if negative.

    Returns:
        int32, of the shape of ``a``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> int(jnp.argpartition(jnp.array([3, 1, 2]), 1)[1])
    2
    """
    return argsort(a, axis)


# ---- search ---------------------------------------------------------------------------------


@one_program
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Where each element of ``v`` would be inserted into the sorted vector ``a``.

    Args:
        a: a vector in increasing order; complex numbers by their real parts, then their
            imaginary parts.
        v: the elements to look for.
        side: "left" inserts before equal elements, "right" behind them.
        sorter: positions that sort ``a``.
        method: has no meaning: the search halves the vector.

    Returns:
        Of the shape of ``v``; int32, or int64 with ``enable_x64``.

    Raises:
        ValueError: ``a`` is no vector, or there is no such side.

    >>> print(jnp.searchsorted(jnp.array([1, 2, 3]), jnp.array([2, 5])))
    [1 3]
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    line, wanted = promote_arrays("searchsorted", [a, v])
    if line.ndim != 1:
        raise ValueError(f"searchsorted: a vector is needed, got {line.aval}")
    if sorter is not None:
        line = take(line, sorter, 0)
    found, size = ops.full(wanted.shape, 0, dtypes.default_int()), line.size
    if not size:
        return found
    bits = 31 if isinstance(size, Length) else size.bit_length()
    for bit in reversed(range(bits)):  # so many are known to come before
        tried = ops.add(found, literal(found, 2**bit))
        # behind the end it is the last one that is looked at, again and again
        there = take(line, ops.sub(tried, literal(found, 1)), 0, mode="clip")
        before = _less(there, wanted) if side == "left" else ops.not_(_less(wanted, there))
        found = ops.select(before, tried, found)
    return ops.min(found, literal(found, size))


def _less(x: Any, y: Any) -> Any:
    """x < y where nan is the greatest."""
    smaller = less(x, y)
    if x.aval.dtype not in INEXACT:
        return smaller
    return ops.and_(ops.not_(isnan(x)), ops.or_(smaller, isnan(y)))


# ---- positions in flat order ----------------------------------------------------------------


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """The elements of ``arr`` at which ``condition`` holds, as a vector; see ``compress``.

    Args:
        condition: which elements are wanted. It must be known unless ``size`` is given.
        arr: an array.
        size: how many elements the result has: missing ones are filled, others left out.
        fill_value: what they are filled with.

    Returns:
        A vector of the dtype of ``arr``.

    >>> print(jnp.extract(jnp.array([True, False, True]), jnp.array([1, 2, 3])))
    [1 3]
    """
    mask = as_array("extract", condition)
    flat = ops.reshape(mask, shape=(mask.size,))
    return compress(flat, arr, size=size, fill_value=fill_value)
