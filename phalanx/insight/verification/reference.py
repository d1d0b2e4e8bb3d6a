"""What a program gives on one device: each position of its axes by itself, one after the other.

No axis is vectorized here and nothing is divided among devices; where positions meet, values are
exchanged in NumPy by the definition of the collective. So rules for vectorization, masks of
padding, collectives, and the compiler's partitioner are all judged by what they have no part in.
"""

# What a program gives is private to users, not to what runs programs.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base.config import config
from phalanx.core.layouts import Axes
from phalanx.core.program import Atom, Equation, Frame, Literal, Program, Var
from phalanx.core.roles import CARRY, CHOICE, Role
from phalanx.core.runs import Lanes, Loop
from phalanx.insight.verification.collectives import (
    EXCHANGES,
    Values,
    coordinates,
    exchanged,
    one_by_one,
    total,
)
from phalanx.insight.verification.equal_programs import key_of_program
from phalanx.insight.verification.single_device import Precision, alone, narrower, plain, same
from phalanx.laws.compare import to_numpy
from phalanx.primitives.lanes import axis_index
from phalanx.primitives.vary import pvary
from phalanx.run.array import place
from phalanx.run.execute import compile_program
from phalanx.spmd.sharding import Sharding

__all__ = ["Reference", "Shared", "host_value", "is_meeting", "part", "whole"]


def host_value(x: Any) -> np.ndarray:
    """The elements of an array, or the words of keys, in the host's memory."""
    return np.asarray(to_numpy(x))


def is_meeting(e: Equation) -> bool:
    """Whether positions of axes come into play in an operation, or inside of it."""
    if e.prim is pvary:
        return False
    if e.prim.name in EXCHANGES or e.prim is axis_index or e.prim.on_devices.region is not None:
        return True
    inside = frozenset[Any]().union(*[p.primitives for p in e.programs])
    return any([p.name in EXCHANGES or p is axis_index or p.on_devices.region for p in inside])


class Shared(Struct, frozen=True):
    """Values of positions of which the first is taken for all, though not all are the same.

    Attributes:
        lanes: what runs at these positions.
        number: which of its results it is.
        positions: of its axes.
        values: those there.
    """

    lanes: Equation
    number: int
    positions: tuple[int, ...]
    values: Values


