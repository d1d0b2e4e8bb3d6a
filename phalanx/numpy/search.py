"""Order and membership: sort, search, unique elements, sets, positions in flat order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from phalanx import ops
from phalanx.base import dtypes
from phalanx.base.dtypes import INEXACT
from phalanx.control.one_program import one_program
from phalanx.core.trace import Tracer, known_value
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import literal, remainder
from phalanx.numpy.choice import flatnonzero
from phalanx.numpy.logic import isnan
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_array,
    as_shape,
    broadcast,
    convert,
    dim,
    from_host,
    promote_arrays,
    value_of,
)
from phalanx.numpy.reductions import any as any_over
from phalanx.numpy.selection import take

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

    ``kind`` and ``order`` have no meaning.

    Args:
        axis: the axis along which to sort; None flattens the array first.

    >>> print(jnp.sort(jnp.array([3, 1, 2])))
    [1 2 3]
    """
    x, d = _line("sort", a, axis)
    (out,) = ops.sort(x, dim=d, num_keys=1, stable=stable)
    return ops.reverse(out, dims=(d,)) if descending else out


@one_program
def sort_complex(a: ArrayLike) -> Array:
    """The elements in increasing order, by real part and then by imaginary part, as complex ones.

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
        a: the elements.
        k: how many.
        axis: along which.
        mode: "largest" or "smallest".
        sorted: has no meaning: they are.

    >>> [x.tolist() for x in jnp.top_k(jnp.array([3, 1, 2, 5]), 2)]
    [[5, 3], [3, 0]]
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    x, d = _line("top_k", a, axis)
    if not 0 <= k <= x.shape[d]:
        raise ValueError(f"top_k: k must be from 0 to {x.shape[d]}, got {k}")
    if mode == "largest":
        values, places = ops.top_k(ops.move(x, d, x.ndim - 1), k=int(k))
        return ops.move(values, x.ndim - 1, d), ops.move(places, x.ndim - 1, d)
    places = ops.iota(dtype=np.dtype("int32"), shape=x.shape, dim=d)
    ordered = ops.sort(x, places, dim=d, num_keys=1, stable=True)
    values, places = (ops.slice_dim(v, 0, int(k), d) for v in ordered)
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
        axis: the axis along which to sort; None flattens the array first.
        dtype: the integer dtype of the positions.

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

    >>> int(jnp.partition(jnp.array([3, 1, 2]), 1)[1])
    2
    """
    return sort(a, axis)


@one_program
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions of the elements in the order of ``partition``.

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
        a: a vector in increasing order.
        v: the elements to look for.
        side: "left" inserts before equal elements, "right" behind them.
        sorter: positions that sort ``a``.
        method: has no meaning: the search halves the vector.

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
    index = np.dtype("int32") if line.size < 2**31 else dtypes.default_int()
    found, size = ops.full(wanted.shape, 0, index), line.size
    if not size:
        return found
    for bit in reversed(range(size.bit_length())):  # so many are known to come before
        tried = ops.add(found, literal(found, 2**bit))
        # behind the end it is the last one that is looked at, again and again
        there = take(line, ops.sub(tried, literal(found, 1)), 0, mode="clip")
        before = _less(there, wanted) if side == "left" else ops.not_(_less(wanted, there))
        found = ops.select(before, tried, found)
    return ops.min(found, literal(found, size))


def _less(x: Any, y: Any) -> Any:
    """x < y where nan is the greatest."""
    less = ops.lt(x, y)
    if x.aval.dtype not in INEXACT:
        return less
    return ops.or_(less, ops.and_(isnan(y), ops.not_(isnan(x))))


@one_program
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """The number of the interval between ``bins``, in- or decreasing, in which each x lies.

    ``right`` says that an interval includes its right edge instead of its left one.

    Args:
        bins: the edges, in ascending or descending order.
        right: whether an interval includes its right edge, and not its left one.
        method: how to search, as in ``searchsorted``.

    >>> print(jnp.digitize(jnp.array([0.5, 1.0, 9.0]), jnp.array([0.0, 1.0, 2.0])))
    [1 2 3]
    """
    edges, values = as_array("digitize", bins), as_array("digitize", x)
    if edges.ndim != 1:
        raise ValueError(f"digitize: a vector of bins is needed, got {edges.aval}")
    n = edges.size
    if not n:
        return ops.full(values.shape, 0, dtypes.default_int())
    side = "left" if right else "right"
    rising = searchsorted(edges, values, side)
    falling = searchsorted(ops.reverse(edges, dims=(0,)), values, side)
    falling = ops.sub(literal(falling, n), falling)
    ends = (ops.slice_dim(edges, i, i + 1, 0) for i in (0, n - 1))
    increasing = ops.reshape(ops.le(*ends), shape=())
    return ops.select(ops.broadcast_to(increasing, values.shape), rising, falling)


