"""``mapped``: run a program in every lane of a named axis. It is what ``pmap`` binds.

Under every transformation it stays a mapped program: what is linearized, transposed or
vectorized is the body, traced once whatever the number of lanes. Lowered, it is a manual
region over the mesh, or, where the axis does not fit the devices, the vectorized body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.control.call import spread_cotangents, transpose_operands
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, Linear, Primitive, Spread
from phalanx.core.program import Program
from phalanx.core.trace import running
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import move, mul, reshape
from phalanx.ops.collective import lanes_at, psum
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
    computed = parts.forwarded.count(None)
    results = mapped(
        *parts.constants,
        *primals,
        program=parts.primal,
        in_dims=(None,) * len(parts.constants) + in_dims,
        out_dims=out_dims + (0,) * computed,
        **spread,
    )
    count = len(program.outputs)
    out, residuals = results[:count], parts.residuals(primals, results[count:])
    residual_dims = tuple(0 if i is None else in_dims[i] for i in parts.forwarded)
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


def vectorized(program: Program, axis: Any, size: int, in_dims: Dims, out_dims: Dims) -> tuple:
    """The program that does in array dimensions what ``mapped`` does over devices.

    Returns it with the constants that it takes first.
    """
    key = ("vectorized", axis, size, in_dims, out_dims)
    if key not in program.derived:
        stage = Stage(None, program.name)
        inputs = [
            stage.input(v.type if d is None else with_lanes(v.type, d, size))
            for v, d in zip(program.inputs, in_dims, strict=True)
        ]
        with running(stage):
            values, lanes = batch(
                lambda *xs: evaluate(program, xs), Axis(axis, size), inputs, in_dims
            )
            results = [
                _shared(v, d) if to is None else place_lanes(v, d, to, size)
                for v, d, to in zip(values, lanes, out_dims, strict=True)
            ]
        made, constants = stage.finish(inputs, results, program.name)
        program.derived[key] = made, constants
    return program.derived[key]


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
    names = b.next_level(size)
    if names is None:
        made, constants = vectorized(program, axis, size, in_dims, out_dims)
        return b.inline(made, *map(b.host_constant, constants), *xs)
    if b.depth == 0:
        return _lower_region(b, xs, program, axis, names, in_dims, out_dims)
    return _lower_nested(b, xs, program, axis, names, in_dims, out_dims)


def _split(dim: int | None, names: tuple[str, ...]) -> tuple:
    return () if dim is None else (*((),) * dim, names)


def _lower_region(
    b: Any, xs: Sequence, program: Program, axis: Any, names: tuple, in_dims: Dims, out_dims: Dims
) -> list:
    """The outermost mapped axis: a manual region, each device on its own lane."""
    outs = b.outs

    def body(b: Any, *locals_: Any) -> list:
        lanes = [
            x if d is None else b.reshape(x, v.type.shape)
            for x, d, v in zip(locals_, in_dims, program.inputs, strict=True)
        ]
        with b.entering(axis, names):
            results = b.inline(program, *lanes)
        return [
            r if d is None else b.reshape(r, with_lanes(t, d, 1).shape)
            for r, d, t in zip(results, out_dims, program.output_types, strict=True)
        ]

    return b.manual_computation(
        xs,
        [_split(d, names) for d in in_dims],
        [_split(d, names) for d in out_dims],
        outs,
        body,
    )


def _lower_nested(
    b: Any, xs: Sequence, program: Program, axis: Any, names: tuple, in_dims: Dims, out_dims: Dims
) -> list:
    """A mapped axis inside another: each device takes its lane, and all gather the results."""
    with b.entering(axis, names):
        index = b.axis_index(axis)
        lanes = [
            x if d is None else _take_lane(b, x, index, v.type, d)
            for x, d, v in zip(xs, in_dims, program.inputs, strict=True)
        ]
        results = b.inline(program, *lanes)
        groups = b.replica_groups((axis,), None)
        return [
            r if d is None else _gather_lanes(b, r, t, d, len(groups[0]), groups)
            for r, d, t in zip(results, out_dims, program.output_types, strict=True)
        ]


def _take_lane(b: Any, x: Any, index: Any, lane: ArrayType, dim: int) -> Any:
    zero = b.constant(0, b.type(index).dtype)
    starts = [index if i == dim else zero for i in range(lane.ndim + 1)]
    one = b.dynamic_slice(x, starts, with_lanes(lane, dim, 1).shape)
    return b.reshape(one, lane.shape)


def _gather_lanes(b: Any, x: Any, lane: ArrayType, dim: int, size: int, groups: tuple) -> Any:
    one = b.reshape(x, with_lanes(lane, dim, 1).shape)
    return b.all_gather(one, dim, groups, with_lanes(lane, dim, size).shape)


def _vary(
    *operands: frozenset, program: Program, axis: Any, size: int, in_dims: Dims, out_dims: Dims,
    devices: tuple | None,
) -> tuple:  # fmt: skip
    inner = tuple(
        v if d is None else v | {axis} for v, d in zip(operands, in_dims, strict=True)
    )
    return tuple(v - {axis} for v in varying_outputs(program, inner))


mapped: Callable = Primitive(
    "mapped",
    _type,
    _lower,
    linearize_some=_linearize,
    transpose=_transpose,
    batch=_batch,
    vary=_vary,
    axes=lambda params: params["program"].axes - {params["axis"]},
    spread=lambda params: Spread(
        params["program"],
        params["size"],
        params["in_dims"],
        params["out_dims"],
        params["devices"],
    ),
    multi=True,
    doc="a program in every lane of a named axis; sdy.manual_computation",
)
