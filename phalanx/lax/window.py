"""Reductions over sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.core.types import Ints, typeof
from phalanx.lax.combine import Combination
from phalanx.lax.convolution import padtype_to_pads
from phalanx.lax.operands import integers
from phalanx.lax.shape import pad
from phalanx.primitives.conv import Pairs, dilated
from phalanx.primitives.domains import BOOL
from phalanx.primitives.index import GatherDimensionNumbers
from phalanx.primitives.shape import split_dim
from phalanx.primitives.window import window_type


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """The elements of each position of a sliding window combined in pairs, as in pooling.

    Args:
        operand: an array, or a tree of arrays of one shape.
        init_value: a scalar that the elements of each window are combined with; a tree like
            ``operand``. Padding, and the holes of a dilated operand, hold no elements.
        computation: an associative and commutative function of two scalars, or of two trees of
            scalars like ``operand``. ``lax.add``, ``lax.max`` and ``lax.min`` are the fastest.
        window_dimensions: the lengths of the window, one per dimension of the operand.
        window_strides: the steps from window to window; default 1.
        padding: 'SAME', 'SAME_LOWER', 'VALID', or (low, high) per dimension. 'SAME' is for
            ``ceil(n / stride)`` windows over ``n`` elements that are not dilated.
        base_dilation: the distance of the elements of the operand.
        window_dilation: the distance of the elements of the window.

    Returns:
        A tree like ``operand``, whose arrays have an element for each position of the window.

    Raises:
        TypeError: operands differ in shape, or the computation changes the dtype.
        ValueError: a parameter does not fit the operand.

    >>> lax.reduce_window(np.float32([1, 3, 2, 4]), -np.inf, lax.max, (2,), (2,))
    Array([3., 4.], dtype=float32)
    """
    how = Combination("reduce_window", operand, init_value, computation)
    shape = how.types[0].shape
    window = _per_dimension("window_dimensions", window_dimensions, shape)
    strides = _per_dimension("window_strides", window_strides, shape)
    gaps = _per_dimension("window_dilation", window_dilation, shape)
    reach = list(map(dilated, window, gaps))
    windows: dict[str, Any] = {
        "window": window,
        "strides": strides,
        "padding": tuple(padtype_to_pads(shape, reach, strides, padding)),
        "base_dilation": _per_dimension("base_dilation", base_dilation, shape),
        "window_dilation": gaps,
    }
    # XLA orders no complex numbers; in the general way they have the order of `lax.max`
    unordered = dtypes.is_complex(how.types[0].dtype) and how.computes(ops.max, ops.min)
    if how.monoid is not None and how.monoid.over_windows is not None and not unordered:
        out = how.monoid.over_windows(how.xs[0], **windows)
        return out if how.starts_with_identity else how.from_start([out])
    window_type("reduce_window", how.types[0], **windows)
    return _over_windows(how, **windows)


def _over_windows(how: Combination, padding: Pairs, base_dilation: Ints, **windows: Ints) -> Any:
    """The same, by reading the elements of all windows: one dimension after the other."""
    config = tuple((*pads, base - 1) for pads, base in zip(padding, base_dilation, strict=True))
    xs = [pad(x, i, config) for x, i in zip(how.xs, how.inits, strict=True)]
    filled = any(c != (0, 0, 0) for c in config)
    if filled:
        elements = ops.full(how.types[0].shape, True, BOOL)
        xs = [ops.pad(elements, np.bool_(False), config=config), *xs]
    everywhere = how.where_valid if filled else how.everywhere
    geometry = zip(windows["window"], windows["strides"], windows["window_dilation"], strict=True)
    for d, (window, stride, gap) in enumerate(geometry):
        xs = how.over_dims([spread(x, d, window, stride, gap) for x in xs], (d,), everywhere)
    if not filled:
        return how.from_start(xs)
    start = how.start(typeof(xs[0]).shape)
    always = ops.full(typeof(xs[0]).shape, True, BOOL)
    return how.treedef.unflatten(how.where_valid([always, *start], xs)[1:])


def _per_dimension(name: str, value: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """One number for each dimension, 1 where none is given."""
    values = (1,) * len(shape) if value is None else integers("reduce_window", name, value)
    if len(values) != len(shape):
        raise ValueError(
            f"lax.reduce_window: {name} needs one entry for each of the {len(shape)} dimensions "
            f"of the operand, got {values}"
        )
    return values


def spread(x: Any, dim: int, window: int, stride: int, gap: int) -> Any:
    """``x`` with dimension ``dim`` as two: the elements of a window, and the windows."""
    shape = typeof(x).shape
    last = shape[dim] - dilated(window, gap)
    firsts = np.arange(0, last + 1, stride)
    places = np.arange(0, window * gap, gap)[:, None] + firsts
    others = tuple(d for d in range(len(shape)) if d != dim)
    rows = ops.gather(
        x,
        places.reshape(-1, 1).astype(np.int32),
        numbers=GatherDimensionNumbers(others, (dim,), (dim,)),
        slice_sizes=tuple(1 if d == dim else n for d, n in enumerate(shape)),
        mode="promise",
    )
    return split_dim(rows, dim, places.shape)