# ---- unique elements and sets ---------------------------------------------------------------


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """The distinct elements in increasing order, or the distinct slices along ``axis``.

    Args:
        ar: the elements.
        return_index: whether to return the first position of each, too.
        return_inverse: whether to return the position of each element in the result, too.
        return_counts: whether to return how often each occurs, too.
        axis: None flattens the array.
        equal_nan: whether all nan are one element.
        size: how many elements the result has. Without it ``ar`` must be known: it may not be
            traced. Missing ones are filled, those beyond are left out.
        fill_value: for missing ones; default the least element. It must be given if ``ar`` may
            have none.
        sorted: has no meaning: the result is sorted.

    >>> print(jnp.unique(jnp.array([3, 1, 3])))
    [1 3]
    """
    x = as_array("unique", ar)
    if size is None:
        return _unique_known(x, (return_index, return_inverse, return_counts), axis, equal_nan)
    d = 0 if axis is None else dim("unique", axis, x)
    moved = ops.reshape(x, shape=(x.size,)) if axis is None else ops.move(x, d, 0)
    values, first, inverse, counts = _unique_sized(moved, size, fill_value, equal_nan)
    inverse = ops.reshape(inverse, shape=x.shape) if axis is None else inverse
    every = ops.move(values, 0, d), first, inverse, counts
    wanted = (True, return_index, return_inverse, return_counts)
    out = [v for v, w in zip(every, wanted, strict=True) if w]
    return tuple(out) if len(out) > 1 else out[0]


class UniqueAll(NamedTuple):
    """What ``unique_all`` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What ``unique_counts`` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What ``unique_inverse`` returns."""

    values: Array
    inverse_indices: Array


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAll:
    """The distinct elements, the first position of each, the inverse, and how often each occurs.

    Each nan is an element of its own; see ``unique``.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    found = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueAll(*found)


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCounts:
    """The distinct elements, and how often each occurs; see ``unique_all``.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).values.tolist()
    [1, 3]
    """
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCounts(*found)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverse:
    """The distinct elements, and the position among them of each element; see ``unique_all``.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverse(*found)


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The distinct elements; see ``unique_all``.

    >>> print(jnp.unique_values(jnp.array([3, 1, 3])))
    [1 3]
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def _unique_known(x: Any, wanted: tuple[bool, bool, bool], axis: Any, equal_nan: bool) -> Any:
    known: Any = value_of("unique", x, "give size=")
    if isinstance(x, Tracer) and axis is not None:
        every: Any = np.unique(known, True, *wanted[1:], axis=axis, equal_nan=equal_nan)  # type: ignore[call-overload]
        _, first, *rest = every
        values, rest = take(x, first, axis), [first, *rest] if wanted[0] else rest
    else:
        results: Any = np.unique(known, *wanted, axis=axis, equal_nan=equal_nan)  # type: ignore[call-overload]
        chosen, *rest = results if isinstance(results, tuple) else (results,)
        values = _elements(chosen, x)
    if not rest:
        return values
    return values, *(from_host(i.astype(dtypes.default_int())) for i in rest)


def _elements(values: np.ndarray, *arrays: Any) -> Array:
    """``values``, which are elements of ``arrays``; of traced ones they keep their tangents."""
    if not any(isinstance(a, Tracer) for a in arrays):
        return from_host(values, all(a.aval.weak for a in arrays))
    pool = ops.concatenate(*[ops.reshape(a, shape=(a.size,)) for a in arrays], dim=0)
    known = np.concatenate([np.ravel(known_value(a)) for a in arrays])
    order = np.argsort(known, kind="stable")
    return take(pool, order[np.searchsorted(known, values, sorter=order)], 0)


