"""Elements and arrays repeated: repeat, tile."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base.errors import ShapeError
from phalanx.base.kinds import SEQUENCE
from phalanx.base.lengths import integer
from phalanx.base.source import user_location
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy.indexing import take
from phalanx.numpy.promotion import ArrayLike, as_array, as_shape, convert, dim, from_host, value_of
from phalanx.numpy.sorting import searchsorted


@one_program
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """``A`` laid out ``reps`` times in each dimension.

    Args:
        A: the array that is repeated.
        reps: how often, along each axis; an integer: along the last.

    Returns:
        An array of the dtype of ``A``.

    >>> print(jnp.tile(jnp.arange(2), 3))
    [0 1 0 1 0 1]
    """
    x = as_array("tile", A)
    times = as_shape("tile", reps)
    ndim = max(x.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    wide = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    x = ops.reshape(x, shape=shape)
    x = ops.broadcast(x, shape=wide, dims=tuple(range(1, 2 * ndim, 2)))
    return ops.reshape(x, shape=tuple(t * n for t, n in zip(times, shape, strict=True)))


@takes_out_sharding
def repeat(
    a: ArrayLike,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Each element of ``a`` along ``axis`` ``repeats`` times; None flattens the array first.

    Args:
        a: the array.
        repeats: a number for all elements, or one for each.
        axis: the axis along which elements are repeated; None flattens the array first.
        total_repeat_length: the length of the result, where ``repeats`` is traced: the last
            element is repeated, or elements are left out, to reach it.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dtype of ``a``, whose ``axis`` has as many elements as there are
        repetitions; a vector if ``axis`` is None.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.repeat(jnp.array([1, 2]), 2))
    [1 1 2 2]
    """
    x = as_array("repeat", a)
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.size,)), 0
    d = dim("repeat", axis, x)
    if isinstance(repeats, SEQUENCE):
        repeats = np.asarray(repeats)
    if np.ndim(repeats) == 0 and total_repeat_length is None:
        return _repeat_each(x, operator.index(repeats), d)
    if np.shape(repeats) not in ((), (1,), (x.shape[d],)):
        raise ShapeError(
            f"repeat: repeats has shape {np.shape(repeats)}, and axis {d} of the array has length "
            f"{x.shape[d]}, at {user_location()}; give one count for each element, or one for all"
        )
    if total_repeat_length is None:
        counts = np.broadcast_to(
            value_of("repeat", repeats, "give total_repeat_length="), (x.shape[d],)
        )
        places: Any = from_host(np.repeat(np.arange(x.shape[d]), counts).astype(np.int32))
    else:
        total = integer("repeat", "total_repeat_length", total_repeat_length)
        places = _repeated_places(repeats, x.shape[d], total)
    return take(x, places, d, mode="clip")


def _repeat_each(x: Any, times: int, d: int) -> Any:
    if times < 0:
        raise ValueError(f"repeat: repeats must not be negative, got {times}")
    shape = (*x.shape[: d + 1], times, *x.shape[d + 1 :])
    dims = tuple(i for i in range(len(shape)) if i != d + 1)
    return ops.merge_dims(ops.broadcast(x, shape=shape, dims=dims), d)


def _repeated_places(repeats: Any, length: int, total: int) -> Any:
    """The i-th place holds the element within whose share of the repetitions i lies."""
    counts = convert(as_array("repeat", repeats), np.dtype("int32"))
    ends = ops.cumsum(ops.broadcast_to(counts, (length,)), dim=0, reverse=False)
    return searchsorted(ends, ops.iota(dtype=np.dtype("int32"), shape=(total,), dim=0), "right")
