"""Executables in what is pickled: for processes with the same compiler and the same devices."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from jaxlib import version
from msgspec import Struct

from phalanx.base.errors import RuntimeFailure
from phalanx.core.types import ArrayType
from phalanx.spmd.sharding import Sharding
from phalanx.xla.host_callbacks import Callbacks
from phalanx.xla.jaxlib_versions import is_described
from phalanx.xla.stored import serialized, surroundings


class Packed(Struct, frozen=True):
    """An executable without the runtime's object, told in the words of the module it was made of.

    Attributes:
        contents: what the runtime makes of it.
        where: the sharding that is over all its devices.
        origin: what tells the compiler, the machine and the devices from others.
    """

    name: str
    contents: bytes
    bytecode: bytes
    where: Sharding
    in_shardings: tuple[Sharding, ...]
    out_shardings: tuple[Sharding, ...]
    out_types: tuple[ArrayType, ...]
    donate: tuple[int, ...]
    independent: bool
    origin: str

    @property
    def devices(self) -> tuple[Any, ...]:
        """The devices for which it was compiled."""
        return tuple(self.where.device_list)

    @property
    def plan(self) -> Packed:
        """What its module says of devices, and how inputs and outputs lie."""
        return self

    @property
    def callbacks(self) -> Callbacks:
        """The Python functions that it calls: none."""
        return Callbacks(self.devices)

    inspections = ()


def contents_of(loaded: Any, read: Callable[[], bytes | None] | None, name: str) -> bytes:
    """What the runtime makes of the executable ``loaded``, called ``name``.

    One that was ``loaded`` has the same contents, as ``read`` gives them, and lacks some itself.

    Raises:
        RuntimeFailure: they are not to be had.
    """
    contents = serialized(loaded) if read is None else read()
    if contents is None:
        raise RuntimeFailure(
            f"{name} cannot be serialized: it was loaded from the cache of compiled programs, "
            "where it is no more, or the runtime of its devices cannot do that; compile it anew, "
            "in another process"
        )
    return contents


def origin(devices: tuple[Any, ...]) -> str:
    """What tells the compiler, the machine and ``devices`` from others.

    Of described devices nobody knows the machine.
    """
    if is_described(devices[0]):
        return _kinds(devices)
    return hashlib.sha256(surroundings(devices)).hexdigest()


def _kinds(devices: tuple[Any, ...]) -> str:
    # descriptions call a GPU as they like, and its runtime looks at what it is
    kinds = Counter("GPU" if d.platform == "gpu" else d.device_kind for d in devices)
    words = ", ".join(f"{count} x {kind}" for kind, count in kinds.items())
    return f"jaxlib {version.__version__}, for {words}"


def check_origin(packed: Packed) -> None:
    """Raise RuntimeFailure if another compiler compiled ``packed``, or for another machine."""
    current = _kinds(packed.devices)
    if packed.origin.startswith("jaxlib") and packed.origin != current:
        raise RuntimeFailure(
            f"{packed.name} was compiled by {packed.origin}, and here is {current}; compile it "
            "for this version and these devices, or export the function, phalanx.export"
        )
    if packed.origin not in (current, origin(packed.devices)):
        raise RuntimeFailure(
            f"{packed.name} was compiled by another version of XLA, on a machine of another kind, "
            "or with other devices, and cannot run here; compile it here, or export the function, "
            "phalanx.export"
        )
