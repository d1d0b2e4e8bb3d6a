"""Logarithms of sums of exponentials, taken after these have overflowed, or vanished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.core.program import Atom, Equation, Literal
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.subject import Subject
from phalanx.insight.flow import NOTHING, Flow, Marks
from phalanx.primitives import (
    abs,
    add,
    broadcast,
    clamp,
    convert,
    cos,
    cummax,
    div,
    dot_general,
    erf,
    exp,
    integer_pow,
    log,
    log1p,
    logistic,
    max,
    min,
    mul,
    neg,
    reduce_max,
    reduce_precision,
    reduce_sum,
    rsqrt,
    select,
    sin,
    sqrt,
    square,
    stop_gradient,
    sub,
    tanh,
)
from phalanx.primitives.collective import pmax, psum

__all__ = ["careless_logarithms"]

P121 = Code(
    "P121",
    "a logarithm of a softmax, of a sum of exponentials, or of a sigmoid",
    "jnp.log(nn.softmax(x))",
    "Use nn.log_softmax, nn.logsumexp, nn.log_sigmoid or nn.softplus, which are right for all "
    "numbers.",
)


class Kind(Struct, frozen=True):
    """Of a value: what it is, as far as that matters to a logarithm."""

    name: str


_NUMBER = Kind("one number in all places")
_NEAR = Kind("between numbers that are not large")
_HALF = Kind("not beyond some number, on one side")
_SQUARE, _NEVER_POSITIVE = Kind("not below zero"), Kind("not above zero")
_LENGTH, _INVERSE, _UNIT = Kind("a length"), Kind("the inverse of one"), Kind("of length one")
_GREATEST, _SHIFTED = Kind("the greatest of some numbers"), Kind("less the greatest of them")
_WHOLE = Kind("true or false, as a number")
_POWER, _LOW = Kind("an exponential"), Kind("an exponential that is one at most")
_SHIFTED_POWER = Kind("an exponential, of which one is one")
_NEAR_POWER = Kind("an exponential of what is not large")
_SUM, _SOUND_SUM = Kind("a sum of exponentials"), Kind("one that is neither 0 nor infinite")
_MORE = Kind("one and exponentials")
_INVERSE_SUM = Kind("the inverse of a sum of exponentials")
_SHARE, _SIGMOID = Kind("a part of a sum of exponentials"), Kind("a sigmoid")
_REST, _BELOW = Kind("one less a sigmoid"), Kind("minus a sigmoid")

_POWERS = frozenset({_POWER, _SHIFTED_POWER})  # which may vanish
_SUMS = frozenset({_SUM, _MORE, _SOUND_SUM})
_TERMS = frozenset({*_POWERS, *_SUMS, _NEAR_POWER})
_SCALED = frozenset({_NEAR, _SHIFTED, _SQUARE, _NEVER_POSITIVE, *_TERMS, _LOW, _SHARE})
_ADVICE = {
    _SHARE: (
        "a softmax, which is 0 where an entry is about 100 less than the largest: the logarithm is "
        "then minus infinity, and its derivative NaN",
        "Use nn.log_softmax(x), which is right for all x.",
    ),
    _SUM: (
        "a sum of exponentials, which are infinite above 88 and may all be 0",
        "Use nn.logsumexp(x, axis), which subtracts the largest first, or jnp.logaddexp(x, y).",
    ),
    _SIGMOID: (
        "a sigmoid, which is 0 far below zero: the logarithm is then minus infinity, and its "
        "derivative NaN",
        "Use nn.log_sigmoid(x).",
    ),
    _REST: (
        "1 - sigmoid(x), which is 0 for x above 17: the logarithm is then minus infinity, and its "
        "derivative NaN",
        "Use nn.log_sigmoid(-x), which is log(1 - sigmoid(x)).",
    ),
}
_LARGE = 80.0  # of which the exponential is a number, in float32


def careless_logarithms(subject: Subject) -> Iterator[Finding]:
    """Logarithms of what exponentials have made 0, or infinite."""
    if subject.primitives.isdisjoint({exp, logistic}) or subject.primitives.isdisjoint(
        {log, log1p}
    ):
        return
    flow = _Kinds(subject)
    flow.run(subject.program, [NOTHING] * len(subject.program.inputs))
    yield from flow.found.values()


class _Kinds(Flow):
    """Marks are kinds."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject
        self.found: dict[Any, Finding] = {}

    def step(self, e: Equation, operands: Sequence[Marks]) -> Marks | Sequence[Marks]:
        prim = e.prim
        if prim in (log, log1p):
            return self._logarithm(e, *operands)
        if prim in (psum, pmax):
            return [_summed(m) if prim is psum else frozenset({_GREATEST}) for m in operands]
        if prim in _RULES:
            return _RULES[prim](e, *operands)
        if prim in _KINDS_OF_RESULTS:
            return _KINDS_OF_RESULTS[prim]
        is_passed_on = prim.elements.copied or prim in _UNCHANGED
        return self._copied(e, operands[0]) if is_passed_on else NOTHING

    @staticmethod
    def _copied(e: Equation, marks: Marks) -> Marks:
        if e.prim is convert and e.inputs[0].type.dtype == np.bool_:
            return frozenset({_WHOLE})
        is_one = e.prim is broadcast and e.inputs[0].type.size == 1
        return marks | {_NUMBER} if is_one else marks

    def _logarithm(self, e: Equation, marks: Marks) -> Marks:
        if e.prim is log1p:
            marks = _of(_REST) if _BELOW in marks else NOTHING
        place = self.place(e) or self.subject.place
        for kind in sorted(_ADVICE.keys() & marks, key=lambda kind: kind.name):
            what, remedy = _ADVICE[kind]
            found = P121.at(place, f"this is the logarithm of {what}", remedy)
            self.found.setdefault((place.full, kind), found)
        return frozenset({_GREATEST}) if marks & _SUMS else NOTHING