class Reference:
    """Programs run on one device, position by position.

    Args:
        device: which one.
        to: the precision, that of the program if it is not given.

    Attributes:
        shared: what was found to differ where one value stands for all.
    """

    def __init__(self, device: Any, to: Precision = same) -> None:
        self._sharding = Sharding((device,))
        self.to = to
        self.shared: list[Shared] = []
        self._stretches: dict[tuple[int, int, int], tuple[Program, Program]] = {}
        self._keys: dict[int, tuple[Program, Hashable]] = {}
        self._compiled: dict[Hashable, tuple[Program, Any]] = {}

    def __call__(self, program: Program, inputs: Sequence[Values], axes: Axes = ()) -> list[Values]:
        """The results at each position of ``axes``, of inputs that are known at each."""
        env: dict[Atom, Values] = dict(zip(program.inputs, inputs, strict=True))
        count = len(coordinates(axes))
        start, equations = 0, program.equations
        while start < len(equations):
            stop = start
            while stop < len(equations) and not is_meeting(equations[stop]):
                stop += 1
            if stop > start:
                self._stretch(program, start, stop, env, count)
            if stop < len(equations):
                self._meeting(equations[stop], env, axes, count)
            start = stop + 1
        return [self._value(a, env, count) for a in program.outputs]

    def _value(self, atom: Atom, env: dict[Atom, Values], count: int) -> Values:
        if isinstance(atom, Literal):
            value = host_value(atom.value)
            return [value.astype(self.to(value.dtype), copy=False)] * count
        return env[atom]

    # ---- what a position does by itself ----

    def _stretch(
        self, program: Program, start: int, stop: int, env: dict[Atom, Values], count: int
    ) -> None:
        key = id(program), start, stop
        if key not in self._stretches:
            self._stretches[key] = program, stretch(program, start, stop)
        _, own = self._stretches[key]
        done: dict[tuple[int, ...], Sequence[np.ndarray]] = {}
        rows: list[Sequence[np.ndarray]] = []
        for p in range(count):
            operands = [env[v][p] for v in own.inputs]
            same = tuple(map(id, operands))
            if same not in done:
                done[same] = self._run(own, operands)
            rows.append(done[same])
        for k, v in enumerate(own.outputs):
            env[v] = [row[k] for row in rows]

    def _run(self, program: Program, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        here = alone(program, self.to)
        wide = self.to is not same or config.enable_x64
        # it runs once or a few times, so compiling is what takes time
        with config.override(enable_x64=wide, disable_most_optimizations=True):
            arrays = [
                place(np.asarray(x).astype(t.physical.dtype, copy=False), t, self._sharding)
                for x, t in zip(operands, here.input_types, strict=True)
            ]
            if id(here) not in self._keys:
                self._keys[id(here)] = here, key_of_program(here)
            _, key = self._keys[id(here)]
            if key not in self._compiled:
                run = compile_program(here, [a._sig for a in arrays])
                self._compiled[key] = here, run
            return list(map(host_value, self._compiled[key][1](arrays)))

    # ---- where positions meet ----

    def _meeting(self, e: Equation, env: dict[Atom, Values], axes: Axes, count: int) -> None:
        operands = [self._value(a, env, count) for a in e.inputs]
        frame = e.frame
        if frame is None:
            add = one_by_one if self.to is narrower else total
            results = exchanged(e.prim.name, operands, axes, e.params, add)
        elif isinstance(frame.runs, Lanes):
            results = self._lanes(e, frame, operands, axes, count)
        elif isinstance(frame.runs, Loop):
            results = self._loop(frame, operands, axes, count)
        else:
            results = self._chosen(frame, operands, axes, count)
        env.update(zip(e.outputs, results, strict=True))

    def _lanes(
        self, e: Equation, frame: Frame, operands: Sequence[Values], axes: Axes, count: int
    ) -> list[Values]:
        own = frame.runs.axes
        places = coordinates(own)
        inputs = [
            [part(x, role, own, at) for x in values for at in places]
            for values, role in zip(operands, frame.ins, strict=True)
        ]
        results = self(frame.programs[0], inputs, (*axes, *own))
        n = len(places)
        for k, (values, role) in enumerate(zip(results, frame.outs, strict=True)):
            for p in range(count):
                self._note(e, k, values[p * n : (p + 1) * n], role, own)
        return [
            [whole(values[p * n : (p + 1) * n], role, own) for p in range(count)]
            for values, role in zip(results, frame.outs, strict=True)
        ]

    def _note(self, e: Equation, number: int, values: Values, role: Role, axes: Axes) -> None:
        if len(role.axes | role.unreduced) == len(axes):
            return  # each position has its own
        for positions in alike(role, axes):
            some = [values[p] for p in positions]
            if not all([x is some[0] or np.array_equal(x, some[0]) for x in some]):
                self.shared.append(Shared(e, number, tuple(positions), some))

    def _chosen(
        self, frame: Frame, operands: Sequence[Values], axes: Axes, count: int
    ) -> list[Values]:
        """Once; of several programs the one that each position chooses. All run those that any of
        them chose, since they may meet there."""
        body_values = frame.body_operands(operands)
        if CHOICE not in frame.ins:
            return self(frame.programs[0], body_values, axes)
        (number,) = frame.choices(operands)
        last = len(frame.programs) - 1
        chosen = [min(max(int(n), 0), last) for n in number]
        by = {k: self(frame.programs[k], body_values, axes) for k in sorted(set(chosen))}
        return [[by[chosen[p]][i][p] for p in range(count)] for i in range(len(by[chosen[0]]))]

    def _loop(
        self, frame: Frame, operands: Sequence[Values], axes: Axes, count: int
    ) -> list[Values]:
        if frame.condition is not None:
            return self._while(frame, operands, axes, count)
        own, length = frame.runs.axes, frame.runs.size
        steps = list(range(length))
        if isinstance(frame.runs, Loop) and frame.runs.reverse:
            steps.reverse()
        state = frame.carried_in(operands)
        rows: dict[int, list[Values]] = {}
        for i in steps:
            now = frame.with_carried_in(operands, state)
            inputs = [
                [part(x, role, own, (i,)) for x in values]
                for values, role in zip(now, frame.ins, strict=True)
            ]
            results = self(frame.programs[0], inputs, axes)
            state = frame.carried_out(results)
            rows[i] = results
        carried = iter(state)
        return [
            next(carried)
            if role is CARRY
            else [self._stacked(rows, k, p, role, own, frame) for p in range(count)]
            for k, role in enumerate(frame.outs)
        ]

    def _stacked(
        self, rows: dict[int, list[Values]], k: int, p: int, role: Role, own: Axes, frame: Frame
    ) -> np.ndarray:
        if not rows:
            type = plain(frame.result_types[k], self.to).physical
            return np.zeros(type.shape, type.dtype)
        return whole([rows[i][k][p] for i in range(len(rows))], role, own)

    def _while(
        self, frame: Frame, operands: Sequence[Values], axes: Axes, count: int
    ) -> list[Values]:
        """All positions run until the last one is done; those that are keep what they have."""
        condition = frame.condition
        assert condition is not None
        state, running = frame.carried_in(operands), [True] * count
        while True:
            now = frame.with_carried_in(operands, state)
            (more,) = self(condition, now, axes)
            running = [r and bool(m) for r, m in zip(running, more, strict=True)]
            if not any(running):
                return list(state)
            new = frame.carried_out(self(frame.programs[0], now, axes))
            state = [
                [y if r else x for r, x, y in zip(running, xs, ys, strict=True)]
                for xs, ys in zip(state, new, strict=True)
            ]


def stretch(program: Program, start: int, stop: int) -> Program:
    """The equations from ``start`` to ``stop`` as a program from what they take to what is used
    after them."""
    inside = program.equations[start:stop]
    computed = {v for e in inside for v in e.outputs}
    later = {a for e in program.equations[stop:] for a in e.inputs} | {*program.outputs}
    taken = dict.fromkeys(
        [a for e in inside for a in e.inputs if type(a) is Var and a not in computed]
    )
    outputs = [v for e in inside for v in e.outputs if v in later]
    return Program(taken, inside, outputs, program.name)


# ---- what a position sees of an array, and an array from what positions have ---------------------


def part(x: np.ndarray, role: Role, axes: Axes, at: Sequence[int]) -> np.ndarray:
    """What is seen of ``x`` ``at`` a position of ``axes``, to which it has ``role``."""
    if role is CHOICE or not (role.layout or role.unreduced):
        return x
    where = _where(axes, at)
    if any(where[a][0] for a in role.unreduced if a in where):
        x = np.zeros_like(x)  # the sum is all at the first position
    for d, cutting in enumerate(role.layout):
        number, count = _number(cutting, where)
        rows = x.shape[d] // count
        if count > 1:
            x = x[(slice(None),) * d + (slice(number * rows, (number + 1) * rows),)]
    gone = tuple([d for d, c in enumerate(role.layout) if not role.sliced.isdisjoint(c)])
    return x.reshape([n for d, n in enumerate(x.shape) if d not in gone]) if gone else x


def whole(parts: Sequence[np.ndarray], role: Role, axes: Axes) -> np.ndarray:
    """The array of which each position of ``axes`` has one of ``parts``, in order."""
    first = parts[0]
    if not (role.layout or role.unreduced):
        return first
    shape = list(first.shape)
    for d, cutting in enumerate(role.layout):
        if not role.sliced.isdisjoint(cutting):
            shape.insert(d, 1)
    one = tuple(shape)
    sizes = dict(axes)
    for d, cutting in enumerate(role.layout):
        shape[d] *= int(np.prod([sizes[a] for a in cutting], dtype=int))
    out = np.zeros(shape, first.dtype)
    places = coordinates(axes)
    for p, *_ in alike(role, axes):
        where = _where(axes, places[p])
        numbers = [_number(cutting, where)[0] for cutting in role.layout]
        blocks = zip(numbers, one, strict=False)
        index = tuple([slice(k * rows, (k + 1) * rows) for k, rows in blocks])
        if role.unreduced:
            out[index] += parts[p].reshape(one)
        else:
            out[index] = parts[p].reshape(one)
    return out


def alike(role: Role, axes: Axes) -> list[list[int]]:
    """The positions of ``axes``, by number, in groups that have the same part of an array.

    >>> from phalanx.core.roles import blocks
    >>> alike(blocks((("j",),)), (("i", 2), ("j", 2)))
    [[0, 2], [1, 3]]
    """
    groups: dict[Hashable, list[int]] = {}
    for p, at in enumerate(coordinates(axes)):
        where = _where(axes, at)
        parts = [_number(cutting, where) for cutting in role.layout]
        summand = [where[axis][0] for axis in sorted(role.unreduced, key=str)]
        groups.setdefault((*parts, *summand), []).append(p)
    return list(groups.values())


def _where(axes: Axes, at: Sequence[int]) -> dict[Any, tuple[int, int]]:
    """The number and the size of each axis, ``at`` a position."""
    return {axis: (i, size) for (axis, size), i in zip(axes, at, strict=True)}


def _number(cutting: Sequence[Any], where: dict[Any, tuple[int, int]]) -> tuple[int, int]:
    """Which of how many parts a position has of what ``cutting`` cuts."""
    number, count = 0, 1
    for axis in cutting:
        i, size = where[axis]
        number, count = number * size + i, count * size
    return number, count
