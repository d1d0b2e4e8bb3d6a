"""``call``: run a program. It is what ``jit`` binds inside other transformations.

The sub-program's linearization, transpose and batched form are programs themselves, derived
once and kept with it; so a call stays a call under every transformation.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from phalanx.control.family import with_subprograms
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Primitive, Rule
from phalanx.core.program import Frame, Program
from phalanx.core.roles import FIXED


def frame_of_one(*, program: Program) -> Frame:
    """The frame of an operation that runs a program once."""
    return Frame((program,), (FIXED,) * len(program.inputs), (FIXED,) * len(program.outputs))


# Operations of a program that is written out where it is called, as one is that does nothing but
# call another. XLA does that to all functions, one by one, and a library may call as many as it
# has steps, each traced anew.
_FEW = 8


def lower_call(b: Builder, *xs: Value, program: Program, **_: Any) -> list[Value]:
    """Write a call of a function of the module, or the program in place of it.

    It is the lowering of all that runs a program once, whatever other parameters that has.
    """
    if program.axes or any(p.on_devices.region is not None for p in program.primitives):
        return b.inline(program, *xs)  # what it communicates over depends on where it stands
    if len(program.equations) == 1 or len(list(islice(program.walk(), _FEW + 1))) <= _FEW:
        return b.inline(program, *xs)

    def body(b: Builder, *parameters: Value) -> list[Value]:
        return b.inline(program, *parameters)

    return b.call(program, body, xs)


def as_call(rule_of_call: Rule) -> Rule:
    """A rule of ``call``, or ``call`` itself, for the program of another operation, whose other
    parameters it drops."""

    def rule(*operands: Any, program: Program, **_: Any) -> Any:
        return rule_of_call(*operands, program=program)

    return rule


call: Primitive = with_subprograms(
    "call", lower_call, frame_of_one, doc="the results of a program; func.call"
)
