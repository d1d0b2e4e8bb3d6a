"""Trees of arrays as one vector, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import lattice, tree
from phalanx.base.boundary import bound
from phalanx.base.errors import ShapeError
from phalanx.core.types import Array, ArrayType
from phalanx.numpy.promotion import as_array, convert, kind_of, number_array

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Any], Any]]:
    """The elements of all leaves as one vector, and the function that goes back.

    Args:
        pytree: a tree of arrays and numbers.

    Returns:
        The vector, in the dtype to which those of the leaves promote, float32 where there are no
        leaves; and a function of such vectors that gives trees of the same structure, with leaves
        of the same shapes and dtypes. Where all leaves have one dtype it takes vectors of any, and
        the leaves have that.

    Raises:
        TypeError: a leaf is no array, or dtypes have none in common. The function raises it for
            vectors of another dtype, and ``ShapeError`` for those of another length.

    >>> import phalanx.numpy as jnp
    >>> from phalanx.flatten_util import ravel_pytree
    >>> vector, unravel = ravel_pytree({"a": jnp.arange(2.0), "b": jnp.ones((1, 2))})
    >>> print(vector, unravel(2 * vector)["a"])
    [0. 1. 1. 1.] [0. 2.]
    """
    leaves, treedef = tree.flatten(pytree)
    arrays = [number_array("ravel_pytree", leaf) for leaf in leaves]
    types = [x.aval for x in arrays]
    common = lattice.promote(*map(kind_of, arrays))[0] if arrays else _EMPTY
    weak = all(t.weak and t.dtype == common for t in types) and bool(types)
    flat = [ops.reshape(convert(x, common, weak), shape=(x.size,)) for x in arrays]
    if not flat:
        vector = ops.full((0,), 0, common)
    else:
        vector = ops.concatenate(*flat, dim=0) if len(flat) > 1 else flat[0]
    return vector, _Unravel(treedef, types, common)


_EMPTY = np.dtype("float32")


class _Unravel:
    """From a vector to a tree; equal ones compare, as static arguments must."""

    def __init__(self, treedef: tree.PyTreeDef, types: list[ArrayType], common: np.dtype) -> None:
        self._key = treedef, tuple(types), common

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unravel) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __call__(self, vector: Any) -> Any:
        treedef, types, common = self._key
        x = as_array("unravel", vector)
        sizes = [t.size for t in types]
        if x.shape != (sum(sizes),):
            raise ShapeError(
                f"unravel: a vector of {sum(sizes)} elements is needed, as ravel_pytree gave it, "
                f"got {x.aval}"
            )
        mixed = any(t.dtype != common for t in types)
        if mixed and x.aval.dtype != common:
            raise TypeError(
                f"unravel: a vector of dtype {common} is needed, as ravel_pytree gave it, got "
                f"{x.aval}; convert it with astype"
            )
        leaves = [
            convert(ops.reshape(part, shape=t.shape), t.dtype)
            if mixed
            else ops.reshape(part, shape=t.shape)
            for part, t in zip(ops.split(x, sizes, 0), types, strict=True)
        ]
        return treedef.unflatten(leaves)


bound(sys.modules[__name__])