def _unique_sized(x: Any, size: int, fill_value: Any, equal_nan: bool) -> list[Any]:
    """The distinct rows of ``x`` in order, their first places, the inverse and the counts."""
    index = dtypes.default_int()
    n = x.shape[0]
    if not n:
        return _unique_of_none(x, size, fill_value)
    rows = ops.reshape(x, shape=(n, math.prod(x.shape[1:])))
    places = ops.iota(dtype=index, shape=(n,), dim=0)
    columns = [
        ops.reshape(ops.slice_dim(rows, i, i + 1, 1), shape=(n,)) for i in range(rows.shape[1])
    ]
    *columns, origin = ops.sort(
        *columns, places, dim=0, num_keys=max(len(columns), 1), stable=True
    )
    ordered = take(x, origin, 0, mode="clip")
    is_new = places == 0
    for column in columns:
        is_new = ops.or_(is_new, _is_new(column, equal_nan))
    group = ops.cumsum(convert(is_new, index), dim=0, reverse=False)
    group = ops.sub(group, literal(group, 1))  # the number of the element, in sorted order
    starts = flatnonzero(is_new, size=size, fill_value=n)
    values = take(ordered, starts, 0, mode="clip")
    missing = ops.ge(starts, literal(starts, n))
    fill = ops.slice_dim(ordered, 0, 1, 0)
    if fill_value is not None:
        fill = convert(as_array("unique", fill_value), x.aval.dtype)
    lacking = ops.broadcast(missing, shape=values.shape, dims=(0,))
    values = ops.select(lacking, ops.broadcast_to(fill, values.shape), values)
    numbers = ops.ScatterNumbers((), (0,), (0,))
    inverse = ops.scatter(
        ops.full((n,), 0, index),
        ops.reshape(origin, shape=(n, 1)),
        group,
        numbers=numbers,
        mode="promise",
        unique_indices=True,
    )
    counts = ops.scatter_add(
        ops.full((size,), 0, index),
        ops.reshape(group, shape=(n, 1)),
        ops.full((n,), 1, index),
        numbers=numbers,
        mode="fill",
    )
    first_place = take(origin, starts, 0, mode="clip")
    first_place = ops.select(
        missing, ops.broadcast_to(ops.slice_dim(origin, 0, 1, 0), (size,)), first_place
    )
    return [values, first_place, inverse, counts]


def _unique_of_none(x: Any, size: int, fill_value: Any) -> list[Any]:
    if size and fill_value is None:
        raise ValueError(
            f"unique: {x.aval} has no element to fill {size} places with; give fill_value"
        )
    fill = convert(as_array("unique", fill_value or 0), x.aval.dtype, x.aval.weak)
    values = ops.broadcast_to(fill, (size, *x.shape[1:]))
    zeros = ops.full((size,), 0, dtypes.default_int())
    return [values, zeros, ops.full((0,), 0, dtypes.default_int()), zeros]


def _is_new(ordered: Any, equal_nan: bool) -> Any:
    """Whether each element of a sorted vector differs from the one before it."""
    n = ordered.size
    first = ops.slice_dim(ordered, 0, max(n - 1, 0), 0)
    second = ops.slice_dim(ordered, min(n, 1), n, 0)
    differs = ops.ne(first, second)
    if equal_nan and ordered.aval.dtype in INEXACT:
        differs = ops.and_(differs, ops.not_(ops.and_(isnan(first), isnan(second))))
    return ops.concatenate(ops.full((min(n, 1),), True, np.dtype(bool)), differs, dim=0)


@one_program
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is one of the ``test_elements``, or with ``invert`` none of them.

    Args:
        element: the elements.
        test_elements: those to look for.
        assume_unique: has no meaning.
        invert: whether to ask if it is none of them.
        method: "compare_all" compares with each of them; "binary_search" and "sort" put them in
            order first; "auto" does this for more than a few. Complex numbers are all compared.

    >>> print(jnp.isin(jnp.arange(4), jnp.array([1, 3])))
    [False  True False  True]
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            f"isin: method must be auto, compare_all, binary_search or sort, got {method!r}"
        )
    x, tests = promote_arrays("isin", [element, test_elements])
    tests = ops.reshape(tests, shape=(tests.size,))
    several = tests.size > (_FEW if method == "auto" else 0)
    if several and method != "compare_all" and not dtypes.is_complex(tests.aval.dtype):
        ordered = sort(tests)
        there = take(ordered, searchsorted(ordered, x), 0, mode="clip")
        matches = ops.eq(there, x)
    else:
        matches = _is_any(x, tests)
    return ops.not_(matches) if invert else matches


_FEW = 512  # as many comparisons take as long as ten steps of a search


