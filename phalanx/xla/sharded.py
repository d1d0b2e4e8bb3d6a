"""Arrays over several devices, as the runtime holds them.

Programs that span devices take and give whole arrays; programs that run on each device by
themselves take and give parts. The runtime makes the whole of its parts in some microseconds,
but parts of a whole in hundreds. So an array is kept in the form in which it was made, and the
other is made when somebody asks for it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from phalanx.core.types import ArrayType
from phalanx.spmd.sharding import Sharding
from phalanx.xla.failures import deleted, translated
from phalanx.xla.runtime import parts_of, raw_sharding, xc


class ShardedType:
    """The types and layouts of an array over several devices and of its addressable parts.

    Parts are in local order: part ``i`` is on ``devices[i]``.
    """

    __slots__ = ("devices", "part", "part_layouts", "whole", "whole_layout")

    def __init__(self, type: ArrayType, sharding: Sharding) -> None:
        self.whole = type.update(shape=sharding.padded_shape(type.shape))
        self.whole_layout = raw_sharding(sharding, type.ndim)
        self.part = ArrayType(sharding.shard_shape(type.shape), type.dtype, type.weak)
        self.devices = sharding.local_devices
        self.part_layouts = [raw_sharding(Sharding((d,)), type.ndim) for d in self.devices]


@functools.lru_cache(maxsize=1024)
def sharded_type(type: ArrayType, sharding: Sharding) -> ShardedType:
    """That of arrays of ``type`` (without padding) laid out as ``sharding``; made once."""
    return ShardedType(type, sharding.plain)


class Sharded:
    """A raw array over several devices: of its ``parts``, its ``whole``, or both at hand."""

    __slots__ = ("_parts", "_whole", "type")

    def __init__(
        self, type: ShardedType, parts: Sequence[Any] | None = None, whole: Any | None = None
    ) -> None:
        self.type = type
        self._parts = parts
        self._whole = whole

    @property
    def whole(self) -> Any:
        """The array that spans the devices."""
        if self._whole is None:
            whole, layout = self.type.whole, self.type.whole_layout
            self._whole = xc.ArrayImpl(whole, layout, list(self.parts), True, True)
        return self._whole

    @property
    def parts(self) -> Sequence[Any]:
        """The arrays on the addressable devices, in local order."""
        if self._parts is None:
            self._parts = _divided(self.whole, self.type)
        return self._parts

    def is_deleted(self) -> bool:
        if self._parts is None:
            return self._whole.is_deleted()  # type: ignore[union-attr]
        return any([part.is_deleted() for part in self._parts])

    def is_ready(self) -> bool:
        return all(a.is_ready() for a in held(self))

    def delete(self) -> None:
        for part in self._parts or ():
            part.delete()
        if self._whole is not None:
            self._whole.delete()


def _divided(whole: Any, type: ShardedType) -> list[Any]:
    if whole.is_deleted():
        raise deleted("reading a shard")
    try:
        parts = parts_of(whole)
    except RuntimeError as e:
        raise translated(e, "reading a shard") from None
    return [
        xc.ArrayImpl(type.part, layout, [part], True, True)
        for layout, part in zip(type.part_layouts, parts, strict=True)
    ]


def sharded(whole: Any, type: ArrayType, sharding: Sharding) -> Any:
    """The raw array that an array of the runtime is."""
    several = len(sharding.devices) > 1
    return Sharded(sharded_type(type, sharding), whole=whole) if several else whole


def whole_of(raw: Any) -> Any:
    """The array of the runtime that spans all devices of a raw array."""
    return raw.whole if type(raw) is Sharded else raw


def held(raw: Any) -> Sequence[Any]:
    """The arrays of the runtime of which a raw array consists already."""
    if type(raw) is not Sharded:
        return (raw,)
    return (raw._whole,) if raw._parts is None else raw._parts