def _value(atom: Atom) -> float | None:
    """What an operand is, if it is one known number."""
    if type(atom) is not Literal or atom.type.size != 1:
        return None
    return float(np.real(np.asarray(atom.value)).item())


def _of(*kinds: Kind) -> Marks:
    return frozenset(kinds)


def _exponential(e: Equation, marks: Marks) -> Marks:
    if _NEAR in marks:
        return _of(_NEAR_POWER)
    low = _of(_LOW) if _NEVER_POSITIVE in marks else NOTHING
    return low | {_SHIFTED_POWER if _SHIFTED in marks else _POWER}


def _summed(marks: Marks) -> Marks:
    """What a sum over rows, or lanes, is."""
    if _SHARE in marks:
        return marks & {_SHARE} if _WHOLE in marks else NOTHING
    if _UNIT in marks:
        return _of(_NEAR)
    if marks & {_NEAR_POWER, _SHIFTED_POWER, _SOUND_SUM}:
        return _of(_SOUND_SUM)
    return _of(_SUM) if marks & _TERMS else marks & {_SQUARE, _NEVER_POSITIVE}


def _over_rows(e: Equation, marks: Marks) -> Marks:
    return _summed(marks)


def _plus(e: Equation, left: Marks, right: Marks) -> Marks:
    numbers = [n for a in e.inputs if (n := _value(a)) is not None]
    marks = left | right
    if not numbers:
        common = left & right & {_NEAR, _SQUARE, _NEVER_POSITIVE}
        return _summed(marks) if left & _TERMS and right & _TERMS else common
    if numbers[0] > 0 and (_LOW in marks or marks & {_NEAR_POWER, _SHIFTED_POWER, _SOUND_SUM}):
        return _of(_SOUND_SUM)
    if numbers[0] == 1 and marks & {_POWER, _SUM, _MORE}:
        return _of(_MORE)
    return marks & {_LENGTH, *((_NEAR,) if np.abs(numbers[0]) < _LARGE else ())}


def _minus(e: Equation, left: Marks, right: Marks) -> Marks:
    if _GREATEST in right:
        return _of(_SHIFTED, _NEVER_POSITIVE)
    if _value(e.inputs[0]) == 1:
        return _of(_REST) if _SIGMOID in right else right & {_NEAR}
    if _value(e.inputs[1]) is not None:
        return left & {_NEAR, _SHIFTED}
    return left & right & {_NEAR}


def _negated(e: Equation, marks: Marks) -> Marks:
    turned = {_SQUARE: _NEVER_POSITIVE, _NEVER_POSITIVE: _SQUARE, _SIGMOID: _BELOW, _NEAR: _NEAR}
    return frozenset([turned[m] for m in marks if m in turned])


