"""``verify``: whether a program gives the same numbers on its devices as on one of them."""

# What a traced function holds is private to users, not to the analyses of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.api.aot import ShapeDtypeStruct
from phalanx.api.stages import Traced, TracedCall, few
from phalanx.api.transformed import P
from phalanx.base import dtypes, tree
from phalanx.base.boundary import boundary
from phalanx.base.errors import ArgumentError, OutOfMemory, PhalanxError
from phalanx.base.extended import is_key
from phalanx.base.source import Location, lines_of_users, name_of
from phalanx.core.program import Equation, Program
from phalanx.insight.reports.report import Column, Facts, Listing, Part, Report, Table
from phalanx.insight.reports.values import short_line
from phalanx.insight.traced import traceable
from phalanx.insight.verification.bisection import Culprit, Narrowing
from phalanx.insight.verification.collectives import coordinates
from phalanx.insight.verification.device_results import CalledHere, run_of
from phalanx.insight.verification.intermediates import inlined
from phalanx.insight.verification.lost_digits import lost_digits
from phalanx.insight.verification.other_python import Elsewhere, Other, versions
from phalanx.insight.verification.promises import copies, promise
from phalanx.insight.verification.reference import Shared, host_value
from phalanx.insight.verification.reproducer import program_text
from phalanx.insight.verification.rounding import Compared, Judge
from phalanx.insight.verification.workarounds import way_around
from phalanx.primitives.callback import host_call
from phalanx.run.array import DeviceArray, default_sharding
from phalanx.run.planning import constraints
from phalanx.spmd.constraint import is_abstract
from phalanx.transforms.stage import loaded

__all__ = ["AGAINST", "Verified", "is_divided", "verified", "verify"]

AGAINST = ("one-device", "float64")
_REPEATS = "a program that repeats it"
_ROWS = 12  # instructions that are told
_CHANGES = (
    "It was not compared with one device: it calls Python, and a second run on the same devices "
    "gives something else. Pass random numbers as arguments, or draw them from a key."
)


@dataclass(frozen=True)
class Verified(Report):
    """What ``verify`` found out.

    Args:
        title: what it is about.
        parts: facts and tables.
        verdict: what matters most.
        agrees: whether all results are those of one device, up to rounding.
        line: ``path:line`` of the first operation that differs, where that was found.

    >>> import phalanx
    >>> report = phalanx.verify(lambda x: 2 * x)(1.0)
    >>> report.agrees, report.line
    (True, None)
    """

    agrees: bool = True
    line: str | None = None

    def __repr__(self) -> str:
        return str(self)

    def as_json(self) -> dict[str, Any]:
        """All of it as lists, dicts, numbers and strings."""
        return super().as_json() | {"agrees": self.agrees, "line": self.line}


@boundary
def verify(f: Callable[P, Any], against: str = "one-device") -> Callable[..., Verified]:
    """Verify a program: whether ``f`` gives the same on its devices as on one device.

    ``f`` is compiled and run as it is. Then it is run on one device, where nothing is divided:
    lanes one after the other, and collectives by their definitions. All results, gradients among
    them, are compared. If rounding does not explain a difference, the program is cut into pieces
    that are compared in the same way, down to one operation. The report names this operation, its
    line, the shardings of its operands, the numbers, and what to do, and has a short program that
    repeats the difference.

    Args:
        f: a function, or what ``jit``, ``pmap`` or ``shard_map`` made of one.
        against: "one-device"; or "float64", to find the lines in which digits are lost.

    Returns:
        A function of the arguments of ``f``, or of ``ShapeDtypeStruct``, for which random numbers
        are drawn. It returns a report with the attributes ``agrees`` and ``line``.

    Raises:
        ArgumentError: ``against`` is neither of these.
        DeviceError: arguments, or devices, belong to several processes.

    >>> import phalanx, phalanx.numpy as jnp
    >>> share = phalanx.pmap(lambda x: x / phalanx.lax.psum(x, "i"), "i")
    >>> report = phalanx.verify(share)(jnp.arange(1.0, 5.0))
    >>> report.agrees
    True
    """
    if against not in AGAINST:
        known = " or ".join(map(repr, AGAINST))
        raise ArgumentError(f"verify: against must be {known}, got {against!r}")
    traced = traceable(f, "verify")

    def checked(*args: Any, **kwargs: Any) -> Verified:
        with lines_of_users():
            traced_call = traced.trace(*args, **kwargs)
            return verified(traced_call, _leaves(traced_call._traced, args, kwargs), against)

    checked.__name__ = checked.__qualname__ = f"verify({name_of(f)})"
    return checked


