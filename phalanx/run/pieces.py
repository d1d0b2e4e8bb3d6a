"""Programs in which something is launched by itself, in pieces.

A ``pmap`` over processes is a launch of all of them. What is around it in a program is of this
process alone: in others, arrays may have other shapes there. So what stands before it and what
stands after it are compiled by themselves, and it runs in between. A loop or a branch that has one
in it runs from here.
"""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from phalanx.base import tree
from phalanx.base.config import settings
from phalanx.base.errors import DeviceError, NonFiniteError
from phalanx.base.recent import Recent
from phalanx.base.source import user_location
from phalanx.core.axes import Axis
from phalanx.core.program import Atom, Equation, Frame, Program, Var, plain
from phalanx.core.roles import CARRY
from phalanx.core.runs import Lanes, Loop
from phalanx.core.trace import ROOT, entering
from phalanx.core.types import ArrayType
from phalanx.ops.basis import reshape, zeros
from phalanx.ops.dynamic import dynamic_slice
from phalanx.ops.shape import stack
from phalanx.run.array import DeviceArray, Signature, from_host, moved
from phalanx.run.backend import Executable
from phalanx.run.calls import Arrays, Call, Prepared, Run, operand_signatures
from phalanx.run.planning import RequestedShardings
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.batch import batch, place_lanes
from phalanx.transforms.derive import keep, trace_closed
from phalanx.transforms.stage import evaluate

Compile = Callable[[Program, Sequence[Signature]], Prepared]


_SIGNATURES = 64  # for which each piece is compiled; those of a loop, say


def launches(program: Program) -> bool:
    """Whether something in ``program`` is launched by itself."""
    return any(p.execution.launch is not None for p in program.primitives)


def launched(program: Program) -> Equation | None:
    """The equation that is launched by itself, if that is all that ``program`` does."""
    only = program.only
    return only if only is not None and only.prim.execution.launch is not None else None


class _Piece(Struct, frozen=True):
    """A part of a program, as a ``program`` that takes ``inputs`` and gives ``outputs``.

    Either it is one equation, ``alone``, that launches something or has sub-programs which do; or
    it is compiled. Of the values that are there afterwards, ``last`` are not needed any more.
    """

    program: Program
    alone: Equation | None
    inputs: tuple[Atom, ...]
    outputs: tuple[Var, ...]
    last: tuple[Var, ...]


def _pieces(program: Program) -> tuple[_Piece, ...]:
    return keep(program, "pieces", lambda: tuple(reversed(list(_from_the_end(program)))))


def _from_the_end(program: Program) -> Iterator[_Piece]:
    """The pieces of ``program``, the last one first: then it is known what is needed later."""
    needed = {a for a in program.outputs if isinstance(a, Var)}
    for part in reversed(_parts(program)):
        alone = part[0] if _launches(part[0]) else None
        made = tuple([v for e in part for v in e.outputs])
        taken = dict.fromkeys([a for e in part for a in e.inputs if isinstance(a, Var)])
        free = tuple([v for v in taken if v not in made])
        if alone is None:
            outputs = tuple([v for v in made if v in needed])
            inputs: tuple[Atom, ...] = free
            piece = program.update(inputs=free, equations=part, outputs=outputs)
        else:
            outputs, inputs = made, tuple(alone.inputs)
            parameters = [Var(plain(a.type)) for a in inputs]
            same = alone.update(inputs=[*parameters])
            piece = program.update(inputs=parameters, equations=[same], outputs=made)
        last = tuple([v for v in (*free, *outputs) if v not in needed])
        yield _Piece(piece, alone, inputs, outputs, last)
        needed.update(free)


def _parts(program: Program) -> list[list[Equation]]:
    """The equations in order, those that launch something by themselves."""
    parts: list[list[Equation]] = [[]]
    for equation in program.equations:
        if _launches(equation):
            parts += [[equation], []]
        else:
            parts[-1].append(equation)
    return [part for part in parts if part]