def _is_any(x: Any, tests: Any) -> Any:
    shape = (*x.shape, tests.size)
    left = ops.broadcast(x, shape=shape, dims=tuple(range(x.ndim)))
    return any_over(ops.eq(left, ops.broadcast_to(tests, shape)), -1)


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """The distinct elements that both arrays have, in order.

    Args:
        ar1: the first array.
        ar2: the second array.
        assume_unique: promises that each array has distinct elements.
        return_indices: whether to return where each array has them first, too.
        size: how many elements the result has; without it both arrays must be known: they may
            not be traced. Missing ones are filled, those beyond are left out.
        fill_value: for missing elements; default the least of the result, or 0. The index of a
            missing element is the length of the array.

    >>> print(jnp.intersect1d(jnp.array([1, 2, 3]), jnp.array([2, 3, 4])))
    [2 3]
    """
    if size is not None:
        return _intersect_sized(ar1, ar2, return_indices, size, fill_value)
    both, known = _sets("intersect1d", ar1, ar2)
    if not return_indices:
        return _elements(np.intersect1d(*known, assume_unique=assume_unique), *both)
    values, *places = np.intersect1d(*known, assume_unique=assume_unique, return_indices=True)
    indices = (from_host(i.astype(dtypes.default_int())) for i in places)
    return _elements(values, *both), *indices


def _intersect_sized(ar1: Any, ar2: Any, return_indices: bool, size: int, fill_value: Any) -> Any:
    x, y = _flat("intersect1d", ar1, ar2)
    values, first = _distinct(x, isin(x, y), size, fill_value)
    if not return_indices:
        return values
    _, second = _distinct(y, isin(y, x), size, fill_value)
    return values, first, second


