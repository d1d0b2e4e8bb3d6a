"""Convolution, in any number of spatial dimensions, with strides, dilations and groups.

With lhs dilated by ``lhs_dilation``, per spatial dimension::

    out[n, f, p] = sum over c, k of lhs[n, c, p * stride + k * rhs_dilation - low] rhs[f, c, k]

Both cotangents are convolutions again. In that of lhs, the cotangent takes the place of lhs
and strides and dilations change places; in that of rhs, it takes the place of rhs, and the
batch is what is summed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.lengths import larger
from phalanx.core.axes import Axis
from phalanx.core.blocks import Blocks
from phalanx.core.builder import Builder
from phalanx.core.correspond import Dims, LeftSums, Whole
from phalanx.core.primitive import (
    Batched,
    Cotangents,
    Elements,
    Example,
    LaneDims,
    Linear,
    Operands,
    Primitive,
)
from phalanx.core.types import ArrayType, Ints, typeof
from phalanx.primitives.basis import move, zeros
from phalanx.primitives.contract import as_dtype, bilinear_linearize, product_type, same_dtype
from phalanx.primitives.domains import f32
from phalanx.primitives.length import need_numbers
from phalanx.primitives.shape import DimensionNumbers, merge_dims, reverse, split_dim


class ConvDimensionNumbers(DimensionNumbers, frozen=True):
    """Which dimensions of the arrays of a convolution mean what.

    Attributes:
        lhs_spec: of lhs: batch, feature, then the spatial dimensions.
        rhs_spec: of rhs: output feature, input feature, then the spatial dimensions.
        out_spec: of the result: batch, feature, then the spatial dimensions.

    Args:
        lhs_spec: batch, features and spatial dimensions of the images, by position.
        rhs_spec: features of the result, of the images, and spatial dimensions of the kernel.
        out_spec: batch, features and spatial dimensions of the result.

    >>> lax.conv_dimension_numbers((1, 3, 8, 8), (4, 3, 2, 2), ("NCHW", "OIHW", "NCHW")).lhs_spec
    (0, 1, 2, 3)
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


Pairs = tuple[tuple[int, int], ...]


def dilated(n: int, dilation: int) -> int:
    """The length of ``n`` elements with ``dilation - 1`` holes between neighbours."""
    return 0 if n == 0 else (n - 1) * dilation + 1


def _at(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape[d] for d in dims)


# ---- type and lowering ----------------------------------------------------------------------


def _check_specs(x: ArrayType, kernel: ArrayType, numbers: ConvDimensionNumbers) -> None:
    specs = (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec)
    if (
        x.ndim != kernel.ndim
        or x.ndim < 2
        or any(sorted(spec) != list(range(x.ndim)) for spec in specs)
    ):
        raise ValueError(
            f"conv_general_dilated: lhs {x} and rhs {kernel} must have one rank, at least 2, and "
            f"each part of the dimension numbers must list its dimensions, got {numbers}"
        )


def _check_windows(ndim: int, **windows: Sequence[Any]) -> None:
    for name, values in windows.items():
        if len(values) != ndim:
            raise ValueError(
                f"conv_general_dilated: {name} needs one entry for each of {ndim} spatial "
                f"dimensions, got {values}"
            )
        if name != "padding" and any(v < 1 for v in values):
            raise ValueError(f"conv_general_dilated: {name} must be positive, got {values}")


_LAST = (
    "; where channels are the last dimension, pass conv_general_dilated "
    "dimension_numbers=('NHWC', 'HWIO', 'NHWC')"
)


def _check_groups(
    x: ArrayType, kernel: ArrayType, numbers: ConvDimensionNumbers, groups: int, batches: int
) -> None:
    batch, features = _at(x.shape, numbers.lhs_spec[:2])
    outputs, inputs = _at(kernel.shape, numbers.rhs_spec[:2])
    who = "conv_general_dilated"
    remedy = "where kernels are mapped, each is a group: take them one by one, with lax.map"
    need_numbers(who, "the number of groups", (groups, batches), remedy)
    if groups < 1 or batches < 1 or (groups != 1 and batches != 1):
        raise ValueError(
            f"{who}: feature_group_count and batch_group_count must be positive and one of them "
            f"1, got {groups} and {batches}"
        )
    if features != inputs * groups:
        last = numbers.lhs_spec[1] == 1 and x.shape[-1] == kernel.shape[-2] * groups
        raise TypeError(
            f"{who}: lhs {x} has {features} features in dimension {numbers.lhs_spec[1]}, which "
            f"must be those of rhs {kernel} in dimension {numbers.rhs_spec[1]}, {inputs}, times "
            f"feature_group_count, {groups}{_LAST if last else ''}"
        )
    if outputs % groups or outputs % batches or batch % batches:
        raise ValueError(
            f"{who}: the {outputs} output features of rhs {kernel} must be a multiple of "
            f"feature_group_count, {groups}, and of batch_group_count, {batches}; so must the "
            f"batch of {batch} of lhs {x} of the latter"
        )


