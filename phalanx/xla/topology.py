"""Accelerators that are only described, for which programs are compiled ahead of time."""

from __future__ import annotations

from typing import Any, Final

from jaxlib import xla_client

from phalanx.base.errors import DeviceError, suggest
from phalanx.base.recent import memoized
from phalanx.core.platforms import GPUS
from phalanx.xla import plugins
from phalanx.xla.client import load


@memoized(8)  # the same devices each time; and what describes them has to outlive them
def _topology(platform: str, name: str, options: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
    there = plugins.installed().get(platform)
    if not there:
        raise DeviceError(
            f"get_topology_desc: to compile for {platform} XLA's plugin for it is needed, which is "
            f"not installed; there are {', '.join(plugins.installed()) or 'none'}"
        )
    told = platform not in GPUS or "target_config" in dict(options)
    if not told and not plugins.has_hardware(platform):
        raise DeviceError(
            "get_topology_desc: this machine has no GPU, so say which one is meant: "
            "target_config=, the text of XLA's GpuTargetConfigProto, which describes it"
        )
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
            made = xla_client.make_c_api_device_topology(interface, name, **dict(options))
        return made, *made._make_compile_only_devices()
    except (RuntimeError, ValueError, TypeError) as e:
        advice = _advice(name) if platform == "tpu" else ""
        raise DeviceError(f"get_topology_desc: {platform}, {name!r}: {e}{advice}") from None


def _advice(name: str) -> str:
    generation = name.partition(":")[0]
    if generation in _GENERATIONS:
        return ". The chips lie in a grid, as in v5e:2x4 or v5p:4x4x4"
    near = suggest(generation, _GENERATIONS) or f"There are {', '.join(_GENERATIONS)}."
    return f". {near} How many chips there are comes after it, as in v5e:2x4"


_GENERATIONS: Final = ("v2", "v3", "v4", "v5e", "v5p", "v6e", "tpu7x")


def described(platform: str, name: str, options: dict[str, Any]) -> tuple[Any, ...]:
    """The devices of a topology: v5e:2x4, say, of TPUs, or 1x4x8, hosts and GPUs, of CUDA."""
    if platform == "cuda":
        options, name = {"topology": name, **options}, ""
    return _topology(platform, name, tuple(sorted(options.items())))[1:]
