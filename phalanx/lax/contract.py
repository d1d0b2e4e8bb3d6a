"""Products of matrices and, in general, of arrays over chosen dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice
from phalanx.base.errors import ShapeError
from phalanx.core.types import Array, typeof
from phalanx.lax.layout import takes_out_sharding
from phalanx.lax.operands import accept, dtype_of, integers
from phalanx.primitives.contract import as_dtype, same_dtype
from phalanx.primitives.contract import dot_general as product
from phalanx.primitives.precision import (
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
    canonical_precision,
)

PrecisionLike = Precision | DotAlgorithm | DotAlgorithmPreset | str | tuple[Any, ...] | None
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
    *,
    out_sharding: Any = None,
) -> Array:
    """The sum over contracted dimensions of lhs times rhs, beside shared batch dimensions.

    Args:
        lhs: an array.
        rhs: an array; where the dtypes differ, both are promoted. Floats of 8 bits, which have no
            common dtype, are multiplied as bfloat16, which holds them all, and the product is of
            the one that reaches further.
        dimension_numbers: ``((lhs contracting, rhs contracting), (lhs batch, rhs batch))``,
            each a sequence of dimensions, in pairs of equal length.
        precision: for float32 on accelerators: 'default', 'high', 'highest', a ``Precision``, a
            ``DotAlgorithm`` or a ``DotAlgorithmPreset`` or its name, or a pair of these.
        preferred_element_type: the dtype to accumulate in, which the result has.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array with the batch dimensions, then what is left of lhs, then of rhs; of the dtype of
        the operands, or of ``preferred_element_type``.

    Raises:
        TypeError: the dimensions of a pair have different lengths.
        ValueError: dimensions are given twice or do not exist.

    >>> x = np.ones((2, 3, 4), np.float32)
    >>> lax.dot_general(x, x, (((2,), (2,)), ((0,), (0,)))).shape
    (2, 3, 3)
    """
    who = "dot_general"
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs, rhs, narrow = promoted(accept(who, lhs), accept(who, rhs))
    out = product(
        lhs,
        rhs,
        contract=(_ints(who, lhs_contract), _ints(who, rhs_contract)),
        batch=(_ints(who, lhs_batch), _ints(who, rhs_batch)),
        precision=canonical_precision(who, precision),
        dtype=dtype_of(preferred_element_type),
    )
    return as_dtype(out, narrow) if narrow and preferred_element_type is None else out


def _ints(who: str, dims: Any) -> tuple[int, ...]:
    return integers(who, "each part of dimension_numbers", dims)


def promoted(x: Any, y: Any) -> tuple[Any, Any, np.dtype | None]:
    """The operands in one dtype; and that of the product, where it is another."""
    tx, ty = typeof(x), typeof(y)
    if tx.dtype == ty.dtype:
        return x, y, None
    if {tx.dtype, ty.dtype} <= dtypes.FLOAT8:
        further = max(tx.dtype, ty.dtype, key=lambda dtype: float(dtypes.finfo(dtype).max))
        return *same_dtype(x, y), further
    dtype = lattice.common((tx.dtype, tx.weak), (ty.dtype, ty.weak))[0]
    return as_dtype(x, dtype), as_dtype(y, dtype), None


@takes_out_sharding
def dot(
    lhs: Any,
    rhs: Any,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    out_sharding: Any = None,
) -> Array:
    """The product of two vectors, a matrix and a vector, or two matrices.

    With ``dimension_numbers``, it is ``dot_general``.

    Args:
        lhs: an array.
        rhs: an array; where the dtypes differ, both are promoted. Floats of 8 bits, which have no
            common dtype, are multiplied as bfloat16, which holds them all, and the product is of
            the one that reaches further.
        precision: for float32 on accelerators: 'default', 'high', 'highest', a ``Precision``, a
            ``DotAlgorithm`` or a ``DotAlgorithmPreset`` or its name, or a pair of these.
        preferred_element_type: the dtype to accumulate in, which the result has.
        dimension_numbers: ``((lhs contracting, rhs contracting), (lhs batch, rhs batch))``, each a
            sequence of dimensions, in pairs of equal length.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dimensions that are not contracted, of the dtype of the operands, or of
        ``preferred_element_type``.

    Raises:
        TypeError: the operands are no vectors or matrices, or the lengths that are summed over
            differ.

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

    Args:
        lhs: matrices [..., m, k].
        rhs: matrices [..., k, n], with the same dimensions in front.
        precision: of products of float32: ``default``, ``high``, ``highest``, or a
            ``lax.Precision``; None: the option ``default_matmul_precision``.

    Returns:
        An array [..., m, n] of the dtype of the operands.

    Raises:
        ValueError: the operands have different ranks, or fewer than 2 dimensions.

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


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: Any = None,
) -> Array:
    """The product of (lhs * lhs_scale) and (rhs * rhs_scale), of narrow numbers with wide ranges.

    Args:
        lhs: an array, often of 8-bit floats.
        rhs: an array.
        lhs_scale: as long as lhs, but shorter along contracted dimensions, of which each element
            scales as many neighbours; None for 1.
        rhs_scale: the same for rhs.
        dimension_numbers: see ``dot_general``; without them, matrices, or matrices beside one
            batch dimension, are multiplied.
        preferred_element_type: the dtype in which all is computed, bfloat16 if not given.

    Returns:
        An array of the dimensions that are not contracted, of ``preferred_element_type``, else of
        bfloat16.

    Raises:
        ShapeError: a scale does not divide its operand.
        ValueError: there are no dimension numbers, and the ranks are neither 2 nor 3.

    >>> x, s = np.ones((1, 4), np.float32), np.float32([[1, 3]])
    >>> lax.scaled_dot(x, x.T, lhs_scale=s, preferred_element_type=np.float32)
    Array([[8.]], dtype=float32)
    """
    who = "scaled_dot"
    rank = typeof(accept(who, lhs)).ndim
    if dimension_numbers is None:
        if rank not in (2, 3) or typeof(accept(who, rhs)).ndim != rank:
            raise ValueError(
                f"lax.{who}: matrices are needed, or three dimensions each, got {typeof(lhs)} and "
                f"{typeof(rhs)}; otherwise pass dimension_numbers"
            )
        batch = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (rank - 2,)), (batch, batch))
    dtype = dtype_of(dtypes.BFLOAT16 if preferred_element_type is None else preferred_element_type)
    assert dtype is not None
    x, y = (_scaled(a, s, dtype) for a, s in ((lhs, lhs_scale), (rhs, rhs_scale)))
    return dot_general(x, y, dimension_numbers, preferred_element_type=dtype)


def _scaled(x: Any, scale: Any, dtype: np.dtype) -> Any:
    """``x`` times ``scale``, each element of which is repeated over equally many neighbours."""
    x = as_dtype(accept("scaled_dot", x), dtype)
    if scale is None:
        return x
    shape, scale_shape = typeof(x).shape, typeof(accept("scaled_dot", scale)).shape
    if len(scale_shape) != len(shape) or any(
        s == 0 or n % s for n, s in zip(shape, scale_shape, strict=True)
    ):
        raise ShapeError(
            f"lax.scaled_dot: the lengths of the scale {typeof(scale)} must divide those of "
            f"{typeof(x)}"
        )
    pairs = tuple(m for n, s in zip(shape, scale_shape, strict=True) for m in (s, n // s))
    whole = ops.broadcast(as_dtype(scale, dtype), shape=pairs, dims=tuple(range(0, len(pairs), 2)))
    return ops.mul(x, ops.reshape(whole, shape=shape))
