"""Dtypes that are wider than meant."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from msgspec import Struct, field

from phalanx.base import dtypes
from phalanx.core.program import Atom, Equation, Literal, Program
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.subject import Subject
from phalanx.primitives.basis import broadcast, convert
from phalanx.primitives.contract import dot_general
from phalanx.primitives.conv import conv_general_dilated

__all__ = ["accidental_promotions"]

P112 = Code(
    "P112",
    "floating-point numbers that are widened by accident",
    "x * np.sqrt(2.0)  # x is bfloat16, and a NumPy scalar has a dtype of its own",
    "Use a Python number, float(np.sqrt(2.0)), which takes the dtype of the array, or convert "
    "the other operand. If it is meant, say so with astype.",
)

_PRODUCTS = frozenset({dot_general, conv_general_dilated})


def accidental_promotions(subject: Subject) -> Iterator[Finding]:
    """Operations that make an operand wider than anybody said, and state that comes back wider."""
    for program in subject.programs if convert in subject.primitives else ():
        if convert in program.primitives:
            yield from _promotions(subject, program)
    yield from _wider_state(subject)


def _promotions(subject: Subject, program: Program) -> Iterator[Finding]:
    seen = _Widened()
    for e in program.equations:
        if all(type(a) is Literal or a in seen.constants for a in e.inputs) and _is_pure(e):
            seen.constants.update(e.outputs)
        elif e.prim is convert and _is_wider(e.inputs[0].type.dtype, e.params["dtype"]):
            seen.converted[e.outputs[0]] = e
        elif e.prim is broadcast and e.inputs[0] in seen.converted:
            seen.converted[e.outputs[0]] = seen.converted[e.inputs[0]]
        elif e.prim is not convert:
            yield from _meetings(subject, e, seen)


class _Widened(Struct):
    """Values of a program, so far: those that are constants, those that were converted, by what,
    and those that are wide for what an operand met first, which is no constant."""

    constants: set[Atom] = field(default_factory=set[Atom])
    converted: dict[Atom, Equation] = field(default_factory=dict[Atom, Equation])
    wide: dict[Atom, tuple[Equation, Atom]] = field(
        default_factory=dict[Atom, tuple[Equation, Atom]]
    )


def _meetings(subject: Subject, e: Equation, seen: _Widened) -> Iterator[Finding]:
    """What the operands of ``e`` that were converted for it meet there."""
    origin = next((seen.wide[a] for a in e.inputs if a in seen.wide), None)
    for a, b in permutations(e.inputs, 2) if seen.converted else ():
        conversion, known = seen.converted.get(a), type(b) is Literal or b in seen.constants
        if conversion is None or not _same_operation(conversion, e):
            continue
        if _by_accident(conversion, b, known):
            yield _promoted(subject, conversion, b, known)
        elif b in seen.wide and e.prim in _PRODUCTS:
            yield _product_promoted(subject, e, conversion, *seen.wide[b])
        else:
            origin = origin or (conversion, b)
    for a in e.inputs:
        seen.converted.pop(a, None)  # what uses it besides is a derivative of this
    if origin is not None:
        seen.wide.update(dict.fromkeys(e.outputs, origin))


def _is_pure(e: Equation) -> bool:
    return e.prim.named_axes is None and not e.effects


def _is_wider(old: np.dtype, new: np.dtype) -> bool:
    floating = dtypes.is_floating(old) and dtypes.is_floating(new)
    return floating and new.itemsize > old.itemsize


def _same_operation(conversion: Equation, use: Equation) -> bool:
    """Whether nobody wrote the conversion: it belongs to the operation that uses it."""
    a, b = conversion.location, use.location
    return a is not None and b is not None and a.spot == b.spot


def _by_accident(conversion: Equation, other: Atom, is_constant: bool) -> bool:
    """Whether the other operand is 64 bits wide, or a constant, of which one might not think."""
    if other.type.dtype != conversion.params["dtype"]:
        return False  # what is meant is another operand
    return is_constant or other.type.dtype.itemsize == 8


def _promoted(subject: Subject, conversion: Equation, other: Atom, is_constant: bool) -> Finding:
    old, new = conversion.inputs[0].type, conversion.params["dtype"]
    what = "a constant" if is_constant else f"{other.type}"
    return P112.at(
        conversion.location or subject.place,
        f"{old} meets {what} of dtype {new.name}, and is widened to {new.name}: this operation and "
        "those that follow take more memory and time",
    )


def _product_promoted(
    subject: Subject, e: Equation, conversion: Equation, first: Equation, other: Atom
) -> Finding:
    old, new = first.inputs[0].type, first.params["dtype"]
    return P112.at(
        first.location or subject.place,
        f"{old} meets {other.type}, and is widened to {new.name}; the product at {e.location} is "
        f"then of {new.name}, too, although {conversion.inputs[0].type} is not",
        f"Convert the result back, y.astype({old.dtype.name}), or the other operand before; where "
        "it is meant, say so with astype.",
    )


def _wider_state(subject: Subject) -> Iterator[Finding]:
    inputs, outputs = subject.types_of_inputs, subject.types_of_outputs
    if len(inputs) == len(subject.state):  # a function of one thing, which may well convert it
        return
    for i, o in subject.state:
        old, new = inputs[i].dtype, outputs[o].dtype
        if _is_wider(old, new) and not inputs[i].weak:
            yield P112.at(
                subject.place,
                f"{subject.name}: {subject.input_name(i)} comes in as {old.name} and is returned "
                f"as {new.name}: the next call is compiled again, for wider numbers",
                "Convert the result back, new.astype(old.dtype), or what was added to it.",
            )
