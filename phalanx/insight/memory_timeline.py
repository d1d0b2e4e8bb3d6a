"""Memory over the course of a program: what is alive at each equation, and at the peak.

It is that of one device, for values that are stored. The compiler may order things in another way,
and keeps less where it fuses more; what it needs in all is in its own figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from phalanx.base.source import Location
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.runs import Lanes
from phalanx.insight.costs import dearest
from phalanx.transforms.storage import last_uses, size_in_bytes, stored

__all__ = ["Course", "Value", "course"]


class Value(Struct, frozen=True):
    """A value in memory: what it is, where it was made, and its bytes on a device.

    ``kind`` says what it is to the program: "arguments", or "values".
    """

    kind: str
    what: str
    location: Location | None
    size: float


class Course(Struct):
    """The bytes alive at each equation, in order, and the values that are there at the peak."""

    alive: list[float] = field(default_factory=list[float])
    lines: list[Location | None] = field(default_factory=list[Location | None])
    peak: float = 0.0
    at_peak: tuple[Value, ...] = ()
    _now: dict[int, Value] = field(default_factory=dict[int, Value])
    _total: float = 0.0

    def add(self, atom: Atom, value: Value) -> None:
        """Count ``atom`` from here on."""
        self._now[id(atom)] = value
        self._total += value.size

    def drop(self, atom: Atom) -> None:
        """Count it no longer."""
        value = self._now.pop(id(atom), None)
        self._total -= value.size if value is not None else 0.0

    def note(self, location: Location | None) -> None:
        """An equation has run, at ``location``."""
        self.alive.append(self._total)
        self.lines.append(location)
        if self._total > self.peak:
            self.peak, self.at_peak = self._total, tuple(self._now.values())


def course(
    program: Program, names: Sequence[str], sizes: Sequence[float], donated: Sequence[bool],
    devices: int,
) -> Course:  # fmt: skip
    """How memory goes while ``program`` runs.

    ``names`` and ``sizes``, in bytes on a device, are those of its inputs; of which some are
    ``donated``. Other values are parted among all ``devices``.
    """
    found = Course()
    for v, name, size in zip(program.inputs, names, sizes, strict=True):
        found.add(v, Value("arguments", f"{name}: {v.type}", None, size))
    freed = {v for v, gone in zip(program.inputs, donated, strict=True) if gone}
    _run(program, found, 1 / max(devices, 1), freed, set())
    return found


def _run(
    program: Program, found: Course, share: float, freed: set[Var], there: set[Atom]
) -> None:  # fmt: skip
    """Go over ``program``, of whose values a device has a ``share``; inputs in ``freed`` go, and
    those in ``there`` have their place already."""
    in_memory = stored(program)
    last = last_uses(program, in_memory)
    ends: dict[int, list[Atom]] = {}
    for atom, i in last.items():
        ends.setdefault(i, []).append(atom)
    own = {v for e in program.equations for v in e.outputs}
    for i, e in enumerate(program.equations):
        gone = [a for a in ends.get(i, ()) if a in own or a in freed]
        if e.prim.elements.fused:  # an element takes the place of one that nobody needs any more
            sizes = {size_in_bytes(v.type) for v in e.outputs if v in in_memory}
            for atom in [a for a in gone if size_in_bytes(a.type) in sizes]:
                found.drop(atom)
        for n, v in enumerate(e.outputs):
            if v in in_memory and v not in there:
                size, maker = share * size_in_bytes(v.type), _maker(e, n)
                found.add(v, Value("values", f"{maker.prim.name}: {v.type}", maker.location, size))
        frame = e.frame
        if frame is not None:
            lanes = frame.runs.size if isinstance(frame.runs, Lanes) else 1
            inner = dearest(frame)
            # results of a sub-program are values of what runs it
            _run(inner, found, share * lanes, set(), {*inner.outputs})
        found.note(e.location)
        for atom in (*[v for v in e.outputs if v not in last], *gone):
            found.drop(atom)
    for v in own:
        found.drop(v)


def _maker(e: Equation, n: int) -> Equation:
    """What makes result ``n`` of ``e``, in the programs that it runs."""
    if e.frame is None:
        return e
    inner = dearest(e.frame)
    result = inner.outputs[n]
    for other in inner.equations:
        if result in other.outputs:
            return _maker(other, other.outputs.index(result))
    return e