def _conv_type(
    x: ArrayType,
    kernel: ArrayType,
    *,
    strides: Ints,
    padding: Pairs,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any = None,
    dtype: np.dtype | None = None,
    **sums: Unpack[LeftSums],
) -> ArrayType:
    numbers = dimension_numbers
    _check_specs(x, kernel, numbers)
    _check_windows(
        x.ndim - 2,
        strides=strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
    )
    _check_groups(x, kernel, numbers, feature_group_count, batch_group_count)
    lengths = _at(x.shape, numbers.lhs_spec[2:])
    windows = _at(kernel.shape, numbers.rhs_spec[2:])
    shape = [0] * x.ndim
    shape[numbers.out_spec[0]] = x.shape[numbers.lhs_spec[0]] // batch_group_count
    shape[numbers.out_spec[1]] = kernel.shape[numbers.rhs_spec[0]]
    for i, d in enumerate(numbers.out_spec[2:]):
        covered = dilated(lengths[i], lhs_dilation[i]) + sum(padding[i])
        room = covered - dilated(windows[i], rhs_dilation[i])
        shape[d] = larger(room // strides[i] + 1, 0)
    result = product_type("conv_general_dilated", x, kernel, dtype)
    return ArrayType(tuple(shape), result, x.weak and kernel.weak and dtype is None)


def _conv_lower(
    b: Builder,
    x: Any,
    kernel: Any,
    strides: Ints,
    padding: Pairs,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any = None,
    dtype: np.dtype | None = None,
    **sums: Unpack[LeftSums],
) -> Any:
    if b.ins[0].size == 0 or b.ins[1].size == 0:  # sums of nothing
        return b.constant(0, b.outs[0].dtype, b.outs[0].shape)
    numbers = dimension_numbers.lhs_spec, dimension_numbers.rhs_spec, dimension_numbers.out_spec
    unsharded_dims = _to_be_whole(numbers, feature_group_count > 1, batch_group_count > 1)
    y = b.convolution(
        b.whole_along(x, unsharded_dims[0]),
        b.whole_along(kernel, unsharded_dims[1]),
        b.outs[0],
        strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count,
        batch_group_count,
        precision,
    )
    return b.gathered(y, unsharded_dims[2])


def _to_be_whole(
    numbers: tuple[Ints, Ints, Ints], by_feature: bool, by_batch: bool
) -> tuple[Ints, Ints, Ints]:
    """The dimensions of both operands and of the result that are not to be cut over devices.

    XLA's partitioner gets convolutions wrong of which space is cut, or what there are groups of.
    """
    x, kernel, y = numbers
    if by_batch:
        return x, kernel, y
    if by_feature:
        return x[1:], kernel, y[1:]
    return x[2:], kernel[2:], y[2:]


# ---- transposes -----------------------------------------------------------------------------


class _Window(Struct, frozen=True):
    """One spatial dimension: lengths of lhs, rhs and result, and how they meet."""

    lhs: int
    rhs: int
    out: int
    stride: int
    low: int
    lhs_dilation: int
    rhs_dilation: int

    def pads_for_lhs(self) -> tuple[int, int]:
        """The padding of the dilated cotangent in the transpose with respect to lhs."""
        reach = dilated(self.rhs, self.rhs_dilation)
        covered = dilated(self.lhs, self.lhs_dilation)
        return reach - 1 - self.low, covered + self.low - dilated(self.out, self.stride)

    def pads_for_rhs(self) -> tuple[int, int]:
        """The padding of the dilated lhs in the transpose with respect to rhs."""
        reach = dilated(self.rhs, self.rhs_dilation)
        covered = dilated(self.lhs, self.lhs_dilation)
        return self.low, reach - 1 + dilated(self.out, self.stride) - covered - self.low


def _windows(
    x: ArrayType, kernel: ArrayType, ct: ArrayType, params: dict[str, Any]
) -> list[_Window]:
    numbers = params["dimension_numbers"]
    columns = (
        _at(x.shape, numbers.lhs_spec[2:]),
        _at(kernel.shape, numbers.rhs_spec[2:]),
        _at(ct.shape, numbers.out_spec[2:]),
        params["strides"],
        [low for low, _ in params["padding"]],
        params["lhs_dilation"],
        params["rhs_dilation"],
    )
    return [_Window(*row) for row in zip(*columns, strict=True)]


def _swapped(spec: tuple[int, ...]) -> tuple[int, ...]:
    return (spec[1], spec[0], *spec[2:])


def _conv_transpose(ct: Any, x: Any, kernel: Any, **params: Any) -> Cotangents:
    if isinstance(x, Linear) and isinstance(kernel, Linear):
        return [None, None]
    if isinstance(x, Linear):
        return [_transpose_lhs(ct, x.type, kernel, params), None]
    return [None, _transpose_rhs(ct, x, kernel.type, params)]


def _transpose_lhs(ct: Any, x: ArrayType, kernel: Any, params: dict[str, Any]) -> Any:
    if typeof(ct).size == 0 or x.size == 0:
        return zeros(x)
    numbers = params["dimension_numbers"]
    windows = _windows(x, typeof(kernel), typeof(ct), params)
    features, batches = params["feature_group_count"], params["batch_group_count"]
    out_features, in_features = numbers.rhs_spec[:2]
    ct, kernel = same_dtype(ct, kernel)
    kernel = reverse(kernel, dims=numbers.rhs_spec[2:])
    kernel = _regroup(kernel, out_features, in_features, max(features, batches))
    out = conv_general_dilated(
        ct,
        kernel,
        strides=params["lhs_dilation"],
        padding=tuple(w.pads_for_lhs() for w in windows),
        lhs_dilation=params["strides"],
        rhs_dilation=params["rhs_dilation"],
        dimension_numbers=ConvDimensionNumbers(
            numbers.out_spec, _swapped(numbers.rhs_spec), numbers.lhs_spec
        ),
        feature_group_count=max(features, batches),
        batch_group_count=1,
        precision=params.get("precision"),
    )
    # The groups of a batch came out as groups of features.
    out = _regroup(out, numbers.lhs_spec[1], numbers.lhs_spec[0], batches)
    return as_dtype(out, x.dtype)


def _transpose_rhs(ct: Any, x: Any, kernel: ArrayType, params: dict[str, Any]) -> Any:
    if typeof(ct).size == 0 or typeof(x).size == 0 or kernel.size == 0:
        return zeros(kernel)
    numbers = params["dimension_numbers"]
    windows = _windows(typeof(x), kernel, typeof(ct), params)
    x, ct = same_dtype(x, ct)
    out = conv_general_dilated(
        x,
        ct,
        strides=params["rhs_dilation"],
        padding=tuple(w.pads_for_rhs() for w in windows),
        lhs_dilation=params["lhs_dilation"],
        rhs_dilation=params["strides"],
        dimension_numbers=ConvDimensionNumbers(
            _swapped(numbers.lhs_spec), _swapped(numbers.out_spec), _swapped(numbers.rhs_spec)
        ),
        feature_group_count=params["batch_group_count"],
        batch_group_count=params["feature_group_count"],
        precision=params.get("precision"),
    )
    return as_dtype(out, kernel.dtype)


def _regroup(x: Any, source: int, target: int, groups: int) -> Any:
    """``x`` with the outer ``groups`` of dimension ``source`` made the outer part of ``target``."""
    if groups == 1:
        return x
    each = typeof(x).shape[source] // groups
    return _fold(split_dim(x, source, (groups, each)), source, target)


# ---- batching -------------------------------------------------------------------------------


def _fold(x: Any, dim: int, target: int, groups: int = 1) -> Any:
    """``x`` with dimension ``dim`` moved into dimension ``target`` of the others.

    It becomes the outer part there, or, with ``groups``, the part just inside of these.
    """
    x = move(x, dim, target)
    if groups > 1:
        each = typeof(x).shape[target + 1] // groups
        x = move(split_dim(x, target + 1, (groups, each)), target, target + 1)
        return merge_dims(x, target, 3)
    return merge_dims(x, target)


def _unfold(x: Any, dim: int, size: int, groups: int = 1) -> tuple[Any, int]:
    """Undo ``_fold`` of a dimension of length ``size`` into ``dim``, as dimension ``dim``."""
    each = typeof(x).shape[dim] // (size * groups)
    x = split_dim(x, dim, (groups, size, each))
    return merge_dims(move(x, dim + 1, dim), dim + 1), dim


def _of_lane(x: Any, dim: int | None) -> ArrayType:
    """The type of one lane of ``x``."""
    type = typeof(x)
    return type if dim is None else type.update(shape=type.shape[:dim] + type.shape[dim + 1 :])


def _conv_batch(axis: Axis, values: Operands, dims: LaneDims, **params: Any) -> Batched:
    (x, kernel), (dx, dk) = values, dims
    numbers = params["dimension_numbers"]
    features, batches = params["feature_group_count"], params["batch_group_count"]
    if axis.size == 0:  # what no lanes were merged with could not be found again
        out = _conv_type(*map(_of_lane, values, dims), **params)
        return zeros(out.update(shape=(0, *out.shape))), 0
    if dk is None:
        x = _fold(x, dx, numbers.lhs_spec[0], batches)
        out = conv_general_dilated(x, kernel, **params)
        return _unfold(out, numbers.out_spec[0], axis.size)
    if dx is None:
        groups = max(features, batches)
        kernel = _fold(kernel, dk, numbers.rhs_spec[0], groups)
        out = conv_general_dilated(x, kernel, **params)
        return _unfold(out, numbers.out_spec[1], axis.size, groups)
    kernel = _fold(kernel, dk, numbers.rhs_spec[0])
    if batches > 1:
        x = _fold(x, dx, numbers.lhs_spec[0])
        params["batch_group_count"] = axis.size * batches
    else:
        x = _fold(x, dx, numbers.lhs_spec[1])
        params["feature_group_count"] = axis.size * features
    out = conv_general_dilated(x, kernel, **params)
    return _unfold(out, numbers.out_spec[1], axis.size)


# ---- the primitive --------------------------------------------------------------------------


def plain_window(spatial: int, **changes: Any) -> dict[str, Any]:
    """The parameters of a convolution in NCHW order, without strides, padding or groups."""
    order = tuple(range(spatial + 2))
    return {
        "strides": (1,) * spatial,
        "padding": ((0, 0),) * spatial,
        "lhs_dilation": (1,) * spatial,
        "rhs_dilation": (1,) * spatial,
        "dimension_numbers": ConvDimensionNumbers(order, order, order),
        "feature_group_count": 1,
        "batch_group_count": 1,
        **changes,
    }


_NHWC = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))


