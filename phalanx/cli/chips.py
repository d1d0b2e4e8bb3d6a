"""Accelerators by the names that the command line takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phalanx.base.errors import DeviceError
from phalanx.experimental.topologies import get_topology_desc


def described(name: str, gpu: Path | None) -> list[Any]:
    """The devices called ``name``.

    Args:
        name: ``v5e:2x4``, or ``cuda:1x2x4``: processes, hosts and GPUs of each.
        gpu: a file that describes the GPUs, as text of XLA's GpuTargetConfigProto.

    Raises:
        DeviceError: they are not known, or the plugin is not installed.
        OSError: the file cannot be read.
    """
    platform, _, topology = name.partition(":")
    if platform != "cuda":
        return get_topology_desc(name, "tpu").devices
    if gpu is None:
        raise DeviceError("--for cuda needs --gpu FILE, the text of XLA's GpuTargetConfigProto")
    return get_topology_desc(topology, "cuda", target_config=gpu.read_text()).devices
