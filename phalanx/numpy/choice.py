"""Choices between elements: where, select, nonzero; and whether arrays are equal or close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from phalanx import ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES, INEXACT, is_weak
from phalanx.base.extended import is_key
from phalanx.base.kinds import SEQUENCE
from phalanx.base.lengths import integer, larger
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import add, literal, multiply
from phalanx.numpy.creation import asarray
from phalanx.numpy.logic import equal, isfinite, isnan, isneginf, isposinf
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    as_array,
    boolean,
    convert,
    from_host,
    number_array,
    operands,
    promote,
    promote_arrays,
    repeated,
    value_of,
)

# ---- choices --------------------------------------------------------------------------------


@overload
def where(
    condition: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    size: None = None,
    fill_value: None = None,
) -> Array: ...
@overload
def where(
    condition: ArrayLike,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | Sequence[ArrayLike] | None = None,
) -> tuple[Array, ...]: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Elements of x where the condition holds, of y elsewhere; all three broadcast.

    Derivatives flow through the chosen branch alone, but a nan in the derivative of the other
    one survives: 0 times nan is nan. Make both branches finite.

    With the condition alone it is ``nonzero(condition, size=size, fill_value=fill_value)``.

    Args:
        condition: booleans; numbers that are not 0 count as True.
        x: elements where the condition holds; without x and y the result is ``nonzero(condition)``.
        y: elements where it does not hold. All three broadcast.
        size: the length of the result, which is cut or filled up to it. Needed under ``jit``, where
            lengths must not depend on values.
        fill_value: what fills the result up to ``size``.

    Returns:
        An array of the shape to which the arguments broadcast; with the condition alone a tuple of
        vectors, as ``nonzero`` gives it.

    Raises:
        ValueError: only one of ``x`` and ``y`` is given, or both and ``size``.

    >>> print(jnp.where(jnp.arange(4) > 1, 1.0, jnp.zeros(4)))
    [0. 0. 1. 1.]
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("where: give both x and y, or neither")
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value are for the condition alone, without x and y")
    return _chosen(condition, x, y)


@one_program
def _chosen(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    mask = boolean("where", condition)
    return ops.select(*repeated("where", [mask, *promote("where", x, y)]))


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, one array per dimension, in row-major order.

    Their number depends on the values, so under a transformation ``size`` must say how many
    are wanted: missing ones are filled with ``fill_value`` (default 0), others are dropped.

    Args:
        a: an array, or a number.
        size: the length of the result, which is cut or filled up to it. Needed under ``jit``, where
            lengths must not depend on values.
        fill_value: what fills the result up to ``size``.

    Returns:
        A tuple of vectors of int32, one per dimension, of length ``size`` if that is given.

    Raises:
        ConcretizationTypeError: ``a`` is traced and ``size`` is not given.

    >>> print(*jnp.nonzero(jnp.array([0, 3, 0, 5])))
    [1 3]
    """
    x = as_array("nonzero", a)
    if not x.aval.ndim:
        raise ValueError("nonzero: an array with dimensions is needed; see jnp.atleast_1d")
    if size is None:
        indices = np.nonzero(value_of("nonzero", x, "give size="))
        return tuple(from_host(i.astype(dtypes.default_int())) for i in indices)
    wanted = integer("nonzero", "size", size)
    return _first_nonzero(boolean("nonzero", x), wanted, fill_value)


def _first_nonzero(mask: Any, size: int, fill_value: Any) -> tuple[Any, ...]:
    index = dtypes.default_int()
    flat = ops.reshape(mask, shape=(mask.aval.size,))
    counted = ops.convert(flat, dtype=index, weak=False)
    # the k-th element that is not zero stands where the count of them first reaches k + 1
    places = ops.cumsum(counted, dim=0, reverse=False)
    target = ops.select(flat, ops.sub(places, literal(places, 1)), literal(places, size))
    numbers = ops.ScatterDimensionNumbers((), (0,), (0,))
    positions = ops.scatter(
        ops.full((size,), 0, index),
        ops.reshape(target, shape=(*flat.shape, 1)),
        ops.iota(dtype=index, shape=flat.shape, dim=0),
        numbers=numbers,
        mode="fill",
    )
    total = ops.reduce_sum(counted, dims=(0,))
    exists = ops.lt(ops.iota(dtype=index, shape=(size,), dim=0), ops.broadcast_to(total, (size,)))
    fills = _fills(fill_value, mask.aval.ndim)
    out: list[Any] = []
    for length, fill in zip(reversed(mask.aval.shape), reversed(fills), strict=True):
        n = ops.constant_like(positions, larger(length, 1))
        place, positions = ops.rem(positions, n), ops.div(positions, n)
        out.append(where(exists, place, convert(as_array("nonzero", fill), index)))
    return tuple(reversed(out))


