"""Products of rows in groups: each group of rows meets a matrix of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.boundary import hiding
from phalanx.base.errors import ShapeError
from phalanx.core.axes import Axis
from phalanx.core.types import Array, typeof
from phalanx.lax.contract import DotDimensionNumbers, PrecisionLike, dot_general, promoted
from phalanx.lax.layout import takes_out_sharding
from phalanx.lax.operands import accept, dtype_of
from phalanx.primitives.contract import as_dtype
from phalanx.primitives.domains import I32
from phalanx.primitives.precision import canonical_precision
from phalanx.primitives.shape import broadcast_to, reorder
from phalanx.transforms.batch import batch as batch_of
from phalanx.transforms.batch import place_lanes


class RaggedDotDimensionNumbers(Struct, frozen=True):
    """How the dimensions of a product with groups correspond.

    Attributes:
        dot_dimension_numbers: those of ``dot_general``, without that of the groups.
        lhs_ragged_dimensions: the one dimension of lhs that falls into groups.
        rhs_group_dimensions: the dimension of rhs that counts groups, where lhs has rows in
            groups; else nothing.

    Args:
        dot_dimension_numbers: which dimensions are summed over and which are a batch, as in
            ``dot_general``.
        lhs_ragged_dimensions: the dimension of lhs that is divided into groups, a sequence of one.
        rhs_group_dimensions: the dimension of rhs that numbers the groups.

    >>> from phalanx import lax
    >>> product = (((1,), (1,)), ((), ()))
    >>> rows = lax.RaggedDotDimensionNumbers(product, (0,), (0,))
    >>> x, w = jnp.ones((3, 2)), jnp.stack([jnp.eye(2), 5 * jnp.eye(2)])
    >>> print(lax.ragged_dot_general(x, w, jnp.array([1, 2]), rows))
    [[1. 1.]
     [5. 5.]
     [5. 5.]]
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    @hiding
    def __post_init__(self) -> None:
        try:
            contract, batch = self.dot_dimension_numbers
            pairs = tuple((tuple(x), tuple(y)) for x, y in (contract, batch))
            ragged, group = tuple(self.lhs_ragged_dimensions), tuple(self.rhs_group_dimensions)
        except (TypeError, ValueError):
            raise TypeError(
                "RaggedDotDimensionNumbers: the numbers of dot_general, as (((1,), (1,)), ((), "
                f"())), and two sequences of dimensions are needed, got {self}"
            ) from None
        force_setattr(self, "dot_dimension_numbers", pairs)
        force_setattr(self, "lhs_ragged_dimensions", ragged)
        force_setattr(self, "rhs_group_dimensions", group)


_ROWS = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