def _leaves(call: TracedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arrays among the arguments of a call, drawn where only a type is given."""
    fixed = {i for i, _ in call.static.positional}
    named = dict(call.static.keywords)
    dynamic = tuple([x for i, x in enumerate(args) if i not in fixed])
    others = {name: x for name, x in kwargs.items() if name not in named}
    rng = np.random.default_rng(0)
    return [_drawn(x, rng) for x in tree.leaves((call.arranged(dynamic), others))]


def _drawn(x: Any, rng: np.random.Generator) -> Any:
    if not isinstance(x, ShapeDtypeStruct):
        return x
    if is_key(x.dtype):
        raise ArgumentError(f"verify: numbers are drawn for {x}, and keys are not; pass an array")
    if dtypes.is_inexact(x.dtype):
        return rng.normal(size=x.shape).astype(x.dtype)
    return rng.integers(0, 2, x.shape).astype(x.dtype)


def verified(
    traced: Traced,
    leaves: Sequence[Any],
    against: str = "one-device",
    where: Location | None = None,
    is_short: bool = False,
    other: Other | None = None,
) -> Verified:
    """The report on a function that was traced for a call with ``leaves``.

    Args:
        traced: the function.
        leaves: those of its arguments that are arrays.
        against: what it is compared with.
        where: the line that called it.
        is_short: whether it is a program that was made to repeat a difference.
        other: the Python whose devices run it, None for this one.
    """
    run = run_of(traced, leaves)
    if against == "float64":
        return _against_float64(traced, run)
    if other is None:
        return _Verifying(traced, run, where, is_short).report()
    there = other.met(traced, run)
    try:
        return _Verifying(traced, there, where, is_short).report()
    finally:
        other.go_on()


def is_divided(traced: Traced, leaves: Sequence[Any]) -> bool:
    """Whether a function runs on several devices, or in lanes, so that it can be compared."""
    call = traced._traced
    if any([p.on_devices.region is not None for p in call.program.primitives]):
        return True
    shardings = [s for s in (*call.places.ins, *call.places.outs) if s is not None]
    shardings += [s for s, _ in constraints(call.program)]
    shardings += [
        x.sharding for x in (*loaded(call.captured), *leaves) if isinstance(x, DeviceArray)
    ]
    return any([len(s.device_list) > 1 for s in shardings if not is_abstract(s)])


def _default_device() -> Any:
    return default_sharding().device_list[0]


def _against_float64(traced: Traced, run: CalledHere) -> Verified:
    inputs = list(map(host_value, run.arrays))
    lost = lost_digits(inlined(run.call.program), inputs, _default_device())
    columns = (
        Column("line", "line"), Column("operation"), Column("error"), Column("of operands"),
        Column("digits left", "count"),
    )  # fmt: skip
    rows = [
        (_place(e.location), e.prim.name, f"{after:.1e}", f"{before:.1e}", digits)
        for e, before, after, digits in lost.rows
    ]
    note = "Errors are relative to the largest element, and those of all lanes and steps."
    parts = (Table("lines that lose digits", columns, tuple(rows), note),)
    title = f"{traced.fun_name}({few(run.call.types)}) against float64"
    line = lost.culprit.location if lost.culprit is not None else None
    if line is None:
        text = f"No line loses digits: results have a relative error of {lost.error:.1e}."
        return Verified(title, parts, text)
    text = (
        f"Results have a relative error of {lost.error:.1e}; most digits are lost in "
        f"{short_line(_place(line))} ({lost.culprit.prim.name if lost.culprit else ''}). Compute "
        "that line in a wider dtype, or write it otherwise: subtract before you square, scale "
        "before you add, use logsumexp, log1p, expm1."
    )
    return Verified(title, parts, text, agrees=False, line=line.full)


class _Verifying:
    """A comparison with one device."""

    def __init__(
        self, traced: Traced, run: CalledHere | Elsewhere, where: Location | None, is_short: bool
    ) -> None:
        self.traced, self.run, self.where, self.is_short = traced, run, where, is_short
        self.judge = Judge(_default_device())
        self.program = run.call.program
        self.too_large = False

    def report(self) -> Verified:
        self.devices = self.run.devices
        if (message := self._of_arguments()) is not None:
            return self._verdict([], message, False)
        values = [[x for _, x in copies(y)] for y in self.run.results()]
        if not values:
            return self._verdict([], "It gives no results, so there is nothing to compare.", True)
        calls = [e for e in self.program.walk() if e.prim is host_call]
        if calls and self._changes(values):
            return self._verdict([], _CHANGES, False, calls[0].location)
        inputs = [[host_value(x)] for x in self.run.arrays]
        comparisons = self._compared(inputs, values)
        if (shared := self.judge.untrue(self.program, inputs)) is not None:
            return self._promised(comparisons, shared)
        agrees = not self.too_large and not any([c.differs for c in comparisons])
        if agrees:
            return self._verdict(
                [self._summary(comparisons), self._results(comparisons)],
                self._agrees(comparisons),
                True,
            )
        narrowing = Narrowing(
            inlined(self.program), self.run.on_devices, self.run.arrays, self.judge
        )
        culprit = narrowing.culprit()
        if self.too_large and (shared := self.judge.untrue(self.program, inputs)) is not None:
            return self._promised(comparisons, shared)
        if culprit is not None:
            return self._differs(comparisons, culprit)
        parts: list[Part] = [self._summary(comparisons), self._results(comparisons)]
        if narrowing.gone and self._is_gone(narrowing, values):
            counted = f"{self._count(comparisons)} from {self._of_one(comparisons)}"
            message = (
                f"{counted}, and not where values inside are results, too: the partitioner decides "
                f"otherwise then. It happens between {_between(narrowing.gone[-1])}. Fix the "
                "shardings of values there, with with_sharding_constraint, and verify again."
            )
            return self._verdict(parts, message, False)
        message = "Every operation gives what one device gives of the same operands"
        if self.too_large:
            message += (
                "; the program as a whole does not fit on one device, and was compared in pieces"
                f"{_without(narrowing.skipped)}."
            )
        else:
            message += (
                ": the results differ by rounding that the program makes larger. "
                'verify(f, against="float64") tells where.'
            )
        return self._verdict(parts, message, True)

    def _of_arguments(self) -> str | None:
        """What there is to say of one that is not the same where it should be."""
        for name, x in zip(self.run.call.names.all(), self.run.arrays, strict=True):
            known = copies(x)
            unlike = self.judge.unlike([value for _, value in known])
            if unlike is not None:
                return _of_argument(name, known[unlike.position][0], unlike)
        return None

    def _compared(self, inputs: Sequence[Any], found: Sequence[Any]) -> list[Compared]:
        try:
            return self.judge.compare(self.program, inputs, (), found)
        except (OutOfMemory, MemoryError):
            self.too_large = True
            return []

    def _changes(self, before: Sequence[Any]) -> bool:
        """Whether another run on the same devices gives something else."""
        again = [[host_value(x)] for x in self.run.results()]
        return not self.judge.alike(again, [values[:1] for values in before])

    def _is_gone(self, narrowing: Narrowing, before: Sequence[Any]) -> bool:
        """Whether devices give something else of the program without calls."""
        last = narrowing.last
        if last is None:
            return True
        return not self.judge.alike(
            [[host_value(x)] for x in last], [values[:1] for values in before]
        )

    # ---- what is said ----

    def _verdict(
        self, parts: Sequence[Part], message: str, agrees: bool, line: Location | None = None
    ) -> Verified:
        devices = f"{self.devices} device{'s' * (self.devices > 1)}"
        if isinstance(self.run, Elsewhere):
            devices += f" with {self.run.other.versions} against one with {versions()}"
        else:
            devices += " against one"
        title = f"{self.traced.fun_name}({few(self.run.call.types)}) on {devices}"
        full = line.full if line is not None else None
        return Verified(title, tuple(parts), message, agrees=agrees, line=full)

    def _agrees(self, comparisons: Sequence[Compared]) -> str:
        same = sum([c.equal for c in comparisons])
        bits = "to the bit" if same == len(comparisons) else "up to rounding"
        if len(comparisons) > same > 0:
            bits += f", {same} of them to the bit"
        devices = f"{self.devices} device{'s' * (self.devices > 1)}"
        if len(comparisons) == 1:
            return f"The result of {devices} is that of one device {bits}."
        return f"The {len(comparisons)} results of {devices} are those of one device {bits}."

    def _count(self, comparisons: Sequence[Compared]) -> str:
        bad = sum([c.differs for c in comparisons])
        if len(comparisons) <= 1:
            return "The result differs"
        return f"{bad} of {len(comparisons)} results differ{'s' * (bad == 1)}"

    def _of_one(self, comparisons: Sequence[Compared]) -> str:
        return "those of one device" if len(comparisons) > 1 else "that of one device"

    def _summary(self, comparisons: Sequence[Compared]) -> Facts:
        notes: list[str] = []
        if self.run.call.program.effects:
            notes.append("It calls Python or prints, which happened in each run.")
        if self.too_large:
            notes.append("It does not fit on one device as a whole.")
        items: list[tuple[str, Any, Any]] = [
            ("devices", self.devices, "count"),
            ("results", len(self.program.outputs), "count"),
            ("equal to the bit", sum([c.equal for c in comparisons]), "count"),
            ("different", sum([c.differs for c in comparisons]), "count"),
        ]
        if self.where is not None:
            items.insert(0, ("called at", _place(self.where), "line"))
        return Facts("comparison", tuple(items), " ".join(notes))

    def _results(self, comparisons: Sequence[Compared]) -> Table:
        names, types = self._result_names(), self.program.output_types
        rows = [
            (name, str(type), f"{c.error:.1e}", f"{c.allowed:.1e}", _word(c))
            for name, type, c in zip(names, types, comparisons, strict=False)
        ]
        columns = (
            Column("result"), Column("type"), Column("difference"), Column("rounding"),
            Column("verdict"),
        )  # fmt: skip
        note = "Relative to the largest element; rounding is what it may explain."
        return Table("results", columns, tuple(rows), note)

    def _result_names(self) -> list[str]:
        call = self.traced._traced
        names = [f"reference {k}" for k in range(len(call.written))] + _names(call)
        return names + [f"argument {k}" for k in call.stored]

    def _differs(self, comparisons: Sequence[Compared], culprit: Culprit) -> Verified:
        e, c, where = culprit.equation, culprit.comparison, culprit.location
        lane = f" in lane {c.position}" if culprit.path and c.position else ""
        devices = f"{self.devices} devices" if culprit.device is None else str(culprit.device)
        found, expected = _numbers(c)
        message = (
            f"{self._count(comparisons)} from {self._of_one(comparisons)}, first at "
            f"{short_line(_place(where))}: {e.prim.name} gives {found} on "
            f"{devices} and {expected} on one, of the same operands{lane}. "
            f"{way_around(e, bool(culprit.path), culprit.is_over_mesh(inlined(self.program)))}"
        )
        parts: list[Part] = [self._where(culprit)]
        if isinstance(self.run, CalledHere):
            parts.append(self._operands(culprit))
        if (reproducer := self._instructions(where)) is not None:
            parts.append(reproducer)
        text = None if self.is_short else program_text(culprit, inlined(self.program))
        if text is not None:
            here = isinstance(self.run, CalledHere)
            parts.append(_repeating(text) if here else Listing(_REPEATS, text))
        parts += [self._summary(comparisons), self._results(comparisons)]
        return self._verdict(parts, message, False, where)

    def _promised(self, comparisons: Sequence[Compared], shared: Shared) -> Verified:
        """What there is to say of a result that is not the same on all devices, as it should."""
        origin, c = promise(shared), self.judge.unlike(shared.values)
        assert c is not None
        there, here = _numbers(c)
        places = coordinates(shared.lanes.frame.runs.axes)  # type: ignore[union-attr]
        first, other = (places[shared.positions[p]] for p in (0, c.position))
        along = " and ".join(map(repr, origin.axes))
        message = (
            f"{self._result(shared)} is not the same along {along}, though out_specs say so: "
            f"{here} at {_at(first)}, which is taken, and {there} at {_at(other)}. What "
            f"differs comes in at {short_line(_place(origin.location))}. Reduce it over {along} "
            "with lax.pmean or lax.psum, or name the axis in out_specs. Without check_vma=False "
            "this is an error."
        )
        items: list[tuple[str, Any, Any]] = [
            ("line", _place(origin.location), "line"),
            ("lanes", _place(shared.lanes.location), "line"),
            ("result", str(shared.lanes.outputs[shared.number].type), "text"),
            ("axes", ", ".join(origin.axes), "text"),
            ("element", str(c.index), "text"),
            (f"at {_at(first)}", here, "text"),
            (f"at {_at(other)}", there, "text"),
            ("difference", f"{c.error:.1e}", "text"),
            ("rounding", f"{c.allowed:.1e}", "text"),
        ]
        parts = [
            Facts("not the same", tuple(items)),
            self._summary(comparisons),
            self._results(comparisons),
        ]
        return self._verdict(parts, message, False, origin.location)

    def _result(self, shared: Shared) -> str:
        """Which result it is, of the function if it is one of those."""
        e = shared.lanes
        mine = [a is e.outputs[shared.number] for a in self.program.outputs]
        if any(mine):
            return self._result_names()[mine.index(True)]
        count = len(e.outputs)
        which = f"result {shared.number} of {count}" if count > 1 else "the result"
        return f"{which} of {e.prim.name} at {short_line(_place(e.location))}"

    def _where(self, culprit: Culprit) -> Facts:
        e, c = culprit.equation, culprit.comparison
        found, expected = _numbers(c)
        items: list[tuple[str, Any, Any]] = [
            ("line", _place(culprit.location), "line"),
            ("operation", e.prim.name, "text"),
            ("result", str(e.outputs[0].type), "text"),
            ("element", str(c.index), "text"),
            ("on devices", found, "text"),
            ("on one device", expected, "text"),
            ("difference", f"{c.error:.1e}", "text"),
            ("rounding", f"{c.allowed:.1e}", "text"),
        ]
        if culprit.step:
            items.append(("step of the loop", ", ".join(map(str, culprit.step)), "text"))
        return Facts("first difference", tuple(items))

    def _instructions(self, where: Location | None) -> Listing | None:
        """What each device runs of a line."""
        run = self.run.kernels() if where is not None else []
        texts = [k.text for k in run if k.line.rpartition(" (")[0] == where.full]  # type: ignore[union-attr]
        if not texts:
            return None
        note = f"{len(texts) - _ROWS} more follow." if len(texts) > _ROWS else ""
        return Listing("what the compiler made of the line", "\n".join(texts[:_ROWS]), note)

    def _operands(self, culprit: Culprit) -> Table:
        kinds = [("operand", a.type, x) for a, x in
                 zip(culprit.equation.inputs, culprit.operands, strict=True)]  # fmt: skip
        kinds += [("result", v.type, x) for v, x in
                  zip(culprit.equation.outputs, culprit.results, strict=True)]  # fmt: skip
        rows = [(what, str(type), _sharding(x)) for what, type, x in kinds]
        columns = Column("what"), Column("type"), Column("sharding")
        return Table("operands", columns, tuple(rows))


def _repeating(text: str) -> Listing:
    namespace: dict[str, Any] = {"__name__": "<repeats>"}
    try:
        exec(compile(text.rpartition("print(")[0], "<repeats>", "exec"), namespace)
        f, operands = namespace["f"], namespace["operands"]
        printed = verified(f.trace(*operands), operands, is_short=True).verdict
    except (PhalanxError, TypeError, ValueError) as error:
        printed = f"it does not run here, {error}"
    return Listing(_REPEATS, text, f"It was run: {printed}")


def _names(call: TracedCall) -> list[str]:
    count = call.out_tree.num_leaves
    leaves = tree.leaves_with_path(call.out_tree.unflatten(range(count)))
    return [f"result{tree.keystr(path)}" for path, _ in leaves]


def _word(c: Compared) -> str:
    if c.differs:
        return "differs"
    return "equal" if c.equal else "rounding"


def _of_argument(name: str, device: Any, c: Compared) -> str:
    found, expected = _numbers(c)
    return (
        f"It was not compared with one device: {name} is not one array. By its sharding several "
        f"devices hold the same, and element {c.index} is {expected} on the first of "
        f"them and {found} on {device}. It was made of parts that differ, with "
        "make_array_from_single_device_arrays, or is the result of a shard_map with "
        "check_vma=False that is not the same on all devices, though out_specs say so."
    )


def _at(place: tuple[int, ...]) -> str:
    return str(place[0]) if len(place) == 1 else str(place)


def _numbers(c: Compared) -> tuple[str, str]:
    """What was found and what was expected, in as few digits as tell one from the other: further
    ones depend on how the processor rounds."""
    found: Any = c.found
    if not isinstance(found, float | np.floating):
        return str(c.found), str(c.expected)
    pairs = [(f"{c.found:.{d}g}", f"{c.expected:.{d}g}") for d in range(5, 18)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1])


def _sharding(x: Any) -> str:
    if isinstance(x, DeviceArray):
        return str(x.sharding)
    return "not used" if x is None else "a constant"


def _without(skipped: Sequence[Equation]) -> str:
    """What was not compared."""
    names = dict.fromkeys([f"{e.prim.name} at {short_line(_place(e.location))}" for e in skipped])
    return f", without what does not fit even alone: {', '.join(names)}" if names else ""


def _between(piece: Program) -> str:
    places = [e.location for e in piece.equations if e.location is not None]
    if not places:
        return "lines that are not known"
    first, last = short_line(_place(places[0])), short_line(_place(places[-1]))
    return first if first == last else f"{first} and {last}"


def _place(location: Location | None) -> str:
    if location is None:
        return "unknown"
    function = "" if location.function == "<module>" else f" ({location.function})"
    return f"{location.full}{function}"
