"""The accelerators that a machine shows: by device files, and on its PCI bus."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Final

DEVICE_FILES: Final = {
    "tpu": ("/dev/accel[0-9]*",),
    "cuda": ("/dev/nvidia[0-9]*", "/dev/dxg", "/dev/nvgpu", "/dev/nvhost-gpu"),
    "rocm": ("/dev/kfd",),
}
_PCI, _VFIO = "/sys/bus/pci/devices/*", "/dev/vfio/[0-9]*"
_TPUS = ("0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076")  # v2 to v7
_GOOGLE = "0x1ae0"  # its network cards are of this vendor, too


def has_hardware(platform: str) -> bool:
    """Whether the system shows devices of ``platform``; true if nobody knows how they look."""
    if platform not in DEVICE_FILES:
        return True
    if hiding(platform):
        return False
    if any(map(glob.glob, DEVICE_FILES[platform])):
        return True
    return platform == "tpu" and bool(glob.glob(_VFIO)) and _is_tpu_on_the_bus()


def _is_tpu_on_the_bus() -> bool:
    """Whether what a general driver shows is a TPU; it may be, where nobody may look at the bus."""
    places = glob.glob(_PCI)
    for place in map(Path, places):
        try:
            vendor, device = ((place / n).read_text().strip() for n in ("vendor", "device"))
        except OSError:
            continue
        if vendor == _GOOGLE and device in _TPUS:
            return True
    return not places


def count_of_gpus(platform: str) -> int | None:
    """How many GPUs a process sees, as the system and the environment tell; None: they do not."""
    seen, files = _SEEN[platform]
    for name in seen:
        if name in os.environ:
            return _listed(os.environ[name])
    return len(glob.glob(files)) or None


def hiding(platform: str) -> str | None:
    """The variable that hides every GPU of ``platform`` from this process, if one does."""
    seen, _ = _SEEN.get(platform, ((), ""))
    return next((n for n in seen if n in os.environ and not _listed(os.environ[n])), None)


def _listed(value: str) -> int:
    """How many GPUs such a variable names: drivers stop at the first that cannot be.

    >>> _listed("0,2"), _listed("3,-1,4"), _listed("")
    (2, 1, 0)
    """
    named = [n.strip() for n in value.split(",") if n.strip()]
    return next((i for i, n in enumerate(named) if n.startswith("-")), len(named))


_SEEN: Final = {  # what restricts them, and a file for each
    "cuda": (("CUDA_VISIBLE_DEVICES",), "/dev/nvidia[0-9]*"),
    "rocm": (("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"), "/dev/dri/renderD*"),
}


def gpus_are_given() -> bool:
    """Whether the environment says which GPUs this process sees."""
    return any(os.environ.get(name) for names, _ in _SEEN.values() for name in names)
