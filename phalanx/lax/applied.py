"""A function applied in place, at positions that are data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx import ops
from phalanx.core.axes import Axis
from phalanx.core.types import Array, typeof
from phalanx.lax.index import Mode, ScatterDimensionNumbers, scatter_add
from phalanx.lax.loops import while_loop
from phalanx.lax.operands import accept, integers
from phalanx.ops.basis import full
from phalanx.ops.domains import I32
from phalanx.transforms.batch import batch, place_lanes


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """The operand with ``func`` applied to the elements of windows of it; see ``scatter``.

    It is applied to an element as often as windows cover it: that many times are known only while
    running, so it differentiates in reverse only with ``unique_indices``.

    Args:
        operand: an array.
        scatter_indices: integers; the last dimension holds the coordinates of one start.
        func: of a scalar, to a scalar of the same dtype.
        dimension_numbers: how the dimensions correspond.
        update_shape: the shape that updates would have: that of all windows.
        indices_are_sorted: your word that the starts ascend.
        unique_indices: your word that no two windows meet.
        mode: for windows that reach outside: 'drop' (the default), 'clip' or 'promise_in_bounds'.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: indices are not integers, or ``func`` changes the dtype.
        ValueError: the dimensions do not fit together.

    >>> single = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, where = np.float32([1, 2, 3]), np.int32([[2], [0], [2]])
    >>> lax.scatter_apply(x, where, lambda v: v * 10, single, update_shape=(3,))
    Array([ 10.,   2., 300.], dtype=float32)
    """
    type = typeof(accept("scatter_apply", operand))
    times = scatter_add(
        full(type.shape, 0, I32),
        scatter_indices,
        full(integers("scatter_apply", "update_shape", update_shape), 1, I32),
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )

    def applied(x: Any, so_often: Any) -> Any:
        chosen = ops.lt(full(type.shape, so_often, I32), times)
        # where it is not applied, a derivative of it that is infinite has no part in that of x
        out = _everywhere(func, ops.select(chosen, x, ops.stop_gradient(x)))
        if typeof(out).dtype != type.dtype:
            raise TypeError(
                f"lax.scatter_apply: func must keep the dtype {type.dtype}, but it gives "
                f"{typeof(out)}"
            )
        return ops.select(chosen, out, x)

    if unique_indices:
        return applied(operand, np.int32(0))
    most = ops.reduce_max(times, dims=tuple(range(type.ndim)))

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        so_often, x = state
        return ops.add(so_often, np.int32(1)), applied(x, so_often)

    return while_loop(lambda state: ops.lt(state[0], most), step, (full((), 0, I32), operand))[1]


def _everywhere(func: Callable[[Any], Any], x: Any) -> Any:
    """``func`` of each element of ``x``."""
    type = typeof(x)
    flat = ops.reshape(x, shape=(type.size,))

    def of_one(e: Any) -> list[Any]:
        return [func(e)]

    (out,), (dim,) = batch(of_one, Axis(None, type.size), [flat], [0])
    return ops.reshape(place_lanes(out, dim, 0, type.size), shape=type.shape)
