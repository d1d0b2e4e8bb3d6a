"""``composite``: a program that a compiler may know by name, and have better code for.

Its derivatives, and what it does on all lanes, are other programs, which are known by no name.
"""

from __future__ import annotations

from typing import Any

from phalanx.control.call import call, frame_of_one, lower_call
from phalanx.control.family import with_subprograms
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Primitive, Rule
from phalanx.core.program import Program


def _lower(
    b: Builder,
    *xs: Value,
    program: Program,
    name: str,
    version: int,
    attributes: tuple[tuple[str, Any], ...],
) -> list[Value]:
    if program.axes or any(p.region is not None for p in program.primitives):
        return lower_call(b, *xs, program=program)

    def body(b: Builder, *parameters: Value) -> list[Value]:
        return b.inline(program, *parameters)

    return b.composite(program, body, xs, name, version, dict(attributes))


def _as_call(which: str) -> Rule:
    """The rule of ``call`` for the program."""

    def rule(*operands: Any, program: Program, **_: Any) -> Any:
        return call.rule(which)(*operands, program=program)

    return rule


composite: Primitive = with_subprograms(
    "composite",
    _lower,
    frame_of_one,
    linearize=_as_call("linearize"),
    jvp=_as_call("jvp"),
    transpose=_as_call("transpose"),
    batch=_as_call("batch"),
    carry_state=_as_call("carry_state"),
    doc="the results of a program that has a name; stablehlo.composite",
)