def _conv_operations(
    results: Sequence[ArrayType],
    x: ArrayType,
    kernel: ArrayType,
    *,
    dimension_numbers: ConvDimensionNumbers,
    **_: Any,
) -> float:
    """A product and a sum for each element of the result and each of a window's, which of complex
    numbers are 8 operations."""
    each = 8 if dtypes.is_complex(results[0].dtype) else 2
    return (
        each * results[0].size * kernel.size / max(kernel.shape[dimension_numbers.rhs_spec[0]], 1)
    )


_WINDOW = Whole("a window is read as a whole")
_GROUPED = Whole("it goes through groups of a batch")


def _conv_dims(
    x: ArrayType, kernel: ArrayType, *, unreduced: tuple[str, ...] = (), **params: Any
) -> Dims:
    numbers = params["dimension_numbers"]
    space = [("space", i) for i in range(x.ndim - 2)]
    batch, out = ("batch", "out") if params["batch_group_count"] == 1 else (_GROUPED, _GROUPED)
    named = (
        (numbers.lhs_spec, [batch, "in", *space]),
        (numbers.rhs_spec, [out, "in", *(_WINDOW,) * len(space)]),
        (numbers.out_spec, ["batch", "out", *space]),
    )
    labels = [_in_order(spec, of) for spec, of in named]
    return Dims((labels[0], labels[1]), (labels[2],), product=True, unreduced=unreduced)