def _fills(fill_value: Any, ndim: int) -> tuple[Any, ...]:
    if isinstance(fill_value, SEQUENCE):
        if len(fill_value) != ndim:
            raise ValueError(
                f"nonzero: fill_value must be one value or {ndim} of them, got {len(fill_value)}"
            )
        return tuple(fill_value)
    return (0 if fill_value is None else fill_value,) * ndim


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements of the flattened array that are not zero; see ``nonzero``.

    Args:
        a: an array, or a number.
        size: the length of the result, which is cut or filled up to it. Needed under ``jit``, where
            lengths must not depend on values.
        fill_value: what fills the result up to ``size``.

    Returns:
        int32 [n].

    >>> print(jnp.flatnonzero(jnp.array([[0, 3], [4, 0]])))
    [1 2]
    """
    x = as_array("flatnonzero", a)
    flat = ops.reshape(x, shape=(x.aval.size,))
    return nonzero(flat, size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements that are not zero as rows [n, ndim]; see ``nonzero``.

    Args:
        a: an array, or a number.
        size: the length of the result, which is cut or filled up to it. Needed under ``jit``, where
            lengths must not depend on values.
        fill_value: what fills the result up to ``size``.

    Returns:
        int32 [n, ndim].

    >>> print(jnp.argwhere(jnp.array([[0, 3], [4, 0]])))
    [[0 1]
     [1 0]]
    """
    x = as_array("argwhere", a)
    if x.ndim:
        return ops.stack(nonzero(x, size=size, fill_value=fill_value), 1)
    (places,) = nonzero(ops.expand_dims(x, (0,)), size=size)
    return ops.full((places.shape[0], 0), 0, places.dtype)  # rows of no coordinates


