"""Derivatives that are NaN at single points: 0 times infinity.

A derivative of ``where(x > 0, sqrt(x), 0)`` is the product of a cotangent, which is zero where the
branch is not taken, and of the derivative of the root, which is infinite there. That of a norm at
zero is the product of an infinite one and of the vector, which is zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.core.program import Atom, Equation, Literal, Program, Var
from phalanx.insight.findings import Code, Finding
from phalanx.insight.flow import NOTHING, Flow, Marks
from phalanx.insight.subject import Subject
from phalanx.ops import (
    abs,
    acos,
    acosh,
    add,
    asin,
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
    one_minus_square,
    pow,
    reduce_sum,
    reshape,
    rsqrt,
    select,
    sign,
    sqrt,
    square,
    sub,
)
from phalanx.ops.guard import guarded

__all__ = ["singular_derivatives"]

P116 = Code(
    "P116",
    "a derivative that is NaN where a branch of `where` is not taken",
    "grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))",
    "Let the branch that is not taken see a harmless value: safe = jnp.where(ok, x, 1.0), and then "
    "jnp.where(ok, f(safe), other).",
)
P117 = Code(
    "P117",
    "a derivative that is NaN at zero: of a square root of squares, such as a norm",
    "grad(lambda x: jnp.linalg.norm(x))",
    "Add a small number under the root, jnp.sqrt(jnp.sum(x * x) + 1e-12), or differentiate the "
    "square of the norm.",
)


class Singularity(Struct, frozen=True):
    """Where a derivative is infinite: the operation, and the kind of mistake."""

    equation: Equation
    code: Code


class Base(Struct, frozen=True):
    """Of a value: where it is zero, there is the singularity."""

    at: Singularity


class Edge(Struct, frozen=True):
    """Of a value: where it is 1 or -1, there is the singularity."""

    at: Singularity


class Infinite(Struct, frozen=True):
    """Of a value: it is infinite there."""

    at: Singularity


class Vanishing(Struct, frozen=True):
    """Of a value: it is zero there."""

    at: Singularity


class Deciding(Struct, frozen=True):
    """Of a condition: it tells the places where there is a singularity from the others."""

    at: Singularity


_AT_ZERO = frozenset({div, sqrt, rsqrt, cbrt, log, pow})
_AT_ONE = frozenset({log1p, asin, acos, atanh, acosh})  # or at -1
_SINGULAR = _AT_ZERO | _AT_ONE
_POSITIVE = frozenset({exp, logistic})
_ZERO_AT_ZERO = frozenset({sqrt, cbrt, square, abs, neg, integer_pow})
_KEPT = {  # of the kinds of marks, by functions of one operand
    sqrt: Base, cbrt: Base, square: (Base, Vanishing), integer_pow: Vanishing,
}  # fmt: skip
_SAID = {"div": "the division", "sqrt": "the square root", "pow": "the power"}
_COMPARISONS = {
    lt: np.less, le: np.less_equal, gt: np.greater, ge: np.greater_equal,
    eq: np.equal, ne: np.not_equal,
}  # fmt: skip
_DEPTH = 24


def singular_derivatives(subject: Subject) -> Iterator[Finding]:
    """Products of zeros and infinities that derivatives make."""
    if _SINGULAR & subject.primitives:
        flow = _SingularFlow(subject)
        flow.run(subject.program, [NOTHING] * len(subject.program.inputs))
        yield from flow.findings


class _SingularFlow(Flow):
    origins = _SINGULAR

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject
        self.findings: dict[Finding, None] = {}
        self.seen: set[Program] = set()

    # ---- where singularities are ----

    def begin(self, program: Program) -> None:
        """Mark the values at which something is singular, before marks go through."""
        if program in self.seen or not _SINGULAR & program.primitives:
            return
        self.seen.add(program)
        makers: Makers = {v: e for e in program.equations for v in e.outputs}
        for e in program.equations:
            if any([_SINGULAR & p.primitives for p in e.programs]):
                self._from_inside(e)
            if e.prim is sqrt or (e.prim is pow and _is_root(e)):
                self._root_of_squares(makers, e)
            elif e.prim is select:
                self._branches(makers, e)

    def _mark(self, atom: Atom, mark: Any) -> None:
        if type(atom) is Var:
            self.given[atom] = self.given.get(atom, NOTHING) | {mark}

    def _root_of_squares(self, makers: Makers, e: Equation) -> None:
        roots = _squared(makers, e.inputs[0])
        here = Singularity(e, P117)
        for root in roots:
            self._mark(root, Vanishing(here))
        if roots:
            self._mark(e.outputs[0] if e.prim is sqrt else e.inputs[0], Base(here))

    def _branches(self, makers: Makers, e: Equation) -> None:
        condition, *branches = e.inputs
        about: set[Atom] | None = None
        for branch in branches:
            for made, base in _singular_operations(makers, branch):
                about = _elementwise_sources(makers, condition) if about is None else about
                if about.isdisjoint(_elementwise_sources(makers, base)):
                    continue
                at_zero = None
                if made.prim in _AT_ZERO:
                    at_zero = _decided_at_zero(makers, condition, base)
                if at_zero is not None and branches[not at_zero] is branch:
                    continue  # it is taken there, and no cotangent is masked
                here = Singularity(made, P116)
                self._mark(condition, Deciding(here))
                self._mark(base, (Edge if made.prim in _AT_ONE else Base)(here))

    def _from_inside(self, e: Equation) -> None:
        """What vanishes in the sub-programs of ``e`` is part of what they are given."""
        frame = e.prim.frame(e.params)
        operands = frame.shown(e.inputs)
        for p in frame.programs:
            self.begin(p)
            for v, a in zip(p.inputs, operands, strict=True):
                for mark in _of(Vanishing, self.given.get(v, NOTHING)):
                    self._mark(a, mark)

    # ---- what becomes of them ----

    def step(self, e: Equation, operands: Sequence[Marks]) -> Marks | Sequence[Marks]:
        every = NOTHING.union(*operands)
        prim = e.prim
        if not every or prim is guarded:
            return NOTHING
        if prim in (mul, dot_general):
            return self._product(e, *operands)
        if prim is div:
            return self._quotient(e, *operands)
        if prim is select:
            return self._chosen(e, operands, every)
        if prim in (neg, convert, sign) or (prim.elements.copied and prim is not max):
            return every
        if prim in (add, sub, one_minus_square):
            return frozenset([Base(m.at) for m in every if type(m) is Edge])
        if prim is rsqrt or (prim in (integer_pow, pow) and _falls(e)):
            return frozenset([Infinite(m.at) for m in every if type(m) is Base])
        return _of(_KEPT.get(prim, ()), every)

    def _product(self, e: Equation, left: Marks, right: Marks) -> Marks:
        for one, other in ((left, right), (right, left)):
            for mark in one:
                if type(mark) is Infinite and Vanishing(mark.at) in other:
                    self._report(e, mark.at)
        return _of((Infinite, Vanishing), left | right)

    def _quotient(self, e: Equation, above: Marks, below: Marks) -> Marks:
        infinite = [mark.at for mark in below if type(mark) is Base]
        for at in infinite:
            if at.code is P116 and Vanishing(at) in above:
                self._report(e, at)
        return _of((Infinite, Vanishing), above) | frozenset(map(Infinite, infinite))

    def _chosen(self, e: Equation, operands: Sequence[Marks], every: Marks) -> Marks:
        deciding = [m.at for m in operands[0] if type(m) is Deciding]
        kept = every.difference(operands[0]) - {Infinite(at) for at in deciding}
        if not any(_is_zero(a) for a in e.inputs[1:]):
            return kept
        return kept.union(map(Vanishing, deciding))

    def _report(self, e: Equation, at: Singularity) -> None:
        place = self.place(at.equation) or self.place(e) or self.subject.place
        name = at.equation.prim.name
        what = _SAID.get(name, f"`{name}`")
        if at.code is P116:
            message = (
                f"{what} is in a branch of `where` that is not taken where it has no derivative; "
                "that of the branch is 0 times infinity there, which is NaN"
            )
        else:
            message = (
                f"{what} of a sum of squares is differentiated: where all of them are zero, the "
                "derivative is 0 times infinity, which is NaN"
            )
        self.findings[at.code.at(place, message)] = None


Makers = dict[Any, Equation]


def _of(kinds: Any, marks: Marks) -> Marks:
    return frozenset([m for m in marks if isinstance(m, kinds)])


def _falls(e: Equation) -> bool:
    """Whether a power may have a negative exponent."""
    if e.prim is integer_pow:
        return e.params["y"] < 0
    exponent = e.inputs[1]
    return type(exponent) is not Literal or bool(np.all(np.asarray(exponent.value) < 0))


def _is_root(e: Equation) -> bool:
    """Whether a power has an exponent between 0 and 1."""
    exponent = e.inputs[1]
    return type(exponent) is Literal and not _falls(e) and not _is_smooth_power(e)


def _is_smooth_power(e: Equation) -> bool:
    """Whether an operation is a power whose derivative is finite at zero."""
    exponent = e.inputs[-1]
    if e.prim is not pow or type(exponent) is not Literal:
        return False
    return bool(np.all(np.asarray(exponent.value) >= 1))


def _is_zero(atom: Atom) -> bool:
    return type(atom) is Literal and atom.type.shape == () and not np.any(np.asarray(atom.value))


def _moves(e: Equation) -> bool:
    """Whether an operation of one operand only moves its elements, or changes their dtype."""
    return (e.prim.elements.copied and len(e.inputs) == 1) or e.prim is convert


def _squared(makers: Makers, atom: Atom, depth: int = _DEPTH) -> set[Atom]:
    """The values of whose squares ``atom`` is a sum; none if it may be something else."""
    e = makers.get(atom)
    if e is None or depth == 0:
        return set()
    x, *rest = e.inputs
    if _is_not_negative(makers, e):
        return {x, *rest}
    scaled = e.prim in (mul, div) and type(rest[0]) is Literal
    if scaled or e.prim is reduce_sum or _moves(e):
        return _squared(makers, x, depth - 1)
    if e.prim is add:
        parts = [_squared(makers, a, depth - 1) for a in e.inputs if not _is_zero(a)]
        return set[Atom]().union(*parts) if all(parts) else set()
    return set()


def _is_not_negative(makers: Makers, e: Equation) -> bool:
    """Whether an operation is a modulus, an even power, or a product of a value with itself."""
    if e.prim in (mul, dot_general):
        left, right = [_reshaped(makers, a) for a in e.inputs]
        return left is right
    even = e.prim is integer_pow and e.params["y"] > 0 and e.params["y"] % 2 == 0
    return even or e.prim in (square, abs)


def _singular_operations(makers: Makers, branch: Atom) -> Iterator[tuple[Equation, Atom]]:
    """Operations behind a branch that are singular at zero or one, and of which operand."""
    behind = {branch}
    for _ in range(_DEPTH):
        made = [e for a in behind if (e := makers.get(a)) is not None]
        made = [e for e in made if e.prim is not select and _elementwise(e)]
        behind = {a for e in made for a in e.inputs if type(a) is Var}
        for e in made:
            if e.prim in _SINGULAR and not _is_smooth_power(e):
                base = e.inputs[1] if e.prim is div else e.inputs[0]
                if type(base) is Var and not _is_guarded(makers, base, e.prim):
                    yield e, base


def _is_guarded(makers: Makers, base: Atom, prim: Any, depth: int = _DEPTH) -> bool:
    """Whether something was done so that ``base`` is not where ``prim`` is singular."""
    if type(base) is Literal:
        return base.type.shape != () or bool(np.any(np.asarray(base.value)))
    e = makers.get(base)
    if e is None or depth == 0:
        return False
    if e.prim in _POSITIVE or (prim is log1p and _is_not_negative(makers, e)):
        return True
    if e.prim in ((min, max, select, clamp) if prim in _AT_ONE else (add, max, select, clamp)):
        given = e.inputs[1:] if e.prim is select else e.inputs
        constants = [x for a in given if type(x := _moved(makers, a)) is Literal]
        return any(prim in _AT_ONE or not _is_zero(x) for x in constants)
    if _moves(e) or e.prim in (sqrt, square, integer_pow):
        return _is_guarded(makers, e.inputs[0], prim, depth - 1)
    return False


def _decided_at_zero(makers: Makers, condition: Atom, base: Atom) -> bool | None:
    """What a condition is where ``base`` is zero, if it compares that with a constant."""
    e = makers.get(condition)
    if e is None or e.prim not in _COMPARISONS:
        return None
    left, right = (_moved(makers, a) for a in e.inputs)
    constants = [a for a in (left, right) if type(a) is Literal and a.type.shape == ()]
    others = [_with_same_zeros(makers, a) for a in (left, right) if type(a) is Var]
    if len(constants) != 1 or others != [_with_same_zeros(makers, base)]:
        return None
    constant, zero = np.asarray(constants[0].value), np.zeros(())
    values = (zero, constant) if constants[0] is right else (constant, zero)
    return bool(_COMPARISONS[e.prim](*values))


def _with_same_zeros(makers: Makers, atom: Atom) -> Atom:
    """What ``atom`` is a root, power or modulus of, and so zero in the same places."""
    while (e := makers.get(atom)) is not None and (_moves(e) or e.prim in _ZERO_AT_ZERO):
        if e.prim is integer_pow and e.params["y"] <= 0:
            break
        atom = e.inputs[0]
    return atom


def _moved(makers: Makers, atom: Atom) -> Atom:
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


def _elementwise_sources(makers: Makers, atom: Atom) -> set[Atom]:
    """``atom`` and what it is made of, elementwise."""
    found: set[Atom] = set()
    waiting = [atom]
    while waiting:
        a = waiting.pop()
        if type(a) is Literal or a in found:
            continue
        found.add(a)
        e = makers.get(a)
        if e is not None and _elementwise(e):
            waiting += e.inputs
    return found
