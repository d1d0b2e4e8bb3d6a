"""``mapped``: run a program in every lane of a named axis. It is what ``pmap`` binds.

Under every transformation it stays a mapped program: what is linearized, transposed or
vectorized is the body, traced once whatever the number of lanes. Lowered, it is a manual
region over the mesh, in which each device runs the body vectorized over its block of lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.control.family import with_subprograms
from phalanx.core.axes import Axis, Split
from phalanx.core.blocks import Blocks
from phalanx.core.frame import FIXED, Frame, Lanes, each
from phalanx.core.primitive import Primitive, Spread
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import move, reshape
from phalanx.ops.lanes import lanes_at
from phalanx.transforms.batch import batch, place_lanes, with_lanes
from phalanx.transforms.derive import keep, trace_closed
from phalanx.transforms.passes import within_a_device
from phalanx.transforms.stage import evaluate

Dims = tuple[int | None, ...]


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


@dataclass(frozen=True, slots=True)
class Block:
    """The body of one device: ``lanes`` lanes, in the mapped dimensions of what it takes and gives.

    It communicates with other devices over the axis ``name``.
    """

    program: Program
    name: Any

    @property
    def input_types(self) -> tuple[ArrayType, ...]:
        """The types of what it takes."""
        return self.program.input_types

    def lower(self, b: Any, *xs: Any) -> list:
        """Write the body through the builder."""
        return b.inline(self.program, *xs)


def block(program: Program, axis: Any, split: Blocks, in_dims: Dims, out_dims: Dims) -> Block:
    """What each device runs of ``program`` in every lane of ``axis``; made once."""

    def make() -> Block:
        if split.size == split.count > 1:
            return Block(within_a_device(_of_one_lane(program, in_dims, out_dims)), axis)
        return _of_many_lanes(program, axis, split, in_dims, out_dims)

    return keep(program, ("block", axis, split, in_dims, out_dims), make)


def _of_one_lane(program: Program, in_dims: Dims, out_dims: Dims) -> Program:
    """``program`` itself, between reshapes that take off and add a dimension of length one."""
    before, after, inputs, outputs = [], [], [], []
    for v, d in zip(program.inputs, in_dims, strict=True):
        inputs.append(v if d is None else Var(with_lanes(v.type, d, 1)))
        if d is not None:
            before.append(_reshaped(inputs[-1], v))
    for a, t, d in zip(program.outputs, program.output_types, out_dims, strict=True):
        outputs.append(a if d is None else Var(with_lanes(t, d, 1)))
        if d is not None:
            after.append(_reshaped(a, outputs[-1]))
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
    return Block(within_a_device(trace_closed(run, types, program.name).program), name)


def _shared(value: Any, dim: int | None) -> Any:
    """The value that every lane holds: that of lane 0."""
    if dim is None:
        return value
    first = lanes_at(move(value, dim, 0), [0])
    return reshape(first, shape=typeof(first).shape[1:])


# ---- lowering -----------------------------------------------------------------------------------


def _lower(
    b: Any, *xs: Any, program: Program, axis: Any, size: int, in_dims: Dims, out_dims: Dims,
    devices: tuple | None,
) -> list:  # fmt: skip
    names, count = b.next_level()
    split = Blocks(size, count)
    made = block(program, axis, split, in_dims, out_dims)

    def run(b: Any, *mine: Any) -> list:
        with b.entering(made.name, names):
            return made.lower(b, *mine)

    if count == 1:
        return run(b, *xs)
    padded = [
        x if d is None else b.padded(x, d, split.padded)
        for x, d in zip(xs, in_dims, strict=True)
    ]
    spread = _nested if b.manual else _region
    found = spread(b, padded, run, made, names, in_dims, out_dims, split)
    return [
        y if d is None else b.unpadded(y, d, size) for y, d in zip(found, out_dims, strict=True)
    ]


def _region(
    b: Any, xs: Sequence, run: Callable, made: Block, names: tuple, in_dims: Dims, out_dims: Dims,
    split: Blocks,
) -> list:  # fmt: skip
    """The outermost axis over several devices: a manual region, each device on its block."""
    outs = [
        t if d is None else t.update(shape=_with_size(t.shape, d, split.padded))
        for t, d in zip(made.program.output_types, out_dims, strict=True)
    ]
    return b.manual_computation(
        xs, [_dealt(d, names) for d in in_dims], [_dealt(d, names) for d in out_dims], outs, run
    )


def _dealt(dim: int | None, names: tuple[str, ...]) -> tuple:
    return () if dim is None else (*((),) * dim, names)


def _with_size(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim + 1 :])


def _nested(
    b: Any, xs: Sequence, run: Callable, made: Block, names: tuple, in_dims: Dims, out_dims: Dims,
    split: Blocks,
) -> list:  # fmt: skip
    """An axis inside another: each device takes its block, and all gather the results."""
    with b.entering(made.name, names):
        index = b.axis_index(made.name)
        groups = b.replica_groups((made.name,), None)
    start = b.multiply(index, b.constant(split.length, b.type(index).dtype))
    mine = [
        x if d is None else _take_block(b, x, start, d, split.length)
        for x, d in zip(xs, in_dims, strict=True)
    ]
    results = run(b, *mine)
    return [
        r if d is None else b.all_gather(r, d, groups, _with_size(b.type(r).shape, d, split.padded))
        for r, d in zip(results, out_dims, strict=True)
    ]


def _take_block(b: Any, x: Any, start: Any, dim: int, lanes: int) -> Any:
    zero = b.constant(0, b.type(start).dtype)
    shape = b.type(x).shape
    starts = [start if i == dim else zero for i in range(len(shape))]
    return b.dynamic_slice(x, starts, _with_size(shape, dim, lanes))


mapped: Primitive = with_subprograms(
    "mapped",
    _lower,
    _frame,
    _reframe,
    spread=lambda params: Spread(
        params["program"],
        params["axis"],
        params["size"],
        params["in_dims"],
        params["out_dims"],
        params["devices"],
        lambda split: block(
            params["program"], params["axis"], split, params["in_dims"], params["out_dims"]
        ),
    ),
    doc="a program in every lane of a named axis; sdy.manual_computation",
)
