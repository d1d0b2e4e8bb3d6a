"""How much a program computes: an estimate, to decide what is worth a question."""

from __future__ import annotations

import math

from phalanx.core.program import Equation, Program
from phalanx.core.runs import Loop
from phalanx.core.types import Ints
from phalanx.ops.contract import dot_general
from phalanx.ops.conv import ConvDimensionNumbers, conv_general_dilated
from phalanx.transforms.derive import keep

MESSAGE = 2**20  # what a device computes while a message is under way, about


def work(program: Program) -> float:
    """How many elements the operations of ``program`` touch; infinity: nobody knows before."""
    return keep(program, "work", lambda: math.fsum(map(work_of, program.equations)))


def work_of(e: Equation) -> float:
    """The same of one operation."""
    frame = e.frame
    if frame is not None:
        if isinstance(frame.runs, Loop) and frame.runs.length is None:
            return math.inf
        return frame.runs.size * max(map(work, frame.programs))
    if e.prim is dot_general:
        shape = e.inputs[0].type.shape
        contracted: Ints = e.params["contract"][0]
        return e.outputs[0].type.size * math.prod(shape[d] for d in contracted)
    if e.prim is conv_general_dilated:
        kernel = e.inputs[1].type
        numbers: ConvDimensionNumbers = e.params["dimension_numbers"]
        return e.outputs[0].type.size * kernel.size / max(kernel.shape[numbers.rhs_spec[0]], 1)
    touched = max([x.type.size for x in (*e.inputs, *e.outputs)], default=0)
    return touched + (MESSAGE if e.axes and e.inputs else 0)
