"""Products of matrices and, in general, of arrays over chosen dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.base import dtypes
from phalanx.core.types import Array, typeof
from phalanx.lax.layout import takes_out_sharding
from phalanx.lax.operands import accept, dtype_of, integers
from phalanx.ops.contract import Precision, as_dtype, canonical_precision
from phalanx.ops.contract import dot_general as product

PrecisionLike = Precision | str | tuple | None
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


@takes_out_sharding
def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Array:
    """The sum over contracted dimensions of lhs times rhs, beside shared batch dimensions.

    Args:
        lhs: an array.
        rhs: an array; where the dtypes differ, both are promoted.
        dimension_numbers: ``((lhs contracting, rhs contracting), (lhs batch, rhs batch))``,
            each a sequence of dimensions, in pairs of equal length.
        precision: for float32 on accelerators: 'default', 'high', 'highest', a ``Precision``,
            the name of an algorithm that is one of them, such as 'TF32_TF32_F32', or a pair.
        preferred_element_type: the dtype to accumulate in, which the result has.

    Returns:
        An array with the batch dimensions, then what is left of lhs, then of rhs.

    Raises:
        TypeError: the dimensions of a pair have different lengths.
        ValueError: dimensions are given twice or do not exist.

    >>> x = np.ones((2, 3, 4), np.float32)
    >>> lax.dot_general(x, x, (((2,), (2,)), ((0,), (0,)))).shape
    (2, 3, 3)
    """
    who = "dot_general"
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs, rhs = _promoted(accept(who, lhs), accept(who, rhs))
    return product(
        lhs,
        rhs,
        contract=(_ints(who, lhs_contract), _ints(who, rhs_contract)),
        batch=(_ints(who, lhs_batch), _ints(who, rhs_batch)),
        precision=canonical_precision(who, precision),
        dtype=dtype_of(preferred_element_type),
    )


def _ints(who: str, dims: Any) -> tuple[int, ...]:
    return integers(who, "each part of dimension_numbers", dims)


def _promoted(x: Any, y: Any) -> tuple[Any, Any]:
    tx, ty = typeof(x), typeof(y)
    if tx.dtype == ty.dtype:
        return x, y
    dtype = dtypes.promote((tx.dtype, tx.weak), (ty.dtype, ty.weak))[0]
    return as_dtype(x, dtype), as_dtype(y, dtype)


@takes_out_sharding
def dot(
    lhs: Any,
    rhs: Any,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
) -> Array:
    """The product of two vectors, a matrix and a vector, or two matrices.

    With ``dimension_numbers``, it is ``dot_general``.

    >>> lax.dot(np.float32([[1, 2], [3, 4]]), np.float32([1, 10]))
    Array([21., 43.], dtype=float32)
    """
    x, y = typeof(accept("dot", lhs)), typeof(accept("dot", rhs))
    if dimension_numbers is None:
        if x.ndim not in (1, 2) or y.ndim not in (1, 2) or x.shape[-1] != y.shape[0]:
            raise TypeError(
                f"lax.dot: vectors or matrices are needed, the last dimension of lhs as long as "
                f"the first of rhs, got {x} and {y}; otherwise pass dimension_numbers"
            )
        dimension_numbers = (((x.ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: PrecisionLike = None) -> Array:
    """Matrix products [..., m, k] x [..., k, n] -> [..., m, n] over equal leading dimensions.

    >>> x, y = np.ones((5, 2, 3), np.float32), np.ones((5, 3, 4), np.float32)
    >>> lax.batch_matmul(x, y).shape
    (5, 2, 4)
    """
    x, y = typeof(accept("batch_matmul", lhs)), typeof(accept("batch_matmul", rhs))
    if x.ndim < 2 or x.ndim != y.ndim:
        raise ValueError(
            f"lax.batch_matmul: operands of one rank, at least 2, are needed, got {x} and {y}"
        )
    batch = tuple(range(x.ndim - 2))
    numbers = (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch))
    return dot_general(lhs, rhs, numbers, precision)
