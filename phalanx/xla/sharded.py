"""Arrays over several devices, as the runtime holds them.

Programs that span devices take and give whole arrays; programs that run on each device by
themselves take and give parts. The runtime makes the whole of its parts in some microseconds,
but parts of a whole in hundreds. So an array is kept in the form in which it was made, and the
other is made when somebody asks for it. A whole is an array of the runtime, which keeps its parts
when they were asked for; what was made part by part is `Parts`, which keeps the whole.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from phalanx.base.recent import memoized
from phalanx.core.types import ArrayType
from phalanx.spmd.sharding import Sharding
from phalanx.xla.failures import deleted, translated
from phalanx.xla.jaxlib_versions import divided, raw_sharding, xc


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
        self.part_layouts = [raw_sharding(sharding.on(d), type.ndim) for d in self.devices]


@memoized(1024)
def sharded_type(type: ArrayType, sharding: Sharding) -> ShardedType:
    """That of arrays of ``type`` (without padding) laid out as ``sharding``; made once."""
    return ShardedType(type, sharding.plain)


class Parts:
    """A raw array over several devices that was made part by part, in local order."""

    __slots__ = ("__weakref__", "_whole", "each", "type")

    def __init__(self, type: ShardedType, each: Sequence[Any]) -> None:
        self.type = type
        self.each = each
        self._whole = None

    @property
    def whole(self) -> Any:
        """The array that spans the devices."""
        if self._whole is None:
            if self.is_deleted():
                raise deleted("joining the parts of an array")
            whole, layout = self.type.whole, self.type.whole_layout
            self._whole = xc.ArrayImpl(whole, layout, list(self.each), True, True)
        return self._whole

    def is_deleted(self) -> bool:
        return any([part.is_deleted() for part in self.each])

    def is_ready(self) -> bool:
        return all([part.is_ready() for part in self.each])

    def block_until_ready(self) -> None:
        for part in self.each:
            part.block_until_ready()

    def delete(self) -> None:
        for part in self.each:
            part.delete()
        if self._whole is not None:
            self._whole.delete()


def whole_of(raw: Any) -> Any:
    """The array of the runtime that spans all devices of a raw array."""
    return raw.whole if type(raw) is Parts else raw


def parts_of(raw: Any) -> Sequence[Any]:
    """The arrays on the addressable devices of a raw array over several, in local order."""
    if type(raw) is Parts:
        return raw.each
    if raw.is_deleted():
        raise deleted("reading a shard")
    try:
        return divided(raw)
    except RuntimeError as e:
        raise translated(e, "reading a shard") from None


_lent: set[int] = set()  # the identities of raw arrays of which others hold parts


def lent(raw: Any) -> Any:
    """``raw``, whose parts others hold by themselves: they may delete one without the rest."""
    if id(raw) not in _lent:
        _lent.add(id(raw))
        weakref.finalize(raw, _lent.discard, id(raw))
    return raw


def is_deleted(raw: Any) -> bool:
    """Whether a raw array is deleted, or a part of it."""
    # the runtime looks at the first part of a whole alone
    return raw.is_deleted() or (
        id(raw) in _lent and any([part.is_deleted() for part in parts_of(raw)])
    )


def wholes_of(raws: Sequence[Any], who: str) -> list[Any]:
    """``whole_of`` many raw arrays over several devices.

    Raises:
        DeletedArray: one of them is deleted, or a part of it.
    """
    wholes = [raw.whole if type(raw) is Parts else raw for raw in raws]
    if any([whole.is_deleted() for whole in wholes]) or (
        _lent and any([is_deleted(raw) for raw in raws if id(raw) in _lent])
    ):
        raise deleted(who)
    return wholes


def is_in_parts(raw: Any) -> bool:
    """Whether a raw array over several devices was made part by part, and not by a program."""
    return type(raw) is Parts


def held(raw: Any) -> Sequence[Any]:
    """The arrays of the runtime that a raw array already consists of."""
    return raw.each if type(raw) is Parts else (raw,)