@takes_out_sharding
def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """A product of groups of rows, one after the other, with a matrix for each group.

    Of [m, k] and [g, k, n] it is [m, n].

    The work grows with the number of rows and not with that of the groups.

    Args:
        lhs: the rows.
        rhs: a matrix for each group.
        group_sizes: [g] integers, how many rows each group has. Rows after the last group give 0.
        precision: see ``dot_general``.
        preferred_element_type: the dtype to accumulate in, which the result has.
        group_offset: only None.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dimensions that are not contracted, of the dtype of the operands, or of
        ``preferred_element_type``.

    Raises:
        ShapeError: the shapes do not fit each other.
        TypeError: the sizes are no integers.
        NotImplementedError: there is a ``group_offset``.

    >>> x, ws = np.ones((4, 2), np.float32), np.float32([np.ones((2, 1)), 3 * np.ones((2, 1))])
    >>> print(lax.ragged_dot(x, ws, np.int32([3, 1])))
    [[2.]
     [2.]
     [2.]
     [6.]]
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _ROWS, precision, preferred_element_type, group_offset
    )


@takes_out_sharding
def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """``dot_general`` where a dimension of lhs falls into groups of ``group_sizes``.

    What the groups do depends on that dimension:

    - a free one: each group of rows meets its own part of rhs, along the group dimension;
    - a contracted one: each group is summed for itself, along a new first dimension;
    - a batch dimension: nothing.

    Args:
        lhs: an array.
        rhs: an array.
        group_sizes: integers [g]; or, for each element of the batch dimensions of lhs and those
            of its free or contracted dimensions that come before the one in groups, [..., g].
        ragged_dot_dimension_numbers: how the dimensions correspond.
        precision: see ``dot_general``.
        preferred_element_type: the dtype to accumulate in, which the result has.
        group_offset: only None.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dimensions that are not contracted, of the dtype of the operands, or of
        ``preferred_element_type``.

    Raises:
        ShapeError: the shapes do not fit each other.
        TypeError: the sizes are no integers, or the dimension numbers of another type.
        ValueError: there are several dimensions in groups, or of groups, or one of groups too
            much or too few.
        NotImplementedError: there is a ``group_offset``.

    >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), [1], [])
    >>> x, y = np.ones((1, 4), np.float32), np.ones((4, 1), np.float32)
    >>> lax.ragged_dot_general(x, y, np.int32([3, 1]), numbers).ravel()
    Array([3., 1.], dtype=float32)
    """
    who = "ragged_dot_general"
    x, y = typeof(accept(who, lhs)), typeof(accept(who, rhs))
    sizes = accept(who, group_sizes)
    if group_offset is not None:
        raise NotImplementedError(f"lax.{who}: group_offset is not there; slice group_sizes")
    if not dtypes.is_integer(typeof(sizes).dtype):
        raise TypeError(f"lax.{who}: group_sizes must be integers, got {typeof(sizes)}")
    n = _checked(ragged_dot_dimension_numbers, x.ndim, y.ndim)
    (contract, batch), (ragged,) = n.dot_dimension_numbers, n.lhs_ragged_dimensions
    if ragged in batch[0]:
        how = {"precision": precision, "preferred_element_type": preferred_element_type}
        return dot_general(lhs, rhs, n.dot_dimension_numbers, **how)
    lhs, rhs, narrow = promoted(lhs, rhs)
    how = {
        "precision": canonical_precision(who, precision),
        "dtype": dtype_of(preferred_element_type) or narrow,
    }
    for i, j in zip((*contract[0], *batch[0]), (*contract[1], *batch[1]), strict=True):
        if x.shape[i] != y.shape[j]:
            raise ShapeError(
                f"lax.{who}: dimension {i} of lhs {x} and {j} of rhs {y} must be equally long"
            )
    groups = n.rhs_group_dimensions
    free = [d for d in range(x.ndim) if d not in (*contract[0], *batch[0])]
    others = [d for d in range(y.ndim) if d not in (*contract[1], *batch[1], *groups)]
    free_or_contracted = free if ragged in free else list(contract[0])
    at = free_or_contracted.index(ragged)
    shared = tuple(x.shape[d] for d in batch[0])
    outer = tuple(x.shape[d] for d in free_or_contracted[:at])
    sizes = as_dtype(sizes, I32)
    count = typeof(sizes).shape[-1:]
    if typeof(sizes).shape not in (count, (*shared, *outer, *count)):
        raise ShapeError(
            f"lax.{who}: group_sizes must have shape {count} or {(*shared, *outer, *count)}, got "
            f"{typeof(sizes)}"
        )
    sizes = ops.reshape(
        broadcast_to(sizes, (*shared, *outer, *count)),
        shape=(math.prod(shared), math.prod(outer), *count),
    )
    ends = (*(x.shape[d] for d in free), *(y.shape[d] for d in others))
    if ragged in free:
        if (y.shape[groups[0]],) != count:
            raise ShapeError(
                f"lax.{who}: dimension {groups[0]} of rhs {y} must count the {count[0]} groups"
            )
        left = _merged(lhs, batch[0], free[:at], [ragged], free[at + 1 :], contract[0])
        right = _merged(rhs, batch[1], groups, contract[1], others)
        out = _over_lanes(partial(_rows_by_groups, **how), left, right, sizes, own_right=False)
        return ops.reshape(out, shape=(*shared, *ends))
    facing = [contract[1][contract[0].index(d)] for d in free_or_contracted]
    left = _merged(
        lhs, batch[0], free_or_contracted[:at], [ragged], free_or_contracted[at + 1 :], free
    )
    right = _merged(rhs, batch[1], facing[:at], facing[at : at + 1], facing[at + 1 :], others)
    out = _over_lanes(partial(_sums_by_groups, **how), left, right, sizes, own_right=True)
    out = reorder(ops.reduce_sum(out, dims=(1,)), (1, 0, 2, 3))
    return ops.reshape(out, shape=(*count, *shared, *ends))


def _checked(n: Any, lhs_rank: int, rhs_rank: int) -> RaggedDotDimensionNumbers:
    """``n``, its dimensions counted from the first.

    Raises:
        TypeError, ValueError: it is something else, or has dimensions of groups as it must not.
    """
    who = "lax.ragged_dot_general"
    if not isinstance(n, RaggedDotDimensionNumbers):
        raise TypeError(f"{who}: RaggedDotDimensionNumbers are needed, got {n!r}")
    if len(n.lhs_ragged_dimensions) != 1 or not 0 <= n.lhs_ragged_dimensions[0] < lhs_rank:
        raise ValueError(
            f"{who}: lhs_ragged_dimensions must be one dimension of lhs, got "
            f"{n.lhs_ragged_dimensions}"
        )
    contract, batch = n.dot_dimension_numbers
    dims = [(*contract[i], *batch[i]) for i in range(2)]
    if len(dims[0]) != len(dims[1]) or any(
        len(set(d)) != len(d) or any(not 0 <= k < rank for k in d)
        for d, rank in zip(dims, (lhs_rank, rhs_rank), strict=True)
    ):
        raise ValueError(
            f"{who}: contracting and batch dimensions must be distinct dimensions of lhs and rhs, "
            f"in pairs, got {n.dot_dimension_numbers} for ranks {lhs_rank} and {rhs_rank}"
        )
    free = n.lhs_ragged_dimensions[0] not in (*contract[0], *batch[0])
    taken = (*contract[1], *batch[1])
    fits = all(0 <= d < rhs_rank and d not in taken for d in n.rhs_group_dimensions)
    if len(n.rhs_group_dimensions) != free or not fits:
        wanted = "one free dimension of rhs" if free else "none"
        raise ValueError(
            f"{who}: rhs_group_dimensions must be {wanted}, since dimension "
            f"{n.lhs_ragged_dimensions[0]} of lhs is {'' if free else 'not '}free; got "
            f"{n.rhs_group_dimensions}"
        )
    return n


def _merged(x: Any, *parts: Sequence[int]) -> Any:
    """``x`` with the dimensions of each part as one."""
    shape = typeof(x).shape
    x = reorder(x, [d for part in parts for d in part])
    return ops.reshape(x, shape=tuple(math.prod(shape[d] for d in part) for part in parts))


def _over_lanes(function: Any, left: Any, right: Any, sizes: Any, own_right: bool) -> Any:
    """``function`` along the first two dimensions; ``right`` has the second if ``own_right``."""
    shared, outer = (Axis(None, n) for n in typeof(sizes).shape[:2])

    def inner(*args: Any) -> list[Any]:
        return [_on_lanes(function, outer, args, (0, 0 if own_right else None, 0))]

    return _on_lanes(inner, shared, (left, right, sizes), (0, 0, 0))


def _on_lanes(function: Any, axis: Axis, args: Any, dims: Any) -> Any:
    if axis.size == 1:  # nothing to be told apart
        args = [
            x if d is None else ops.reshape(x, shape=typeof(x).shape[1:])
            for x, d in zip(args, dims, strict=True)
        ]
        (out,) = function(*args)
        return ops.reshape(out, shape=(1, *typeof(out).shape))
    (out,), (dim,) = batch_of(function, axis, args, dims)
    return place_lanes(out, dim, 0, axis.size)


def _rows_by_groups(left: Any, right: Any, sizes: Any, **how: Any) -> list[Any]:
    """[m, i, k] x [g, k, n] -> [m, i, n]."""
    rows, inner, _ = typeof(left).shape
    left, sizes = _merged(left, (0, 1), (2,)), ops.mul(sizes, inner)
    out = ops.ragged_dot(left, right, sizes, **how)
    return [ops.reshape(out, shape=(rows, inner, *typeof(out).shape[1:]))]


def _sums_by_groups(left: Any, right: Any, sizes: Any, **how: Any) -> list[Any]:
    """[k, i, m] x [k, i, n] -> [g, m, n]."""
    inner = typeof(left).shape[1]
    left, right = (_merged(x, (0, 1), (2,)) for x in (left, right))
    return [ops.ragged_sums(left, right, ops.mul(sizes, inner), **how)]
