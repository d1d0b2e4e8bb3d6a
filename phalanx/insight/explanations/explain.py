"""``explain``: what a function does on devices, by its program and what XLA made of that."""

# What a traced function holds is private to users, not to the analyses of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from phalanx.api.compiled_collectives import Collective
from phalanx.api.devices import local_devices
from phalanx.api.stages import Compiled, Traced, TracedCall, few
from phalanx.api.transformed import P
from phalanx.base import tree
from phalanx.base.boundary import boundary
from phalanx.base.source import Location, lines_of_users, name_of
from phalanx.core.blocks import Blocks
from phalanx.core.program import Program
from phalanx.core.runs import Lanes
from phalanx.core.types import ArrayType
from phalanx.insight.costs import LineCost, by_line, loops_in, steps
from phalanx.insight.explanations.local_machine import measured
from phalanx.insight.memory_timeline import Course, course
from phalanx.insight.reports.report import Chart, Column, Facts, Part, Report, Table
from phalanx.insight.reports.values import short_line, shown, source_of
from phalanx.insight.systems import Machine, enough, machine
from phalanx.insight.traced import traceable, whole
from phalanx.transforms.dce import dce
from phalanx.transforms.storage import size_in_bytes

__all__ = ["explain", "report_on"]

DEFAULT = "h100"  # for devices that are neither in the table nor within reach
_KINDS = {"v5 lite": "v5e", "v5p": "v5p", "v6": "v6e", "A100": "a100", "H100": "h100"}
_POINTS = 400  # of the chart of memory
_ADVICE = {
    "compute-bound": "Use a smaller dtype, such as bfloat16, or more devices.",
    "memory-bound": "Use a smaller dtype, fewer large intermediate arrays, or a larger batch.",
    "communication-bound": "Use a larger batch on each device, or fewer devices.",
}
_START = 5e-6  # seconds that it takes at least to start a program
F = TypeVar("F", bound=Callable[..., Any])


@boundary
def explain(f: Callable[P, Any], on: str | None = None) -> Callable[..., Report]:
    """Explain a program: what ``f`` costs on its devices, and what limits it.

    ``f`` is traced and compiled, and not run. The report says what limits the program, and then
    has FLOPs, bytes and modelled time by source line; each collective with its axis, its bytes on
    a device, how often it runs and how long it takes; memory over the course of the program; the
    sharding of arrays and lanes; and the instructions that the compiler produced. It prints in a
    terminal, shows in a notebook, and is written by ``report.save("report.html")`` or read by
    ``report.as_json()``. Times are modelled by the roofline and the network of a machine, at full
    efficiency.

    Args:
        f: a function, or what ``jit`` or ``pmap`` made of one.
        on: the machine whose times are modelled, such as "v5p" or "h100:8"; by default the devices
            that the program is compiled for. If these are not in the table of systems, like CPUs,
            they are measured, which takes about a second.

    Returns:
        A function of the arguments of ``f`` that returns a ``phalanx.insight.Report``.

    Raises:
        ValueError: there is no such system.

    >>> import phalanx, phalanx.numpy as jnp
    >>> report = phalanx.explain(lambda x: jnp.sin(x) @ x)(jnp.ones((64, 64)))
    >>> report["summary"].as_json()["facts"]["FLOPs"]  # 2 * 64**3 + 64**2
    528384
    """
    chips, traced = machine(on) if on is not None else None, traceable(f, "explain")

    def explained(*args: Any, **kwargs: Any) -> Report:
        with lines_of_users():
            return report_on(traced.trace(*args, **kwargs), chips)

    explained.__name__ = explained.__qualname__ = f"explain({name_of(f)})"
    return explained


