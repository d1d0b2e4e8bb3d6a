"""Accelerators by the names that the command line takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phalanx.base.errors import ArgumentError
from phalanx.experimental.topologies import get_topology_desc
from phalanx.insight.plans.compiled_step import devices_of
from phalanx.insight.systems import machine, systems


def described(name: str, gpu: str | None = None) -> list[Any]:
    """The devices called ``name``.

    Args:
        name: a machine, as ``phalanx plan`` has them; a topology of TPUs, of which it may have no
            figures; or ``cuda:1x2x4``: processes, hosts and GPUs of each.
        gpu: which the last are, by a name that the plugin knows, or a file that describes them, as
            text of XLA's GpuTargetConfigProto.

    Raises:
        DeviceError: they are not known, or the plugin is not installed.
        ArgumentError: there is no such machine, or ``gpu`` contradicts it.
        OSError: the file cannot be read.
    """
    kind, _, topology = name.partition(":")
    if kind == "cuda":
        if gpu and ("/" in gpu or Path(gpu).is_file()):
            gpu = Path(gpu).read_text()
        return get_topology_desc(topology, "cuda", target_config=gpu).devices
    if gpu is not None:
        raise ArgumentError(
            f"--gpu describes what cuda:1x2x4 is made of, and {name} says it itself"
        )
    if kind.lower() in systems() or kind.endswith(".toml"):
        return devices_of(machine(name))
    return get_topology_desc(name, "tpu").devices
