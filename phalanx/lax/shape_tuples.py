"""Shapes of the results of convolutions and windows, from shapes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.core.types import ArrayType
from phalanx.lax.convolution import (
    ConvGeneralDilatedDimensionNumbers,
    Padding,
    conv_dimension_numbers,
    enlarging_pads,
    padtype_to_pads,
)
from phalanx.lax.operands import integers
from phalanx.primitives.conv import ConvDimensionNumbers, dilated
from phalanx.primitives.domains import F32
from phalanx.primitives.window import plain_windows, window_type

Shape = tuple[int, ...]


def conv_general_permutations(
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> tuple[Shape, Shape, Shape]:
    """The orders of dimensions that bring lhs, rhs and the result of a convolution in that of XLA.

    It is batch and feature first, or output and input feature, and then the spatial dimensions in
    the order that they have in rhs.

    Args:
        dimension_numbers: which dimension is which, in letters: of images, kernel, result.

    Returns:
        Three tuples of integers.

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    spec = dimension_numbers
    ndim = len(spec.lhs_spec if isinstance(spec, ConvDimensionNumbers) else (spec or "NC")[0])
    numbers = conv_dimension_numbers((0,) * ndim, (0,) * ndim, spec)
    return numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> Shape:
    """The shape of ``conv_general_dilated``, where features come second and spatial ones last.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernel.
        strides: by how many elements the window moves, per dimension.
        pads: zeros around the image, as a pair (low, high) per dimension, or by name.
        batch_group_count: into how many groups the batch is divided.

    Returns:
        A tuple of integers.

    >>> lax.conv_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (2, 2), "SAME")
    (1, 4, 4, 4)
    """
    shape = conv_general_shape_tuple(lhs_shape, rhs_shape, strides, pads, None)
    return (shape[0] // batch_group_count, *shape[1:])


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> Shape:
    """The shape of ``conv_general_dilated``.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernel.
        window_strides: per spatial dimension, the step from window to window.
        padding: 'SAME', 'SAME_LOWER', 'VALID', or (low, high) per spatial dimension.
        dimension_numbers: which dimension is which; see ``conv_dimension_numbers``.

    Returns:
        A tuple of integers.

    >>> order = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 4), (2, 2), "SAME", order)
    (1, 4, 4, 4)
    """
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lengths, windows = _spatial(numbers, lhs_shape, rhs_shape)
    pads = padtype_to_pads(lengths, windows, window_strides, padding)
    counts = reduce_window_shape_tuple(lengths, windows, window_strides, pads)
    return _placed(numbers, lhs_shape, rhs_shape, counts)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> Shape:
    """The shape of ``conv_transpose``.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernel.
        window_strides: by how many elements the window moves, per dimension.
        padding: zeros around it: "SAME", "VALID", or a pair (low, high) for each dimension of the
            window.
        dimension_numbers: which dimension is which, in letters: of images, kernel, result.

    Returns:
        A tuple of integers.

    >>> order = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_transpose_shape_tuple((1, 4, 4, 3), (3, 3, 3, 2), (2, 2), "SAME", order)
    (1, 8, 8, 2)
    """
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lengths, windows = _spatial(numbers, lhs_shape, rhs_shape)
    if isinstance(padding, str):
        padding = enlarging_pads(windows, window_strides, padding)
    enlarged = list(map(dilated, lengths, window_strides))
    counts = reduce_window_shape_tuple(enlarged, windows, (1,) * len(windows), padding)
    return _placed(numbers, lhs_shape, rhs_shape, counts)


def _spatial(
    numbers: ConvDimensionNumbers, lhs: Sequence[int], rhs: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The lengths of the spatial dimensions, of what is convolved and of the windows."""
    return [lhs[d] for d in numbers.lhs_spec[2:]], [rhs[d] for d in numbers.rhs_spec[2:]]


def _placed(
    numbers: ConvDimensionNumbers, lhs: Sequence[int], rhs: Sequence[int], counts: Shape
) -> Shape:
    """Batch, output features and ``counts`` of windows where the result has them."""
    lengths = (lhs[numbers.lhs_spec[0]], rhs[numbers.rhs_spec[0]], *counts)
    return tuple(n for _, n in sorted(zip(numbers.out_spec, lengths, strict=True)))


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """The shape of ``reduce_window``.

    Args:
        operand_shape: the shape of the array that windows move over.
        window_dimensions: the lengths of the window, one per dimension of the operand.
        window_strides: the steps from window to window; None: 1.
        padding: 'SAME', 'SAME_LOWER', 'VALID', or (low, high) per dimension. 'SAME' is for ``ceil(n
            / stride)`` windows over ``n`` elements that are not dilated.
        base_dilation: the distance of the elements of the operand.
        window_dilation: the distance of the elements of the window.

    Returns:
        A tuple of integers.

    Raises:
        ValueError: a parameter does not fit the shape.

    >>> lax.reduce_window_shape_tuple((7, 8), (2, 3), (1, 2), [(0, 1), (0, 0)])
    (7, 3)
    """
    options: dict[str, Any] = {
        "window": window_dimensions,
        "strides": window_strides,
        "base_dilation": base_dilation,
        "window_dilation": window_dilation,
    }
    known = {
        k: integers("reduce_window_shape_tuple", k, v) for k, v in options.items() if v is not None
    }
    pads = padtype_to_pads(operand_shape, known["window"], known["strides"], padding)
    windows = plain_windows(known.pop("window"), padding=pads, **known)
    return window_type(
        "reduce_window_shape_tuple", ArrayType(tuple(operand_shape), F32), **windows
    ).shape