def _in_order(spec: Ints, labels: Sequence[Any]) -> tuple[Any, ...]:
    """``labels`` of the dimensions that ``spec`` lists, in the order of dimensions."""
    return tuple([labels[spec.index(d)] for d in range(len(spec))])


conv_general_dilated = Primitive(
    "conv_general_dilated",
    _conv_type,
    _conv_lower,
    linearize=bilinear_linearize(lambda: conv_general_dilated),
    transpose=_conv_transpose,
    batch=_conv_batch,
    dims=_conv_dims,
    leaves_sums=True,
    elements=Elements(operations=_conv_operations),
    doc="a windowed sum of products over features and space; stablehlo.convolution",
    examples=[
        Example((f32(2, 3, 7), f32(4, 3, 3)), plain_window(1)),
        Example(
            (f32(2, 7, 6, 4), f32(3, 2, 2, 6)),
            plain_window(
                2,
                strides=(2, 1),
                padding=((1, 2), (0, -1)),
                rhs_dilation=(1, 2),
                dimension_numbers=_NHWC,
                feature_group_count=2,
            ),
        ),
        Example(
            (f32(4, 3, 5), f32(6, 3, 2)),
            plain_window(1, padding=((2, 1),), lhs_dilation=(2,), batch_group_count=2),
        ),
    ],
)


def padding_same(lengths: Sequence[int], windows: Sequence[int], strides: Sequence[int]) -> Pairs:
    """The padding under which the result of a window has ``ceil(length / stride)`` elements."""
    if any([step < 1 for step in strides]):
        raise ValueError(f"padding 'SAME': strides must be positive, got {tuple(strides)}")
    pads: list[tuple[int, int]] = []
    for n, window, stride in zip(lengths, windows, strides, strict=True):
        missing = larger((Blocks(n, stride).length - 1) * stride + window - n, 0)
        pads.append((missing // 2, missing - missing // 2))
    return tuple(pads)
