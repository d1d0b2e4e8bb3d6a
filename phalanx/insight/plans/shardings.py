"""How a plan divides a step over a mesh: its arguments and results, and what it tells the compiler.

The batch is divided over copies of the model and parts of the state, its sequences over an axis of
their own, and each large array of the state along its longest sides. The lanes of a ``pmap`` have
all of the state, and are divided alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Any

from msgspec import Struct

from phalanx.api.meshes import make_mesh
from phalanx.api.stages import Traced, TracedCall
from phalanx.core.program import Program
from phalanx.core.types import ArrayType
from phalanx.insight.plans.gathered_weights import with_gathered
from phalanx.insight.plans.microbatches import Constraint, constrained
from phalanx.insight.plans.performance_model import Load, Parting
from phalanx.insight.plans.weight_dimensions import Sides, sides_of
from phalanx.insight.state import Pairs, arguments_of, state_of
from phalanx.insight.traced import whole
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.named import PartitionSpec as P
from phalanx.transforms.storage import size_in_bytes

__all__ = ["AXES", "Divided", "axes_of", "divide", "mesh_of"]

AXES = ("data", "fsdp", "sequence", "tensor")
_ROWS = AXES[:2]  # the axes over which the batch is divided
_SMALL = 0.01  # of the largest array of the state: smaller ones are copied, not parted


class Divided(Struct, frozen=True):
    """A step as a plan divides it.

    Attributes:
        program: it, with the constraints that it needs.
        ins: the shardings of its inputs.
        outs: the shardings of its outputs, None where the compiler decides.
        donated: whether each input is donated: the arguments all of which are returned anew.
        constraints: those in the program.
    """

    program: Program
    ins: tuple[NamedSharding, ...]
    outs: tuple[NamedSharding | None, ...]
    donated: tuple[bool, ...]
    constraints: tuple[Constraint, ...]


def axes_of(sequence: int) -> tuple[str, ...]:
    """The axes of a mesh: that of sequences if they are divided among more than one."""
    return tuple([axis for axis in AXES if axis != "sequence" or sequence > 1])


def mesh_of(load: Load, parting: Parting, devices: Sequence[Any]) -> Mesh:
    """The mesh of a plan, with an axis of sequences where these are divided. That of a ``pmap`` has
    an axis of lanes; where devices are more, several do the same."""
    if load.lanes == 1:
        sizes = {axis: getattr(parting, axis) for axis in axes_of(parting.sequence)}
        return make_mesh(tuple(sizes.values()), tuple(sizes), devices=devices)
    lanes = math.gcd(load.lanes, parting.chips)
    return make_mesh((lanes, parting.chips // lanes), ("lanes", "copies"), devices=devices)


def divide(traced: Traced, load: Load, mesh: Mesh) -> Divided:
    """How a step that was ``traced`` is divided over ``mesh``."""
    call = whole(traced)
    program = call.program
    pairs = state_of(call, program)
    state = {i for i, _ in pairs} | load.parted.frozen if load.lanes == 1 else set[int]()
    largest = max([size_in_bytes(call.types[i]) for i in state], default=0)
    sides = _sides(program, call, state)
    rows, sequences = load.parted.along, load.sequences.along

    def sharding_of(i: int, kind: ArrayType) -> NamedSharding:
        if i in state and size_in_bytes(kind) >= _SMALL * largest:
            return NamedSharding(mesh, _of_state(kind, mesh, sides.get(kind.shape)))
        if load.lanes > 1:
            return NamedSharding(mesh, P("lanes") if kind.shape[:1] == (load.lanes,) else P())
        if i not in rows:
            return NamedSharding(mesh, P())
        return _of_batch(kind, rows[i], sequences.get(i), mesh) or NamedSharding(mesh, P())

    ins = tuple([sharding_of(i, kind) for i, kind in enumerate(call.types)])
    outs: list[NamedSharding | None] = [None] * len(program.outputs)
    for i, o in pairs:
        outs[o] = ins[i]
    constraints: tuple[Constraint, ...] = ()
    if load.lanes == 1:
        program, constraints = constrained(
            program, rows, sequences, lambda kind, d, s: _of_batch(kind, d, s, mesh)
        )
        if min(mesh.shape["fsdp"], mesh.shape["tensor"]) > 1:
            program, gathered = with_gathered(program, {i: ins[i] for i in state}, "fsdp")
            constraints += gathered
    return Divided(program, ins, tuple(outs), _donated(call, pairs), constraints)


def _of_batch(
    kind: ArrayType, row: int, sequence: int | None, mesh: Mesh
) -> NamedSharding | None:  # fmt: skip
    """Rows divided along a dimension, and sequences along another, if there is one; None if rows
    cannot be, or there is nothing to divide."""
    among = math.prod([mesh.shape[axis] for axis in _ROWS])
    spec: list[tuple[str, ...] | str | None] = [None] * kind.ndim
    if kind.shape[row] % among:
        return None
    if among > 1:
        spec[row] = _ROWS
    if sequence is not None and kind.shape[sequence] % mesh.shape.get("sequence", 1) == 0:
        spec[sequence] = "sequence" if "sequence" in mesh.shape else None
    return NamedSharding(mesh, _shortest(spec)) if any(spec) else None


def _sides(program: Program, call: TracedCall, state: Set[int]) -> dict[tuple[int, ...], Sides]:
    """The sides of weights by their shapes: what an optimizer keeps of one has its shape."""
    found = sides_of(program, state)
    return {call.types[i].shape: found[i] for i in reversed([*found])}


def _of_state(kind: ArrayType, mesh: Mesh, sides: Sides | None) -> P:
    """Over "tensor" along the side that products divide, or the longest dimension, and over "fsdp"
    along one that products sum over, by which compilers see that it has to be gathered; of what
    no side can be parted along each chip has all."""
    spec: list[str | None] = [None] * kind.ndim
    cut = sides.cut(kind.shape) if sides else ()
    for axis, first in (("tensor", cut), ("fsdp", (max(kind.ndim - 2, 0),))):
        size = mesh.shape[axis]
        free = [d for d, n in enumerate(kind.shape) if spec[d] is None and n % size == 0]
        if free and size > 1:
            wanted = [d for d in first if d in free]
            spec[wanted[0] if wanted else max(free, key=lambda d: (kind.shape[d], d))] = axis
    return _shortest(spec)


def _shortest(spec: Sequence[tuple[str, ...] | str | None]) -> P:
    """The spec without dimensions at its end that are not divided."""
    return P(*spec[: max([d + 1 for d, axes in enumerate(spec) if axes], default=0)])


def _donated(call: TracedCall, pairs: Pairs) -> tuple[bool, ...]:
    """The inputs whose memory the new state takes over: what is donated is gone, so it is whole
    arguments, of which the results have all parts in the same types."""
    kinds, results = call.program.input_types, call.program.output_types
    again = {i for i, o in pairs if kinds[i].dtype == results[o].dtype}
    donated = [i in again for i in range(len(kinds))]
    for leaves in arguments_of(call, len(kinds)):
        whole_argument = all(donated[leaves.start : leaves.stop])
        donated[leaves.start : leaves.stop] = [whole_argument] * len(leaves)
    return tuple(donated)
