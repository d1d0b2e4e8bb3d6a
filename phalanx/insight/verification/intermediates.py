"""Values inside of a program as further results of it, also those in lanes and in loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from phalanx.core.layouts import Axes
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.roles import Role
from phalanx.core.runs import Lanes, Loop
from phalanx.insight.flow import written_on_one_line
from phalanx.insight.verification.collectives import coordinates
from phalanx.insight.verification.reference import part

__all__ = ["Path", "Tapped", "enters", "inlined", "program_at", "tapped"]

Path = tuple[int, ...]  # by number, the equations into whose sub-programs one goes
At = tuple[int, ...]  # a position of the axes of all frames on the way, the outermost first


def inlined(program: Program) -> Program:
    """``program``, with what runs once in place of its call, at every depth."""
    return memoize_on(program, "inlined for taps", lambda: _inlined(program))


def _inlined(program: Program) -> Program:
    names: dict[Atom, Atom] = {}
    equations = list(_equations(program, names, None))
    return program.update(equations=equations, outputs=[names.get(a, a) for a in program.outputs])


def _equations(
    program: Program, names: dict[Atom, Atom], called: Equation | None
) -> Iterator[Equation]:
    """The equations, with variables of their own, that stand in ``names``; those of a library's
    function are of the line where it is ``called``."""
    for e in program.equations:
        inputs = [names.get(a, a) for a in e.inputs]
        frame = e.frame
        where = e.location if called is None else called.location
        if frame is not None and frame.is_call and e.prim.on_devices.region is None:
            (inner,) = frame.programs
            inside: dict[Atom, Atom] = dict(zip(inner.inputs, inputs, strict=True))
            call = called or (e if _is_of_library(inner) else None)
            yield from _equations(inner, inside, call)
            outputs = [inside.get(a, a) for a in inner.outputs]
        else:
            params = e.params if frame is None else frame.rewritten(inlined).to_params(e.params)
            outputs = tuple([Var(v.type) for v in e.outputs])
            yield Equation(e.prim, inputs, params, outputs, where)
        names.update(zip(e.outputs, outputs, strict=True))


def _is_of_library(program: Program) -> bool:
    """Whether a program was traced for whoever called it first, whose line it has."""
    first = next((e.location for e in program.walk() if e.location), None)
    own = first is not None and first.function == program.name
    return not own and written_on_one_line(program)


def enters(e: Equation) -> bool:
    """Whether values in the sub-program of an operation can be results."""
    frame = e.frame
    if frame is None or len(frame.programs) != 1:
        return False
    runs = frame.runs
    return isinstance(runs, Lanes) or (isinstance(runs, Loop) and bool(runs.length))


def program_at(program: Program, path: Path) -> Program:
    """The program that is reached on ``path``."""
    for number in path:
        (program,) = program.equations[number].programs
    return program


class Tapped(Struct, frozen=True):
    """A program whose first results are values from the inside of another.

    Attributes:
        program: that program; its further results are those of the other.
        variables: what is tapped.
        roles: of each, what it is to the frames on the way, the outermost first.
        axes: of each of these frames, the axes over which it runs.
        in_lanes: whether its runs are lanes, not steps of a loop.
    """

    program: Program
    variables: tuple[Var, ...]
    roles: tuple[tuple[Role, ...], ...]
    axes: tuple[Axes, ...]
    in_lanes: tuple[bool, ...]

    @property
    def lanes(self) -> Axes:
        """The axes of all lanes on the way."""
        pairs = zip(self.axes, self.in_lanes, strict=True)
        return tuple([axis for axes, lanes in pairs if lanes for axis in axes])

    def rows(self) -> list[tuple[At, list[At]]]:
        """Of each step of the loops on the way, its number in each, and all positions then."""
        found: dict[At, list[At]] = {}
        for at in coordinates(tuple([axis for axes in self.axes for axis in axes])):
            found.setdefault(self._step(at), []).append(at)
        return list(found.items())

    def _step(self, at: At) -> At:
        step, start = list[int](), 0
        for axes, lanes in zip(self.axes, self.in_lanes, strict=True):
            step += () if lanes else at[start : start + len(axes)]
            start += len(axes)
        return tuple(step)

    def value(self, k: int, x: np.ndarray, at: At) -> np.ndarray:
        """Of ``x``, which holds variable number ``k``, the value at a position."""
        start = 0
        for role, axes in zip(self.roles[k], self.axes, strict=True):
            x = part(x, role, axes, at[start : start + len(axes)])
            start += len(axes)
        return x


def tapped(program: Program, path: Path, variables: Sequence[Var]) -> Tapped:
    """``program`` that also gives the ``variables`` of the program on ``path``."""
    if not path:
        outer = program.update(outputs=(*variables, *program.outputs))
        return Tapped(outer, (*variables,), ((),) * len(variables), (), ())
    e = program.equations[path[0]]
    frame = e.frame
    assert frame is not None
    inner = tapped(frame.programs[0], path[1:], variables)
    count = len(variables)
    roles = [frame.stored(t) for t in inner.program.output_types[:count]]
    around = frame.rewritten(lambda _: inner.program, outs=tuple(roles))
    outputs = [Var(t) for t in around.result_types[:count]]
    taps = e.reframed(around, outputs=(*outputs, *e.outputs))
    equations = [*program.equations[: path[0]], taps, *program.equations[path[0] + 1 :]]
    return Tapped(
        program.update(equations=equations, outputs=(*outputs, *program.outputs)),
        inner.variables,
        tuple([(r, *rest) for r, rest in zip(roles, inner.roles, strict=True)]),
        (frame.runs.axes, *inner.axes),
        (isinstance(frame.runs, Lanes), *inner.in_lanes),
    )
