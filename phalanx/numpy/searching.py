"""Elements by condition: where, nonzero and their kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.kinds import SEQUENCE
from phalanx.base.lengths import integer, larger
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import (
    ArrayLike,
    as_array,
    boolean,
    convert,
    from_host,
    literal,
    promote,
    repeated,
    value_of,
)


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
        An array of the broadcast shape; with the condition alone a tuple of vectors, as ``nonzero``
        gives it.

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
