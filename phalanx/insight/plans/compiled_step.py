"""The step of a plan, compiled for the chips that it is planned for, which need not be here.

XLA parts the program over a mesh of described devices, as a plan has it: the batch over copies and
parts of the state, its sequences over an axis of their own, each large array of the state along its
longest sides. Of what the compiler makes of that, operations, bytes, memory and exchanges are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.api.aot import struct
from phalanx.api.compiled_collectives import Collective
from phalanx.api.jit import jit
from phalanx.api.stages import Compiled, Traced
from phalanx.base.errors import ArgumentError, DevicesDiffer, OutOfMemory
from phalanx.experimental.topologies import get_topology_desc
from phalanx.insight.plans.performance_model import Load, Parting, Timing, timed
from phalanx.insight.plans.shardings import AXES, divide, mesh_of
from phalanx.insight.systems import Machine
from phalanx.insight.traced import whole
from phalanx.run.backend import Exchange
from phalanx.spmd.mesh import Mesh
from phalanx.transforms.stage import evaluate

__all__ = ["Built", "built", "devices_of"]

ArgumentShardings = tuple[tuple[str, str, str], ...]


class Built(Struct, frozen=True):
    """A step as it was compiled for a machine.

    Attributes:
        timing: what it takes, by what the compiler made.
        operations: of products, of each chip.
        exchanged: what chips exchange.
        shardings: for each argument its name, its type, and the mesh axes over which it is sharded.
    """

    timing: Timing
    operations: float
    exchanged: Sequence[Collective]
    shardings: ArgumentShardings


def devices_of(chips: Machine) -> list[Any]:
    """The described devices of a machine.

    Raises:
        DeviceError: XLA's plugin for them is not installed.
        ArgumentError: XLA compiles for no such machine.
    """
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


def built(traced: Traced, load: Load, chips: Machine, parting: Parting) -> Built:
    """The step that was ``traced``, compiled for ``chips``, parted in this way.

    Raises:
        DeviceError: XLA's plugin for them is not installed.
        ArgumentError: it is no machine of TPUs.
        OutOfMemory, RuntimeFailure: the compiler refuses it.
    """
    if not chips.system.torus:
        raise ArgumentError(
            f"plan: compiled=True is for TPUs; a step on {chips.system.title} is planned by its "
            "trace and the published figures of the chip"
        )
    mesh = mesh_of(load, parting, devices_of(chips))
    start = f"plan: {traced.fun_name}, compiled for {chips.name} over {parting}"
    try:
        compiled, shardings = _compiled(traced, load, mesh)
    except OutOfMemory as e:
        message = str(e)[max(str(e).find("RESOURCE_EXHAUSTED"), 0) :]
        raise OutOfMemory(
            f"{start}: {message}; data=, fsdp= and tensor= choose another mesh"
        ) from None
    except DevicesDiffer:
        raise ArgumentError(
            f"{start}: it says itself on which devices it runs, as shard_map does, and cannot be "
            f"parted anew; phalanx compile --for {chips.name} compiles it as it is written"
        ) from None
    return _read(compiled, load, chips, parting, shardings)


# ---- compiling ----------------------------------------------------------------------------------


def _compiled(traced: Traced, load: Load, mesh: Mesh) -> tuple[Compiled, ArgumentShardings]:
    """The step over ``mesh``, and the shardings of its arguments."""
    call, divided = whole(traced), divide(traced, load, mesh)

    def step(*args: Any) -> tuple[Any, ...]:
        return tuple(evaluate(divided.program, args))

    step.__name__ = traced.fun_name
    donated = tuple([i for i, is_donated in enumerate(divided.donated) if is_donated])
    jitted = jit(step, in_shardings=divided.ins, out_shardings=divided.outs, donate_argnums=donated)
    shardings = [
        (call.names[i], str(kind), str(sharding.spec) if any(sharding.spec) else "whole")
        for i, (kind, sharding) in enumerate(zip(call.types, divided.ins, strict=True))
    ]
    return jitted.lower(*map(struct, call.types)).compile(), tuple(shardings)


# ---- reading ------------------------------------------------------------------------------------


def _read(
    compiled: Compiled, load: Load, chips: Machine, parting: Parting, shardings: ArgumentShardings
) -> Built:  # fmt: skip
    run, exchanged = compiled.runtime_executable(), compiled.collectives()
    kernels, talking = run.kernels(), {"send", "recv", *[c.operation for c in exchanged]}
    own = [k for k in kernels if k.operation.removesuffix("-start") not in talking]
    operations = sum([k.count * k.products for k in own])
    seconds: dict[str, float] = {axis: 0.0 for axis in AXES}
    for e in run.exchanges():
        axis, among, stride = _among(e, chips, parting)
        seconds[axis] += e.count * sum(chips.exchange(e.operation, e.bytes, among, stride))
    sizes = compiled.memory_analysis()
    needed = (
        sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes
        - sizes.alias_size_in_bytes
    )  # fmt: skip
    dtype = max(load.operations, key=lambda d: load.operations[d], default=np.dtype("float32"))
    peak, bandwidth = chips.chip.peak(dtype), chips.chip.bandwidth
    # an instruction that multiplies reads and writes meanwhile, and takes longer where that does
    waiting = [k.count * max(0.0, k.moved / bandwidth - k.products / peak) for k in own]
    late = sum([k.count * _late(k.products / peak, k.moved / bandwidth, chips) for k in own])
    found = timed(chips, parting, operations / peak, sum(waiting), late, seconds, float(needed))
    return Built(found, operations, exchanged, shardings)


def _late(computing: float, moving: float, chips: Machine) -> float:
    """What an instruction takes longer than its arithmetic and its bytes."""
    return max(0.0, chips.system.launch - max(computing, moving))


def _among(e: Exchange, chips: Machine, parting: Parting) -> tuple[str, int, int]:
    """The first axis along which chips differ that exchange, how many do so with each other, and
    how far from each other they are; all of them, where that is not told."""
    group = next((g for g in e.pairs or e.groups or () if len({*g}) > 1), range(parting.chips))
    sizes = [getattr(parting, axis) for axis in AXES]
    places = np.unravel_index(np.array(group), sizes)
    differing = [axis for axis, at in zip(AXES, places, strict=True) if np.ptp(at)]
    near = max(Counter([i // chips.inside for i in group]).values())  # in the same slice
    return (differing or AXES)[0], len(group), chips.inside // near
