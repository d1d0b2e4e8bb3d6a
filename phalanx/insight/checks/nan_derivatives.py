"""Derivatives that are NaN at single points: 0 times infinity.

A derivative of ``where(x > 0, sqrt(x), 0)`` is the product of a cotangent, which is zero where the
branch is not taken, and of the derivative of the root, which is infinite there. That of a norm at
zero is the product of an infinite one and of the vector, which is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.subject import Subject
from phalanx.insight.checks.zeros_and_infinities import (
    AT_ONE,
    SINGULAR,
    Makers,
    decided,
    elementwise_origins,
    falls,
    is_fraction,
    is_root,
    is_smooth,
    is_zero,
    moved,
    singular_operations,
    squared,
)
from phalanx.insight.flow import NOTHING, Flow, Marks
from phalanx.primitives import (
    add,
    atan2,
    cbrt,
    convert,
    div,
    dot_general,
    eq,
    exp,
    integer_pow,
    max,
    mul,
    neg,
    one_minus_square,
    pow,
    rsqrt,
    select,
    sign,
    sqrt,
    square,
    sub,
)
from phalanx.primitives.guard import guarded

__all__ = ["singular_derivatives"]

P116 = Code(
    "P116",
    "a derivative that is NaN where a branch of `where` is not taken",
    "grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))",
    "Give the branch that is not taken a harmless value: safe = jnp.where(ok, x, 1.0), and "
    "then jnp.where(ok, f(safe), other).",
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


class Negative(Struct, frozen=True):
    """Of a value: where it is negative, there is the singularity, which is NaN itself."""

    at: Singularity


class Edge(Struct, frozen=True):
    """Of a value: where it is 1 or -1, there is the singularity."""

    at: Singularity


class Infinite(Struct, frozen=True):
    """Of a value: it is infinite there."""

    at: Singularity


class Inverse(Struct, frozen=True):
    """Of a value: it is the inverse of a length that is zero there, and so makes a unit vector of
    what vanishes."""

    at: Singularity


class Vanishing(Struct, frozen=True):
    """Of a value: it is zero there."""

    at: Singularity


class Deciding(Struct, frozen=True):
    """Of a condition: it tells the places where there is a singularity from the others."""

    at: Singularity


_PASSED_ON = {  # of the kinds of marks, by functions of one operand
    sqrt: Base, cbrt: Base, square: (Base, Vanishing), integer_pow: (Base, Vanishing),
}  # fmt: skip
_PHRASES = {"div": "the division", "sqrt": "the square root", "pow": "the power"}


def singular_derivatives(subject: Subject) -> Iterator[Finding]:
    """Products of zeros and infinities that derivatives make."""
    if SINGULAR & subject.primitives:
        flow = _SingularFlow(subject)
        flow.run(subject.program, [NOTHING] * len(subject.program.inputs))
        yield from flow.findings()


class _SingularFlow(Flow):
    origins = SINGULAR

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject
        self.found: dict[Singularity, Finding] = {}
        self.seen: set[Program] = set()
        self.lines: dict[tuple[Any, ...], Singularity] = {}
        self.of_maxima: set[Singularity] = set()  # roots of which something is zero, or more

    def findings(self) -> Iterator[Finding]:
        """One of each kind in a line; what is masked by `where` is mended there, a norm too."""
        masked = {at.equation for at in self.found if at.code is P116}
        lines: dict[tuple[str, int, str], Finding] = {}
        for at, finding in self.found.items():
            if at.code is P116 or at.equation not in masked:
                lines.setdefault((finding.file, finding.line, finding.code), finding)
        yield from lines.values()

    # ---- where singularities are ----

    def begin(self, program: Program) -> None:
        """Mark the values at which something is singular, before marks go through."""
        if program in self.seen or not SINGULAR & program.primitives:
            return
        self.seen.add(program)
        makers: Makers = {v: e for e in program.equations for v in e.outputs}
        origins = elementwise_origins(makers)
        for e in program.equations:
            if any([SINGULAR & p.primitives for p in e.programs]):
                self._from_inside(e)
            if e.prim in (sqrt, rsqrt, cbrt) or (e.prim is pow and is_root(e)):
                self._root_of_squares(makers, e)
                self._root_of_maximum(makers, e)
            elif e.prim is select:
                self._branches(makers, e, origins)

    def _in_its_line(self, operation: Equation) -> Singularity:
        """The singularity of ``operation``: one for all operations of an instruction of the user's,
        as in a loop; only one of these is reported."""
        spot = operation.location and operation.location.spot
        return self.lines.setdefault((operation.prim, spot), Singularity(operation, P116))

    def _mark(self, atom: Atom, mark: Any) -> None:
        if type(atom) is Var:
            self.preset[atom] = self.preset.get(atom, NOTHING) | {mark}

    def _root_of_squares(self, makers: Makers, e: Equation) -> None:
        roots = squared(makers, e.inputs[0])
        here = Singularity(e, P117)
        for root in roots:
            self._mark(root, Vanishing(here))
        if roots:
            self._mark(e.outputs[0] if e.prim is sqrt else e.inputs[0], Base(here))

    def _root_of_maximum(self, makers: Makers, e: Equation) -> None:
        """The derivative of a maximum is zero where it is what it is compared with: there a
        derivative asks whether it is equal to the other."""
        base = moved(makers, e.inputs[0])
        maximum = makers.get(base)
        if maximum is None or maximum.prim is not max or not any(map(is_zero, maximum.inputs)):
            return
        (other,) = [a for a in maximum.inputs if not is_zero(a)] or [None]
        here = Singularity(e, P116)
        asked = [x for x in makers.values() if x.prim is eq and {*x.inputs} == {base, other}]
        for x in asked:
            self._mark(x.outputs[0], Vanishing(here))
        if asked:
            self.of_maxima.add(here)
            self._mark(base, Base(here))

    def _branches(self, makers: Makers, e: Equation, origins: Callable[[Atom], int]) -> None:
        condition, *branches = e.inputs
        for branch in branches:
            for operation, base in singular_operations(makers, branch):
                if not origins(condition) & origins(base):
                    continue
                known = decided(makers, condition, base, operation)
                if known and all(branches[not value] is branch for value in known):
                    continue  # it is taken there, and no cotangent is masked
                if (operation.prim is exp or is_smooth(operation)) and not known:
                    continue  # whether it is great there, or negative, is not known
                here = self._in_its_line(operation)
                self._mark(condition, Deciding(here))
                if operation.prim is exp:
                    self._mark(operation.outputs[0], Infinite(here))
                kind = (
                    Negative if is_smooth(operation) else Edge if operation.prim in AT_ONE else Base
                )
                for a in operation.inputs if operation.prim is atan2 else [base]:
                    self._mark(a, kind(here))

    def _from_inside(self, e: Equation) -> None:
        """What vanishes in the sub-programs of ``e`` is part of what they are given."""
        frame = e.prim.frame(e.params)
        operands = frame.body_operands(e.inputs)
        for p in frame.programs:
            self.begin(p)
            for v, a in zip(p.inputs, operands, strict=True):
                for mark in _of(Vanishing, self.preset.get(v, NOTHING)):
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
            both = operands[0].intersection(*operands) if prim is add else NOTHING
            return frozenset([Base(m.at) for m in every if type(m) is Edge]) | _of(Base, both)
        if prim is rsqrt:
            bases = [m.at for m in every if type(m) is Base]
            return frozenset([(Inverse if at.code is P117 else Infinite)(at) for at in bases])
        if prim is pow and is_fraction(e) and (below := _of(Negative, every)):
            return frozenset([Infinite(m.at) for m in below])
        if prim in (integer_pow, pow) and falls(e):
            return frozenset([Infinite(m.at) for m in every if type(m) is Base])
        return _of(_PASSED_ON.get(prim, ()), every)

    def _product(self, e: Equation, left: Marks, right: Marks) -> Marks:
        units: set[Singularity] = set()
        for one, other in ((left, right), (right, left)):
            for mark in _of((Infinite, Inverse), one):
                if Vanishing(mark.at) not in other:
                    continue
                if type(mark) is Inverse:
                    units.add(mark.at)
                else:
                    self._report(e, mark.at)
        return self._scaled(left | right, units)

    def _quotient(self, e: Equation, above: Marks, below: Marks) -> Marks:
        infinite = [mark.at for mark in below if type(mark) is Base]
        for at in infinite:
            if at.code is P116 and Vanishing(at) in above:
                self._report(e, at)
        units = {at for at in infinite if Vanishing(at) in above}
        return self._scaled(above.union(map(Infinite, infinite)), units)

    @staticmethod
    def _scaled(marks: Marks, units: set[Singularity]) -> Marks:
        """The marks of a product with a factor of ``marks``, some of which make it a unit vector,
        such as one that was divided by its length."""
        factors = _of((Infinite, Inverse, Vanishing), marks)
        passed_on = [
            Infinite(m.at) if type(m) is Inverse else m for m in factors if m.at not in units
        ]
        return frozenset(passed_on)

    def _chosen(self, e: Equation, operands: Sequence[Marks], every: Marks) -> Marks:
        deciding = [m.at for m in operands[0] if type(m) is Deciding]
        passed_on = every.difference(operands[0]) - {Infinite(at) for at in deciding}
        if not any(is_zero(a) for a in e.inputs[1:]):
            return passed_on
        return passed_on.union(map(Vanishing, deciding))

    def _report(self, e: Equation, at: Singularity) -> None:
        place = self.place(at.equation) or self.place(e) or self.subject.place
        name = at.equation.prim.name
        what = _PHRASES.get(name, f"`{name}`")
        if at.code is P116 and at.equation.prim is exp:
            message = (
                "`exp` is in a branch of `where` that is not taken where it is greater than any "
                "number: the derivative of the branch is 0 times infinity there, which is NaN"
            )
        elif is_smooth(at.equation):
            message = (
                f"{what} is in a branch of `where` that is not taken where what it is of is "
                "negative: it is NaN there, and so is 0 times its derivative"
            )
        elif at in self.of_maxima:
            message = (
                f"{what} of a maximum with 0 is differentiated: where that is 0, its derivative is "
                "0 times the infinite one of the root, which is NaN"
            )
        elif at.code is P116:
            message = (
                f"{what} is in a branch of `where` that is not taken where it has no derivative; "
                "that of the branch is 0 times infinity there, which is NaN"
            )
        else:
            message = (
                f"{what} of a sum of squares is differentiated: where all of them are zero, the "
                "derivative is 0 times infinity, which is NaN"
            )
        self.found.setdefault(at, at.code.at(place, message))


def _of(kinds: Any, marks: Marks) -> Marks:
    return frozenset([m for m in marks if isinstance(m, kinds)])
