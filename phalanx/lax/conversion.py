"""Numbers of one dtype as numbers of another."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.core.types import Array, ArrayLike, DTypeLike, typeof
from phalanx.lax.operands import accept


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The elements in another dtype; real parts of complex numbers, floats rounded towards 0.

    Args:
        operand: an array.
        new_dtype: the dtype of the result.

    Returns:
        An array of the shape of the operand.

    >>> lax.convert_element_type(np.float32([1.7, -1.7]), np.int32)
    Array([ 1, -1], dtype=int32)
    """
    x = accept("convert_element_type", operand)
    source, target = typeof(x).dtype, dtypes.requested(new_dtype)
    if dtypes.is_complex(source) and (dtypes.is_integer(target) or dtypes.is_floating(target)):
        x = ops.real(x)
    if source == target and not typeof(x).weak and isinstance(x, Array):
        return x
    return ops.convert(x, dtype=target, weak=False)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of the elements read as another dtype.

    A wider dtype takes the last dimension together, a narrower one adds a last dimension.

    Args:
        operand: an array.
        new_dtype: the dtype of the result.

    Returns:
        An array of the shape of ``operand``; a last dimension more or less where the widths of the
        dtypes differ.

    Raises:
        TypeError: ``operand`` is complex.

    >>> lax.bitcast_convert_type(np.float32([1.0]), np.int32)
    Array([1065353216], dtype=int32)
    """
    x = accept("bitcast_convert_type", operand)
    return ops.bitcast(x, dtype=dtypes.requested(new_dtype))
