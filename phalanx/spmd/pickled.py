"""Devices in what is pickled: told by platform and number, found again among those there are."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from phalanx.base.errors import DeviceError

_there: list[Callable[[], Sequence[Any]]] = []


def find_among(devices: Callable[[], Sequence[Any]]) -> None:
    """Let devices that were pickled be found among what ``devices()`` gives."""
    _there[:] = [devices]


_places: ContextVar[Mapping[PickledDevice, Any]] = ContextVar("places")


@contextmanager
def placed_on(places: Mapping[PickledDevice, Any]) -> Generator[None]:
    """In the block, what was pickled on a device that is among ``places`` lies there."""
    token = _places.set(places)
    try:
        yield
    finally:
        _places.reset(token)


class PickledDevice(Struct, frozen=True):
    """A device, as its platform and number."""

    platform: str
    id: int

    def local_device(self) -> Any:
        """The device.

        Raises:
            DeviceError: there is none such.
        """
        place = _places.get({}).get(self)
        if place is not None:
            return place
        there = _there[0]() if _there else ()
        for device in there:
            if (device.platform, device.id) == (self.platform, self.id):
                return device
        raise DeviceError(
            f"what was pickled lies on device {self.platform}:{self.id}, but the devices here are "
            f"{list(there)}; make a mesh of these, and put the arrays there"
        )


def pickled_devices(devices: Iterable[Any]) -> list[Any]:
    """``devices`` as what can be pickled; anything else stays what it is."""
    return [PickledDevice(d.platform, d.id) if hasattr(d, "platform") else d for d in devices]


def unpickled_devices(devices: Iterable[Any]) -> list[Any]:
    """The inverse of ``pickled_devices``."""
    return [d.local_device() if isinstance(d, PickledDevice) else d for d in devices]