def _launches(equation: Equation) -> bool:
    return equation.prim.execution.launch is not None or any(map(launches, equation.programs))


class Pieces(Prepared):
    """A program that runs piece by piece, in place of one that is compiled as a whole.

    Nothing is donated to it piece by piece: what was donated to the whole is freed at its end.
    """

    names: Sequence[NamedSharding] = ()

    def __init__(
        self, program: Program, sigs: Sequence[Signature], donate: tuple[int, ...],
        places: RequestedShardings, compile: Compile,
    ) -> None:  # fmt: skip
        self.name, self.donate, self._places = program.name, donate, places
        self.in_shardings = [s.sharding for s in sigs]
        self._run = _runner(program, compile)

    def __call__(self, arrays: Arrays) -> list[DeviceArray]:
        """Run on arrays of the types of the program."""
        with entering(ROOT), not_repeatable():
            given = list(map(_placed, arrays, self._places.ins))
            results = self._run(given)
        results = list(map(_placed, results, self._places.outs))
        for i in self.donate:  # of what was moved, a copy was
            if given[i] is arrays[i] and not any(y is given[i] for y in results):
                given[i].delete()
        return results

    @property
    def executable(self) -> Executable:  # pyright: ignore[reportIncompatibleVariableOverride]: it raises
        """There is none for the whole: this raises DeviceError."""
        raise _no_module(self.name)

    @property
    def out_sigs(self) -> Sequence[Signature]:  # pyright: ignore[reportIncompatibleVariableOverride]: it raises
        """How results lie is not known before it runs: this raises DeviceError."""
        raise _no_module(self.name)


