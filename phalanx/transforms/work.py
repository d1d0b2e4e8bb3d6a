"""How much a program computes: what its operations are, by the rules of its primitives.

Operations are those of arithmetic, of floating point or of integers: a product and a sum are two, a
sine is one, a special function as many as it is made of.
"""

from __future__ import annotations

import math

from phalanx.base import dtypes
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Equation, Program
from phalanx.core.runs import Loop

MESSAGE = 2**20  # what a device computes while a message is under way, about


def operations(e: Equation) -> float:
    """How many operations an equation takes, without those of programs that it runs.

    >>> from phalanx.primitives.domains import f32
    >>> from phalanx.primitives.elementwise import sin
    >>> operations(Program.of_one(sin, [f32(2, 3)], {}, "f").only)
    6
    """
    rule = e.prim.elements.operations
    if e.prim.subprograms is not None:
        return 0
    if callable(rule):
        return rule([v.type for v in e.outputs], *[a.type for a in e.inputs], **e.params)
    if rule is None:
        rule = 0 if e.prim.elements.copied else 1
    types = [x.type for x in (*e.inputs, *e.outputs)]
    if isinstance(rule, tuple):
        rule = rule[any([dtypes.is_complex(t.dtype) for t in types])]
    return rule * max([t.size for t in types], default=0)


# ---- an estimate, to decide what is worth a question ---------------------------------------------


def work(program: Program) -> float:
    """How many elements the operations of ``program`` touch, or multiply and add; infinity: nobody
    knows before."""
    return memoize_on(program, "work", lambda: math.fsum(map(work_of, program.equations)))


def work_of(e: Equation) -> float:
    """The same of one operation."""
    frame = e.frame
    if frame is not None:
        if isinstance(frame.runs, Loop) and frame.runs.length is None:
            return math.inf
        return frame.runs.size * max(map(work, frame.programs))
    touched = max([x.type.size for x in (*e.inputs, *e.outputs)], default=0)
    return max(touched, operations(e) / 2) + (MESSAGE if e.axes and e.inputs else 0)
