"""Gradients in lanes: of which loss they are, and how often lanes have counted it.

A derivative begins with the number one, at the line where the loss was made: its operations have
the locations of those that they are the derivatives of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.source import Location
from phalanx.core.program import Atom, Equation, Literal
from phalanx.insight.checks.findings import Code
from phalanx.insight.flow import Marks
from phalanx.primitives import add, convert, div, mul, neg, reduce_sum, reshape

__all__ = [
    "BEGUN", "GRADIENT", "P120", "SCALELESS", "Beginnings", "GradientOf", "Loss", "OwnGradient",
    "Total", "is_one",
]  # fmt: skip

P120 = Code(
    "P120",
    "gradients that are summed over lanes while their loss is averaged",
    'grads, loss = lax.psum(grads, "i"), lax.pmean(loss, "i")  # of the mean of a lane\'s rows',
    "Take lax.pmean of the gradients, or divide their sum by the number of lanes. If the "
    "learning rate is meant for the sum, silence this: # phalanx: ok P120.",
)
_MOST = 16  # losses that are told apart


class Begun(Struct, frozen=True):
    """Of a value: it is one, or minus one, with which a derivative begins."""


class Gradient(Struct, frozen=True):
    """Of a value: it is made of the gradient of something."""


class GradientOf(Struct, frozen=True):
    """Of a value: it is made of the gradient of the loss that was made at a location."""

    loss: int


class OwnGradient(Struct, frozen=True):
    """Of a value: it is made of a gradient that each lane of ``axis`` has of its own rows."""

    axis: Any


class Loss(Struct, frozen=True):
    """Of a value: it is a number, or a sum of such, that was made at a location: as ``is_mean``,
    or made of one."""

    place: int
    is_mean: bool


class Total(Struct, frozen=True):
    """Of a value: it is a sum, taken at ``place``, of gradients of a loss over ``axes``, of which
    each has so many lanes that there are ``n``."""

    loss: int
    axes: tuple[Any, ...]
    n: int
    place: Location


class Scaleless(Struct, frozen=True):
    """Of a value: sums of gradients were divided by others, as Adam does: their number is gone."""


GRADIENT, BEGUN, SCALELESS = Gradient(), Begun(), Scaleless()
_TURNED = frozenset({neg, convert, reshape})


class Beginnings:
    """Where derivatives begin, on a pass through a program."""

    def __init__(self) -> None:
        self._first: dict[int, Equation] = {}  # by location, what was first made there
        self._losses: set[int] = set()
        self._rows: dict[Atom, int] = {}  # how many, by the sum of them
        self._last = 0
        self.in_derivative = False  # whether what was passed has the location of something before

    def marked(self, e: Equation, operands: Sequence[Marks], marks: Marks) -> Marks:
        """The marks of the result of ``e``, which has ``marks`` of its operands."""
        here = id(e.location)
        is_again = self._first.setdefault(here, e) is not e
        if here != self._last:  # one operation may be written as several
            self._last, self.in_derivative = here, is_again
        passing = marks
        if BEGUN in marks or any(type(m) is Loss for m in marks):
            passing = frozenset([m for m in marks if type(m) not in (Begun, Loss)])
        if is_again and _begins(e, operands):
            return passing | self._begun(e, here)
        loss = self._loss(e, here, operands)
        return passing | loss if loss else passing

    def _begun(self, e: Equation, loss: int) -> Marks:
        marks: set[Any] = {GRADIENT}
        if len(self._losses) < _MOST or loss in self._losses:
            self._losses.add(loss)
            marks.add(GradientOf(loss))
        if e.prim in _TURNED:
            marks.add(BEGUN)
        return frozenset(marks)

    def _loss(self, e: Equation, here: int, operands: Sequence[Marks]) -> Marks:
        """What a number is that might be differentiated."""
        out = e.outputs[0].type
        if out.size != 1 or not dtypes.is_floating(out.dtype):
            return frozenset()
        known = frozenset([m for marks in operands for m in marks if type(m) is Loss])
        if e.prim is add or e.prim in _TURNED:
            return known if 0 < len(known) <= _MOST else frozenset()
        if e.prim is reduce_sum:
            self._rows[e.outputs[0]] = e.inputs[0].type.size
        elif not e.prim.elements.fused:
            return frozenset()
        is_mean = any([m.is_mean for m in known]) or self._is_quotient(e)
        is_scaled = e.prim in (mul, div) and any([type(a) is Literal for a in e.inputs])
        losses = known if is_scaled and len(known) < _MOST else frozenset[Any]()
        return losses | {Loss(here, is_mean)}

    def _is_quotient(self, e: Equation) -> bool:
        """Whether a number is a sum of rows, divided by how many they are; to divide by two is
        usual otherwise, too."""
        if e.prim is not div or type(e.inputs[0]) is Literal:
            return False
        rows = e.inputs[1]
        if type(rows) is not Literal:
            return True
        divisor = np.asarray(rows.value)
        return bool((divisor > 2) | (divisor == self._rows.get(e.inputs[0], 0)))


def is_one(atom: Atom) -> bool:
    """Whether an operand is the number one."""
    if type(atom) is not Literal or atom.type.shape != ():
        return False
    return dtypes.is_floating(atom.type.dtype) and bool(np.asarray(atom.value) == 1)


def _begins(e: Equation, operands: Sequence[Marks]) -> bool:
    """Whether a derivative begins with an operation: it is of one, or a multiple of it."""
    ones = [is_one(a) or BEGUN in m for a, m in zip(e.inputs, operands, strict=True)]
    known = [one or type(a) is Literal for a, one in zip(e.inputs, ones, strict=True)]
    return True in ones and (all(known) or e.prim is mul)
