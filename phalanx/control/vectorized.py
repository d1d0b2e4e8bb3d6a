"""``vectorized``: a program in the lanes of an axis, so many of them at once.

It is what ``vmap(lanes_at_once=)`` and ``lax.map(batch_size=)`` bind. All lanes lie where the
operands do. Transformations see a program in lanes, as they do in ``mapped``; how many run together
is of no concern to them.
"""

from __future__ import annotations

from phalanx.control.chunks import AtOnce, Chunks
from phalanx.control.device import block
from phalanx.control.family import with_subprograms
from phalanx.core.blocks import Blocks
from phalanx.core.builder import Builder, Value
from phalanx.core.layouts import Axes
from phalanx.core.primitive import Primitive
from phalanx.core.program import Frame, Program
from phalanx.core.roles import Roles
from phalanx.core.runs import Lanes


def _frame(*, program: Program, axes: Axes, ins: Roles, outs: Roles, at_once: AtOnce) -> Frame:
    return Frame((program,), ins, outs, Lanes(axes))


def _lower(
    b: Builder, *xs: Value, program: Program, axes: Axes, ins: Roles, outs: Roles, at_once: AtOnce
) -> list[Value]:
    names = tuple([name for name, _ in axes])
    blocks = tuple([Blocks(size, 1) for _, size in axes])
    body = block(program, names, blocks, ins, outs, False, Chunks(at_once, b.target))
    return b.inline(body.program, *xs)


vectorized: Primitive = with_subprograms(
    "vectorized",
    _lower,
    _frame,
    doc="a program in every lane of an axis, a few lanes at a time; stablehlo.while",
)
