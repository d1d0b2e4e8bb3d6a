"""What the windows of a convolution cover, as features; kernels of their own for each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.core.types import Array, typeof
from phalanx.lax.contract import PrecisionLike, dot_general
from phalanx.lax.convolution import (
    ConvGeneralDilatedDimensionNumbers,
    Padding,
    conv_dimension_numbers,
    padtype_to_pads,
)
from phalanx.lax.operands import accept, dtype_of, integers
from phalanx.lax.window import spread
from phalanx.primitives.contract import as_dtype
from phalanx.primitives.conv import dilated
from phalanx.primitives.shape import reorder


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Array:
    """The elements that each window of ``conv_general_dilated`` covers, as the features there.

    Elements are only moved, so they are exact, and ``precision`` says nothing.

    Args:
        lhs: the input, with a batch, a feature and spatial dimensions.
        filter_shape: the lengths of a window, in the order of the spatial dimensions of rhs.
        window_strides: per spatial dimension, the step from window to window.
        padding: 'SAME', 'SAME_LOWER', 'VALID', or (low, high) per spatial dimension,
            where zeros are added.
        lhs_dilation: the distance of the elements of lhs, with zeros between.
        rhs_dilation: the distance of the elements of a window, of which those between are left out.
        dimension_numbers: which dimension is which; see ``conv_dimension_numbers``.
        precision: accepted for compatibility; elements are only moved.
        preferred_element_type: the dtype of the result.

    Returns:
        The features of the result count the features of lhs, and in each the elements of a window,
        row by row in the order of the spatial dimensions of rhs.

    Raises:
        ValueError: a parameter does not fit the array.

    >>> x = np.float32([[[1, 2, 3, 4]]])
    >>> print(lax.conv_general_dilated_patches(x, (2,), (1,), "VALID"))
    [[[1. 2. 3.]
      [2. 3. 4.]]]
    """
    who = "conv_general_dilated_patches"
    x = typeof(accept(who, lhs))
    shape = (0, 0, *filter_shape)
    numbers = conv_dimension_numbers(x.shape, shape, dimension_numbers)
    rank = x.ndim - 2
    window, strides, holes, gaps = (
        (1,) * rank if value is None else integers(who, name, value)
        for name, value in (
            ("filter_shape", filter_shape),
            ("window_strides", window_strides),
            ("lhs_dilation", lhs_dilation),
            ("rhs_dilation", rhs_dilation),
        )
    )
    if any(len(v) != rank for v in (window, strides, holes, gaps)):
        raise ValueError(
            f"lax.{who}: filter_shape, window_strides and dilations need one entry for each of the "
            f"{rank} spatial dimensions of lhs {x}, got {window}, {strides}, {holes}, {gaps}"
        )
    out = reorder(lhs, numbers.lhs_spec)
    n, features, *lengths = typeof(out).shape
    spans = list(map(dilated, lengths, holes))
    pads = padtype_to_pads(spans, list(map(dilated, window, gaps)), strides, padding)
    config = ((0, 0, 0), (0, 0, 0), *((*p, h - 1) for p, h in zip(pads, holes, strict=True)))
    out = ops.pad(out, dtypes.scalar(0, x.dtype), config=config)
    for i in range(rank):  # the elements of windows stand before where they are, dim by dim
        out = spread(out, 2 + 2 * i, window[i], strides[i], gaps[i])
    elements, places = range(2, 2 + 2 * rank, 2), range(3, 2 + 2 * rank, 2)
    out = reorder(out, (0, 1, *elements, *places))
    counts = typeof(out).shape[2 + rank :]
    out = ops.reshape(out, shape=(n, features * math.prod(window), *counts))
    out = reorder(out, sorted(range(rank + 2), key=lambda d: numbers.out_spec[d]))
    dtype = dtype_of(preferred_element_type)
    return out if dtype is None else as_dtype(out, dtype)


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """A convolution with a kernel of its own for each window: a locally connected layer.

    Args:
        lhs: the input, with a batch, a feature and spatial dimensions.
        rhs: the kernels: output features; the elements of a window as input features, as
            ``conv_general_dilated_patches`` counts them; and spatial dimensions, as long as those
            of the result.
        window_strides: per spatial dimension, the step from window to window.
        padding: 'SAME', 'SAME_LOWER', 'VALID', or (low, high) per spatial dimension.
        filter_shape: the lengths of a window.
        lhs_dilation: the distance of the elements of lhs, with zeros between.
        rhs_dilation: the distance of the elements of a window, of which those between are left out.
        dimension_numbers: which dimension is which; see ``conv_dimension_numbers``.
        precision: see ``dot_general``.

    Returns:
        An array with the dimensions that ``dimension_numbers`` name, of the dtype of the operands.

    Raises:
        TypeError: the kernels do not fit the windows.
        ValueError: a parameter does not fit the arrays.

    >>> x, kernels = np.float32([[[1, 2, 3]]]), np.float32([[[1, 0], [0, 1]]])
    >>> print(lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,)))
    [[[1. 3.]]]
    """
    x, kernels = (typeof(accept("conv_general_dilated_local", a)) for a in (lhs, rhs))
    numbers = conv_dimension_numbers(x.shape, kernels.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers
    )
    spatial = tuple(numbers.out_spec[2:]), tuple(numbers.rhs_spec[2:])
    features = (numbers.out_spec[1],), (numbers.rhs_spec[1],)
    out = dot_general(patches, rhs, (features, spatial), precision)
    batch, outputs, *places = numbers.out_spec
    where = [*places, batch, outputs]
    return reorder(out, sorted(range(x.ndim), key=lambda d: where[d]))
