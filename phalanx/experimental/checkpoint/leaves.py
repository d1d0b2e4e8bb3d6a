"""What the leaves of a tree are on a disk: numbers in the index, arrays as arrays of zarr.

Dtypes that NumPy does not have are stored as unsigned integers of the same bits, which every
reader of zarr knows: bfloat16 as uint16, float8 and int4 as uint8, random keys as their words.
"""

# What an array holds is private to users, not to what stores it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from phalanx.base import dtypes
from phalanx.base.extended import KEY_TYPES, WORD, is_key, key_type_in_files, name_in_files
from phalanx.base.kinds import class_of
from phalanx.base.numpy_kinds import is_ndarray
from phalanx.base.plain import brief
from phalanx.base.source import user_location
from phalanx.core.blocks import Blocks
from phalanx.core.types import Array, ArrayType
from phalanx.run.array import DeviceArray, words_of
from phalanx.spmd.named import PmapSharding

ARRAY, NUMPY, SCALAR = "array", "numpy array", "numpy scalar"
NUMBERS: dict[str, Any] = {kind.__name__: kind for kind in (bool, int, float, complex)}
_ORDER = [*NUMBERS]  # each can be the next one
_DTYPES: dict[str, Any] = {
    t.name: t for t in (*(dtypes.ALL - {dtypes.float0}), *KEY_TYPES.values())
}


def _number_of(type: ArrayType) -> str | None:
    """The type of Python's numbers that are like the elements of ``type``."""
    kinds = (
        ("bool", dtypes.is_bool), ("int", dtypes.is_integer), ("float", dtypes.is_floating),
        ("complex", dtypes.is_complex),
    )  # fmt: skip
    return next((kind for kind, holds in kinds if holds(type.dtype)), None)


_NUMPY: tuple[type, ...] = (np.ndarray, np.generic)


class Leaf(Struct, frozen=True):
    """A leaf as the index tells it.

    Attributes:
        path: where it is in the tree, as one writes it in Python.
        kind: ARRAY, NUMPY or SCALAR, or the name of a type of Python's numbers.
        dtype: the name of its dtype.
        shape: its shape.
        weak: whether its dtype gives way to others.
        value: a number of Python's, as it prints.
    """

    path: str
    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    weak: bool = False
    value: str = ""

    @classmethod
    def of_json(cls, fields: dict[str, Any]) -> Leaf:
        """A leaf as an index tells it.

        Raises:
            KeyError, TypeError, ValueError: there is no such leaf.
        """
        shape = tuple(map(_size, fields["shape"]))
        texts = [fields[name] for name in ("path", "kind", "dtype", "value")]
        if not all(isinstance(text, str) for text in texts) or type(fields["weak"]) is not bool:
            raise ValueError(f"{fields!r:.80} is told of a leaf")
        leaf = cls(
            fields["path"], fields["kind"], fields["dtype"], shape, fields["weak"], fields["value"]
        )
        if leaf.kind not in (*NUMBERS, ARRAY, NUMPY, SCALAR):
            raise ValueError(f"{leaf.path} is of kind {leaf.kind!r}, which there is not")
        _ = leaf.number if leaf.is_number else leaf.type
        return leaf

    @property
    def is_number(self) -> bool:
        """Whether it is one of Python's numbers, which is in the index itself."""
        return self.kind in NUMBERS

    @property
    def number(self) -> Any:
        """The number of Python's that it is."""
        if self.kind == "bool":
            return self.value == "True"
        return NUMBERS[self.kind](self.value)

    def can_be(self, number: str) -> bool:
        """Whether it is a scalar that is a number of Python's of that type without loss."""
        own = self.kind if self.is_number else _number_of(self.type)
        return not self.shape and own is not None and _ORDER.index(own) <= _ORDER.index(number)

    @property
    def type(self) -> ArrayType:
        """The type of the array that it is.

        Raises:
            ValueError: its dtype is not known here, or there is no memory of that size.
        """
        try:
            name = self.dtype
            dtype = _DTYPES[name] if name in _DTYPES else key_type_in_files(name)
        except ValueError as e:
            raise ValueError(f"{self.path} cannot be read: {e}") from None
        return ArrayType(self.shape, dtype, self.weak)

    def with_shape(self, shape: Sequence[int]) -> Leaf:
        return replace(self, shape=tuple(shape))

    def __str__(self) -> str:
        if self.is_number:
            return f"the Python {self.kind} {self.value}"
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def _size(number: Any) -> int:
    """The same number, which counts rows."""
    if type(number) is not int or not 0 <= number <= sys.maxsize:
        raise ValueError(f"an array has no {number!r} rows")
    return number


class StoredRows(Struct, frozen=True):
    """Some rows of an array: where they begin in each dimension, and their elements as stored."""

    start: tuple[int, ...]
    data: np.ndarray


