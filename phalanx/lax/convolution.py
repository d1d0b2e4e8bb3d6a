"""Convolutions, with the meaning of each dimension given in letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.core.types import Array, ArrayType, typeof
from phalanx.lax.contract import PrecisionLike
from phalanx.lax.layout import takes_out_sharding
from phalanx.lax.operands import accept, dtype_of, integers, pairs
from phalanx.primitives.conv import ConvDimensionNumbers, dilated, padding_same
from phalanx.primitives.conv import conv_general_dilated as convolution
from phalanx.primitives.precision import canonical_precision
from phalanx.primitives.shape import reverse

ConvGeneralDilatedDimensionNumbers = ConvDimensionNumbers | tuple[str, str, str] | None
Padding = str | Sequence[tuple[int, int]]


# ---- dimension numbers and padding ----------------------------------------------------------


def conv_dimension_numbers(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> ConvDimensionNumbers:
    """What the dimensions of the arrays of a convolution mean, as positions.

    ``dimension_numbers`` are three strings for lhs, rhs and the result, with a letter for each
    dimension: N batch, C feature, O output and I input feature, any other a spatial one. Strides,
    padding and dilations come in the order in which rhs has those. None is ('NCHW', 'OIHW',
    'NCHW'), and likewise for other ranks.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernel.
        dimension_numbers: which dimension is which, in letters: of images, kernel, result.

    Returns:
        A named tuple: ``lhs_spec``, ``rhs_spec`` and ``out_spec``.

    Raises:
        ValueError: a string has the wrong letters.

    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if dimension_numbers is None:
        order = tuple(range(ndim))
        return ConvDimensionNumbers(order, order, order)
    if len(dimension_numbers) != 3:
        raise ValueError(
            "lax.conv_dimension_numbers: three strings are needed, for lhs, rhs and the result, "
            f"got {dimension_numbers!r}"
        )
    lhs, rhs, out = dimension_numbers
    spatial = [c for c in rhs if c not in "OI"]  # whose order is that of strides and dilations
    wanted = (("lhs", lhs, "NC"), ("rhs", rhs, "OI"), ("result", out, "NC"))
    for name, letters, first in wanted:
        if len(letters) != ndim or sorted(letters) != sorted([*first, *spatial]):
            raise ValueError(
                f"lax.conv_dimension_numbers: the letters {letters!r} of the {name} must be "
                f"{first[0]}, {first[1]} and the spatial ones of rhs, {''.join(spatial)!r}, "
                f"{ndim} in all, each once"
            )
    return ConvDimensionNumbers(
        *(tuple(map(letters.index, [*first, *spatial])) for _, letters, first in wanted)
    )


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
) -> list[tuple[int, int]]:
    """Padding 'SAME', 'SAME_LOWER' or 'VALID' as a (low, high) pair per dimension.

    Args:
        in_shape: the lengths of the dimensions that windows move over.
        window_shape: the lengths of the window.
        window_strides: by how many elements the window moves, per dimension.
        padding: "SAME", "VALID", or pairs (low, high) of zeros for each dimension of the window.

    Returns:
        A list of pairs of integers.

    Raises:
        ValueError: there is no such padding.

    >>> lax.padtype_to_pads((5, 6), (3, 2), (1, 2), "SAME")
    [(1, 1), (0, 0)]
    """
    if not isinstance(padding, str):
        return list(pairs("padtype_to_pads", "padding", padding))
    if padding.upper() == "VALID":
        return [(0, 0)] * len(in_shape)
    if padding.upper() in ("SAME", "SAME_LOWER"):
        pads = padding_same(in_shape, window_shape, window_strides)
        return list(pads) if padding.upper() == "SAME" else [(hi, lo) for lo, hi in pads]
    raise ValueError(
        "lax.padtype_to_pads: padding must be 'SAME', 'SAME_LOWER', 'VALID' or (low, high) "
        f"pairs, got {padding!r}"
    )


