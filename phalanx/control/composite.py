"""``composite``: a program that a compiler may know by name, and have better code for.

Its derivatives, and what it does on all lanes, are other programs, which are known by no name.
"""

from __future__ import annotations

from typing import Any

from phalanx.control.call import as_call, call, frame_of_one, lower_call
from phalanx.control.family import with_subprograms
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import DualRule, Primitive
from phalanx.core.program import Frame, Program

Attributes = tuple[tuple[str, Any], ...]


def _frame(*, program: Program, name: str, version: int, attributes: Attributes) -> Frame:
    return frame_of_one(program=program)


def _lower(
    b: Builder, *xs: Value, program: Program, name: str, version: int, attributes: Attributes
) -> list[Value]:
    if program.axes or any(p.on_devices.region is not None for p in program.primitives):
        return lower_call(b, *xs, program=program)

    def body(b: Builder, *parameters: Value) -> list[Value]:
        return b.inline(program, *parameters)

    return b.composite(program, body, xs, name, version, dict(attributes))


composite: Primitive = with_subprograms(
    "composite",
    _lower,
    _frame,
    linearize=DualRule(as_call(call.rule("rule", call.linearize))),
    transpose=as_call(call.rule("transpose")),
    batch=as_call(call.rule("batch")),
    carry_state=as_call(call.rule("carry_state", call.effects)),
    whole=True,
    doc="the results of a program that has a name; stablehlo.composite",
)
