"""Which operation gives other numbers on several devices than on one.

The program is cut into pieces. Its devices tell the values at each cut, and each piece is run on
one device from the values that they had at its beginning. So what went wrong before does not
matter, and a piece that differs is cut further, down to one operation; in lanes and loops, to one
in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from phalanx.base.errors import OutOfMemory
from phalanx.base.source import Location
from phalanx.core.blocks import Blocks
from phalanx.core.program import Equation, Program, Var
from phalanx.core.runs import Lanes
from phalanx.insight.verification.intermediates import Path, Tapped, enters, program_at, tapped
from phalanx.insight.verification.promises import copies
from phalanx.insight.verification.reference import stretch
from phalanx.insight.verification.rounding import Compared, Judge

__all__ = ["Culprit", "Narrowing"]

_PIECES = 12
_STEPS = 32  # of a loop that are looked at, at most

OnDevices = Callable[[Tapped, Path], Sequence[Any]]  # of the program on that path


class Culprit(Struct, frozen=True):
    """An operation that devices compute otherwise, from the same operands.

    Attributes:
        equation: the operation.
        path: how one gets to it.
        operands: the arrays that hold its operands, of all lanes and steps.
        results: those that hold its results, None for one that nothing uses.
        comparison: of the result that differs.
        step: in which step of the loops around it.
        device: that which alone has what differs, None if all do.
    """

    equation: Equation
    path: Path
    operands: Sequence[Any]
    results: Sequence[Any]
    comparison: Compared
    step: tuple[int, ...] = ()
    device: Any = None

    def is_over_mesh(self, program: Program) -> bool:
        """Whether it runs in ``program`` in a ``shard_map``, or in lanes over a mesh."""
        around = [program_at(program, self.path[:k]) for k in range(len(self.path))]
        every = [*[p.equations[n] for p, n in zip(around, self.path, strict=True)], self.equation]
        lanes = [e for e in every if e.frame is not None and isinstance(e.frame.runs, Lanes)]
        return bool(lanes) and all([e.params.get("mesh") is not None for e in lanes])

    @property
    def location(self) -> Location | None:
        """Its line, or where it has none of its own, the first one inside."""
        inside = [e.location for p in self.equation.programs for e in p.walk() if e.location]
        return self.equation.location or next(iter(inside), None)


class Narrowing(Struct):
    """A search.

    Attributes:
        program: what is run, without calls.
        on_devices: what devices give of a program with taps.
        inputs: the operands, as arrays.
        judge: what compares.
        gone: pieces that differ, and in which no operation does.
        skipped: operations that do not fit on one device, even alone.
        last: the results of the program when values at its first cuts were results, too.
    """

    program: Program
    on_devices: OnDevices
    inputs: Sequence[Any]
    judge: Judge
    gone: list[Program] = field(default_factory=list[Program])
    skipped: list[Equation] = field(default_factory=list[Equation])
    last: Sequence[Any] | None = None

    def culprit(self) -> Culprit | None:
        """The first operation that differs, None if none does."""
        return self._search((), 0, len(self.program.equations))

    def _search(self, path: Path, start: int, stop: int) -> Culprit | None:
        body = program_at(self.program, path)
        size = max(1, Blocks(stop - start, _PIECES).length)
        cuts = [*range(start, stop, size), stop]
        pieces = [stretch(body, a, b) for a, b in pairwise(cuts)]
        seen = self._seen(path, pieces)
        for (a, b), piece in zip(pairwise(cuts), pieces, strict=True):
            many = b - a > 1
            try:
                found = seen.compared(piece, self.judge)
            except (OutOfMemory, MemoryError):
                inside = self._too_large(path, a, b)
                if inside is not None:
                    return inside
                continue
            if found is None:
                continue
            inside = self._search(path, a, b) if many else self._at(path, a, seen, *found)
            if inside is not None:
                return inside
            self.gone.append(piece)
        return None

    def _too_large(self, path: Path, start: int, stop: int) -> Culprit | None:
        """The first operation that differs in a piece that does not fit on one device."""
        if stop - start > 1:
            return self._search(path, start, stop)
        e = program_at(self.program, path).equations[start]
        if enters(e):
            body = program_at(self.program, (*path, start))
            return self._search((*path, start), 0, len(body.equations))
        self.skipped.append(e)
        return None

    def _at(
        self,
        path: Path,
        number: int,
        seen: _Seen,
        step: tuple[int, ...],
        what: Compared,
        device: Any,
    ) -> Culprit:
        """The operation, or one inside of it."""
        e = program_at(self.program, path).equations[number]
        if enters(e):
            body = e.frame and e.frame.programs[0]
            inside = self._search((*path, number), 0, len(body.equations) if body else 0)
            if inside is not None:
                return inside
        operands = [seen.arrays[a] if type(a) is Var else a.value for a in e.inputs]  # type: ignore[union-attr]
        results = [seen.arrays.get(v) for v in e.outputs]
        return Culprit(e, path, operands, results, what, step, device)

    def _seen(self, path: Path, pieces: Sequence[Program]) -> _Seen:
        """What devices have at the ends of ``pieces``."""
        known = {} if path else dict(zip(self.program.inputs, self.inputs, strict=True))
        every = dict.fromkeys([v for p in pieces for v in (*p.inputs, *p.outputs)])
        wanted = [v for v in every if v not in known]
        taps = tapped(self.program, path, wanted)  # type: ignore[arg-type]
        values = self.on_devices(taps, path)
        if self.last is None:
            self.last = values[len(wanted) :]
        arrays = {**known, **dict(zip(wanted, values, strict=False))}
        return _Seen(taps, arrays)


class _Seen:
    """What devices had of some variables, in one run."""

    def __init__(self, taps: Tapped, arrays: dict[Any, Any]) -> None:
        self.taps, self.arrays = taps, arrays
        self._number = {v: k for k, v in enumerate(taps.variables)}
        self._copies = {v: copies(x) for v, x in arrays.items()}

    def compared(
        self, piece: Program, judge: Judge
    ) -> tuple[tuple[int, ...], Compared, Any] | None:
        """The first step in which ``piece`` gives something else on one device, what, and the
        device that alone does so."""
        rows = self.taps.rows()
        for step, places in rows[:: max(1, len(rows) // _STEPS)]:
            inputs = [self._values(v, places)[: len(places)] for v in piece.inputs]
            found = [self._values(v, places) for v in piece.outputs]  # type: ignore[arg-type]
            comparisons = judge.compare(piece, inputs, self.taps.lanes, found)
            pairs = zip(comparisons, piece.outputs, strict=True)
            worst, v = max(pairs, key=lambda p: (p[0].differs, p[0].error), default=(None, None))
            if worst is not None and worst.differs:
                copy, position = divmod(worst.position, len(places))
                return step, replace(worst, position=position), self._copies[v][copy][0]
        return None

    def _values(self, v: Var, places: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """What the positions have, by each copy."""
        number, known = self._number.get(v), [x for _, x in self._copies[v]]
        if number is None:
            return known
        return [self.taps.value(number, x, at) for x in known for at in places]
