"""Forward derivatives of operations with sub-programs: in two halves, or both at once.

Where both are wanted at once, the two halves would each run a sub-program, and between them store
what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from phalanx.control.framed import bind_frame, frame_of
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import (
    ZERO,
    Derivative,
    DualRule,
    LinearizeRule,
    Primitive,
    Rule,
    selected,
    with_zeros,
)
from phalanx.core.program import Atom, Frame, Program, Var
from phalanx.core.roles import CARRY, FIXED, Role
from phalanx.core.runs import Marks
from phalanx.core.trace import entering
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import instantiate
from phalanx.transforms.dce import live_equations
from phalanx.transforms.effects import silent
from phalanx.transforms.linearize import Dual, Linearized, jvp_program, linearize_program
from phalanx.transforms.simplify import depending, filled, fixpoint, with_inputs, without_effects
from phalanx.transforms.stage import evaluate


def _stable_tangents(
    frame: Frame, active: Marks, nonzero: Callable[[Program, Marks], Marks]
) -> tuple[Marks, Marks]:
    """Which operands have a tangent, and which results: what is carried if it gets one in any run.

    ``nonzero(program, active)`` says which outputs of a program have one.
    """

    def results(carry: Sequence[bool]) -> Marks:
        inputs = tuple(frame.body_operands(frame.with_carried_in(active, carry)))
        columns = zip(*(nonzero(p, inputs) for p in frame.programs), strict=True)
        return tuple([any(column) for column in columns])

    carry = fixpoint(frame.carried_in(active), lambda c: frame.carried_out(results(c)))
    marks = tuple(frame.with_carried_out(results(carry), carry))
    return tuple(frame.with_carried_in(active, carry)), marks


def types_of(operands: Sequence[Any]) -> list[ArrayType]:
    """The types of ``operands`` as arrays, also of those that are literals."""
    return [typeof(x) for x in operands]


def dense(tangents: Sequence[Any], types: Sequence[ArrayType], active: Marks) -> list[Any]:
    """The tangents of the ``active`` operands; zeros where one gets its tangent in a later run."""
    return [instantiate(t, kind) for t, kind, a in zip(tangents, types, active, strict=True) if a]


def dual_rule(linearize: LinearizeRule, jvp: Rule) -> DualRule:
    """``jvp`` where primals and tangents are computed in one trace, ``linearize`` elsewhere.

    ``jvp`` takes primals, tangents and parameters, to the results and their tangents.
    """

    def rule(dual: Dual, /, *operands: Any, **params: Any) -> tuple[Any, Any]:
        primals, tangents = zip(*[dual.split(x) for x in operands], strict=True)
        if dual.tangents is not dual.parent:
            return dual.in_halves(linearize, primals, tangents, params)
        with entering(dual.tangents):
            return jvp(primals, tangents, **params)

    return DualRule(rule)


# ---- both halves at once ------------------------------------------------------------------------


class _Pair(Struct, frozen=True):
    """A frame that computes results and tangents.

    Its operands are followed by the tangents of those that are ``active``, its results by the
    tangents of those that are ``nonzero``.
    """

    frame: Frame
    active: Marks
    nonzero: Marks


def jvp_rule(prim: Callable[[], Primitive]) -> Rule:
    """The rule of the family for results and tangents at once."""

    def rule(
        primals: tuple[Any, ...], tangents: Sequence[Any], /, **params: Any
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        frame = frame_of(prim(), params)
        pair = paired(frame, tuple([t is not ZERO for t in tangents]))
        operands = [*primals, *dense(tangents, types_of(primals), pair.active)]
        outputs = bind_frame(prim(), operands, params, pair.frame)
        count = len(frame.outs)
        return outputs[:count], with_zeros(outputs[count:], pair.nonzero)

    return rule


def paired(frame: Frame, active: Marks, quiet: bool = False) -> _Pair:
    """``frame`` with the derivative by its ``active`` operands; without effects if ``quiet``."""
    key = ("pair", frame.key, active, quiet)
    return memoize_on(frame.programs[0], key, lambda: _paired(frame, active, quiet))


def _paired(frame: Frame, active: Marks, quiet: bool) -> _Pair:
    if quiet:
        frame = frame.rewritten(silent)
    active, nonzero = _stable_tangents(frame, active, lambda p, a: jvp_program(p, a).about)
    inputs = tuple(frame.body_operands(active))
    programs: list[Program] = []
    for program in frame.programs:
        derived = jvp_program(program, inputs)
        present = selected(derived.about, nonzero)
        types = selected(program.output_types, nonzero)
        all_primals = (True,) * len(program.outputs)
        pair = filled(derived.program, [*program.output_types, *types], [*all_primals, *present])
        programs.append(pair.update(equations=live_equations(pair)))
    condition = frame.condition
    if condition is not None:
        condition = with_inputs(condition, map(Var, selected(condition.input_types, inputs)))
    both = replace(
        frame,
        programs=tuple(programs),
        ins=(*frame.ins, *selected(frame.ins, active)),
        outs=(*frame.outs, *selected(frame.outs, nonzero)),
        condition=condition,
    )
    return _Pair(both, active, nonzero)


# ---- one after the other ------------------------------------------------------------------------


class _Residual(Struct, frozen=True):
    """Where a residual comes from, and what it is to the linear half.

    ``source`` is "operand" or "result", of the primal operation, or "once" for what is computed
    outside of it, because it is the same in every run.
    """

    source: str
    index: int
    role: Role


class _Halves(Struct, frozen=True):
    """A frame in two: ``primal`` gives what is stored after the results.

    ``linear`` takes the choice, the ``residuals``, and the tangents of ``active`` operands; it
    gives the tangents of the results that are ``nonzero``. ``once`` computes residuals from what is
    FIXED.
    """

    primal: Frame
    linear: Frame
    once: Program
    residuals: tuple[_Residual, ...]
    active: Marks
    nonzero: Marks

    def collected(self, operands: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """The residuals of one application."""
        frame = self.primal
        fixed = [x for x, r in zip(operands, frame.ins, strict=True) if r is FIXED]
        once = evaluate(self.once, fixed) if self.once.outputs else ()
        places = {"operand": frame.body_operands(operands), "result": results, "once": once}
        return [places[r.source][r.index] for r in self.residuals]


def linearize_rule(prim: Callable[[], Primitive]) -> Rule:
    """The rule of the family for the result now, and the linear function of tangents."""

    def rule(active: Marks, /, *primals: Any, **params: Any) -> Derivative:
        frame = frame_of(prim(), params)
        halves = linearized(frame, active)
        results = bind_frame(prim(), primals, params, halves.primal)
        residuals = [*frame.choices(primals), *halves.collected(primals, results)]
        types = types_of(primals)

        def linear(*tangents: Any) -> tuple[Any, ...]:
            active_tangents = dense(tangents, types, halves.active)
            outputs = bind_frame(prim(), [*residuals, *active_tangents], params, halves.linear)
            return with_zeros(outputs, halves.nonzero)

        return results[: len(frame.outs)], linear

    return rule


def linearized(frame: Frame, active: Marks) -> _Halves:
    """``frame`` in two halves, where the operands marked ``active`` have a tangent."""
    for program in frame.programs:  # here, and not further down: this goes as deep as calls nest
        linearize_program(program, tuple(frame.body_operands(active)))
    return memoize_on(
        frame.programs[0], ("halves", frame.key, active), lambda: _linearized(frame, active)
    )


def _linearized(frame: Frame, active: Marks) -> _Halves:
    active, nonzero = _stable_tangents(frame, active, lambda p, a: linearize_program(p, a).nonzero)
    inputs = tuple(frame.body_operands(active))
    parts = [linearize_program(p, inputs) for p in frame.programs]
    sources = _ResidualSources(frame)
    for part in parts:
        sources.add(part)
    primal = replace(
        frame,
        programs=tuple(map(sources.primal_program, range(len(parts)))),
        outs=(*frame.outs, *map(frame.stored, sources.places)),
    )
    types = selected(frame.programs[0].output_types, nonzero)
    residuals = tuple([residual for residual, _ in sources.residuals])
    linear = replace(
        frame,
        programs=tuple([sources.linear_program(i, nonzero, types) for i in range(len(parts))]),
        ins=(
            *frame.choices(frame.ins),
            *(r.role for r in residuals),
            *selected(frame.ins, active),
        ),
        outs=tuple(selected(frame.outs, nonzero)),
    )
    return _Halves(primal, linear, sources.once_program(), residuals, active, nonzero)


class _ResidualSources:
    """Where the residuals of the programs of a frame come from, and what has to be stored.

    One of the programs runs. So they share what they take: an operand of the frame, or a place for
    a stored value of one type.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.roles = frame.body_roles
        self.parts: list[Linearized] = []
        self.residuals: dict[tuple[_Residual, ArrayType], int] = {}  # as a linear half sees them
        self.taken: list[list[int]] = []  # which of them the residuals of each program are
        self.places: list[ArrayType] = []  # what a program gives besides its results
        self.of_type: dict[ArrayType, list[int]] = {}  # those places, the last ones first
        self.stored: list[dict[int, Atom]] = []  # what each program puts into places
        self.once: list[Atom] = []

    def add(self, part: Linearized) -> None:
        """Find a place for each residual of one program."""
        primal = part.primal
        self.parts.append(part)
        self.stored.append({})
        moving = [v for v, r in zip(primal.inputs, self.roles, strict=True) if r is not FIXED]
        changing = depending(primal, moving) if self.frame.is_loop else None
        computed = zip(primal.outputs[len(self.frame.outs) :], part.repeated, strict=True)
        taken: list[int] = []
        free = {type: [*places] for type, places in self.of_type.items()}
        for origin, var in zip(part.forwarded, part.linear.inputs, strict=False):
            if origin is not None and self.roles[origin] is not CARRY:
                residual = _Residual("operand", origin, self.roles[origin])
            else:
                atom, result = next(computed) if origin is None else (primal.inputs[origin], None)
                residual = self._computed(atom, result, changing, free)
            key = residual, var.type
            taken.append(self.residuals.setdefault(key, len(self.residuals)))
        self.taken.append(taken)

    def _computed(
        self,
        atom: Atom,
        result: int | None,
        changing: set[Var] | None,
        free: dict[ArrayType, list[int]],
    ) -> _Residual:
        if changing is not None and atom not in changing:
            self.once.append(atom)
            return _Residual("once", len(self.once) - 1, FIXED)
        if result is not None and self.frame.outs[result] is not CARRY:
            return _Residual("result", result, self.frame.outs[result])
        type = atom.type
        place = free[type].pop() if free.get(type) else self._new_place(type)
        self.stored[-1][place] = atom
        return _Residual("result", len(self.frame.outs) + place, self.frame.stored(type))

    def _new_place(self, type: ArrayType) -> int:
        self.places.append(type)
        place = len(self.places) - 1
        self.of_type.setdefault(type, []).insert(0, place)
        return place

    def primal_program(self, which: int) -> Program:
        """Program ``which``: its results, and what it stores; zeros in places that it leaves."""
        whole, count = self.parts[which].primal, len(self.frame.outs)
        mine, results = self.stored[which], whole.outputs[:count]
        used = [i for i in range(len(self.places)) if i in mine]
        primal = whole.update(outputs=[*results, *[mine[i] for i in used]])
        types = [*[a.type for a in results], *self.places]
        present = [True] * count + [i in mine for i in range(len(self.places))]
        return filled(primal, types, present)

    def linear_program(self, which: int, nonzero: Marks, types: Sequence[ArrayType]) -> Program:
        """The linear half of program ``which``, which takes the residuals of all."""
        part = self.parts[which]
        linear, taken = part.linear, self.taken[which]
        residuals = [Var(type) for _, type in self.residuals]
        seen = zip(linear.inputs, [residuals[i] for i in taken], strict=False)
        tangents = linear.inputs[len(taken) :]
        with_residuals = linear.renamed(dict[Atom, Atom](seen)).update(
            inputs=[*residuals, *tangents]
        )
        return filled(with_residuals, types, selected(part.nonzero, nonzero))

    def once_program(self) -> Program:
        """From what is FIXED to the residuals that are the same in every run."""
        primal = self.parts[0].primal
        fixed = [v for v, r in zip(primal.inputs, self.roles, strict=True) if r is FIXED]
        equations = without_effects(primal) if self.once else []
        once = primal.update(inputs=fixed, equations=equations, outputs=self.once)
        return once.update(equations=live_equations(once))
