"""Unique elements, and arrays as sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, cast, overload

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import INEXACT
from phalanx.base.kinds import TUPLE
from phalanx.base.lengths import integer, larger, smaller, symbolic
from phalanx.control.one_program import one_program
from phalanx.core.trace import Tracer, known_value
from phalanx.core.types import Array
from phalanx.numpy.indexing import take
from phalanx.numpy.logic import isnan
from phalanx.numpy.promotion import (
    ArrayLike,
    as_array,
    convert,
    dim,
    from_host,
    literal,
    promote_arrays,
    value_of,
)
from phalanx.numpy.reductions import any as any_over
from phalanx.numpy.searching import flatnonzero
from phalanx.numpy.sorting import searchsorted, sort


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array: ...
@overload
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
) -> Any: ...
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

    Returns:
        The distinct elements, a vector, or along ``axis``. What else is asked for follows in a
        tuple: the first position of each, the inverse, how often each occurs.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.unique(jnp.array([3, 1, 3])))
    [1 3]
    """
    x = as_array("unique", ar)
    axis = None if axis is None else dim("unique", axis, x)
    if size is None:
        return _unique_known(x, (return_index, return_inverse, return_counts), axis, equal_nan)
    d = axis or 0
    moved = ops.reshape(x, shape=(x.size,)) if axis is None else ops.move(x, d, 0)
    wanted = integer("unique", "size", size)
    values, first, inverse, counts = _unique_sized(moved, wanted, fill_value, equal_nan)
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

    Args:
        x: an array, or a number.
        size: how many elements the result has. Without it ``x`` must be known: it may not be
            traced. Missing ones are filled, those beyond are left out.
        fill_value: for missing ones; default the least element. It must be given if ``x`` may have
            none.

    Returns:
        A named tuple: ``values``, ``indices``, ``inverse_indices``, ``counts``.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    found = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueAll(*found)


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCounts:
    """The distinct elements, and how often each occurs; see ``unique_all``.

    Args:
        x: an array, or a number.
        size: how many elements the result has. Without it ``x`` must be known: it may not be
            traced. Missing ones are filled, those beyond are left out.
        fill_value: for missing ones; default the least element. It must be given if ``x`` may have
            none.

    Returns:
        A named tuple: ``values``, ``counts``.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).values.tolist()
    [1, 3]
    """
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCounts(*found)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverse:
    """The distinct elements, and the position among them of each element; see ``unique_all``.

    Args:
        x: an array, or a number.
        size: how many elements the result has. Without it ``x`` must be known: it may not be
            traced. Missing ones are filled, those beyond are left out.
        fill_value: for missing ones; default the least element. It must be given if ``x`` may have
            none.

    Returns:
        A named tuple: ``values``, ``inverse_indices``.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverse(*found)


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The distinct elements; see ``unique_all``.

    Args:
        x: an array, or a number.
        size: how many elements the result has. Without it ``x`` must be known: it may not be
            traced. Missing ones are filled, those beyond are left out.
        fill_value: for missing ones; default the least element. It must be given if ``x`` may have
            none.

    Returns:
        A vector, of length ``size`` if that is given.

    >>> print(jnp.unique_values(jnp.array([3, 1, 3])))
    [1 3]
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


_unique = cast(Callable[..., Any], np.unique)  # typed for constants


def _unique_known(x: Any, wanted: tuple[bool, bool, bool], axis: Any, equal_nan: bool) -> Any:
    known: Any = value_of("unique", x, "give size=")
    if isinstance(x, Tracer) and axis is not None:
        every = _unique(known, True, *wanted[1:], axis=axis, equal_nan=equal_nan)
        _, first, *rest = every
        values, rest = take(x, first, axis), [first, *rest] if wanted[0] else rest
    else:
        results = _unique(known, *wanted, axis=axis, equal_nan=equal_nan)
        chosen, *rest = results if isinstance(results, TUPLE) else (results,)
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
    *columns, origin = ops.sort(*columns, places, dim=0, num_keys=max(len(columns), 1), stable=True)
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
    numbers = ops.ScatterDimensionNumbers((), (0,), (0,))
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
    first = ops.slice_dim(ordered, 0, larger(n - 1, 0), 0)
    second = ops.slice_dim(ordered, smaller(n, 1), n, 0)
    differs = ops.ne(first, second)
    if equal_nan and ordered.aval.dtype in INEXACT:
        differs = ops.and_(differs, ops.not_(ops.and_(isnan(first), isnan(second))))
    return ops.concatenate(ops.full((smaller(n, 1),), True, np.dtype(bool)), differs, dim=0)


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

    Returns:
        Booleans of the shape of ``element``.

    Raises:
        ValueError: there is no such method.

    >>> print(jnp.isin(jnp.arange(4), jnp.array([1, 3])))
    [False  True False  True]
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            f"isin: method must be auto, compare_all, binary_search or sort, got {method!r}"
        )
    x, tests = promote_arrays("isin", [element, test_elements])
    tests = ops.reshape(tests, shape=(tests.size,))
    few = _FEW if method == "auto" else 0
    several = symbolic(tests.shape) or tests.size > few
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


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: Literal[False] = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any: ...
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

    Returns:
        A vector; with ``return_indices`` also the positions of its elements in each of the arrays.

    >>> print(jnp.intersect1d(jnp.array([1, 2, 3]), jnp.array([2, 3, 4])))
    [2 3]
    """
    if size is not None:
        wanted = integer("intersect1d", "size", size)
        return _intersect_sized(ar1, ar2, return_indices, wanted, fill_value)
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

    Args:
        ar1: an array, taken as a set.
        ar2: the other array.
        size: how many elements the result has. Without it the arrays must be known: they may not be
            traced. Missing ones are filled, those beyond are left out.
        fill_value: for missing ones; default the least element. It must be given if the arrays may
            have none.

    Returns:
        A vector, of length ``size`` if that is given.

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

    Returns:
        A vector, of length ``size`` if that is given.

    >>> print(jnp.setdiff1d(jnp.array([1, 2, 3]), jnp.array([2])))
    [1 3]
    """
    if size is not None:
        x, y = _flat("setdiff1d", ar1, ar2)
        choose, fill = _chosen if assume_unique else _distinct, fill_value
        wanted = integer("setdiff1d", "size", size)
        return choose(x, isin(x, y, invert=True), wanted, 0 if fill is None else fill)[0]
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

    Args:
        ar1: the first array.
        ar2: the second array.
        assume_unique: promises that each array has distinct elements.
        size: how many elements the result has; without it both arrays must be known: they may not
            be traced. Missing ones are filled, those beyond are left out.
        fill_value: for missing elements; default the least of the result, or 0. The index of a
            missing element is the length of the array.

    Returns:
        A vector, of length ``size`` if that is given.

    >>> print(jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3])))
    [1 3]
    """
    if size is not None:
        x, y = _flat("setxor1d", ar1, ar2)
        mask = ops.concatenate(isin(x, y, invert=True), isin(y, x, invert=True), dim=0)
        wanted = integer("setxor1d", "size", size)
        return _distinct(ops.concatenate(x, y, dim=0), mask, wanted, fill_value)[0]
    both, known = _sets("setxor1d", ar1, ar2)
    return _elements(np.setxor1d(*known, assume_unique=assume_unique), *both)