def _times(e: Equation, left: Marks, right: Marks) -> Marks:
    if e.inputs[0] is e.inputs[1]:
        return (left & {_NEAR}) | {_SQUARE}
    for one, other in ((left, right), (right, left)):
        if _INVERSE_SUM in one and other & _POWERS:
            return _of(_SHARE, _NEAR)
        if _INVERSE in one:
            return _of(_UNIT)
    if _SHARE in left | right:
        return (left | right) & {_SHARE, _WHOLE, _NEAR} if _WHOLE in left | right else NOTHING
    powers = (left | right) & _TERMS
    return powers or _scaled(e, left, right) or left & right & {_NEAR, _UNIT, _SQUARE}


def _scaled(e: Equation, left: Marks, right: Marks) -> Marks:
    """What a multiple of a value is: by a known number, or by one that is the same for all."""
    for atom, number, marks in ((e.inputs[1], right, left), (e.inputs[0], left, right)):
        n = _value(atom)
        if n is None and _NUMBER not in number and atom.type.shape != ():
            continue
        if n is not None and n < 0:
            return _negated(e, marks) & {_SQUARE, _NEVER_POSITIVE, _NEAR}
        return marks & (_SCALED if n is None or np.abs(n) < _LARGE else _SCALED - {_NEAR})
    return NOTHING


def _over(e: Equation, left: Marks, right: Marks) -> Marks:
    if _value(e.inputs[0]) is not None:
        if _MORE in right:
            return _of(_SIGMOID, _NEAR)
        return _of(_INVERSE_SUM) if right & _SUMS else right & {_NEVER_POSITIVE}
    if right & _SUMS and left & {*_POWERS, _NEAR_POWER}:
        return _of(_SHARE, _NEAR) if left & _POWERS else _of(_NEAR)
    if _LENGTH in right:
        return _of(_UNIT)
    n = _value(e.inputs[1])
    if n is None and _NUMBER not in right and e.inputs[1].type.shape != ():
        return left & _TERMS
    if n is not None and n < 0:
        return _negated(e, left) & {_SQUARE, _NEVER_POSITIVE, _NEAR}
    return left & _SCALED


def _bounded(e: Equation, left: Marks, right: Marks) -> Marks:
    """The lesser or the greater of two: of a number, or of what is greater than others."""
    marks = left | right
    if not [a for a in e.inputs if _value(a) is not None]:
        return marks & {_GREATEST}
    passed_on = marks & {_NEAR, _SHIFTED, _LENGTH, _GREATEST, _NEVER_POSITIVE}
    return passed_on | {_NEAR if _HALF in marks else _HALF}


def _chosen(e: Equation, condition: Marks, *branches: Marks) -> Marks:
    marks = NOTHING.union(*branches)
    one_of_them = _of(_SHARE, _WHOLE) if _SHARE in marks else NOTHING
    return marks & {*_TERMS, _LOW, _GREATEST, _SHIFTED, _NEVER_POSITIVE} | one_of_them


def _product(e: Equation, left: Marks, right: Marks) -> Marks:
    return _of(_NEAR) if _UNIT in left and _UNIT in right else NOTHING


def _root(e: Equation, marks: Marks) -> Marks:
    return _of(_SQUARE, _LENGTH) if _SQUARE in marks else NOTHING


def _inverse_root(e: Equation, marks: Marks) -> Marks:
    return _of(_INVERSE) if _SQUARE in marks else NOTHING


def _logistic(e: Equation, marks: Marks) -> Marks:
    return _of(_NEAR) if _NEAR in marks else _of(_NEAR, _SIGMOID)


def _even(e: Equation, marks: Marks) -> Marks:
    even = e.prim in (abs, square) or (e.params["y"] > 0 and e.params["y"] % 2 == 0)
    return (marks & {_NEAR}) | (_of(_SQUARE) if even else NOTHING)


_RULES: dict[Any, Callable[..., Marks]] = {
    exp: _exponential, reduce_sum: _over_rows, add: _plus, sub: _minus,
    neg: _negated, mul: _times, div: _over, max: _bounded, min: _bounded, select: _chosen,
    dot_general: _product, sqrt: _root, logistic: _logistic, abs: _even, square: _even,
    integer_pow: _even, rsqrt: _inverse_root,
}  # fmt: skip
_KINDS_OF_RESULTS = {
    **dict.fromkeys((tanh, sin, cos, erf, clamp), _of(_NEAR)),
    **dict.fromkeys((reduce_max, cummax), _of(_GREATEST)),
}
_UNCHANGED = frozenset({convert, stop_gradient, reduce_precision})
