"""``isolated``: what a program gives, to the bit the same whatever stands around it.

A compiler rounds a product and a sum together where one loop computes both, and adds numbers up in
the order in which they lie. What it decides here it decides by what is around. So the program
becomes the body of a loop that runs once, which the compiler cannot know, between barriers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phalanx.control.call import frame_of_one
from phalanx.control.family import with_subprograms
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Primitive
from phalanx.core.program import Frame, Program

I32 = np.dtype(np.int32)


def behind_barriers(
    b: Builder, program: Program, number: Value, xs: Sequence[Value]
) -> list[Value]:
    """What ``program`` gives for ``xs`` in run ``number`` of a loop, out of which nothing of it is
    moved."""
    _, *inputs = b.optimization_barrier([number, *xs])
    return b.optimization_barrier(b.inline(program, *inputs))


def hidden(b: Builder, count: int, dtype: np.dtype = I32) -> Value:
    """``count`` so that the compiler does not know it; modules with such are compiled with care
    for bits."""
    b.isolate()
    return b.optimization_barrier([b.constant(count, dtype)])[0]


def _frame(*, program: Program) -> Frame:
    return frame_of_one(program=program)


def _lower(b: Builder, *xs: Value, program: Program) -> list[Value]:
    one, start = hidden(b, 1), [b.constant(0, t.dtype, t.shape) for t in b.outs]

    def more(b: Builder, i: Value, *_: Value) -> Value:
        return b.compare(i, one, "LT")

    def body(b: Builder, i: Value, *_: Value) -> list[Value]:
        return [b.add(i, b.constant(1, I32)), *behind_barriers(b, program, i, xs)]

    return b.while_([b.constant(0, I32), *start], more, body)[1:]


isolated: Primitive = with_subprograms(
    "isolated",
    _lower,
    _frame,
    doc="the results of a program, whatever is around; stablehlo.while",
)
