"""The step of a plan, compiled for the chips that it is planned for, which need not be here.

XLA parts the program over a mesh of described devices, as a plan has it: the batch over copies and
parts of the state, each large array of the state along its longest sides. Of what the compiler
makes of that, operations, bytes, memory and exchanges are read.
"""

# What a traced function holds is private to users, not to the analyses of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.api.aot import struct
from phalanx.api.compiled_collectives import Collective
from phalanx.api.jit import jit
from phalanx.api.meshes import make_mesh
from phalanx.api.stages import Compiled, Traced
from phalanx.base.errors import ArgumentError, DevicesDiffer, OutOfMemory
from phalanx.core.types import ArrayType
from phalanx.experimental.topologies import get_topology_desc
from phalanx.insight.explained import whole
from phalanx.insight.planned import Load, Parting, Timing, timed
from phalanx.insight.state import state_of
from phalanx.insight.systems import Machine
from phalanx.run.backend import Exchange
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.named import PartitionSpec as P
from phalanx.transforms.stage import evaluate
from phalanx.transforms.storage import size_in_bytes

__all__ = ["Built", "built", "devices_of"]

ArgumentShardings = tuple[tuple[str, str, str], ...]
_AXES = ("data", "fsdp", "tensor")
_SMALL = 0.01  # of the largest array of the state: smaller ones are copied, not parted


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
    axes, sizes = _AXES, (parting.data, parting.fsdp, parting.tensor)
    if load.lanes > 1:  # where chips are more, several do the same
        lanes = math.gcd(load.lanes, chips.chips)
        axes, sizes = ("lanes", "copies"), (lanes, chips.chips // lanes)
    mesh = make_mesh(sizes, axes, devices=devices_of(chips))
    told = f"plan: {traced.fun_name}, compiled for {chips.name} over {parting}"
    try:
        compiled, shardings = _compiled(traced, load, mesh)
    except OutOfMemory as e:
        said = str(e)[max(str(e).find("RESOURCE_EXHAUSTED"), 0) :]
        raise OutOfMemory(f"{told}: {said}; data=, fsdp= and tensor= choose another mesh") from None
    except DevicesDiffer:
        raise ArgumentError(
            f"{told}: it says itself on which devices it runs, as shard_map does, and cannot be "
            f"parted anew; phalanx compile --for {chips.name} compiles it as it is written"
        ) from None
    return _read(compiled, load, chips, parting, shardings)


# ---- compiling ----------------------------------------------------------------------------------


def _compiled(traced: Traced, load: Load, mesh: Mesh) -> tuple[Compiled, ArgumentShardings]:
    """The step over ``mesh``, and the shardings of its arguments."""
    call = whole(traced)
    program = call.program
    pairs = state_of(call, program)
    state = {i for i, _ in pairs} if load.lanes == 1 else set[int]()
    largest = max([size_in_bytes(call.types[i]) for i in state], default=0)

    def laid(i: int, kind: ArrayType) -> NamedSharding:
        if i in state and size_in_bytes(kind) >= _SMALL * largest:
            return NamedSharding(mesh, _of_state(kind, mesh))
        if load.lanes > 1:
            return NamedSharding(mesh, P("lanes") if kind.shape[:1] == (load.lanes,) else P())
        among = math.prod([mesh.shape[a] for a in _AXES[:2]])
        if i not in load.parted.along or load.batch % among:
            return NamedSharding(mesh, P())
        return NamedSharding(mesh, P(*[None] * load.parted.along[i], _AXES[:2]))

    ins = tuple([laid(i, kind) for i, kind in enumerate(call.types)])
    outs: list[Any] = [None] * len(program.outputs)
    for i, o in pairs:
        outs[o] = ins[i]

    def step(*args: Any) -> list[Any]:
        return list(evaluate(program, args))

    step.__name__ = traced.fun_name
    donated = tuple([i for i, _ in pairs])
    made = jit(step, in_shardings=ins, out_shardings=outs, donate_argnums=donated)
    shardings = [
        (call.names[i], str(kind), str(home.spec) if any(home.spec) else "whole")
        for i, (kind, home) in enumerate(zip(call.types, ins, strict=True))
    ]
    return made.lower(*map(struct, call.types)).compile(), tuple(shardings)


def _of_state(kind: ArrayType, mesh: Mesh) -> P:
    """Over "tensor" along the longest side, and over "fsdp" along the one that products sum over,
    by which compilers see that it has to be gathered; of what no side can be parted along each
    chip has all."""
    spec: list[str | None] = [None] * kind.ndim
    summed = max(kind.ndim - 2, 0)
    for axis, first in (("tensor", kind.shape), ("fsdp", [d == summed for d in range(kind.ndim)])):
        size = mesh.shape[axis]
        free = [d for d, n in enumerate(kind.shape) if spec[d] is None and n % size == 0]
        if free and size > 1:
            spec[max(free, key=lambda d: (first[d], kind.shape[d], d))] = axis
    return P(*spec)


# ---- reading ------------------------------------------------------------------------------------


def _read(
    compiled: Compiled, load: Load, chips: Machine, parting: Parting, shardings: ArgumentShardings
) -> Built:  # fmt: skip
    run, exchanged = compiled.runtime_executable(), compiled.collectives()
    kernels, talking = run.kernels(), {"send", "recv", *[c.operation for c in exchanged]}
    own = [k for k in kernels if k.operation.removesuffix("-start") not in talking]
    operations = sum([k.count * k.products for k in own])
    seconds: dict[str, float] = {axis: 0.0 for axis in _AXES}
    for e in run.exchanges():
        axis, among, apart = _among(e, chips, parting)
        seconds[axis] += e.count * sum(chips.exchange(e.operation, e.bytes, among, apart))
    sizes = compiled.memory_analysis()
    needed = (
        sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes
        - sizes.alias_size_in_bytes
    )  # fmt: skip
    dtype = max(load.operations, key=lambda d: load.operations[d], default=np.dtype("float32"))
    peak, bandwidth = chips.chip.peak(dtype), chips.chip.bandwidth
    # an instruction that multiplies reads and writes meanwhile, and takes longer where that does
    waiting = [k.count * max(0.0, k.moved / bandwidth - k.products / peak) for k in own]
    found = timed(chips, parting, operations / peak, sum(waiting), seconds, float(needed))
    return Built(found, operations, exchanged, shardings)


def _among(e: Exchange, chips: Machine, parting: Parting) -> tuple[str, int, int]:
    """The first axis along which chips differ that exchange, how many do so with each other, and
    how far from each other they are; all of them, where that is not told."""
    group = next((g for g in e.pairs or e.groups or () if len({*g}) > 1), range(parting.chips))
    places = np.unravel_index(np.array(group), (parting.data, parting.fsdp, parting.tensor))
    differing = [axis for axis, at in zip(_AXES, places, strict=True) if np.ptp(at)]
    near = max(Counter([i // chips.inside for i in group]).values())  # in the same slice
    return (differing or _AXES)[0], len(group), chips.inside // near
