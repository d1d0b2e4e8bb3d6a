"""``mapped``: run a program in every lane of a named axis. It is what ``pmap`` binds.

Under every transformation it stays a mapped program: what is linearized, transposed or
vectorized is the body, traced once whatever the number of lanes. Lowered, it is a manual
region over the mesh, in which each device runs the body vectorized over its block of lanes.
"""

from __future__ import annotations

from typing import Any

from phalanx.control.family import with_subprograms
from phalanx.control.region import lower_region
from phalanx.core.axes import Axis, Split
from phalanx.core.blocks import Blocks
from phalanx.core.builder import Builder, Value
from phalanx.core.frame import FIXED, Frame, Lanes, each
from phalanx.core.primitive import Primitive
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.region import Block, Region, along
from phalanx.core.types import typeof
from phalanx.ops.basis import move, reshape
from phalanx.ops.lanes import lanes_at
from phalanx.spmd.replication import Varying, divergences
from phalanx.transforms.batch import Dims, batch, place_lanes, with_lanes
from phalanx.transforms.derive import keep, trace_closed
from phalanx.transforms.passes import within_a_device
from phalanx.transforms.stage import evaluate


def _frame(params: dict[str, Any]) -> Frame:
    ins, outs = (
        tuple([FIXED if d is None else each(d) for d in params[which]])
        for which in ("in_dims", "out_dims")
    )
    return Frame((params["program"],), ins, outs, Lanes(params["axis"], params["size"]))


def _reframe(params: dict[str, Any], frame: Frame) -> dict[str, Any]:
    return {
        **params,
        "program": frame.programs[0],
        "in_dims": tuple([r.dim for r in frame.ins]),
        "out_dims": tuple([r.dim for r in frame.outs]),
    }


# ---- blocks of lanes ----------------------------------------------------------------------------


def block(program: Program, axis: Any, split: Blocks, in_dims: Dims, out_dims: Dims) -> Block:
    """What each device runs of ``program`` in every lane of ``axis``; made once."""

    def make() -> Block:
        if split.size == split.count > 1 and not _may_part(program, axis, in_dims):
            return Block(within_a_device(_of_one_lane(program, in_dims, out_dims)), (axis,))
        return _of_many_lanes(program, axis, split, in_dims, out_dims)

    return keep(program, ("block", axis, split, in_dims, out_dims), make)


def _may_part(program: Program, axis: Any, in_dims: Dims) -> bool:
    """Whether lanes that communicate may decide differently if they do.

    Then they are vectorized even where each has a device of its own: the rules for lanes that
    choose differently say what all of them run.
    """
    inputs = [Varying() if d is None else Varying({axis}) for d in in_dims]
    return any(axis in over for _, over in divergences(program, inputs))


def _of_one_lane(program: Program, in_dims: Dims, out_dims: Dims) -> Program:
    """``program`` itself, between reshapes that take off and add a dimension of length one."""
    before: list[Equation] = []
    after: list[Equation] = []
    inputs: list[Var] = []
    outputs: list[Atom] = []
    for v, d in zip(program.inputs, in_dims, strict=True):
        inputs.append(v if d is None else Var(with_lanes(v.type, d, 1)))
        if d is not None:
            before.append(_reshaped(inputs[-1], v))
    for a, t, d in zip(program.outputs, program.output_types, out_dims, strict=True):
        out = Var(t if d is None else with_lanes(t, d, 1))
        outputs.append(a if d is None else out)
        if d is not None:
            after.append(_reshaped(a, out))
    return Program(inputs, [*before, *program.equations, *after], outputs, program.name)


def _reshaped(atom: Atom, out: Var) -> Equation:
    return Equation(reshape, [atom], {"shape": out.type.shape}, (out,), None)


def _of_many_lanes(
    program: Program, axis: Any, split: Blocks, in_dims: Dims, out_dims: Dims
) -> Block:
    name = ("the blocks of", axis)
    lanes = Axis(axis, split.length, Split(name, split))

    def run(*inputs: Any) -> tuple[list[Any], None]:
        values, dims = batch(lambda *xs: evaluate(program, xs), lanes, inputs, in_dims)
        return [
            _shared(v, d) if to is None else place_lanes(v, d, to, lanes.size)
            for v, d, to in zip(values, dims, out_dims, strict=True)
        ], None

    types = [
        v.type if d is None else with_lanes(v.type, d, lanes.size)
        for v, d in zip(program.inputs, in_dims, strict=True)
    ]
    return Block(within_a_device(trace_closed(run, types, program.name).program), (name,))


def _shared(value: Any, dim: int | None) -> Any:
    """The value that every lane holds: that of lane 0."""
    if dim is None:
        return value
    first = lanes_at(move(value, dim, 0), [0])
    return reshape(first, shape=typeof(first).shape[1:])


# ---- the region ---------------------------------------------------------------------------------


def _region(params: dict[str, Any]) -> Region:
    program, axis, size, devices = (params[k] for k in ("program", "axis", "size", "devices"))
    in_dims, out_dims = params["in_dims"], params["out_dims"]
    return Region(
        program,
        ((axis, size),),
        tuple([along(d, axis) for d in in_dims]),
        tuple([along(d, axis) for d in out_dims]),
        devices,
        shared=True,
        block=lambda blocks: block(program, axis, blocks[0], in_dims, out_dims),
    )


def _lower(b: Builder, *xs: Value, **params: Any) -> list[Value]:
    return lower_region(b, *xs, region=_region(params))


mapped: Primitive = with_subprograms(
    "mapped",
    _lower,
    _frame,
    _reframe,
    region=_region,
    doc="a program in every lane of a named axis; sdy.manual_computation",
)
