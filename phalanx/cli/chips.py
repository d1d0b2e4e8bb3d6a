"""Accelerators by the names that the command line takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phalanx.base.errors import ArgumentError
from phalanx.experimental.topologies import get_topology_desc
from phalanx.insight.systems import Machine, machine, systems


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
        return _of_machine(machine(name))
    return get_topology_desc(name, "tpu").devices


def _of_machine(chips: Machine) -> list[Any]:
    system, grid = chips.system, "x".join(map(str, chips.shape))
    if system.gpu:
        grid = f"1x{chips.slices}x{chips.inside}"
        return get_topology_desc(grid, "cuda", target_config=system.gpu).devices
    if not system.torus:
        raise ArgumentError(
            f"{system.name} is a system for plans, and XLA compiles for no such one"
        )
    grid += "x1" * (system.torus - len(chips.shape))
    slices = {"num_slices": chips.slices} if chips.slices > 1 else {}
    return get_topology_desc(f"{system.name}:{grid}", "tpu", **slices).devices