def _sets(who: str, x: Any, y: Any) -> tuple[Sequence[Any], Any]:
    """Two arrays in one dtype, and their elements."""
    both = promote_arrays(who, [x, y])
    return both, [value_of(who, v, "give size=") for v in both]


def _flat(who: str, x: Any, y: Any) -> list[Any]:
    """Two arrays in one dtype, as vectors."""
    return [ops.reshape(v, shape=(v.size,)) for v in promote_arrays(who, [x, y])]


def _distinct(x: Any, mask: Any, size: int, fill_value: Any) -> tuple[Any, Any]:
    """What ``_chosen`` gives, each once and in order; equal elements are all kept or all left out.

    What is missing is by default the least, or 0 where there is none.
    """
    places = ops.iota(dtype=dtypes.default_int(), shape=(x.size,), dim=0)
    ordered, origin, mask = ops.sort(x, places, mask, dim=0, num_keys=1, stable=True)
    mask = ops.and_(mask, _is_new(ordered, False))
    values, found = _chosen(ordered, mask, size, 0 if fill_value is None else fill_value)
    if fill_value is None and size:
        least = ops.broadcast_to(ops.slice_dim(values, 0, 1, 0), values.shape)
        values = ops.select(ops.lt(found, literal(found, x.size)), values, least)
    beyond = ops.full((1,), x.size, origin.aval.dtype)
    return values, take(ops.concatenate(origin, beyond, dim=0), found, 0)


def _chosen(x: Any, mask: Any, size: int, fill_value: Any) -> tuple[Any, Any]:
    """The elements of a vector that are ``mask``, filled up to ``size``, and where they stand."""
    places = flatnonzero(mask, size=size, fill_value=x.size)
    fill = convert(as_array("fill_value", fill_value), x.aval.dtype)
    return take(ops.concatenate(x, ops.reshape(fill, shape=(1,)), dim=0), places, 0), places
