"""Which lane is this? The answer handed in from outside.

A loop that asks in its body, by ``axis_index``, would count as one in which lanes meet, though
nobody waits for anybody. Asked before the loop and handed in, the number of a lane is a value that
each lane has of its own, as any other. Not so where something is done besides: lanes do that
together, run by run, in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phalanx.control.call import call
from phalanx.control.framed import frame_of
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.roles import FIXED
from phalanx.core.types import ArrayType
from phalanx.primitives.domains import I32
from phalanx.primitives.lanes import axis_index


def hoist_axis_index(program: Program, axis: Any) -> Program:
    """``program`` with sub-programs that take the number of a lane of ``axis`` as an input."""
    question = next((q for e in program.equations for q in _questions_in(e, axis)), None)
    if question is None:
        return program
    number = Var(question.outputs[0].type)
    first = Equation(axis_index, [], question.params, (number,), question.location)
    equations = [_with_its_number(e, axis, number) for e in program.equations]
    return program.update(equations=[first, *equations])


def _questions_in(e: Equation, axis: Any) -> Iterator[Equation]:
    """Where the programs of ``e`` ask for the number, which they could be told."""

    def may_ask(e: Equation) -> bool:
        frame = e.frame
        return frame is not None and not e.effects and axis not in frame.lanes

    if may_ask(e):
        inner = (x for p in e.programs for x in p.walk(may_ask))
        yield from (x for x in inner if _asks(x, axis))


def _asks(e: Equation, axis: Any) -> bool:
    return e.prim is axis_index and e.params["axes"] == (axis,)


def _with_its_number(e: Equation, axis: Any, number: Atom) -> Equation:
    """``e``, whose programs take the ``number``, too."""
    if next(_questions_in(e, axis), None) is None:
        return e
    frame = frame_of(e.prim, e.params)
    taking = frame.rewritten(lambda p: _taking(p, axis), (FIXED,))
    inputs = frame.prepended([number], e.inputs)
    if e.prim.user_rules is not None:  # its rules for derivatives are of no use any more
        (program,) = taking.programs
        return Equation(call, inputs, {"program": program}, e.outputs, e.location)
    return e.reframed(taking, inputs=inputs)


def _taking(program: Program, axis: Any) -> Program:
    """``program`` with one more input, before the others: the number that it asks for."""
    answers = [v for e in program.equations if _asks(e, axis) for v in e.outputs]
    number = Var(ArrayType((), I32))
    renamed = program.renamed(dict.fromkeys(answers, number))
    equations = [_with_its_number(e, axis, number) for e in renamed.equations if not _asks(e, axis)]
    return renamed.update(inputs=[number, *program.inputs], equations=equations)
