"""What is known of values from how they were made: where they are zero, infinite or no numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from phalanx.core.program import Atom, Equation, Literal, Var
from phalanx.primitives import (
    abs,
    acos,
    acosh,
    add,
    asin,
    atan2,
    atanh,
    cbrt,
    clamp,
    convert,
    div,
    dot_general,
    eq,
    exp,
    ge,
    gt,
    integer_pow,
    le,
    log,
    log1p,
    logistic,
    lt,
    max,
    min,
    mul,
    ne,
    neg,
    pow,
    reduce_sum,
    reshape,
    rsqrt,
    select,
    sqrt,
    square,
)
from phalanx.primitives.guard import guarded

__all__ = [
    "AT_ONE", "AT_ZERO", "SINGULAR", "Makers", "decided", "elementwise_origins", "falls",
    "is_fraction", "is_root", "is_smooth", "is_zero", "moved", "singular_operations", "squared",
]  # fmt: skip

Makers = dict[Any, Equation]

AT_ZERO = frozenset({div, sqrt, rsqrt, cbrt, log, pow, atan2})
_OF_POSITIVE = frozenset({sqrt, rsqrt, log, pow})  # of what is negative they are NaN
AT_ONE = frozenset({log1p, asin, acos, atanh, acosh})  # or at -1
SINGULAR = AT_ZERO | AT_ONE | {exp}  # which overflows
_POSITIVE = frozenset({exp, logistic})
_COMPARISONS = {
    lt: np.less, le: np.less_equal, gt: np.greater, ge: np.greater_equal,
    eq: np.equal, ne: np.not_equal,
}  # fmt: skip
_BASES = {div: slice(1, 2), pow: slice(0, 1)}  # of the operands, those that are singular
_DEPTH = 24


def falls(e: Equation) -> bool:
    """Whether a power may have a negative exponent."""
    if e.prim is integer_pow:
        return e.params["y"] < 0
    exponent = e.inputs[1]
    return type(exponent) is not Literal or bool(np.all(np.asarray(exponent.value) < 0))


def is_root(e: Equation) -> bool:
    """Whether a power has an exponent between 0 and 1."""
    exponent = e.inputs[1]
    return type(exponent) is Literal and not falls(e) and not is_smooth(e)


def is_smooth(e: Equation) -> bool:
    """Whether an operation is a power whose derivative is finite at zero."""
    exponent = e.inputs[-1]
    if e.prim is not pow or type(exponent) is not Literal:
        return False
    return bool(np.all(np.asarray(exponent.value) >= 1))


def is_fraction(e: Equation) -> bool:
    """Whether a power may have an exponent that is no whole number, and so be NaN below zero."""
    exponent = e.inputs[-1]
    return type(exponent) is not Literal or bool(np.any(np.asarray(exponent.value) % 1))


def is_zero(atom: Atom) -> bool:
    return type(atom) is Literal and atom.type.shape == () and not np.any(np.asarray(atom.value))


def _moves(e: Equation) -> bool:
    """Whether an operation of one operand only moves its elements, or changes their dtype."""
    return (e.prim.elements.copied and len(e.inputs) == 1) or e.prim is convert


def squared(makers: Makers, atom: Atom, depth: int = _DEPTH) -> set[Atom]:
    """The values of whose squares ``atom`` is a sum; none if it may be something else."""
    e = makers.get(atom)
    if e is None or depth == 0:
        return set()
    x, *rest = e.inputs
    if _is_not_negative(makers, e):
        return {x, *rest}
    if e.prim is mul and type(x) is Literal:
        x, rest = rest[0], [x]
    scaled = e.prim in (mul, div) and type(rest[0]) is Literal
    if scaled or e.prim is reduce_sum or _moves(e):
        return squared(makers, x, depth - 1)
    if e.prim is add:
        parts = [squared(makers, a, depth - 1) for a in e.inputs if not is_zero(a)]
        return set[Atom]().union(*parts) if all(parts) else set()
    return set()


def _is_not_negative(makers: Makers, e: Equation) -> bool:
    """Whether an operation is a modulus, an even power, or a product of a value with itself."""
    if e.prim in (mul, dot_general):
        left, right = [_reshaped(makers, a) for a in e.inputs]
        return left is right
    return _is_even(e) or e.prim in (square, abs)


def singular_operations(makers: Makers, branch: Atom) -> Iterator[tuple[Equation, Atom]]:
    """Operations behind a branch that are singular at zero or one, and of which operand."""
    behind = {branch}
    for _ in range(_DEPTH):
        makers_behind = [e for a in behind if (e := makers.get(a)) is not None]
        makers_behind = [e for e in makers_behind if e.prim is not select and _elementwise(e)]
        behind = {a for e in makers_behind for a in e.inputs if type(a) is Var}
        for e in makers_behind:
            if is_smooth(e):
                if is_fraction(e) and not _is_never_negative(makers, e.inputs[0]):
                    yield e, e.inputs[0]
            elif e.prim in SINGULAR:
                for base in e.inputs[_BASES.get(e.prim, slice(None))]:
                    if type(base) is Var and not _is_guarded(makers, base, e.prim):
                        yield e, base


def _is_guarded(makers: Makers, base: Atom, prim: Any, depth: int = _DEPTH) -> bool:
    """Whether something was done so that ``base`` is not where ``prim`` is singular."""
    if type(base) is Literal:
        return base.type.shape != () or bool(np.any(np.asarray(base.value)))
    e = makers.get(base)
    if e is None or depth == 0:
        return False
    scaled = _scaled(e)
    if prim is exp and (e.prim is neg or scaled):
        return _is_guarded(makers, scaled[0] if scaled else e.inputs[0], prim, depth - 1)
    if e.prim in _POSITIVE or (prim is log1p and _is_never_negative(makers, base)):
        return True
    bounded = prim in AT_ONE or prim is exp
    if e.prim in ((min, max, select, clamp) if bounded else (add, max, select, clamp)):
        operands = e.inputs[1:] if e.prim is select else e.inputs
        constants = [x for a in operands if type(x := moved(makers, a)) is Literal]
        return any(bounded or not is_zero(x) for x in constants)
    if _moves(e) or e.prim in (sqrt, square, integer_pow):
        return _is_guarded(makers, e.inputs[0], prim, depth - 1)
    return False


def _is_never_negative(makers: Makers, atom: Atom, depth: int = _DEPTH) -> bool:
    """Whether ``atom`` was made so that it is not below zero, or held above some number."""
    if type(atom) is Literal:
        return bool(np.all(np.asarray(atom.value) >= 0))
    e = makers.get(atom)
    if e is None or depth == 0:
        return False
    if e.prim in (max, select, clamp):
        return any(type(moved(makers, a)) is Literal for a in e.inputs)
    if e.prim in _POSITIVE or _is_not_negative(makers, e):
        return True
    is_passed_on = e.prim in (add, mul, div, pow, sqrt, reduce_sum) or _moves(e)
    return is_passed_on and all(_is_never_negative(makers, a, depth - 1) for a in e.inputs)


def _places(e: Equation) -> list[float]:
    """Where an operation, or its derivative, is infinite or no number."""
    prim = e.prim
    if is_smooth(e):
        return [-np.inf]
    if prim is exp:
        return [np.inf]
    if prim in AT_ONE:
        return []
    return [0.0, -np.inf] if prim in _OF_POSITIVE else [0.0]


def decided(makers: Makers, condition: Atom, base: Atom, operation: Equation) -> list[bool]:
    """The values of a condition where ``base`` makes ``operation`` infinite or NaN, if it compares
    ``base`` with a constant."""
    e = makers.get(condition)
    if e is None or e.prim not in _COMPARISONS:
        return []
    left, right = (moved(makers, a) for a in e.inputs)
    constants = [a for a in (left, right) if type(a) is Literal and a.type.shape == ()]
    compared = [_with_same_zeros(makers, a) for a in (left, right) if type(a) is Var]
    root, sign = _with_same_zeros(makers, base)
    if len(constants) != 1 or [of for of, _ in compared] != [root]:
        return []
    constant, sign = np.asarray(constants[0].value), sign * compared[0][1]
    values = [
        np.asarray(place * sign if place else 0.0)
        for place in _places(operation)
        if sign or not place
    ]
    compare = _COMPARISONS[e.prim]
    if constants[0] is left:
        return [bool(compare(constant, x)) for x in values]
    return [bool(compare(x, constant)) for x in values]


def _with_same_zeros(makers: Makers, atom: Atom) -> tuple[Atom, int]:
    """What ``atom`` is a root, power, multiple or modulus of, and so zero in the same places; and
    whether it has the same sign, 1, or the other, -1, or one sign only, 0."""
    sign = 1
    while (e := makers.get(atom)) is not None:
        atom, before = e.inputs[0], atom
        if e.prim is neg:
            sign = -sign
        elif scaled := _scaled(e):
            atom, factor = scaled
            sign *= factor
        elif e.prim in (sqrt, square, abs) or _is_even(e):
            sign = 0
        elif not (_moves(e) or e.prim is cbrt or (e.prim is integer_pow and e.params["y"] > 0)):
            return before, sign
    return atom, sign


def _scaled(e: Equation) -> tuple[Atom, int] | None:
    """What an operation multiplies with a number, or divides by one, and the sign of that."""
    if e.prim not in (mul, div):
        return None
    x, factor = e.inputs[:: -1 if e.prim is mul and type(e.inputs[0]) is Literal else 1]
    if type(factor) is not Literal or factor.type.shape != () or is_zero(factor):
        return None
    return x, int(np.sign(np.asarray(factor.value)))


def _is_even(e: Equation) -> bool:
    if e.prim is pow and type(exponent := e.inputs[1]) is Literal:
        return bool(np.all(np.asarray(exponent.value) % 2 == 0)) and not falls(e)
    return e.prim is integer_pow and e.params["y"] > 0 and e.params["y"] % 2 == 0


def moved(makers: Makers, atom: Atom) -> Atom:
    """What ``atom`` is, but for its shape and dtype."""
    while (e := makers.get(atom)) is not None and _moves(e):
        atom = e.inputs[0]
    return atom


def _reshaped(makers: Makers, atom: Atom) -> Atom:
    """What ``atom`` is in another shape or dtype, with its elements in the same order."""
    while (e := makers.get(atom)) is not None and e.prim in (reshape, convert):
        atom = e.inputs[0]
    return atom


def _elementwise(e: Equation) -> bool:
    if e.prim.subprograms is not None or e.prim is guarded:  # from which no NaN comes out
        return False
    return e.prim.elements.fused or _moves(e)


def elementwise_origins(makers: Makers) -> Callable[[Atom], int]:
    """What gives the elementwise origins of an atom as the bits of a number: the values that it is
    made of elementwise and that are not made so themselves. Atoms that share a bit share one."""
    origins: dict[Atom, int] = {}

    def of(atom: Atom) -> int:
        if type(atom) is Literal:
            return 0
        return origins.setdefault(atom, 1 << len(origins))

    for result, e in makers.items():  # in the order of the program: operands come first
        bits = 0
        for a in e.inputs if _elementwise(e) else ():
            bits |= of(a)
        if bits:
            origins[result] = bits
    return of
