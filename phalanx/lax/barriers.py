"""What derivatives, or the compiler, do not go through."""

from __future__ import annotations

from typing import Any, TypeVar

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base import tree as trees
from phalanx.core.types import typeof
from phalanx.lax.operands import accept, one

T = TypeVar("T")  # a tree of arrays


def stop_gradient(x: T) -> T:
    """Stop gradients: x, a tree of arrays, as a constant to derivatives.

    Args:
        x: a tree of arrays.

    Returns:
        A tree like ``x``.

    >>> lax.stop_gradient({"a": np.float32([1.0])})
    {'a': Array([1.], dtype=float32)}
    """
    return trees.map(_stop, x)


def _stop(x: Any) -> Any:
    dtype = typeof(accept("stop_gradient", x)).dtype
    return ops.stop_gradient(one("stop_gradient", x)) if dtypes.is_inexact(dtype) else x


def optimization_barrier(operand: T) -> T:
    """The operand, a tree of arrays, behind a barrier that the compiler moves nothing across.

    Nothing that uses an array of the result starts before all of the operand is there; and the
    compiler neither makes these arrays again where they are used, nor sees that they equal
    others. Derivatives have a barrier in the same place.

    Args:
        operand: a tree of arrays.

    Returns:
        A tree like ``operand``.

    Raises:
        TypeError: a leaf is no array or number.

    >>> lax.optimization_barrier({"a": np.float32([1.0]), "b": np.int32([2])})
    {'a': Array([1.], dtype=float32), 'b': Array([2], dtype=int32)}
    """
    leaves, treedef = trees.flatten(operand)
    operands = [accept("optimization_barrier", x) for x in leaves]
    return trees.unflatten(treedef, ops.optimization_barrier(*operands))
