"""``branch``: one of several programs, chosen by an index while running.

The branches take the same operands and give the same types. Each is transformed for itself;
where branches differ in what they give (residuals, tangents, lanes), what one lacks is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.control.call import spread_cotangents, transpose_operands
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, Linear, Primitive
from phalanx.core.program import Program
from phalanx.core.trace import running
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import broadcast, instantiate, zeros
from phalanx.ops.compare import eq, select
from phalanx.spmd.replication import varying_outputs
from phalanx.transforms.batch import batch, place_lanes, with_lanes
from phalanx.transforms.effects import conditional
from phalanx.transforms.linearize import Linearized, linearize_program
from phalanx.transforms.stage import Stage, evaluate
from phalanx.transforms.transpose import backward

Branches = tuple[Program, ...]


def _type(*types: ArrayType, programs: Branches) -> tuple[ArrayType, ...]:
    return programs[0].output_types


def _lower(b: Any, index: Any, *xs: Any, programs: Branches) -> list:
    return b.case(index, [lambda b, p=p: b.inline(p, *xs) for p in programs])


# ---- derivatives --------------------------------------------------------------------------------


def _linearize(nonzero: tuple[bool, ...], index: Any, *primals: Any, programs: Branches) -> tuple:
    halves = [linearize_program(p, nonzero[1:]) for p in programs]
    marks = tuple(any(m) for m in zip(*(h.nonzero for h in halves), strict=True))
    primal, linear, constants = _split(programs, halves, nonzero, marks)
    count = len(marks)
    results = branch(index, *constants, *primals, programs=primal)
    stored = results[count:]

    def push(_: Any, *tangents: Any) -> tuple:
        given = [t for t in tangents if t is not ZERO]
        found = iter(branch(index, *primals, *stored, *given, programs=linear))
        return tuple(next(found) if m else ZERO for m in marks)

    return results[:count], push


def _split(
    programs: Branches,
    halves: list[Linearized],
    nonzero: tuple[bool, ...],
    marks: tuple[bool, ...],
) -> tuple[Branches, Branches, list]:
    """The primal branches, which store the residuals of all, the linear ones, and constants."""
    key = ("linearize branch", programs, nonzero)
    derived = programs[0].derived
    if key not in derived:
        count = len(marks)
        kinds = [[typeof_atom(a) for a in h.primal.outputs[count:]] for h in halves]
        primal = tuple(_storing(p, halves, kinds, i) for i, p in enumerate(programs))
        linear = tuple(_resuming(p, halves, kinds, i, marks) for i, p in enumerate(programs))
        constants = [c for h in halves for c in h.constants]
        derived[key] = primal, linear, constants
    return derived[key]


def typeof_atom(atom: Any) -> ArrayType:
    """The type of what an atom stands for, as an array."""
    return ArrayType(atom.type.shape, atom.type.dtype, atom.type.weak)


def _storing(program: Program, halves: list[Linearized], kinds: list, which: int) -> Program:
    """Branch ``which``, which gives its results, its residuals, and zeros for those of others."""
    stage = Stage(None, program.name)
    constants = [[stage.input(typeof(c)) for c in h.constants] for h in halves]
    inputs = [stage.input(v.type) for v in program.inputs]
    count = len(program.outputs)
    with running(stage):
        found = evaluate(halves[which].primal, [*constants[which], *inputs])
        stored = [
            found[count:] if i == which else [zeros(t) for t in types]
            for i, types in enumerate(kinds)
        ]
    every = [*(c for group in constants for c in group), *inputs]
    outputs = [*found[:count], *(r for group in stored for r in group)]
    return stage.finish(every, outputs, program.name)[0]


def _resuming(
    program: Program, halves: list[Linearized], kinds: list, which: int, marks: tuple[bool, ...]
) -> Program:
    """The linear half of branch ``which``, on the operands, all residuals, and the tangents."""
    half = halves[which]
    stage = Stage(None, program.name)
    inputs = [stage.input(v.type) for v in program.inputs]
    stored = [[stage.input(t) for t in types] for types in kinds]
    tangents = [stage.input(v.type) for v in half.linear.inputs[len(half.forwarded) :]]
    with running(stage):
        residuals = half.residuals(inputs, stored[which])
        found = iter(evaluate(half.linear, [*residuals, *tangents]))
        ends = [next(found) if n else ZERO for n in half.nonzero]
        dense = [
            instantiate(t, k)
            for t, k, m in zip(ends, program.output_types, marks, strict=True)
            if m
        ]
    every = [*inputs, *(r for group in stored for r in group), *tangents]
    return stage.finish(every, dense, program.name)[0]


def _transpose(cts: tuple, index: Any, *operands: Any, programs: Branches) -> list:
    linear, given, known, nonzero = transpose_operands(cts, operands)
    key = ("transpose branch", programs, linear, given)
    derived = programs[0].derived
    if key not in derived:
        derived[key] = tuple(_backwards(p, linear, given) for p in programs)
    found = branch(index, *known, *nonzero, programs=derived[key])
    return [None, *spread_cotangents(linear, [True] * sum(linear), found)]


def _backwards(program: Program, linear: tuple[bool, ...], given: tuple[bool, ...]) -> Program:
    """The transpose of one branch, with a cotangent for every linear operand."""
    stage = Stage(None, program.name)
    known = [stage.input(v.type) for v, x in zip(program.inputs, linear, strict=True) if not x]
    cts = [stage.input(t) for t, g in zip(program.output_types, given, strict=True) if g]
    with running(stage):
        values, received = iter(known), iter(cts)
        operands = [
            Linear(v.type) if x else next(values)
            for v, x in zip(program.inputs, linear, strict=True)
        ]
        found = backward(program, operands, [next(received) if g else ZERO for g in given])
        types = [v.type for v, x in zip(program.inputs, linear, strict=True) if x]
        dense = [instantiate(ct, t) for ct, t in zip(found, types, strict=True)]
    return stage.finish([*known, *cts], dense, program.name)[0]


# ---- vectorization ------------------------------------------------------------------------------


def _batch(axis: Axis, values: Sequence, dims: tuple, *, programs: Branches) -> tuple:
    if dims[0] is not None:
        return _choose_per_lane(axis, values, dims, programs)
    key = ("batch branch", programs, axis, dims)
    derived = programs[0].derived
    if key not in derived:
        lanes = [_trace(p, axis, dims[1:], None)[1] for p in programs]
        keep = tuple(any(d is not None for d in column) for column in zip(*lanes, strict=True))
        derived[key] = tuple(_trace(p, axis, dims[1:], keep)[0] for p in programs), keep
    batched, keep = derived[key]
    found = branch(*values, programs=batched)
    return found, tuple(0 if k else None for k in keep)


def _trace(
    program: Program, axis: Axis, dims: Sequence, keep: tuple[bool, ...] | None
) -> tuple[Program, list]:
    """A branch on all lanes; the results marked in ``keep`` carry them first."""
    stage = Stage(None, program.name)
    inputs = [
        stage.input(v.type if d is None else with_lanes(v.type, d, axis.size))
        for v, d in zip(program.inputs, dims, strict=True)
    ]
    with running(stage):
        values, lanes = batch(lambda *xs: evaluate(program, xs), axis, inputs, dims)
        marks = keep if keep is not None else (False,) * len(values)
        placed = [
            place_lanes(v, d, 0, axis.size) if k else v
            for v, d, k in zip(values, lanes, marks, strict=True)
        ]
    return stage.finish(inputs, placed, program.name)[0], lanes


def _choose_per_lane(axis: Axis, values: Sequence, dims: tuple, programs: Branches) -> tuple:
    """Lanes that choose differently: run every branch and take from each what is its.

    The effects of a branch happen in the lanes that choose it.
    """
    index = place_lanes(values[0], dims[0], 0, axis.size)
    every = []
    for i, program in enumerate(programs):
        run, args, where = program, values[1:], dims[1:]
        if program.effects:
            run, args, where = conditional(program), [eq(index, np.int32(i)), *args], (0, *where)
        every.append(batch(lambda *xs, p=run: evaluate(p, xs), axis, args, where))
    out = []
    for column in zip(*(zip(*found, strict=True) for found in every), strict=True):
        lanes = [place_lanes(v, d, 0, axis.size) for v, d in column]
        chosen = lanes[0]
        for i, value in enumerate(lanes[1:], 1):
            here = broadcast(eq(index, np.int32(i)), shape=typeof(value).shape, dims=(0,))
            chosen = select(here, value, chosen)
        out.append(chosen)
    return tuple(out), (0,) * len(out)


def _thread(
    rewrite: Callable, state: tuple, index: Any, *xs: Any, programs: Branches
) -> tuple:
    out = branch(index, *state, *xs, programs=tuple(rewrite(p, 0) for p in programs))
    return out[: len(state)], out[len(state) :]


def _vary(index: frozenset, *operands: frozenset, programs: Branches) -> tuple:
    found = [varying_outputs(p, operands) for p in programs]
    return tuple(index.union(*column) for column in zip(*found, strict=True))


branch: Callable = Primitive(
    "cond",
    _type,
    _lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    vary=_vary,
    axes=lambda params: frozenset().union(*(p.axes for p in params["programs"])),
    thread=_thread,
    decides=lambda operands, programs: operands[0],
    multi=True,
    doc="programs[index](operands); stablehlo.case",
)
