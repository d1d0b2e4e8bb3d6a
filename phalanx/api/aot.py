"""Shapes and dtypes that stand for arrays: what tracing needs of an argument."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from phalanx.api.arguments import LeafNames, check_leaf
from phalanx.base import dtypes
from phalanx.core.axes import Typed
from phalanx.core.program import plain
from phalanx.core.types import Array, ArrayType, typeof
from phalanx.ops.basis import check_lengths
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.stage import is_value


class ShapeDtypeStruct:
    """The shape and dtype of an array, and where it should lie, without its data.

    Inside ``shard_map``, ``vma`` has the names of the axes along which it varies.

    Raises:
        ValueError: a length is negative.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "vma", "weak_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Sharding | None = None,
        weak_type: bool = False,
        vma: Iterable[str] = (),
    ) -> None:
        self.shape = tuple(shape)
        check_lengths("ShapeDtypeStruct", self.shape)
        self.dtype = dtypes.canonical(dtypes.as_dtype(dtype))
        self.sharding = sharding
        self.weak_type = weak_type
        self.vma = frozenset(vma)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return ArrayType(self.shape, self.dtype).size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ShapeDtypeStruct without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        along = f", vma={set(self.vma)}" if self.vma else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{along})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self.shape, self.dtype, self.sharding, self.weak_type, self.vma


def struct(type: ArrayType) -> ShapeDtypeStruct:
    """``type`` as users see it."""
    return ShapeDtypeStruct(type.shape, type.dtype, weak_type=type.weak, vma=type.vma)


def abstract(x: Any, names: LeafNames | list[str], i: int, who: str) -> ArrayType:
    """The type of an array, a number, or anything that has a shape and a dtype."""
    if isinstance(x, Array):
        return plain(x.aval)  # its dtype is what it is, whatever dtypes are enabled now
    if not isinstance(x, (np.ndarray, np.generic)) and hasattr(x, "shape") and hasattr(x, "dtype"):
        weak = bool(getattr(x, "weak_type", False))
        varying = frozenset(map(Typed, getattr(x, "vma", ())))
        return ArrayType(tuple(x.shape), dtypes.canonical(x.dtype), weak, varying)
    if not is_value(x):
        check_leaf(x, names[i], who)
    kind = typeof(x)
    return ArrayType(kind.shape, kind.dtype, kind.weak)


def sharding_of(x: Any) -> Sharding | None:
    """Where ``x`` says that it lies, if it does."""
    sharding = getattr(x, "sharding", None)
    return sharding if isinstance(sharding, Sharding) else None
