"""Accelerators that are only described, for which programs are compiled ahead of time."""

from __future__ import annotations

import math
import re
from typing import Any, Final
from weakref import WeakKeyDictionary

from jaxlib import xla_client

from phalanx.base.errors import DeviceError, nearest
from phalanx.base.recent import memoized
from phalanx.core.platforms import GPUS
from phalanx.processes.hardware import has_hardware
from phalanx.xla import plugins
from phalanx.xla.client import load


@memoized(8)  # the same devices each time; and what describes them has to outlive them
def _topology(platform: str, name: str, options: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
    _check_count(platform, name)
    there = plugins.installed().get(platform)
    if not there:
        raise DeviceError(
            f"get_topology_desc: to compile for {platform} XLA's plugin for it is needed, which is "
            f"not installed; there are {', '.join(plugins.installed()) or 'none'}. Those for TPUs "
            "and for NVIDIA's GPUs come with: pip install 'phalanx[aot]'"
        )
    if platform in GPUS:
        _check_description(dict(options).get("target_config"), platform)
    interface = load(max(there, key=lambda p: p.version))
    if interface is None:
        raise DeviceError(
            f"get_topology_desc: the plugin for {platform} was loaded by another library in this "
            "process; describe devices in a process of its own"
        )
    try:
        if platform == "tpu":
            made = xla_client.make_tfrt_tpu_c_api_device_topology(name, **dict(options))
        else:
            told = {"topology": name, **dict(options)}
            made = xla_client.make_c_api_device_topology(interface, "", **told)
        devices = made._make_compile_only_devices()
    except (RuntimeError, ValueError, TypeError) as e:
        advice = _of_tpus(name) if platform == "tpu" else _OF_GPUS
        raise DeviceError(f"get_topology_desc: {platform}, {name!r}: {e}. {advice}") from None
    memory = re.search(r"\bdevice_memory_size:\s*(\d+)", str(dict(options).get("target_config")))
    if memory:
        sizes[devices[0].client] = int(memory[1])
    return made, *devices


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


def _check_description(said: Any, platform: str) -> None:
    """Raise DeviceError if the GPU is not known; without some figures XLA ends the process."""
    if said is None and has_hardware(platform):
        return  # it is that of this machine
    if said is None:
        raise DeviceError(
            "get_topology_desc: this machine has no GPU, so say which one is meant: "
            "target_config=, the text of XLA's GpuTargetConfigProto, which describes it"
        )
    missing = [figure for figure in _NEEDED if not re.search(rf"\b{figure}\b", str(said))]
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
    said = re.sub(r"[^a-z\d].*", "", name.lower(), flags=re.DOTALL)
    generation = nearest(_ALSO.get(said, said), _GRIDS)
    if generation is None:
        return f"There are {', '.join(_GRIDS)}, with a grid of chips behind, as in v5e:2x4"
    numbers = [int(n) for n in re.findall(r"\d+", name[len(said) :])] or [8]
    wanted = max(math.prod(numbers), 1)

    def far(grid: str) -> float:
        return max(_chips(grid) / wanted, wanted / _chips(grid))

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
    return _topology(platform, name, tuple(sorted(options.items())))[1:]