def report_on(
    traced: Traced, chips: Machine | None = None, where: Location | None = None
) -> Report:
    """The report on a function that was traced; it is compiled, if it is not yet.

    Args:
        traced: the function.
        chips: the machine whose times are modelled; default the devices.
        where: the line that called it.
    """
    compiled = traced.lower().compile()
    devices = compiled.runtime_executable().devices
    chips = _of_devices(chips, devices)
    call = whole(traced)
    program = dce(call.program)
    donated = zip(program.inputs, call.donated, strict=True)
    all_steps = list(steps(program, freed={v for v, gone in donated if gone}))
    lines = by_line(all_steps, chips, len(devices))
    exchanged = compiled.collectives()
    memory = _course(program, call, compiled, len(devices))
    talking = sum([sum(_seconds(c, chips)) for c in exchanged])
    parts: list[Part] = [
        _summary(traced, compiled, lines, talking, chips, where),
        _lines(lines),
        _collectives(exchanged, chips, traced.program),
        *_memory(memory),
        _lanes(traced.program, len(devices)),
        _places(traced, compiled),
        _compilation(compiled),
    ]
    verdict = _verdict(chips, _devices_text(devices), lines, talking)
    title = f"{traced.fun_name}({few(call.types)}) on {_devices_text(devices)}"
    return Report(title, tuple(parts), verdict)


def _of_devices(chips: Machine | None, devices: Sequence[Any]) -> Machine:
    if chips is None:
        name = _system_of(devices)
        if name is None and set(devices) <= set(local_devices(backend=devices[0].platform)):
            return measured(tuple(devices))
        chips = machine(name or DEFAULT)
    return chips if chips.chips >= len(devices) else enough(chips.system, len(devices))


def _system_of(devices: Sequence[Any]) -> str | None:
    """The system in the table that has such devices."""
    kind = getattr(devices[0], "device_kind", "")
    return next((name for word, name in _KINDS.items() if word in kind), None)


def _devices_text(devices: Sequence[Any]) -> str:
    kind = getattr(devices[0], "device_kind", devices[0].platform)
    kind = "CPU" if kind == "cpu" else kind
    return f"{len(devices)} {kind} device{'s' if len(devices) > 1 else ''}"


def _verdict(
    chips: Machine, devices: str, lines: Sequence[LineCost], communicating: float
) -> str:  # fmt: skip
    """What limits a program by the model of ``chips``, and what to do about it."""
    computing = sum([c.seconds for c in lines])
    whole = computing + communicating
    if not whole:
        return "It computes nothing that takes time."
    arithmetic = sum([c.computing for c in lines])
    parts = {
        "compute-bound": arithmetic,
        "memory-bound": computing - arithmetic,
        "communication-bound": communicating,
    }
    limit = max(parts, key=lambda name: parts[name])
    share = shown(parts[limit] / whole, "share")
    text = f"It is {limit}: {share} of {shown(whole, 'seconds')}"
    hottest = lines[0].location if lines and communicating < whole / 2 else None
    if hottest is not None:
        part = shown(lines[0].seconds / whole, "share")
        text += f"; {part} in {short_line(str(hottest))}"
    here = "measured" in "".join(chips.system.sources)
    model = "" if here else f" Times are modelled for {chips.system.title}."
    small = "A call takes longer than that to start: do more in each call."
    return f"{text}. {_ADVICE[limit] if whole > _START else small}{model}"


# ---- the parts ----------------------------------------------------------------------------------