class NoModule:
    """In place of the module of a program that runs in pieces."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_for_its_devices(self) -> bool:
        """Whether the pieces will be: it is not asked for more."""
        return True

    @property
    def plan(self) -> Plan:
        """Raise DeviceError."""
        raise _no_module(self._name)

    @property
    def largest(self) -> int:
        """Of how many bytes arrays are is asked of the pieces."""
        return 0

    def over(self, devices: tuple[Any, ...]) -> NoModule:
        """The same: no devices were planned."""
        return self

    def as_text(self, locations: bool = False, dialect: str = "stablehlo") -> str:
        """Raise DeviceError."""
        raise _no_module(self._name)

    def ir(self, dialect: str = "stablehlo") -> Any:
        """Raise DeviceError."""
        raise _no_module(self._name)


def _no_module(name: str) -> DeviceError:
    return DeviceError(
        f"{name}: there is no one module for it, at {user_location()}: a pmap over processes in it "
        "is launched by itself. make_program shows what it does"
    )


@contextmanager
def not_repeatable() -> Generator[None]:
    """Errors about NaNs are raised as they are: other processes have none, and do not run again."""
    try:
        yield
    except NonFiniteError as e:
        e.repeatable = False
        raise


def _placed(x: DeviceArray, place: Sharding | None) -> DeviceArray:
    return x if place is None else moved(x, place)


# ---- running ------------------------------------------------------------------------------------


def _runner(program: Program, compile: Compile) -> Run:
    """What runs ``program`` piece by piece."""
    pieces = _pieces(program)
    runs = [_run_of(piece, compile) for piece in pieces]

    def run(arrays: Arrays) -> Arrays:
        values: dict[Any, DeviceArray] = dict(zip(program.inputs, arrays, strict=True))
        for piece, call in zip(pieces, runs, strict=True):
            results = call([_value(a, values) for a in piece.inputs])
            values.update(zip(piece.outputs, results, strict=True))
            for v in piece.last:
                del values[v]
        return [_value(a, values) for a in program.outputs]

    return run


def _value(atom: Atom, values: dict[Any, DeviceArray]) -> DeviceArray:
    if isinstance(atom, Var):
        return values[atom]
    return atom.value if isinstance(atom.value, DeviceArray) else from_host(atom.value)


def _run_of(piece: _Piece, compile: Compile) -> Run:
    alone = piece.alone
    frame = alone.frame if alone is not None else None
    if alone is None or frame is None or alone.prim.execution.launch is not None:
        return _compiled(piece.program, compile)
    runners = [_runner(p, compile) for p in frame.programs]
    if isinstance(frame.runs, Lanes):
        return _in_lanes(frame, compile)
    if isinstance(frame.runs, Loop):
        (step,) = runners
        if frame.condition is not None:
            return _while(frame, step, _runner(frame.condition, compile))
        return _for(frame, step)
    return _chosen(frame, runners)


def _compiled(program: Program, compile: Compile) -> Run:
    """``program``, compiled for the arrays that come."""
    known: Recent[Call] = Recent(_SIGNATURES)
    results = tree.structure([0] * len(program.outputs))

    def run(arrays: Arrays) -> Arrays:
        key = (settings().key, *[x._sig for x in arrays])
        call = known[key]
        if call is None:
            prepared = compile(program, operand_signatures(arrays))
            call = known[key] = Call(prepared, arrays, results)
        return call.run(arrays)

    return run


def _chosen(frame: Frame, runners: Sequence[Run]) -> Run:
    """One of several programs, or the only one."""

    def run(arrays: Arrays) -> Arrays:
        chosen = [int(x._value) for x in frame.choices(arrays)]
        return runners[min(max(*chosen, 0), len(runners) - 1) if chosen else 0](frame.shown(arrays))

    return run


def _while(frame: Frame, step: Run, condition: Run) -> Run:
    def run(arrays: Arrays) -> Arrays:
        carry = frame.carried_in(arrays)
        while bool(condition(frame.with_carry(arrays, carry))[0]._value):
            carry = step(frame.with_carry(arrays, carry))
        return carry

    return run


def _for(frame: Frame, step: Run) -> Run:
    """A loop over rows, which come first in what has some."""
    runs = frame.runs
    assert isinstance(runs, Loop)
    order = range(runs.size)

    def run(arrays: Arrays) -> Arrays:
        carry = frame.carried_in(arrays)
        given: list[Arrays] = []
        for i in reversed(order) if runs.reverse else order:
            now = zip(frame.with_carry(arrays, carry), frame.ins, strict=True)
            results = step([_row(x, i) if r.layout else x for x, r in now])
            carry = frame.carried_out(results)
            given.append(results)
        if runs.reverse:
            given.reverse()
        last = iter(carry)
        return [
            next(last) if r is CARRY else _stacked([results[k] for results in given], t)
            for k, (r, t) in enumerate(zip(frame.outs, frame.result_types, strict=True))
        ]

    return run


def _row(x: DeviceArray, i: int) -> DeviceArray:
    _, *rest = x.shape
    part = dynamic_slice(x, i, *[0] * len(rest), sizes=(1, *rest))
    return reshape(part, shape=tuple(rest))


def _stacked(rows: Arrays, type: ArrayType) -> DeviceArray:
    return stack(rows, 0) if rows else zeros(type)


def _in_lanes(frame: Frame, compile: Compile) -> Run:
    """A program in the lanes of an axis of this process: all at once."""
    ((name, size),), (program,) = frame.runs.axes, frame.programs
    axis = Axis(name, size)

    def lanes(*values: Any) -> tuple[list[Any], None]:
        dims = [r.place(name) for r in frame.ins]
        results = batch(lambda *xs: evaluate(program, xs), axis, values, dims)
        placed = zip(*results, [r.place(name) for r in frame.outs], strict=True)
        return [y if to is None else place_lanes(y, d, to, size) for y, d, to in placed], None

    pairs = zip(frame.ins, program.input_types, strict=True)
    types = [r.outer(t, frame.runs.axes) for r, t in pairs]
    return _runner(trace_closed(lanes, types, program.name).program, compile)