class Content(Struct, frozen=True):
    """A leaf, and what this process has of it.

    Attributes:
        leaf: what the index tells.
        parts: those that this process is to write, of all processes together each once.
        grain: per dimension of what is stored, a length of which all parts begin at multiples.
        joined: the dimension in which the rows of processes are joined to a whole, for arrays of
            which each process has its own rows.
        local: whether every process has it whole, so that one writes it.
    """

    leaf: Leaf
    parts: tuple[StoredRows, ...] = ()
    grain: tuple[int, ...] = ()
    joined: int | None = None
    local: bool = True


def content(path: str, x: Any, copy: bool, who: str) -> Content:
    """What is to be stored of a leaf; with ``copy`` it does not change with the array.

    Raises:
        TypeError: it is neither an array nor a number.
    """
    if isinstance(x, DeviceArray):
        return _of_array(path, x, name_in_files(x.dtype, who), copy)
    if isinstance(x, _NUMPY):
        dtypes.refuse_masked(x)
        dtype = _DTYPES.get(x.dtype.name)  # in the order of bytes of this machine
        if dtype is not None:
            kind = NUMPY if is_ndarray(x) else SCALAR
            data = np.array(x, dtype, copy=True if copy else None)
            part = StoredRows((0,) * data.ndim, as_stored(data))
            return Content(Leaf(path, kind, dtype.name, data.shape), (part,), data.shape)
    for name, kind in NUMBERS.items():
        if isinstance(x, kind) and not isinstance(x, np.generic):
            return Content(Leaf(path, name, value=repr(kind(x))))
    advice = "leave it out, or keep it in a file of your own"
    kind = class_of(x)
    if hasattr(kind, "__dataclass_fields__"):
        advice = f"call tree_util.register_dataclass({kind.__name__}) before, to save its fields"
    if isinstance(x, Array):
        advice = "it has no value yet: save what the transformed function returns"
    raise TypeError(
        f"{who}: tree{path} is neither an array of numbers nor a number, got {_shown(x)}, at "
        f"{user_location()}; {advice}"
    )


def _shown(x: Any) -> str:
    held = f" of dtype {x.dtype}" if isinstance(x, _NUMPY) else ""
    return f"{type(x).__name__}{held} {brief(x)}"


def _of_array(path: str, x: DeviceArray, dtype: str, copy: bool) -> Content:
    leaf = Leaf(path, ARRAY, dtype, x.shape, x.aval.weak)
    held = words_of(x) if is_key(x.dtype) else x
    sharding = held.sharding
    local = sharding.is_fully_addressable
    parts: list[StoredRows] = []
    for position in sharding.local_positions:
        rows = sharding.rows(held.shape, position)
        if sharding.replica_ids[position] == 0 and all(map(len, rows)):
            block = held._block(position)._fetched()[tuple(slice(len(r)) for r in rows)]
            data = np.array(block, copy=True) if copy else block
            parts.append(StoredRows(tuple(r.start for r in rows), as_stored(data)))
    grain = sharding.shard_shape(held.shape)
    return Content(leaf, tuple(parts), grain, joined_dim(sharding) if local else None, local)


def joined_dim(sharding: Any) -> int | None:
    """The dimension of an array of this process's in which processes have lanes of one axis."""
    if not isinstance(sharding, PmapSharding) or not sharding.is_fully_addressable:
        return None
    return next((dim for dim, names in enumerate(sharding.spec.layout) if names), None)


def stored_dtype(dtype: Any) -> np.dtype:
    """The dtype of NumPy's own in which elements of ``dtype`` are stored.

    >>> stored_dtype(np.dtype("bfloat16")), stored_dtype(np.dtype("float32"))
    (dtype('uint16'), dtype('float32'))
    """
    if is_key(dtype):
        return WORD
    return dtype if dtype.type.__module__ == "numpy" else np.dtype(f"uint{8 * dtype.itemsize}")


def as_stored(data: np.ndarray) -> np.ndarray:
    """The same memory, of a dtype of NumPy's own."""
    return data.view(stored_dtype(data.dtype))


LARGEST = 64 << 20  # bytes of a chunk, about, which is what a reader reads at once


def chunk_of(shape: Sequence[int], grain: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The chunks in which an array is stored, so that no two parts share one.

    Dimensions are divided, the first ones first, until a chunk has about ``LARGEST`` bytes. One
    that parts cut is divided into equal lengths; where that could only be far too short ones, as
    for a large prime number, chunks are larger.

    >>> chunk_of((1 << 20, 300), (1 << 18, 300), 4), chunk_of((7, 0), (7, 0), 4)
    ((65536, 300), (7, 1))
    """
    chunk = [max(n, 1) for n in grain]
    for dim, size in enumerate(chunk):
        parts = math.prod(chunk) * itemsize / LARGEST
        if parts >= 2:
            equal = Blocks(size, min(math.ceil(parts), size)).length
            chunk[dim] = equal if size == shape[dim] else _divisor(size, equal)
    return tuple(chunk)


def _divisor(size: int, wanted: int) -> int:
    """The divisor of ``size`` that is nearest to ``wanted``, as factors go."""
    small = [d for d in range(1, math.isqrt(size) + 1) if size % d == 0]
    return min({*small, *(size // d for d in small)}, key=lambda d: abs(math.log(d / wanted)))