def _summary(
    traced: Traced, compiled: Compiled, lines: Sequence[LineCost],
    talking: float, chips: Machine, where: Location | None,
) -> Facts:  # fmt: skip
    devices = len(compiled.runtime_executable().devices)
    computing = sum([c.seconds for c in lines])
    sizes, costs = compiled.memory_analysis(), compiled.cost_analysis()
    needed = (
        sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes
        - sizes.alias_size_in_bytes
    )  # fmt: skip
    note = "Times are modelled at full efficiency, without overlap. XLA counts for one device"
    loops = loops_in(traced.program)
    note += ", and what is in a loop once." if loops else "."
    if any(loop.length is None for loop in loops):
        note += " So do the other rows where the length of the loop is unknown."
    return Facts(
        "summary",
        (
            ("program", None, "heading"),
            *((("called at", _place(where), "line"),) if where is not None else ()),
            ("devices", devices, "count"),
            ("times are for", chips.system.title, "text"),
            ("time", None, "heading"),
            ("computing", computing, "seconds"),
            ("communicating", talking, "seconds"),
            ("work", None, "heading"),
            ("FLOPs", round(sum([c.operations for c in lines])), "operations"),
            ("FLOPs by XLA", costs.get("flops"), "operations"),
            ("bytes moved", round(sum([c.moved for c in lines])), "bytes"),
            ("bytes by XLA", costs.get("bytes accessed"), "bytes"),
            ("memory of a device", None, "heading"),
            ("needed", needed, "bytes"),
            ("arguments", sizes.argument_size_in_bytes, "bytes"),
            ("temporaries", sizes.temp_size_in_bytes, "bytes"),
        ),
        note,
    )


def _lines(lines: Sequence[LineCost]) -> Table:
    total = sum([c.seconds for c in lines]) or 1.0
    rows = [
        (_place(c.location), c.seconds, c.seconds / total, f"{c.bound}-bound",
         round(c.operations), round(c.moved), source_of(_place(c.location)))
        for c in lines
    ]  # fmt: skip
    columns = (
        Column("line", "line"), Column("time", "seconds"), Column("share", "share"),
        Column("limit"), Column("FLOPs", "operations"), Column("bytes", "bytes"),
        Column("source", "code"),
    )  # fmt: skip
    note = "FLOPs and bytes of all devices, time of one."
    return Table("hottest lines", columns, tuple(rows), note)


def _seconds(c: Collective, chips: Machine) -> tuple[float, float]:
    latency, bandwidth = chips.exchange(c.operation, c.bytes, c.devices)
    return latency * c.count, bandwidth * c.count


def _collectives(exchanged: Sequence[Collective], chips: Machine, program: Program) -> Table:
    asked: dict[str, list[str]] = {}  # by line, the axes of collectives
    mapped: set[str] = set()  # the lines of mapped functions
    for e in program.walk():
        if e.prim.subprograms is None and e.axes and e.inputs:
            asked.setdefault(str(e.location), []).extend(map(str, e.axes))
        elif e.frame is not None and isinstance(e.frame.runs, Lanes):
            mapped.add(str(e.location))
    every = {axis for axes in asked.values() for axis in axes}
    rows: list[tuple[Any, ...]] = []
    for c in exchanged:
        line = short_line(c.line)  # as locations are written
        axes = map(str, c.axes) if c.axes else asked.get(line, ())  # of groups of lanes
        axes = [*dict.fromkeys(axes)]
        by = "a mapped function" if line in mapped else "the compiler"
        if line in asked and every.issuperset(axes):
            by = "the program"
        rows.append(
            (c.operation, ", ".join(axes) or "?", c.devices, c.bytes, c.count,
             *_seconds(c, chips), c.line, by)
        )  # fmt: skip
    columns = (
        Column("operation"), Column("axes"), Column("devices", "count"), Column("bytes", "bytes"),
        Column("runs", "count"), Column("latency", "seconds"), Column("transfer", "seconds"),
        Column("line", "line"), Column("requested by"),
    )  # fmt: skip
    note = "Bytes of the result on a device; times of all runs."
    return Table("collectives", columns, tuple(rows), note)


def _memory(found: Course) -> tuple[Part, ...]:
    every = [(float(i), size) for i, size in enumerate(found.alive)]
    size = max(1, Blocks(len(every), _POINTS).length)
    points = [max(every[i : i + size], key=lambda p: p[1]) for i in range(0, len(every), size)]
    by_place: dict[str, list[Any]] = {}
    for value in found.at_peak:
        row = by_place.setdefault(_place(value.location) or value.kind, [0, 0.0, "", 0.0])
        row[0] += 1
        row[1] += value.size
        if value.size > row[3]:
            row[2:] = value.what, value.size
    rows = sorted(by_place.items(), key=lambda item: -item[1][1])
    note = "Of one device, in program order. The compiler may reorder, and need less memory."
    columns = (
        Column("created at", "line"), Column("arrays", "count"), Column("bytes", "bytes"),
        Column("largest"),
    )  # fmt: skip
    return (
        Chart(
            "memory over the program", Column("operation", "count"),
            Column("live bytes", "bytes"), (("", tuple(points)),), note,
        ),
        Table(
            "live at the peak", columns,
            tuple([(place, n, round(size), what) for place, (n, size, what, _) in rows]),
        ),
    )  # fmt: skip