def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array:
    """The choice beside the first condition that holds, else ``default``, elementwise.

    Args:
        condlist: conditions, arrays of booleans.
        choicelist: as many arrays; all broadcast.
        default: the element where no condition holds.

    Returns:
        An array of the shape to which the arguments broadcast.

    Raises:
        ValueError: there are not as many choices as conditions, or none.

    >>> x = jnp.arange(4)
    >>> print(jnp.select([x < 1, x < 3], [x, 10 * x], -1))
    [ 0 10 20 -1]
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            f"select: as many choices as conditions are needed, at least one, got "
            f"{len(choicelist)} and {len(condlist)}"
        )
    *choices, out = promote_arrays("select", [*choicelist, default])
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        out = where(condition, choice, out)
    return out


@one_program
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """The elements with nan replaced by ``nan``, infinities by the largest finite numbers.

    Args:
        x: an array, or a number; keys are returned as they are.
        copy: has no meaning: arrays are immutable.
        nan: what takes the place of nan.
        posinf: what takes the place of inf; None for the largest finite number.
        neginf: what takes the place of -inf; None for the least finite number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> print(jnp.nan_to_num(jnp.array([jnp.nan, 1.0])))
    [0. 1.]
    """
    x = as_array("nan_to_num", x)
    dtype = x.aval.dtype
    if dtype not in INEXACT:
        return x
    if dtype in COMPLEXES:
        parts = (nan_to_num(p(x), copy, nan, posinf, neginf) for p in (ops.real, ops.imag))
        return ops.complex(*parts)
    info = dtypes.finfo(dtype)
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    out = where(isnan(x), _in_dtype_of(x, nan), x)
    out = where(isposinf(out), _in_dtype_of(x, high), out)
    return where(isneginf(out), _in_dtype_of(x, low), out)


def _in_dtype_of(x: Any, value: Any) -> Any:
    if isinstance(value, (Array, np.ndarray)):
        return convert(number_array("nan_to_num", value), x.aval.dtype, x.aval.weak)
    return literal(x, float(value)) if not x.aval.weak else float(value)


@one_program
def heaviside(x: ArrayLike, at_zero: ArrayLike, /) -> Array:
    """The unit step, elementwise: 0 where x < 0, ``at_zero`` where x = 0, 1 where x > 0.

    Args:
        x: real numbers, as an array, or a number.
        at_zero: the result where x is 0.

    Returns:
        An array of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5))
    [0.  0.5 1. ]
    """
    first = x
    x, y = arrays("heaviside", x, at_zero, to=dtypes.to_inexact)
    zero, one = literal(x, 0), literal(x, 1)
    out = ops.select(ops.lt(x, zero), zero, ops.select(ops.eq(x, zero), y, one))
    out = ops.select(ops.ne(x, x), x, out)
    return convert(out, out.aval.dtype, is_weak(first) and is_weak(at_zero))


# ---- comparisons of whole arrays ------------------------------------------------------------


@one_program
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether elements are close, |a - b| ≤ atol + rtol |b|; infinities are to themselves.

    Random keys, which have no distance, are close where they are equal.

    Args:
        a: an array, or a number.
        b: the values that are compared with, to which ``rtol`` is relative.
        rtol: by how much of ``b`` they may differ.
        atol: by how much they may differ besides, as a number.
        equal_nan: whether nan counts as equal to nan.

    Returns:
        Booleans, of the shape to which ``a`` and ``b`` broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.1])))
    [ True False]
    """
    if is_key(getattr(a, "dtype", None)):
        return equal(a, b)
    x, y = arrays("isclose", a, b, to=dtypes.to_inexact)
    finite = ops.and_(isfinite(x), isfinite(y))
    gap, limit = ops.abs(ops.sub(x, y)), add(atol, multiply(rtol, ops.abs(y)))
    near = ops.le(*operands("isclose", gap, limit))
    out = ops.select(finite, near, ops.eq(x, y))
    return ops.or_(out, ops.and_(isnan(x), isnan(y))) if equal_nan else out


@one_program
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether ``isclose`` holds for all elements.

    Args:
        a: an array, or a number.
        b: the values that are compared with, to which ``rtol`` is relative.
        rtol: by how much of ``b`` they may differ.
        atol: by how much they may differ besides, as a number.
        equal_nan: whether nan counts as equal to nan.

    Returns:
        A boolean, as an array without dimensions.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> bool(jnp.allclose(jnp.ones(3), 1.0))
    True
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


@one_program
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays, or nested lists, have the same shape and the same elements.

    Args:
        a1: an array, a number, or nested lists.
        a2: what it is compared with.
        equal_nan: whether nan counts as equal to nan.

    Returns:
        A boolean, as an array without dimensions.

    >>> bool(jnp.array_equal(jnp.arange(3), [0, 1, 2]))
    True
    >>> bool(jnp.array_equal(jnp.arange(3), jnp.arange(4)))  # no error: the shapes differ
    False
    """
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return ops.full((), False, np.dtype(bool))
    same = equal(x, y)
    if equal_nan and x.aval.dtype in INEXACT and y.aval.dtype in INEXACT:
        same = ops.or_(same, ops.and_(isnan(x), isnan(y)))
    return _all(same)


@one_program
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast to one shape and are equal there.

    Args:
        a1: an array, a number, or nested lists.
        a2: what it is compared with.

    Returns:
        A boolean, as an array without dimensions; False where shapes do not broadcast.

    >>> bool(jnp.array_equiv(jnp.ones((2, 3)), 1.0))
    True
    """
    x, y = asarray(a1), asarray(a2)
    try:
        return _all(equal(x, y))
    except ValueError:
        return ops.full((), False, np.dtype(bool))


def _all(x: Any) -> Any:
    return ops.reduce_and(x, dims=tuple(range(x.aval.ndim)))
