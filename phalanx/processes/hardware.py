"""The accelerators that a machine shows: by device files, and on its PCI bus."""

from __future__ import annotations

import os
from typing import Final

DEVICE_FILES: Final = {  # a number may follow where there is one for each device
    "tpu": ("/dev/accel#",),
    "cuda": ("/dev/nvidia#", "/dev/dxg", "/dev/nvgpu", "/dev/nvhost-gpu"),
    "rocm": ("/dev/kfd",),
}
_ROOT = ""  # of the system's files
_PCI, _VFIO = "/sys/bus/pci/devices", "/dev/vfio/#"
_TPUS = ("0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076")  # v2 to v7
_GOOGLE = "0x1ae0"  # its network cards are of this vendor, too


def has_hardware(platform: str) -> bool:
    """Whether the system shows devices of ``platform``; true if nobody knows how they look."""
    if platform not in DEVICE_FILES:
        return True
    if hiding(platform):
        return False
    if any(map(_count, DEVICE_FILES[platform])):
        return True
    return platform == "tpu" and _count(_VFIO) > 0 and _is_tpu_on_the_bus()


def _count(file: str) -> int:
    """How many files are called so, with a number for ``#``: patterns take longer to be read."""
    folder, _, name = file.rpartition("/")
    stem = name.removesuffix("#")
    if stem == name:
        return os.path.exists(_ROOT + file)
    return sum(n.startswith(stem) and n[len(stem) :].isdigit() for n in _listed(folder))


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(_ROOT + folder)
    except OSError:
        return []


def _is_tpu_on_the_bus() -> bool:
    """Whether what a general driver shows is a TPU; it may be, where nobody may look at the bus."""
    places = _listed(_PCI)
    for place in places:
        try:
            vendor, device = (_read(f"{_PCI}/{place}/{n}") for n in ("vendor", "device"))
        except OSError:
            continue
        if vendor == _GOOGLE and device in _TPUS:
            return True
    return not places


def _read(file: str) -> str:
    with open(_ROOT + file) as content:
        return content.read().strip()


def is_container() -> bool:
    """Whether the devices of this machine are those that a container was given."""
    return "KUBERNETES_SERVICE_HOST" in os.environ or any(map(_count, _OF_CONTAINERS))


_OF_CONTAINERS: Final = ("/.dockerenv", "/run/.containerenv")


def count_of_gpus(platform: str) -> int | None:
    """How many GPUs a process sees, as the system and the environment tell; None: they do not."""
    seen, file = _SEEN[platform]
    for name in seen:
        if name in os.environ:
            return _named(os.environ[name])
    return _count(file) or None


def hiding(platform: str) -> str | None:
    """The variable that hides every GPU of ``platform`` from this process, if one does."""
    seen, _ = _SEEN.get(platform, ((), ""))
    return next((n for n in seen if n in os.environ and not _named(os.environ[n])), None)


def _named(value: str) -> int:
    """How many GPUs such a variable names: drivers stop at the first that cannot be.

    >>> _named("0,2"), _named("3,-1,4"), _named("")
    (2, 1, 0)
    """
    named = [n.strip() for n in value.split(",") if n.strip()]
    return next((i for i, n in enumerate(named) if n.startswith("-")), len(named))


_SEEN: Final = {  # what restricts them, and the file of each
    "cuda": (("CUDA_VISIBLE_DEVICES",), "/dev/nvidia#"),
    "rocm": (("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"), "/dev/dri/renderD#"),
}


def gpus_are_assigned() -> bool:
    """Whether the environment says which GPUs this process sees."""
    return any(os.environ.get(name) for names, _ in _SEEN.values() for name in names)