def _course(program: Program, call: TracedCall, compiled: Compiled, devices: int) -> Course:
    homes = tree.leaves(compiled.input_shardings)
    homes = [None] * (len(call.donated) - len(homes)) + homes
    types = program.input_types
    sizes = [_held(t, s, devices) for t, s in zip(types, homes, strict=True)]
    names = [call.names[i] for i in range(len(types))]
    return course(program, names, sizes, call.donated, devices)


def _held(kind: ArrayType, sharding: Any, devices: int) -> float:
    """The bytes of an array that a device holds."""
    if sharding is None:
        return size_in_bytes(kind) / devices
    return size_in_bytes(kind.update(shape=tuple(sharding.shard_shape(kind.shape))))


def _lanes(program: Program, devices: int) -> Table:
    rows: list[tuple[Any, ...]] = []
    for e in program.walk():
        frame = e.frame
        if frame is None or not isinstance(frame.runs, Lanes):
            continue
        for axis, size in frame.runs.axes:
            lanes = Blocks(int(size), devices).length
            rows.append((str(axis), size, lanes, frame.programs[0].name, _place(e.location)))
    columns = (
        Column("axis"), Column("lanes", "count"), Column("on a device, at most", "count"),
        Column("function"), Column("line", "line"),
    )  # fmt: skip
    return Table("lanes", columns, tuple(dict.fromkeys(rows)))


def _places(traced: Traced, compiled: Compiled) -> Table:
    call = traced._traced
    rows: list[tuple[Any, ...]] = []
    homes = tree.leaves(compiled.input_shardings)
    for i, (kind, sharding) in enumerate(zip(call.types, homes, strict=True)):
        rows.append(_row(call.names[i], kind, sharding))
    results = call.results(call.program.output_types)
    for i, (kind, sharding) in enumerate(
        zip(results, tree.leaves(compiled.output_shardings), strict=True)
    ):
        rows.append(_row(f"result {i}", kind, sharding))
    columns = (
        Column("array"), Column("type"), Column("sharding"), Column("bytes on a device", "bytes"),
    )  # fmt: skip
    return Table("shardings", columns, tuple(rows))


def _row(name: str, kind: ArrayType, sharding: Any) -> tuple[Any, ...]:
    spec = getattr(sharding, "spec", None)
    alone = sharding is None or sharding.num_devices == 1
    cut = str(spec) if spec and any(spec) else "one device" if alone else "replicated"
    return name, str(kind), cut, _held(kind, sharding, 1)


def _compilation(compiled: Compiled) -> Table:
    kernels = compiled.runtime_executable().kernels()
    often, fused, hottest = Counter[str](), Counter[str](), dict[str, Counter[str]]()
    for k in kernels:
        often[k.operation] += k.count
        fused[k.operation] += k.fused * k.count
        hottest.setdefault(k.operation, Counter())[k.line] += k.count
    rows = [
        (name, count, fused[name], hottest[name].most_common(1)[0][0])
        for name, count in often.most_common()
    ]
    columns = (
        Column("instruction"), Column("runs", "count"), Column("operations", "count"),
        Column("most from", "line"),
    )  # fmt: skip
    note = "Runs on one device in a call. The compiler adds copies and transposes."
    return Table("compiled instructions", columns, tuple(rows), note)


def _place(location: Location | None) -> str:
    return "" if location is None else location.full
