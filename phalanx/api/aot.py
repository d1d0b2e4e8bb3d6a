"""Shapes and dtypes that stand for arrays: what tracing needs of an argument."""

# What an array holds is private to users, not to what runs functions on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from phalanx.api.arguments import LeafNames, check_leaf
from phalanx.base import dtypes
from phalanx.base.config import settings
from phalanx.base.source import user_location
from phalanx.core import types
from phalanx.core.manual import ManualAxisType, Typed
from phalanx.core.mesh_spec import MeshSpec, both
from phalanx.core.refs import AbstractRef, Ref, load
from phalanx.core.types import Array, ArrayType
from phalanx.numpy.promotion import as_shape
from phalanx.run.array import DeviceArray
from phalanx.spmd import formats
from phalanx.spmd.constraint import sharding_for
from phalanx.spmd.named import PartitionSpec, refusal_of_rank
from phalanx.spmd.sharding import Sharding
from phalanx.spmd.shardings_of_types import mesh_spec_of
from phalanx.transforms.stage import is_value


class ShapeDtypeStruct:
    """The shape and dtype of an array, and where it should lie, without its data.

    Args:
        shape: its lengths.
        dtype: its dtype.
        sharding: where it lies; a spec is about the mesh that is set.
        weak_type: whether its dtype gives way to others.
        vma: inside ``shard_map``, the names of the axes along which it varies.
        manual_axis_type: the same as a record, which also says along which it is unreduced or
            reduced; None for what ``vma`` says.

    Raises:
        ValueError: a length is negative; a spec has more entries than there are dimensions.
        TypeError: a length is no integer; or the sharding is none.
        NoMesh: there is a spec alone, and no mesh is set.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "manual_axis_type", "shape", "sharding", "weak_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Sharding | PartitionSpec | None = None,
        weak_type: bool = False,
        vma: Iterable[str] = (),
        manual_axis_type: ManualAxisType | None = None,
    ) -> None:
        self.shape = as_shape("ShapeDtypeStruct", shape)
        self.dtype = dtypes.canonical(dtypes.as_dtype(dtype))
        self.sharding = _sharding(sharding, self.shape)
        self.weak_type = weak_type
        self.manual_axis_type = manual_axis_type or ManualAxisType(varying=vma)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same but for ``changes``, by the names of arguments.

        Args:
            **changes: arguments of the class, by name.

        >>> ShapeDtypeStruct((2, 3), "float32").update(shape=(4,))
        ShapeDtypeStruct(shape=(4,), dtype=float32)
        """
        fields = {name: getattr(self, name) for name in _PARTS}
        if "vma" in changes:
            del fields["manual_axis_type"]
        return ShapeDtypeStruct(**{**fields, **changes})

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """That of an array, a number, or of what has a shape and a dtype.

        Args:
            x: an array, a number, or what has ``shape`` and ``dtype``.

        >>> ShapeDtypeStruct.like(np.ones((2, 3), "float32"))
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        return struct(abstract(x, ["x"], 0, "ShapeDtypeStruct.like"), getattr(x, "sharding", None))

    @property
    def vma(self) -> frozenset[Any]:
        """Inside ``shard_map``, the names of the axes along which it varies."""
        return self.manual_axis_type.varying

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
        manual = self.manual_axis_type
        along = f", vma={set(self.vma)}" if self.vma else ""
        if manual.unreduced or manual.reduced:
            along = f", manual_axis_type={manual}"
        over = "" if self.sharding is None else f", sharding={self.sharding}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{over}{along})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in _PARTS])


_PARTS = ("shape", "dtype", "sharding", "weak_type", "manual_axis_type")


def _sharding(sharding: Any, shape: tuple[int, ...]) -> Sharding | None:
    sharding = formats.as_sharding(sharding, "ShapeDtypeStruct")
    if isinstance(sharding, PartitionSpec):
        sharding = sharding_for(sharding, "ShapeDtypeStruct")
    refusal = refusal_of_rank(sharding, shape)
    if refusal is not None:
        raise ValueError(f"ShapeDtypeStruct: {refusal}, at {user_location()}")
    if sharding is None or isinstance(sharding, Sharding):
        return sharding
    raise TypeError(
        f"ShapeDtypeStruct: the sharding must be a Sharding or a PartitionSpec, got {sharding!r}; "
        "for one device give SingleDeviceSharding(device)"
    )


def typeof(x: Any) -> ArrayType | AbstractRef:
    """The type of an array, a traced value, a NumPy array, a scalar, a mutable reference, or of
    what describes an array.

    Args:
        x: an array, a traced value, a number, a reference, or a ``ShapeDtypeStruct``.

    Returns:
        A type, which has ``shape``, ``dtype`` and ``weak_type``.

    Raises:
        TypeError: ``x`` is none of these.

    >>> import phalanx
    >>> phalanx.typeof(1.0), phalanx.typeof(phalanx.new_ref(1.0))
    (f32[]~, Ref{f32[]})
    >>> phalanx.typeof(phalanx.ShapeDtypeStruct((2, 3), "float32"))
    f32[2,3]
    """
    if isinstance(x, ShapeDtypeStruct):
        return abstract(x, ["x"], 0, "typeof")
    return x.aval if isinstance(x, Ref) else types.typeof(x)


def struct(type: ArrayType, sharding: Sharding | None = None) -> ShapeDtypeStruct:
    """``type`` as users see it, of an array that is to lie as ``sharding`` says.

    Where nothing is said, it lies along axes of type Explicit as the type says.
    """
    mesh = settings().mesh
    if sharding is None and (type.spec is not None or (mesh is not None and mesh.explicit_axes)):
        sharding = type.sharding
    return ShapeDtypeStruct(
        type.shape,
        type.dtype,
        sharding=sharding,
        weak_type=type.weak,
        manual_axis_type=type.manual_axis_type,
    )


def abstract(x: Any, names: LeafNames | list[str], i: int, who: str) -> ArrayType:
    """The type of an array, a number, or anything that has a shape and a dtype."""
    if isinstance(x, Array):
        return x.aval  # its dtype is what it is, whatever dtypes are enabled now
    if not isinstance(x, (np.ndarray, np.generic)) and hasattr(x, "shape") and hasattr(x, "dtype"):
        weak = bool(getattr(x, "weak_type", False))
        shape, sharding = tuple(x.shape), sharding_of(x)
        spec = None if sharding is None else mesh_spec_of(sharding, len(shape))
        kind = getattr(x, "manual_axis_type", None) or ManualAxisType(varying=getattr(x, "vma", ()))
        varying, *sums = (
            frozenset(map(Typed, a)) for a in (kind.varying, kind.unreduced, kind.reduced)
        )
        spec = both(spec, MeshSpec.of(None, [()] * len(shape), *sums))
        return ArrayType(shape, dtypes.canonical(x.dtype), weak, varying, spec)
    if not is_value(x):
        check_leaf(x, names[i], who)
    kind = types.typeof(x)
    return ArrayType(kind.shape, kind.dtype, kind.weak)


def sharding_of(x: Any) -> Sharding | None:
    """Where ``x`` says that it lies, if it does; an array also says whether that was chosen. A
    reference lies as what it holds."""
    x = load(x) if type(x) is Ref else x
    if isinstance(x, ArrayType) and x.spec is None:  # the sharding of a type is over the mesh set
        return None
    sharding = x._sig.sharding if isinstance(x, DeviceArray) else getattr(x, "sharding", None)
    return sharding if isinstance(sharding, Sharding) else None


def shardings_of(leaves: Sequence[Any], names: LeafNames, who: str) -> list[Sharding | None]:
    """Where each leaf says that it lies, if it does.

    Raises:
        ValueError: a sharding does not fit its leaf.
    """
    return [_sharding_of(x, names, i, who) for i, x in enumerate(leaves)]


def _sharding_of(x: Any, names: LeafNames, i: int, who: str) -> Sharding | None:
    requested = sharding_of(x)
    if requested is None:
        return None
    sharding = sharding_for(requested, who, later=True)
    try:
        sharding.shard_shape(x.shape)
    except ValueError as e:
        raise ValueError(f"{who}: sharding of {names[i]}, at {user_location()}: {e}") from None
    return sharding
