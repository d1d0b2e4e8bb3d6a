"""How lanes part: a number that each of them has of its own meets what all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from phalanx.base.source import Location
from phalanx.core.program import Equation
from phalanx.insight.checks.lanes.gradients import GRADIENT, OwnGradient
from phalanx.insight.flow import Marks
from phalanx.primitives import broadcast, convert, div, mul

__all__ = [
    "Parted", "Reduced", "Sent", "still_diverging", "is_shared", "own_gradients", "own_no_more",
    "parting", "parts",
]  # fmt: skip

_UNCHANGED = frozenset({broadcast, convert})


class Reduced(Struct, frozen=True):
    """Of a value: what it depends on was exchanged over ``axis``."""

    axis: Any


class Sent(Struct, frozen=True):
    """Of a value: what it depends on was exchanged over ``axis``, and not as a sum or an extreme:
    lanes may have parts of a whole."""

    axis: Any


class Own(Struct, frozen=True):
    """Of a value: it is a number, in any shape, that a lane made at ``place`` of its own rows."""

    place: Location


class Parted(Struct, frozen=True):
    """Of a value: it was made of gradients that were reduced over ``axis``, and at ``place`` of a
    number that each lane made at ``number``, so that it differs."""

    axis: Any
    number: Location
    place: Location


def is_shared(marks: Marks, axis: Any) -> bool:
    """Whether a value was reduced over ``axis`` and is the same along it."""
    return axis not in marks and Reduced(axis) in marks


def own_no_more(marks: Marks) -> Marks:
    """The marks of what lanes have exchanged, of what each of them had alone."""
    return frozenset([m for m in marks if type(m) not in (Own, Parted, OwnGradient)])


def parting(e: Equation, operands: Sequence[Marks], marks: Marks, axes: frozenset[Any]) -> Marks:
    """The marks of the result of ``e``, whose operands have ``marks``, in lanes of ``axes``."""
    size, own = e.outputs[0].type.size, _own(marks)
    alone = e.prim.elements.fused or e.prim.elements.copied
    if not alone and size == 1 and e.location and not axes.isdisjoint(marks):
        return (marks - own) | {Own(e.location)}
    if not own:
        return marks
    met = _decided(own, e, [m for m in operands if own.isdisjoint(m)], axes & marks)
    remaining = own if alone and all([not m or own & m for m in operands]) else frozenset[Any]()
    if size == 1 and e.prim.elements.fused and e.prim not in _UNCHANGED and e.location:
        remaining = frozenset({Own(e.location)})
    return (marks - own).union(remaining, met)


def own_gradients(marks: Marks, axes: frozenset[Any]) -> Marks:
    """The marks of what an operation of a derivative makes: a lane's own gradient, unless lanes
    may have sent each other parts of what it is of."""
    gone = frozenset([m for m in marks if type(m) is OwnGradient and Sent(m.axis) in marks])
    own = [OwnGradient(axis) for axis in axes & marks if Sent(axis) not in marks]
    return (marks - gone).union(own)


def still_diverging(e: Equation, operands: Sequence[Marks], marks: Marks) -> Marks:
    """The marks of a result: not that of own gradients if they meet reduced ones, or those of other
    lanes, as where lanes are averaged every few steps, or drawn to their mean."""
    own = [m for m in marks if type(m) is OwnGradient] if e.prim not in (mul, div) else []
    met = [m for m in own if any([GRADIENT in o and _is_exchanged(o, m.axis) for o in operands])]
    return marks.difference(met) if met else marks


def _is_exchanged(marks: Marks, axis: Any) -> bool:
    return is_shared(marks, axis) or (Sent(axis) in marks and OwnGradient(axis) not in marks)


def parts(
    e: Equation, choices: Sequence[Marks], shown: Sequence[Marks], results: list[Marks],
    axes: frozenset[Any],
) -> list[Marks]:  # fmt: skip
    """The marks of the ``results`` of a choice, if numbers of lanes' own make it."""
    own = _own(frozenset[Any]().union(*choices))
    if not own:
        return results
    met = _decided(own, e, shown, axes.intersection(*choices))
    return [(marks - own) | met for marks in results]


def _decided(
    own: Marks, e: Equation, others: Sequence[Marks], axes: frozenset[Any]
) -> frozenset[Parted]:
    """What comes of ``others`` that lanes share, where numbers of their ``own`` meet them."""
    number = min([m.place for m in own], key=lambda place: place.line)
    return frozenset(
        [
            Parted(axis, number, e.location or number)
            for axis in axes
            if any([GRADIENT in m and is_shared(m, axis) for m in others])
        ]
    )


def _own(marks: Marks) -> Marks:
    return frozenset([m for m in marks if type(m) is Own])
