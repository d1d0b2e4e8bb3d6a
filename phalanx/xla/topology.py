"""Accelerators that are only described, for which programs are compiled ahead of time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from jaxlib import xla_client

from phalanx.base.errors import DeviceError, nearest, suggest
from phalanx.base.recent import memoized
from phalanx.core.platforms import GPUS
from phalanx.processes.hardware import has_hardware
from phalanx.xla import plugins
from phalanx.xla.client import load
from phalanx.xla.plugins import Plugin


@memoized(8)  # the same devices each time; and what describes them has to outlive them
def _topology(platform: str, name: str, options: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
    _check_count(platform, name)
    keywords = dict(options)
    _check_names(platform, keywords)
    there = plugins.installed().get(platform)
    if not there:
        raise DeviceError(
            f"get_topology_desc: to compile for {platform} XLA's plugin for it is needed, which is "
            f"not installed; there are {', '.join(plugins.installed()) or 'none'}. Those for TPUs "
            "and for NVIDIA's GPUs come with: pip install 'phalanx[aot]'"
        )
    plugin = max(there, key=lambda p: p.version)
    if platform in GPUS:
        keywords = _with_description(keywords, plugin, platform)
    interface = load(plugin)
    if interface is None:
        raise DeviceError(
            f"get_topology_desc: the plugin for {platform} was loaded by another library in this "
            "process; describe devices in a process of its own"
        )
    try:
        if platform == "tpu":
            topology = xla_client.make_tfrt_tpu_c_api_device_topology(name, **keywords)
        else:
            topology = xla_client.make_c_api_device_topology(
                interface, "", topology=name, **keywords
            )
        devices = topology._make_compile_only_devices()
    except (RuntimeError, ValueError, TypeError) as e:
        advice = _of_tpus(name) if platform == "tpu" else _OF_GPUS
        raise DeviceError(f"get_topology_desc: {platform}, {name!r}: {e}. {advice}") from None
    memory = re.search(r"\bdevice_memory_size:\s*(\d+)", str(keywords.get("target_config")))
    if memory:
        sizes[devices[0].client] = int(memory[1])
    return topology, *devices


# of what each GPU of a client has, in bytes; compilers for TPUs know it themselves
sizes: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def _check_count(platform: str, name: str) -> None:
    """Raise DeviceError for a grid without devices, or of too many: XLA ends the process.

    What has no name is what this machine has.
    """
    grid = name if platform in GPUS else name.partition(":")[2]
    count = math.prod(map(int, re.findall(r"\d+", grid)))
    if not (name or has_hardware(platform)) or not 0 < count <= _MOST:
        raise DeviceError(
            f"get_topology_desc: {platform}, {name!r}: a topology has from 1 to {_MOST:,} devices. "
            f"{_of_tpus(name) if platform == 'tpu' else _OF_GPUS}"
        )


_MOST: Final = 2**18


def _check_names(platform: str, options: Mapping[str, Any]) -> None:
    """Raise TypeError for an option of another name: plugins for GPUs would ignore it."""
    allowed = _OPTIONS.get(platform)
    for name in options.keys() - (allowed or options.keys()):
        hint = suggest(name, allowed or ()) or f"There are {', '.join(allowed or ())}"
        raise TypeError(f"get_topology_desc: {platform} has no option {name!r}. {hint}")


_OPTIONS: Final = {
    "tpu": ("num_slices", "chips_per_host_bounds", "chip_config_name", "wrap"),
    **dict.fromkeys(GPUS, ("target_config",)),
}


def _with_description(keywords: dict[str, Any], plugin: Plugin, platform: str) -> dict[str, Any]:
    """``keywords`` with the description of the GPU, which it may call by its name.

    Raises:
        DeviceError: the GPU is not known, or described by halves.
    """
    target = keywords.get("target_config")
    if target is None and has_hardware(platform):
        return keywords  # it is that of this machine
    if target is None or not re.search("[{:]", str(target)):
        target = _named(str(target or ""), descriptions(plugin.path, platform))
    _check_description(target)
    return {"target_config": str(target)}


def _named(name: str, described: Mapping[str, str]) -> str:
    """The description of the GPU called ``name``, or by a part of that which no other has.

    >>> _named("h200", {"NVIDIA H100 PCIe": "a", "NVIDIA H200 141GB HBM3e": "b"})
    'b'
    """
    plain = name.casefold().removeprefix("nvidia ")
    by_plain_name = {d.casefold().removeprefix("nvidia "): d for d in described}
    found = (
        [plain] if plain in by_plain_name else [d for d in by_plain_name if plain and plain in d]
    )
    if len(found) == 1:
        return described[by_plain_name[found[0]]]
    near = [by_plain_name[d] for d in found] or sorted(described)
    lacks = f"target_config={name!r} does not say" if name else "this machine has no GPU, so say"
    raise DeviceError(
        f"get_topology_desc: {lacks} which one is meant. The plugin knows "
        f"{', '.join(near) or 'none by name'}; target_config= is one of these, or of another the "
        "text of XLA's GpuTargetConfigProto, which describes it; phalanx compile has --gpu for it"
    )


@memoized(4)
def descriptions(library: str, platform: str) -> dict[str, str]:
    """The GPUs of ``platform`` that a plugin's ``library`` describes, by name."""
    found: dict[str, str] = {}
    with Path(library).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        for start in re.finditer(rb"\bgpu_device_info \{", content):
            first = content.rfind(b"\0", 0, start.start()) + 1
            text = content[first : content.find(b"\0", start.end())].decode(errors="replace")
            called = re.search(r'\bdevice_description_str: "([^"]+)"', text)
            if called and f"{platform}_compute_capability" in text:
                found[called[1]] = text
    return found


