"""``branch``: one of several programs, chosen by an index while running.

The branches take the same operands and give the same types. Each is transformed for itself;
where branches differ in what they give (residuals, tangents, lanes), what one lacks is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.control.family import with_subprograms
from phalanx.control.lanes import batch_rule
from phalanx.core.axes import Axis
from phalanx.core.frame import CHOICE, FIXED, Frame
from phalanx.core.primitive import Primitive
from phalanx.core.program import Program
from phalanx.core.types import typeof
from phalanx.ops.basis import broadcast
from phalanx.ops.compare import eq, select
from phalanx.transforms.batch import Dims, batch, place_lanes
from phalanx.transforms.effects import conditional
from phalanx.transforms.stage import evaluate

Branches = tuple[Program, ...]


def _frame(params: dict[str, Any]) -> Frame:
    programs = params["programs"]
    first = programs[0]
    ins = (CHOICE, *(FIXED,) * len(first.inputs))
    return Frame(programs, ins, (FIXED,) * len(first.outputs))


def _reframe(params: dict[str, Any], frame: Frame) -> dict[str, Any]:
    return {"programs": frame.programs}


def _lower(b: Any, *xs: Any, programs: Branches) -> list:
    index, *operands = xs
    return b.case(index, [lambda b, p=p: b.inline(p, *operands) for p in programs])


def _batch(axis: Axis, values: Sequence, dims: Dims, *, programs: Branches) -> tuple:
    if dims[0] is not None:
        return _choose_per_lane(axis, values, dims, programs)
    return _batch_alike(axis, values, dims, programs=programs)


_batch_alike = batch_rule(lambda: branch)


def _choose_per_lane(axis: Axis, values: Sequence, dims: Dims, programs: Branches) -> tuple:
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
    for column in zip(*(zip(*pairs, strict=True) for pairs in every), strict=True):
        lanes = [place_lanes(v, d, 0, axis.size) for v, d in column]
        chosen = lanes[0]
        for i, value in enumerate(lanes[1:], 1):
            here = broadcast(eq(index, np.int32(i)), shape=typeof(value).shape, dims=(0,))
            chosen = select(here, value, chosen)
        out.append(chosen)
    return tuple(out), (0,) * len(out)


branch: Primitive = with_subprograms(
    "cond",
    _lower,
    _frame,
    _reframe,
    batch=_batch,
    decides=lambda operands, programs: operands[0],
    doc="programs[index](operands); stablehlo.case",
)
