"""``mapped``: run a program in every lane of a named axis. It is what ``pmap`` binds.

Under every transformation it stays a mapped program: what is linearized, transposed or
vectorized is the body, traced once whatever the number of lanes. Lowered, it is a manual
region over the mesh, in which each device runs the body vectorized over its block of lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.control.call import spread_cotangents, transpose_operands
from phalanx.core.axes import Axis, Split
from phalanx.core.blocks import Blocks
from phalanx.core.primitive import ZERO, Inside, Linear, Primitive, Spread
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.trace import running
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import move, mul, reshape
from phalanx.ops.collective import psum
from phalanx.ops.lanes import lanes_at
from phalanx.spmd.replication import varying_outputs
from phalanx.transforms.batch import (
    batch,
    batch_program,
    place_lanes,
    with_lanes,
)
from phalanx.transforms.linearize import linearize_program
from phalanx.transforms.stage import Stage, evaluate
from phalanx.transforms.transpose import backward

Dims = tuple[int | None, ...]


def _type(
    *types: ArrayType, program: Program, axis: Any, size: int, in_dims: Dims, out_dims: Dims,
    devices: tuple | None,
) -> tuple[ArrayType, ...]:  # fmt: skip
    return tuple(
        t if d is None else with_lanes(t, d, size)
        for t, d in zip(program.output_types, out_dims, strict=True)
    )


# ---- derivatives ------------------------------------------------------------------------------


def _linearize(
    nonzero: tuple[bool, ...], *primals: Any, program: Program, axis: Any, size: int,
    in_dims: Dims, out_dims: Dims, devices: tuple | None,
) -> tuple:  # fmt: skip
    parts = linearize_program(program, nonzero)
    spread = {"axis": axis, "size": size, "devices": devices}
    results = mapped(
        *parts.constants,
        *primals,
        program=parts.primal,
        in_dims=(None,) * len(parts.constants) + in_dims,
        out_dims=out_dims + (0,) * len(parts.echoes),
        **spread,
    )
    out, computed = parts.divide(results)
    residuals = parts.residuals(primals, computed)
    computed_dims = [0 if e is None else out_dims[e] for e in parts.echoes]
    residual_dims = tuple(parts.residuals(in_dims, computed_dims))
    tangent_dims = tuple(d for d, n in zip(in_dims, nonzero, strict=True) if n)
    linear_out = tuple(d for d, n in zip(out_dims, parts.nonzero, strict=True) if n)

    def linear(*tangents: Any) -> tuple:
        found = iter(
            mapped(
                *residuals,
                *(t for t in tangents if t is not ZERO),
                program=parts.linear,
                in_dims=residual_dims + tangent_dims,
                out_dims=linear_out,
                **spread,
            )
        )
        return tuple(next(found) if n else ZERO for n in parts.nonzero)

    return out, linear


def _transpose(
    cts: tuple, *operands: Any, program: Program, axis: Any, size: int, in_dims: Dims,
    out_dims: Dims, devices: tuple | None,
) -> list:  # fmt: skip
    linear, given, known, nonzero = transpose_operands(cts, operands)
    body, marks, constants = _transposed_body(program, axis, size, linear, given, in_dims, out_dims)
    known_dims = tuple(d for d, x in zip(in_dims, linear, strict=True) if not x)
    ct_dims = tuple(d for d, g in zip(out_dims, given, strict=True) if g)
    linear_dims = tuple(d for d, x in zip(in_dims, linear, strict=True) if x)
    found = mapped(
        *constants,
        *known,
        *nonzero,
        program=body,
        axis=axis,
        size=size,
        in_dims=(None,) * len(constants) + known_dims + ct_dims,
        out_dims=tuple(d for d, m in zip(linear_dims, marks, strict=True) if m),
        devices=devices,
    )
    return spread_cotangents(linear, marks, found)


def _transposed_body(
    program: Program, axis: Any, size: int, linear: tuple, given: tuple, in_dims: Dims,
    out_dims: Dims,
) -> tuple:  # fmt: skip
    """The body run backwards.

    The cotangent of a result that all lanes share (out dimension None) is divided among them;
    that of an operand that all lanes share (in dimension None) is the sum over the lanes.
    """
    key = ("transpose mapped", axis, size, linear, given, in_dims, out_dims)
    if key not in program.derived:
        stage = Stage(None, program.name)
        known = [stage.input(v.type) for v, x in zip(program.inputs, linear, strict=True) if not x]
        cts = [stage.input(t) for t, g in zip(program.output_types, given, strict=True) if g]
        with running(stage):
            values, found = iter(known), iter(cts)
            operands = [
                Linear(v.type) if x else next(values)
                for v, x in zip(program.inputs, linear, strict=True)
            ]
            received = [next(found) if g else ZERO for g in given]
            shared = [
                mul(ct, 1.0 / size) if d is None and ct is not ZERO else ct
                for ct, d in zip(received, out_dims, strict=True)
            ]
            results = backward(program, operands, shared)
            dims = [d for d, x in zip(in_dims, linear, strict=True) if x]
            summed = [
                psum(r, axes=(axis,), groups=None)[0] if d is None and r is not ZERO else r
                for r, d in zip(results, dims, strict=True)
            ]
        marks = tuple(r is not ZERO for r in summed)
        body, constants = stage.finish(
            [*known, *cts], [r for r in summed if r is not ZERO], program.name
        )
        program.derived[key] = body, marks, constants
    return program.derived[key]


# ---- vectorization ----------------------------------------------------------------------------


def _batch(
    outer: Axis, values: Sequence, dims: Dims, *, program: Program, axis: Any, size: int,
    in_dims: Dims, out_dims: Dims, devices: tuple | None,
) -> tuple:  # fmt: skip
    # an axis of the same name is shadowed inside
    inner = Axis(None, outer.size) if outer.name == axis else outer
    inside = tuple(_inside(d, m) for d, m in zip(dims, in_dims, strict=True))
    batched = batch_program(program, inner, inside)
    mapped_at = tuple(
        m if d is None or m is None else m + (d <= m)
        for d, m in zip(dims, in_dims, strict=True)
    )
    found = mapped(
        *batched.constants,
        *values,
        program=batched.program,
        axis=axis,
        size=size,
        in_dims=(None,) * len(batched.constants) + mapped_at,
        out_dims=tuple(
            m if d is None or m is None else m + (d < m)
            for d, m in zip(batched.dims, out_dims, strict=True)
        ),
        devices=devices,
    )
    out = tuple(
        d if d is None or m is None else d + (m <= d)
        for d, m in zip(batched.dims, out_dims, strict=True)
    )
    return found, out


def _inside(dim: int | None, mapped_dim: int | None) -> int | None:
    """Where a dimension of the whole operand lies in what one lane of it sees."""
    if dim is None or mapped_dim is None:
        return dim
    return dim - (dim > mapped_dim)


# ---- blocks of lanes ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """The body of one device: ``lanes`` lanes, in the mapped dimensions of what it takes and gives.

    It takes ``constants`` first, and communicates with other devices over the axis ``name``.
    """

    program: Program
    constants: list[Any]
    name: Any

    @property
    def input_types(self) -> tuple[ArrayType, ...]:
        """The types of what it takes after the constants."""
        return self.program.input_types[len(self.constants) :]

    def lower(self, b: Any, *xs: Any) -> list:
        """Write the body through the builder, the constants included."""
        return b.inline(self.program, *map(b.host_constant, self.constants), *xs)


def block(program: Program, axis: Any, split: Blocks, in_dims: Dims, out_dims: Dims) -> Block:
    """What each device runs of ``program`` in every lane of ``axis``; made once."""
    key = ("block", axis, split, in_dims, out_dims)
    if key not in program.derived:
        if split.size == split.count > 1:
            made = Block(_of_one_lane(program, in_dims, out_dims), [], axis)
        else:
            made = _of_many_lanes(program, axis, split, in_dims, out_dims)
        program.derived[key] = made
    return program.derived[key]


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
    stage = Stage(None, program.name)
    inputs = [
        stage.input(v.type if d is None else with_lanes(v.type, d, lanes.size))
        for v, d in zip(program.inputs, in_dims, strict=True)
    ]
    with running(stage):
        values, dims = batch(lambda *xs: evaluate(program, xs), lanes, inputs, in_dims)
        results = [
            _shared(v, d) if to is None else place_lanes(v, d, to, lanes.size)
            for v, d, to in zip(values, dims, out_dims, strict=True)
        ]
    return Block(*stage.finish(inputs, results, program.name), name)


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


def _thread(
    rewrite: Callable, state: tuple, *xs: Any, program: Program, in_dims: Dims, out_dims: Dims,
    **spread: Any,
) -> tuple:  # fmt: skip
    shared = (None,) * len(state)
    out = mapped(
        *state, *xs, program=rewrite(program, 0), in_dims=shared + in_dims,
        out_dims=shared + out_dims, **spread,
    )  # fmt: skip
    return out[: len(state)], out[len(state) :]


def _vary(
    *operands: frozenset, program: Program, axis: Any, size: int, in_dims: Dims, out_dims: Dims,
    devices: tuple | None,
) -> tuple:  # fmt: skip
    inner = tuple(
        v if d is None else v | {axis} for v, d in zip(operands, in_dims, strict=True)
    )
    return tuple(v - {axis} for v in varying_outputs(program, inner))


def _extendable(params: dict[str, Any]) -> Inside:
    def extended(program: Program, operands: int, results: int) -> dict[str, Any]:
        return {
            **params,
            "program": program,
            "in_dims": params["in_dims"] + (0,) * operands,
            "out_dims": params["out_dims"] + (0,) * results,
        }

    return Inside(params["program"], extended)


mapped: Callable = Primitive(
    "mapped",
    _type,
    _lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    vary=_vary,
    axes=lambda params: params["program"].axes - {params["axis"]},
    thread=_thread,
    inside=_extendable,
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
    multi=True,
    doc="a program in every lane of a named axis; sdy.manual_computation",
)
