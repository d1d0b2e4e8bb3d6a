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
from phalanx.core.builder import Body, Builder, Value
from phalanx.core.frame import CHOICE, FIXED, Frame
from phalanx.core.primitive import Primitive
from phalanx.core.program import Program
from phalanx.core.types import typeof
from phalanx.ops.basis import broadcast
from phalanx.ops.compare import eq, select
from phalanx.spmd.replication import Varying
from phalanx.transforms.batch import Dims, on_lanes, place_lanes
from phalanx.transforms.effects import conditional

Branches = tuple[Program, ...]


def _frame(params: dict[str, Any]) -> Frame:
    programs = params["programs"]
    first = programs[0]
    ins = (CHOICE, *(FIXED,) * len(first.inputs))
    return Frame(programs, ins, (FIXED,) * len(first.outputs))


def _reframe(params: dict[str, Any], frame: Frame) -> dict[str, Any]:
    return {"programs": frame.programs}


def _lower(b: Builder, *xs: Value, programs: Branches) -> list[Value]:
    index, *operands = xs

    def body(program: Program) -> Body:
        return lambda b: b.inline(program, *operands)

    return b.case(index, list(map(body, programs)))


def _batch(
    axis: Axis, values: Sequence[Any], dims: Dims, *, programs: Branches
) -> tuple[tuple[Any, ...], Dims]:
    if dims[0] is not None:
        return _choose_per_lane(axis, values, dims, programs)
    return _batch_alike(axis, values, dims, programs=programs)


_batch_alike = batch_rule(lambda: branch)


def _choose_per_lane(
    axis: Axis, values: Sequence[Any], dims: Dims, programs: Branches
) -> tuple[tuple[Any, ...], Dims]:
    """Lanes that choose differently: run every branch and take from each what is its.

    The effects of a branch happen in the lanes that choose it.
    """
    index = place_lanes(values[0], dims[0], 0, axis.size)
    every: list[list[Any]] = []
    for i, program in enumerate(programs):
        run, args, places = program, values[1:], dims[1:]
        if program.effects:
            run, args, places = conditional(program), [eq(index, np.int32(i)), *args], (0, *places)
        every.append(on_lanes(run, axis, args, places))
    results = tuple([_chosen(index, column) for column in zip(*every, strict=True)])
    return results, (0,) * len(results)


def _chosen(index: Any, results: Sequence[Any]) -> Any:
    """Of ``results``, one of each branch with lanes first, that which each lane chooses."""
    chosen, *others = results
    for i, value in enumerate(others, 1):
        here = broadcast(eq(index, np.int32(i)), shape=typeof(value).shape, dims=(0,))
        chosen = select(here, value, chosen)
    return chosen


def _decides(operands: Sequence[Varying], **_: Any) -> Varying:
    return operands[0]


branch: Primitive = with_subprograms(
    "cond",
    _lower,
    _frame,
    _reframe,
    batch=_batch,
    decides=_decides,
    doc="programs[index](operands); stablehlo.case",
)
