"""Accelerators by the names that the command line takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phalanx.experimental.topologies import get_topology_desc


def described(name: str, gpu: str | None) -> list[Any]:
    """The devices called ``name``.

    Args:
        name: ``v5e:2x4``, or ``cuda:1x2x4``: processes, hosts and GPUs of each.
        gpu: which they are, by a name that the plugin knows, or a file that describes them, as text
            of XLA's GpuTargetConfigProto.

    Raises:
        DeviceError: they are not known, or the plugin is not installed.
        OSError: the file cannot be read.
    """
    platform, _, topology = name.partition(":")
    if platform != "cuda":
        return get_topology_desc(name, "tpu").devices
    if gpu and ("/" in gpu or Path(gpu).is_file()):
        gpu = Path(gpu).read_text()
    return get_topology_desc(topology, "cuda", target_config=gpu).devices
