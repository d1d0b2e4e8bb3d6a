"""Platforms: what users, devices and rules call them.

Programs are written for "cpu", "cuda", "rocm" or "tpu". Devices of CUDA and of ROCm call themselves
"gpu", alike, and so do rules that serve both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from msgspec import Struct

from phalanx.base.source import user_location

GPUS: Final = ("cuda", "rocm")
NO_HARDWARE: Final = "This machine has no"  # begins why there is no device, if that is why


class AnyDevice(Struct, frozen=True):
    """Any device of a platform, which need not be there; of several, that of number ``id``."""

    platform: str
    id: int = 0


_described: dict[int, Any] = {}  # by numbers of the CPU's devices


def describe_devices(devices: Sequence[Any]) -> None:
    """From now on the CPU's devices stand for ``devices``, which need not be here: where programs
    and meshes lie is decided as for these."""
    _described.update(enumerate(devices))


def resolve_device(device: Any) -> Any:
    """What ``device`` stands for; mostly itself."""
    if _described and device.platform == "cpu":
        return _described.get(device.id, device)
    return device


def platform_of(device: Any) -> str:
    """The platform that programs for ``device`` are written for."""
    if device.platform != "gpu":
        return device.platform
    version = getattr(getattr(device, "client", None), "platform_version", "")
    return "rocm" if "rocm" in version.lower() else "cuda"


def names_of(platform: str) -> tuple[str, ...]:
    """What ``platform`` is called, its own name first.

    >>> names_of("rocm"), names_of("tpu")
    (('rocm', 'gpu'), ('tpu',))
    """
    return (platform, "gpu") if platform in GPUS else (platform,)


def sequence_of(devices: Any, who: str) -> tuple[Any, ...]:
    """The devices that were given; TypeError for one alone, for their number and for a name."""
    if isinstance(devices, Iterable) and not isinstance(devices, str):
        return tuple(cast("Iterable[Any]", devices))
    count = devices if isinstance(devices, int) else 1
    raise TypeError(
        f"{who}: devices must be a sequence of devices, such as phalanx.devices()[:{count}], got "
        f"{devices!r}, at {user_location()}"
    )