def union1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements of two arrays, in order; ``size`` and ``fill_value`` as in ``unique``.

    >>> print(jnp.union1d(jnp.array([1, 2]), jnp.array([2, 3])))
    [1 2 3]
    """
    if size is not None:
        both = ops.concatenate(*_flat("union1d", ar1, ar2), dim=0)
        return unique(both, size=size, fill_value=fill_value)
    both, known = _sets("union1d", ar1, ar2)
    return _elements(np.union1d(*known), *both)


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements of the first array that the second lacks.

    Args:
        ar1: the first array.
        ar2: the second array.
        assume_unique: promises distinct elements; those of the first keep their order.
        size: how many elements the result has; without it both arrays must be known: they may
            not be traced. Missing ones are filled, those beyond are left out.
        fill_value: for missing elements; default 0.

    >>> print(jnp.setdiff1d(jnp.array([1, 2, 3]), jnp.array([2])))
    [1 3]
    """
    if size is not None:
        x, y = _flat("setdiff1d", ar1, ar2)
        choose, fill = _chosen if assume_unique else _distinct, fill_value
        return choose(x, isin(x, y, invert=True), size, 0 if fill is None else fill)[0]
    both, known = _sets("setdiff1d", ar1, ar2)
    return _elements(np.setdiff1d(*known, assume_unique=assume_unique), *both)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements that only one of two arrays has; arguments as of ``intersect1d``.

    >>> print(jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3])))
    [1 3]
    """
    if size is not None:
        x, y = _flat("setxor1d", ar1, ar2)
        kept = ops.concatenate(isin(x, y, invert=True), isin(y, x, invert=True), dim=0)
        return _distinct(ops.concatenate(x, y, dim=0), kept, size, fill_value)[0]
    both, known = _sets("setxor1d", ar1, ar2)
    return _elements(np.setxor1d(*known, assume_unique=assume_unique), *both)


def _sets(who: str, x: Any, y: Any) -> tuple[Sequence[Any], Any]:
    """Two arrays in one dtype, and their elements."""
    both = promote_arrays(who, [x, y])
    return both, [value_of(who, v, "give size=") for v in both]


def _flat(who: str, x: Any, y: Any) -> list[Any]:
    """Two arrays in one dtype, as vectors."""
    return [ops.reshape(v, shape=(v.size,)) for v in promote_arrays(who, [x, y])]


def _distinct(x: Any, kept: Any, size: int, fill_value: Any) -> tuple[Any, Any]:
    """As ``_chosen``, each once and in order; equal elements must be kept or left out alike.

    What is missing is by default the least, or 0 where there is none.
    """
    places = ops.iota(dtype=dtypes.default_int(), shape=(x.size,), dim=0)
    ordered, origin, kept = ops.sort(x, places, kept, dim=0, num_keys=1, stable=True)
    kept = ops.and_(kept, _is_new(ordered, False))
    values, found = _chosen(ordered, kept, size, 0 if fill_value is None else fill_value)
    if fill_value is None and size:
        least = ops.broadcast_to(ops.slice_dim(values, 0, 1, 0), values.shape)
        values = ops.select(ops.lt(found, literal(found, x.size)), values, least)
    beyond = ops.full((1,), x.size, origin.aval.dtype)
    return values, take(ops.concatenate(origin, beyond, dim=0), found, 0)


def _chosen(x: Any, kept: Any, size: int, fill_value: Any) -> tuple[Any, Any]:
    """The elements of a vector that are ``kept``, filled up to ``size``, and where they stand."""
    places = flatnonzero(kept, size=size, fill_value=x.size)
    fill = convert(as_array("fill_value", fill_value), x.aval.dtype)
    return take(ops.concatenate(x, ops.reshape(fill, shape=(1,)), dim=0), places, 0), places


# ---- positions in flat order ----------------------------------------------------------------


@one_program
def unravel_index(indices: ArrayLike, shape: Any) -> tuple[Array, ...]:
    """The index in each dimension of positions in an array of ``shape``, counted row by row.

    Args:
        indices: positions in the array as a vector.
        shape: the shape of the array.

    >>> [int(i) for i in jnp.unravel_index(5, (2, 3))]
    [1, 2]
    """
    lengths = as_shape("unravel_index", shape)
    rest = as_array("unravel_index", indices)
    if not dtypes.is_integer(rest.aval.dtype):
        raise TypeError(f"unravel_index: integers are needed, got {rest.aval}")
    count = math.prod(lengths)
    rest = ops.select(ops.lt(rest, literal(rest, 0)), ops.add(rest, literal(rest, count)), rest)
    rest = ops.clamp(literal(rest, 0), rest, literal(rest, max(count - 1, 0)))
    out = []
    for n in reversed(lengths):
        size = literal(rest, max(n, 1))
        out.append(ops.rem(rest, size))
        rest = ops.div(rest, size)
    return tuple(reversed(out))


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Any,
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The position, counted row by row, of an index into an array of shape ``dims``.

    ``mode`` "clip" or "wrap" says what indices outside mean; "raise" needs known indices. The
    result is of ``dtype``, of integers; by default of that of the indices, if it holds all
    positions, else of the default one.

    Args:
        multi_index: an array of positions for each dimension.
        dims: the shape of the array that they are positions in.
        mode: what positions outside mean: "raise", which needs known ones, "wrap" or "clip".
        order: "C" counts the last dimension fastest, "F" the first.
        dtype: the integer dtype of the result.

    Raises:
        ValueError: an index is outside under "raise", or the dtype does not hold all positions.

    >>> print(jnp.ravel_multi_index((jnp.array([1]), jnp.array([2])), (2, 3)))
    [5]
    """
    lengths = as_shape("ravel_multi_index", dims)
    xs = broadcast("ravel_multi_index", [as_array("ravel_multi_index", x) for x in multi_index])
    if len(xs) != len(lengths):
        raise ValueError(
            f"ravel_multi_index: {len(lengths)} index arrays are needed, got {len(xs)}"
        )
    kind = None if dtype is None else dtypes.requested(dtype)
    if kind is not None and not dtypes.is_integer(kind):
        raise TypeError(f"ravel_multi_index: a dtype of integers is needed, got {kind}")
    if not xs:
        return ops.full((), 0, kind or dtypes.default_int())
    xs = promote_arrays("ravel_multi_index", xs)
    if not dtypes.is_integer(xs[0].aval.dtype):
        raise TypeError(f"ravel_multi_index: integers are needed, got {xs[0].aval}")
    given, last = xs[0].aval.dtype, math.prod(lengths) - 1
    if kind is None:
        kind = given if last <= dtypes.iinfo(given).max else dtypes.default_int()
    if last > dtypes.iinfo(kind).max:
        raise ValueError(
            f"ravel_multi_index: positions up to {last}, in an array of shape {lengths}, do not "
            f"fit {kind}; use a wider dtype"
        )
    if mode == "raise":
        known = [value_of("ravel_multi_index", x, "use mode='clip' or 'wrap'") for x in xs]
        flat_index = np.ravel_multi_index(tuple(known), lengths, mode="raise", order=order)  # type: ignore
        return from_host(np.asarray(flat_index).astype(kind))
    if mode not in ("clip", "wrap"):
        raise ValueError(f"ravel_multi_index: mode must be raise, clip or wrap, got {mode!r}")
    xs = [convert(x, dtypes.promote_types(given, kind)) for x in xs]
    pairs = list(zip(broadcast("ravel_multi_index", xs), lengths, strict=True))
    total: Any = None
    for x, n in pairs if order == "C" else reversed(pairs):
        clipped = mode == "clip"
        x = ops.clamp(literal(x, 0), x, literal(x, n - 1)) if clipped else remainder(x, n)
        total = x if total is None else ops.add(ops.mul(total, literal(total, n)), x)
    return convert(total, kind)