def _at(type: ArrayType, dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(type.shape[d] for d in dims)


def _as_images(*types: ArrayType) -> str:
    """What to do with matrices that were meant as one image or kernel."""
    if all(kind.ndim != 2 for kind in types):
        return ""
    return (
        "; one image of one feature is image[None, None], [1, 1, height, width], as is the kernel; "
        "for matrices there is phalanx.scipy.signal.convolve2d"
    )


def _check_ranks(who: str, x: ArrayType, kernel: ArrayType) -> None:
    if x.ndim != kernel.ndim or x.ndim < 2:
        raise ValueError(
            f"lax.{who}: lhs and rhs must have one rank, at least 2: batch or output feature, "
            f"feature, and spatial dimensions; got {x} and {kernel}{_as_images(x, kernel)}"
        )


# ---- convolutions ---------------------------------------------------------------------------


@takes_out_sharding
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The sum over input features and a sliding window of lhs times rhs; rhs is not flipped.

    Args:
        lhs: the input, with a batch, a feature and spatial dimensions.
        rhs: the kernel, with an output feature, an input feature and spatial dimensions.
        window_strides: per spatial dimension, the step from window to window.
        padding: 'SAME', 'SAME_LOWER', 'VALID', or (low, high) per spatial dimension.
        lhs_dilation: the distance of the elements of lhs, with zeros between.
        rhs_dilation: the distance of the elements of rhs.
        dimension_numbers: which dimension is which; see ``conv_dimension_numbers``.
        feature_group_count: features of lhs and rhs fall into that many independent groups.
        batch_group_count: the batch of lhs and the outputs of rhs do.
        precision: see ``dot_general``.
        preferred_element_type: the dtype to accumulate in, which the result has.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array with the dimensions that ``dimension_numbers`` name, of the dtype of the operands,
        or of ``preferred_element_type``.

    Raises:
        TypeError: features do not match, or dtypes differ.
        ValueError: a parameter does not fit the arrays.

    >>> images, kernel = np.ones((1, 8, 8, 3), np.float32), np.ones((3, 3, 3, 4), np.float32)
    >>> order = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_dilated(images, kernel, (2, 2), "SAME", dimension_numbers=order).shape
    (1, 4, 4, 4)
    """
    who = "conv_general_dilated"
    x, kernel = typeof(accept(who, lhs)), typeof(accept(who, rhs))
    _check_ranks(who, x, kernel)
    numbers = conv_dimension_numbers(x.shape, kernel.shape, dimension_numbers)
    strides = integers(who, "window_strides", window_strides)
    ones = (1,) * (x.ndim - 2)
    lhs_steps = ones if lhs_dilation is None else integers(who, "lhs_dilation", lhs_dilation)
    rhs_steps = ones if rhs_dilation is None else integers(who, "rhs_dilation", rhs_dilation)
    for name, value in (("strides", strides), ("rhs_dilation", rhs_steps)):
        if len(value) != len(ones):
            raise ValueError(
                f"lax.{who}: {name} must have one entry for each of the {len(ones)} spatial "
                f"dimensions of lhs {x}, got {value}{_as_images(x)}"
            )
    if isinstance(padding, str):
        lengths = map(dilated, _at(x, numbers.lhs_spec[2:]), lhs_steps)
        windows = map(dilated, _at(kernel, numbers.rhs_spec[2:]), rhs_steps)
        padding = padtype_to_pads(list(lengths), list(windows), strides, padding)
    return convolution(
        lhs,
        rhs,
        strides=strides,
        padding=pairs(who, "padding", padding),
        lhs_dilation=lhs_steps,
        rhs_dilation=rhs_steps,
        dimension_numbers=numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision=canonical_precision(who, precision),
        dtype=dtype_of(preferred_element_type),
    )


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Array:
    """The convolution of lhs [N, C, spatial...] with rhs [O, I, spatial...].

    Args:
        lhs: the images: batch, features, and the dimensions that windows move over.
        rhs: the kernel: features of the result and of the image, and the window.
        window_strides: by how many elements the window moves, per dimension.
        padding: "SAME", "VALID", or pairs (low, high) of zeros for each dimension of the window.
        precision: of products of float32: ``default``, ``high``, ``highest``, or a
            ``lax.Precision``; None: the option ``default_matmul_precision``.
        preferred_element_type: the dtype of sums and result; None: that of the operands.

    Returns:
        An array [N, O, spatial...] of the dtype of the operands, or of ``preferred_element_type``.

    Raises:
        TypeError: the dtypes differ.
        ValueError: a parameter does not fit the arrays.

    >>> x, kernel = np.ones((1, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)
    >>> lax.conv(x, kernel, (1, 1), "VALID").shape
    (1, 4, 6, 6)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Array:
    """``conv`` with dilations.

    Args:
        lhs: the images: batch, features, and the dimensions that windows move over.
        rhs: the kernel: features of the result and of the image, and the window.
        window_strides: by how many elements the window moves, per dimension.
        padding: "SAME", "VALID", or pairs (low, high) of zeros for each dimension of the window.
        lhs_dilation: in how many steps an image element lies from the next, with zeros between.
        rhs_dilation: in how many steps a kernel element lies from the next, with zeros between.
        precision: of products of float32: ``default``, ``high``, ``highest``, or a
            ``lax.Precision``; None: the option ``default_matmul_precision``.
        preferred_element_type: the dtype of sums and result; None: that of the operands.

    Returns:
        An array [N, O, spatial...] of the dtype of the operands, or of ``preferred_element_type``.

    Raises:
        TypeError: the dtypes differ.
        ValueError: a parameter does not fit the arrays.

    >>> x, kernel = np.ones((1, 3, 8), np.float32), np.ones((4, 3, 2), np.float32)
    >>> lax.conv_with_general_padding(x, kernel, (1,), [(0, 1)], (1,), (3,)).shape
    (1, 4, 6)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_CHANNELS_LAST = {1: "W", 2: "HW", 3: "DHW"}


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """A convolution of lhs with ``strides - 1`` zeros between its elements, which enlarges it.

    With padding 'SAME' a length n becomes ``n * stride``, with 'VALID' ``n * stride +
    max(window - stride, 0)``; pairs pad the enlarged lhs, or, with ``use_consistent_padding``, are
    those of the convolution that is transposed. Without dimension numbers, features come last:
    ('NHWC', 'HWIO', 'NHWC').

    With ``transpose_kernel``, it is the transpose of the convolution with rhs: the kernel is
    flipped, and its features change places.

    Args:
        lhs: the images: batch, features, and the dimensions that windows move over.
        rhs: the kernel: features of the result and of the image, and the window.
        strides: how much larger the result is, per dimension.
        padding: "SAME", "VALID", or pairs (low, high) of zeros for each dimension of the window.
        rhs_dilation: in how many steps a kernel element lies from the next, with zeros between;
            None: 1 in each.
        dimension_numbers: which dimension is which, in letters: of images, kernel, result; None for
            ("NHWC", "HWIO", "NHWC"), and the like for other ranks.
        transpose_kernel: whether it is the transpose of the convolution with ``rhs``.
        precision: of products of float32: ``default``, ``high``, ``highest``, or a
            ``lax.Precision``; None: the option ``default_matmul_precision``.
        preferred_element_type: the dtype of sums and result; None: that of the operands.
        use_consistent_padding: whether pairs of padding are those of the convolution that is
            transposed.

    Returns:
        An array with the dimensions that ``dimension_numbers`` name, of the dtype of the operands,
        or of ``preferred_element_type``.

    Raises:
        TypeError: the dtypes differ.
        ValueError: a parameter does not fit the arrays.

    >>> x, kernel = np.ones((1, 4, 4, 3), np.float32), np.ones((3, 3, 3, 2), np.float32)
    >>> lax.conv_transpose(x, kernel, (2, 2), "SAME").shape
    (1, 8, 8, 2)
    """
    x, kernel = typeof(accept("conv_transpose", lhs)), typeof(accept("conv_transpose", rhs))
    _check_ranks("conv_transpose", x, kernel)
    spatial = x.ndim - 2
    if dimension_numbers is None:
        letters = _CHANNELS_LAST.get(spatial, "ABDEFGHJ"[:spatial])
        dimension_numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    numbers = conv_dimension_numbers(x.shape, kernel.shape, dimension_numbers)
    steps = (1,) * spatial if rhs_dilation is None else tuple(rhs_dilation)
    windows = list(map(dilated, _at(kernel, numbers.rhs_spec[2:]), steps))
    if isinstance(padding, str):
        padding = enlarging_pads(windows, strides, padding)
    elif use_consistent_padding:
        forward = zip(windows, pairs("conv_transpose", "padding", padding), strict=True)
        padding = [(k - 1 - low, k - 1 - high) for k, (low, high) in forward]
    if transpose_kernel:
        rhs = reverse(rhs, dims=numbers.rhs_spec[2:])
        out, features, *rest = numbers.rhs_spec
        numbers = ConvDimensionNumbers(numbers.lhs_spec, (features, out, *rest), numbers.out_spec)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * spatial,
        padding,
        strides,
        steps,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def enlarging_pads(
    windows: Sequence[int], strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """The padding of lhs, its elements ``strides`` apart, for the lengths that are promised."""
    pads: list[tuple[int, int]] = []
    for window, stride in zip(windows, strides, strict=True):
        if padding.upper() == "SAME":
            low = window - 1 - max(window - stride, 0) // 2
            pads.append((low, window + stride - 2 - low))
        elif padding.upper() == "VALID":
            pads.append((window - 1, max(window, stride) - 1))
        else:
            raise ValueError(
                "lax.conv_transpose: padding must be 'SAME', 'VALID' or (low, high) pairs, got "
                f"{padding!r}"
            )
    return pads