def _check_description(description: Any) -> None:
    """Raise DeviceError if figures are missing, without which XLA ends the process."""
    missing = [figure for figure in _NEEDED if not re.search(rf"\b{figure}\b", str(description))]
    if missing:
        raise DeviceError(
            "get_topology_desc: target_config= is the text of XLA's GpuTargetConfigProto, which "
            f"describes a GPU; that which was given says nothing of {', '.join(missing)}"
        )


_NEEDED: Final = (
    "threads_per_warp", "block_dim_limit_x", "block_dim_limit_y", "block_dim_limit_z",
)  # fmt: skip
_OF_GPUS: Final = "It has three numbers, as in 1x4x8: of partitions, of hosts, of GPUs of each host"


def _of_tpus(name: str) -> str:
    """Names of topologies that are near ``name``.

    >>> _of_tpus("v5e:3x3")
    'Near it are v5e:2x4, v5e:4x4; the chips lie in a grid, as these say'
    >>> _of_tpus("v5litepod-16")
    'Near it are v5e:2x4, v5e:4x4; the chips lie in a grid, as these say'
    """
    kind = re.sub(r"[^a-z\d].*", "", name.lower(), flags=re.DOTALL)
    generation = nearest(_ALSO.get(kind, kind), _GRIDS)
    if generation is None:
        return (
            f"There are {', '.join(_GRIDS)}, with a grid of chips behind, as in v5e:2x4; GPUs are "
            "of platform cuda, and their topology is as in 1x1x8: phalanx compile --for h100:8, or "
            "cuda:1x1x8 --gpu NAME"
        )
    numbers = [int(n) for n in re.findall(r"\d+", name[len(kind) :])] or [8]
    count = max(math.prod(numbers), 1)

    def far(grid: str) -> float:
        return max(_chips(grid) / count, count / _chips(grid))

    grids = sorted(_GRIDS[generation], key=far)
    names = ", ".join(f"{generation}:{grid}" for grid in sorted(grids[:2], key=_chips))
    return f"Near it are {names}; the chips lie in a grid, as these say"


def _chips(grid: str) -> int:
    return math.prod(map(int, grid.split("x")))


_FLAT: Final = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_DEEP: Final = (
    "2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16", "8x16x16",
    "16x16x16",
)  # fmt: skip
_GRIDS: Final = {
    "v2": _FLAT[1:], "v3": _FLAT[1:], "v4": _DEEP, "v5e": _FLAT, "v5p": _DEEP, "v6e": _FLAT,
    "tpu7x": _DEEP,
}  # fmt: skip
_ALSO: Final = {"v5litepod": "v5e", "v5lite": "v5e", "v5": "v5p", "v6": "v6e", "v7x": "tpu7x"}


def described(platform: str, name: str, options: dict[str, Any]) -> tuple[Any, ...]:
    """The devices of a topology: v5e:2x4, say, of TPUs, or 1x4x8, hosts and GPUs, of CUDA."""
    hashable = {
        k: tuple(cast("list[Any]", v)) if type(v) is list else v for k, v in options.items()
    }
    return _topology(platform, name, tuple(sorted(hashable.items())))[1:]
