"""``plan``: which machine, and which mesh on it, for a training step."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

from msgspec import Struct

from phalanx.api.stages import Traced
from phalanx.api.transformed import P
from phalanx.base.boundary import boundary
from phalanx.base.errors import ArgumentError
from phalanx.base.source import name_of
from phalanx.core.blocks import Blocks
from phalanx.insight.plans.applied_step import AppliedStep, applied
from phalanx.insight.plans.compiled_step import Built, built
from phalanx.insight.plans.performance_model import (
    Load,
    Parting,
    Timing,
    fitted_to,
    load_of,
    timing,
)
from phalanx.insight.plans.pipelines import PipelineTiming, pipelined, pipelines
from phalanx.insight.plans.shardings import AXES, axes_of
from phalanx.insight.reports.report import Chart, Column, Facts, Report, Table
from phalanx.insight.reports.values import shown
from phalanx.insight.systems import Machine, balanced, machine
from phalanx.insight.traced import traceable

__all__ = ["OPEN", "StepPlan", "partings", "plan", "plan_of"]

_CLEARLY = 0.95  # times whose ratio is below this differ
_TENSOR = 64  # over more chips nobody parts products
_SHOWN = 40  # meshes in the table
_PIPELINES = 5
_SHARDINGS = Column("array"), Column("type"), Column("sharding")
OPEN = Parting(0, 0, 0, 0)  # whatever is best


class _Step(Struct, frozen=True):
    """The step that was planned, and how it is divided."""

    traced: Traced
    load: Load
    chips: Machine
    parting: Parting


@dataclass(frozen=True)
class StepPlan(Report):
    """What ``plan`` found out, and the step as its best mesh divides it.

    Args:
        title: what it is about.
        parts: facts, tables and charts.
        verdict: what matters most.
        step: what was planned.

    >>> import phalanx, phalanx.numpy as jnp
    >>> def step(w, x):
    ...     return w - 0.1 * phalanx.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    >>> w, x = jnp.ones((64, 64)), jnp.ones((128, 64))
    >>> phalanx.plan(step, on="h100:1")(w, x).apply().mesh
    Mesh('data': 1, 'fsdp': 1, 'tensor': 1, devices=[[[0]]] of cpu)
    """

    step: _Step = field(kw_only=True, repr=False, compare=False)

    def apply(
        self, step: Callable[..., Any] | None = None, *, devices: Sequence[Any] | None = None
    ) -> AppliedStep:
        """The step over the best mesh, compiled for the devices that are here.

        The batch is divided over *data* and *fsdp*, its sequences over *sequence*, the state over
        *fsdp* and *tensor*, as the figures of the plan assume, and as ``compiled=True`` compiles it
        for TPUs. Arguments all of
        which are returned anew are donated. What a loop takes of the batch part by part is told how
        it lies. A pipeline is not made: what ``pipelines`` has is an estimate for one that you
        write. ``print(plan.apply().code)`` shows what that is in Python.

        Args:
            step: another function of the same arguments to divide in this way, such as one that
                also returns figures; None: the one that was planned.
            devices: where it is to run; None: on the first of ``phalanx.devices()``. There must be
                as many as the plan has chips; they need not be of the same kind.

        Returns:
            A function of the arguments of the step, with the attributes ``mesh``, ``in_shardings``,
            ``out_shardings``, ``constraints``, ``code`` and ``compiled``.

        Raises:
            ArgumentError: the step cannot be divided so: it has arguments by name, static arguments
                or references; it says itself over which devices it runs; it is a ``pmap``, whose
                lanes have all of the state, and the mesh divides that.
            DeviceCountError: there are fewer devices than chips.
            OutOfMemory: it does not fit on them.

        >>> import phalanx, phalanx.numpy as jnp
        >>> def step(w, x):
        ...     return w - 0.1 * phalanx.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        >>> w, x = jnp.ones((64, 64)), jnp.ones((128, 64))
        >>> train = phalanx.plan(step, on="h100:1")(w, x).apply()
        >>> bool(jnp.allclose(train(w, x), step(jnp.ones((64, 64)), x)))
        True
        """
        planned = self.step
        traced, load = planned.traced, planned.load
        if step is not None:
            traced = traceable(step, "apply").trace(*traced.in_avals[0], **traced.in_avals[1])
            load = load_of(traced, load.batch)
        return applied(traced, load, planned.chips, planned.parting, devices)

    def __repr__(self) -> str:  # what a prompt shows
        return str(self)


@boundary
def plan(
    f: Callable[P, Any], on: str, *, data: int = 0, fsdp: int = 0, tensor: int = 0,
    sequence: int = 0, batch: int = 0, compiled: bool = False,
) -> Callable[..., StepPlan]:  # fmt: skip
    """A function of the arguments of ``f``, a training step, that tells what it takes ``on`` a
    machine which need not be here: seconds, and bytes on a chip, for each mesh that its batch
    allows, the fastest first; and how that goes with fewer chips.

    Nothing runs: arguments may be ``ShapeDtypeStruct``, of a model that no laptop holds. The step
    takes its state and the whole batch, and returns the state anew; what it returns of the type of
    an argument makes that argument state.

    Args:
        f: the step: a function, or what ``jit`` made of one.
        on: the machine: ``"v5p:8x8x8"``, ``"v5e:16x16:4"`` for four slices, ``"h100:64"``.
        data: over how many chips the model is copied; 0: what is best.
        fsdp: over how many the state is parted, and gathered where it is used; 0: what is best.
        tensor: over how many each product is parted; 0: what is best.
        sequence: over how many each sequence of the batch is parted; 0: what is best.
        batch: how many rows the batch has; 0: as many as most arrays begin with that are no state.
        compiled: whether the step is compiled besides, for the chips of ``on``, TPUs, and parted as
            on the best mesh: what it takes is then told by what the compiler made of it.

    Returns:
        That function; it gives a ``phalanx.insight.StepPlan``: a report, whose method ``apply``
        compiles the step as the best mesh divides it.

    Raises:
        ValueError: there is no such system; the mesh does not fit the machine or the batch; ``f``
            returns no state, or takes no such batch; it is to be compiled, and not for TPUs; a
            number is negative.
        TypeError: ``f`` is no function; a number is none.
        DeviceError: it is to be compiled, and XLA's plugin for TPUs is not installed.

    >>> import phalanx, phalanx.numpy as jnp
    >>> def step(w, x):
    ...     return w - 0.1 * phalanx.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    >>> w, x = (phalanx.ShapeDtypeStruct(s, "bfloat16") for s in ((8192, 8192), (65536, 8192)))
    >>> report = phalanx.plan(step, on="v5p:2x2x2")(w, x)
    >>> len(report["best meshes"].rows)
    10
    """
    chips, traced = machine(on), traceable(f, "plan")
    options = {"data": data, "fsdp": fsdp, "tensor": tensor, "sequence": sequence, "batch": batch}
    *axes, rows = [_number(name, n) for name, n in options.items()]
    asked = Parting(*axes)

    def planned(*args: Any, **kwargs: Any) -> StepPlan:
        return plan_of(traced.trace(*args, **kwargs), chips, asked, compiled, rows)

    planned.__name__ = planned.__qualname__ = f"plan({name_of(f)})"
    return planned


def _number(name: str, n: object) -> int:
    """A number of chips or rows that is asked for."""
    of = "rows, or 0 for what the arguments have" if name == "batch" else "chips, or 0 for the best"
    message = f"plan: {name}= must be a number of {of}, got {n!r}"
    if isinstance(n, bool) or not isinstance(n, SupportsIndex):
        raise TypeError(message)
    if (number := operator.index(n)) < 0:
        raise ArgumentError(message)
    return number


def plan_of(
    traced: Traced, chips: Machine, asked: Parting = OPEN, compiled: bool = False, batch: int = 0
) -> StepPlan:
    """The plan of a step that was traced, on ``chips``; what is 0 in ``asked`` is open."""
    load = load_of(traced, batch)
    if compiled and load.lanes > 1:
        asked = _of_lanes(load, chips, asked)
    every = _timings(load, chips, asked)
    if not every:
        raise _no_mesh(load, chips, asked)
    best = every[0]
    smaller = [(m, _timings(load, m, asked)) for m in _smaller(chips)]
    counts = [(m, found[0]) for m, found in smaller if found and found[0].fits]
    counts.append((chips, best))
    staged = _staged(load, chips) if asked == OPEN else []
    built_step = built(traced, load, chips, best.parting) if compiled else None
    timed_plan = best if built_step is None else built_step.timing
    return StepPlan(
        f"{traced.fun_name} on {chips}",
        (
            _summary(load, chips, timed_plan, built_step), _parts(timed_plan),
            *(() if built_step is None else _compiled(load, chips, built_step)),
            _meshes(every, load), *([_of_stages(staged)] if staged else []), _counts(counts, load),
            *([_chart(counts)] if len(counts) > 1 else []), _model(chips),
        ),
        _verdict(chips, timed_plan, counts) + _better(timed_plan, staged),
        step=_Step(traced, load, chips, best.parting),
    )  # fmt: skip


def _of_lanes(load: Load, chips: Machine, asked: Parting) -> Parting:
    """What a ``pmap`` is compiled for: each of its lanes has all of the state."""
    if max(asked.fsdp, asked.sequence, asked.tensor) > 1:
        raise ArgumentError(
            f"plan: compiled=True: the step is a pmap of {load.lanes} lanes, of which each has all "
            "of the state, so fsdp=, sequence= and tensor= are 1; without pmap it can be sharded"
        )
    return Parting(asked.data or chips.chips, 1, 1)


def partings(load: Load, chips: Machine, asked: Parting) -> Iterator[Parting]:
    """The meshes of ``chips`` that the batch and the weights of ``load`` allow."""
    for sequence, tensor in _inner(load, chips):
        left = chips.chips // (sequence * tensor)
        for data in [n for n in range(1, left + 1) if left % n == 0]:
            parting = Parting(data, left // data, tensor, sequence)
            in_slices = not chips.system.torus or data % chips.slices == 0
            wanted = all(getattr(asked, a) in (0, getattr(parting, a)) for a in AXES)
            if in_slices and wanted and load.batch % left == 0:
                yield parting


def _inner(load: Load, chips: Machine) -> list[tuple[int, int]]:
    """Among how many chips, with the same rows, sequences can be parted, and products."""
    length = load.sequences.length
    return [
        (sequence, tensor)
        for sequence in range(1, min(length, chips.chips) + 1)
        for tensor in _tensors(load, chips)
        if length % sequence == 0 and chips.chips % (sequence * tensor) == 0
    ]


def _tensors(load: Load, chips: Machine) -> list[int]:
    """Among how many chips, of a slice or of a machine, products can be parted."""
    few = range(1, min(chips.inside, _TENSOR) + 1)
    return [n for n in few if chips.inside % n == 0 and load.products.can_be_parted(n)]


def _timings(load: Load, chips: Machine, asked: Parting) -> list[Timing]:
    """The meshes: the fastest first of those that fit, then those that need the least memory."""
    found = [timing(load, chips, p) for p in partings(load, chips, asked)]
    return sorted(found, key=lambda t: (not t.fits, t.seconds if t.fits else t.size))


def _staged(load: Load, chips: Machine) -> list[PipelineTiming]:
    """The pipelines, in the same order."""
    every = pipelines(load.layers, load.batch, chips.chips, _tensors(load, chips))
    found = [pipelined(load, chips, p) for p in every]
    found.sort(key=lambda t: (not t.fits, t.seconds if t.fits else t.size))
    return found[:_PIPELINES]


def _no_mesh(load: Load, chips: Machine, asked: Parting) -> ArgumentError:
    requested = {name: n for name in AXES if (n := getattr(asked, name))}
    text = ", ".join([f"{name} {n}" for name, n in requested.items()])
    asks = f" with {text}" if text else ""
    length, count = load.sequences.length, math.prod(requested.values())
    if length % max(asked.sequence, 1):
        found = (
            f"its sequences have {length:,} elements, which that does not divide"
            if length > 1
            else "no dimension of the batch but its rows goes through its products by weights"
        )
        return ArgumentError(f"plan: no mesh has sequence {asked.sequence} for this step: {found}")
    if chips.chips % count:
        axes = " x ".join(axes_of(length))
        return ArgumentError(
            f"plan: no mesh of {chips.chips:,} chips has {text}: {axes} are all "
            f"chips, and {count:,} does not divide {chips.chips:,}"
        )
    stride = chips.slices if chips.system.torus else 1
    copies = f"; data is a multiple of the {stride} slices" if stride > 1 else ""
    among, state = _tensors(load, chips), max(asked.data, 1) * max(asked.fsdp, 1)
    inner = [(s, t) for s, t in _inner(load, chips) if asked.sequence in (0, s)]
    fitting = [s * t for s, t in inner if asked.tensor in (0, t)]
    fitting = [n for n in fitting if chips.chips // n % state == 0]
    fitting = fitting if asked.data % stride == 0 else []
    if not fitting:
        return ArgumentError(
            f"plan: no mesh of {chips.name} has {text}: among tensor chips, of one "
            f"{'slice' if chips.system.torus else 'machine'}, the longer sides of weights must "
            f"divide: tensor is one of {', '.join(map(str, among))}{copies}"
        )
    least = chips.chips // max(fitting)
    near = {load.batch // least * least, Blocks(load.batch, least).length * least}.difference({0})
    shared = "a product" if length == 1 else "rows"
    return ArgumentError(
        f"plan: a batch of {load.batch:,} rows fits no mesh of {chips.name}{asks}, {chips.chips:,} "
        f"chips: {least:,} or more of them have different rows, as at most {max(fitting)} share "
        f"{shared}{copies}. Batches of {' or '.join([f'{n:,}' for n in sorted(near)])} rows would "
        "fit, or take another number of chips (rows are the first dimension of most arrays that "
        "are neither state nor keys)"
    )


def _smaller(chips: Machine) -> Iterator[Machine]:
    """Machines of half as many chips, a quarter, ..., of the same system."""
    count, name, slices = chips.chips // 2, chips.system.name, chips.slices
    found: list[Machine] = []
    while count >= 1 and chips.chips % count == 0:
        slices = max(1, min(slices, count // chips.inside))
        if chips.system.torus:
            shape = "x".join(map(str, balanced(count // slices, chips.system.torus)))
            found.append(machine(f"{name}:{shape}:{slices}"))
        elif count <= chips.system.chips or count % chips.system.chips == 0:
            found.append(machine(f"{name}:{count}"))
        if count % 2:
            break
        count //= 2
    yield from reversed(found)


def _verdict(chips: Machine, best: Timing, counts: Sequence[tuple[Machine, Timing]]) -> str:
    """What limits a step on its best mesh, and whether fewer chips take less time."""
    if not best.fits:
        size, there = shown(best.size, "bytes"), shown(chips.chip.memory, "bytes")
        return (
            f"It does not fit: a chip needs {size}, and has {there}. Take more chips or a smaller "
            "batch."
        )
    parts = {
        "arithmetic": best.arithmetic,
        "memory bandwidth": best.memory,
        "the least time of each operation": best.launching,
        "communication": best.exchanging,
        "waiting for the slowest slice": best.waiting,
    }
    limit = max(parts, key=lambda name: parts[name])
    share = shown(parts[limit] / (best.seconds or 1.0), "share")
    text = f"A step takes {shown(best.seconds, 'seconds')}; {limit} limits it ({share})."
    fewer, least = min(counts, key=lambda pair: pair[1].seconds)
    if fewer.chips < chips.chips and least.seconds < _CLEARLY * best.seconds:
        are = "chip is" if fewer.chips == 1 else "chips are"
        text += (
            f" {fewer.chips:,} {are} faster ({shown(least.seconds, 'seconds')}): raise the batch, "
            "or take fewer chips."
        )
    return text


def _better(best: Timing, staged: Sequence[PipelineTiming]) -> str:
    """Whether a pipeline takes less time than the best mesh, or fits where that does not."""
    if not staged or not staged[0].fits:
        return ""
    first = staged[0]
    if best.fits and first.seconds > _CLEARLY * best.seconds:
        return ""
    time = shown(first.seconds, "seconds")
    return f" As a pipeline that you write, {first.pipeline}, it would take {time}."


# ---- the parts ----------------------------------------------------------------------------------


def _summary(load: Load, chips: Machine, best: Timing, built_step: Built | None) -> Facts:
    operations = sum(load.operations.values())
    dtype = max(load.operations, key=lambda d: load.operations[d], default=None)
    rate = operations / best.seconds / chips.chips
    peak = chips.chip.peak(dtype) if dtype is not None else 1.0
    notes = [] if best.fits else ["It does not fit: a chip has less memory than that."]
    if not load.products.count and chips.chips > 1:
        notes.append(
            "No product multiplies by the state: what chips exchange of a divided state is not "
            "counted."
        )
    batch, each = load.parted, f", in each of {load.lanes} lanes" if load.lanes > 1 else ""
    return Facts(
        "summary",
        (
            ("step", None, "heading"),
            ("best mesh", str(best.parting), "text"),
            ("time", best.seconds, "seconds"),
            (
                "estimated from",
                "trace" if built_step is None else f"program for {chips.name}",
                "text",
            ),
            ("work", None, "heading"),
            ("FLOPs of products", operations, "operations"),
            ("FLOP/s of a chip", rate, "rate"),
            ("MFU", rate / peak, "share"),
            ("memory of a chip", None, "heading"),
            ("needed", best.size, "bytes"),
            ("available", chips.chip.memory, "bytes"),
            ("data", None, "heading"),
            ("state", load.state, "bytes"),
            ("batch", load.batch, "count"),
            *([("batch is", batch.text + each, "text")] if batch.text else []),
            *([("sequences are", load.sequences.text, "text")] if load.sequences.text else []),
        ),
        " ".join([*notes, *([batch.doubt] if batch.doubt else [])]),
    )


def _meshes(every: list[Timing], load: Load) -> Table:
    axes = axes_of(load.sequences.length)
    columns = (
        *[Column(axis, "count") for axis in axes],
        Column("step", "seconds"), Column("memory of a chip", "bytes"), Column("fits"),
        Column("computing", "seconds"), Column("communicating", "seconds"),
    )  # fmt: skip
    rows = [
        (*[getattr(t.parting, axis) for axis in axes], t.seconds, t.size,
         "yes" if t.fits else "no", t.arithmetic + t.memory + t.launching, t.exchanging)
        for t in every[:_SHOWN]
    ]  # fmt: skip
    left = len(every) - len(rows)
    note = f"{left} more meshes are left out." if left else ""
    return Table("best meshes", columns, tuple(rows), note)


def _of_stages(staged: Sequence[PipelineTiming]) -> Table:
    columns = (
        Column("data", "count"), Column("stages", "count"), Column("tensor", "count"),
        Column("parts", "count"), Column("rounds", "count"), Column("step", "seconds"),
        Column("waiting", "share"), Column("memory of a chip", "bytes"),
        Column("GPipe's", "bytes"), Column("fits"),
    )  # fmt: skip
    rows = [
        (t.pipeline.data, t.pipeline.stages, t.pipeline.tensor, t.pipeline.parts,
         t.pipeline.rounds, t.seconds, t.waiting / t.seconds, t.size, t.size_of_all,
         "yes" if t.fits else "no")
        for t in staged
    ]  # fmt: skip
    return Table(
        "pipelines", columns, tuple(rows),
        "Estimates: apply divides by the best mesh, and you write a pipeline yourself, as the page "
        "on pipelines of the documentation shows. Stages have equal layers. Backward passes follow "
        "at once (1F1B; several rounds: interleaved); if all parts go forwards first, as by grad "
        "of a scan, it is GPipe's memory.",
    )  # fmt: skip


def _parts(best: Timing) -> Table:
    """Where the time of the best mesh goes."""
    named = {
        "tensor": "all-reduce of products (tensor)",
        "sequence": "all-gather of sequences (sequence)",
        "fsdp": "all-gather, reduce-scatter (fsdp)",
        "data": "all-reduce of gradients (data)",
    }
    divided = axes_of(best.parting.sequence)
    rows = (
        ("matrix products", best.arithmetic),
        ("memory-bound operations", best.memory),
        ("least time of small operations", best.launching),
        *[(name, getattr(best, axis)) for axis, name in named.items() if axis in divided],
        ("waiting for other slices", best.waiting),
    )
    columns = Column("part"), Column("time", "seconds"), Column("share", "share")
    shares = tuple([(name, time, time / best.seconds) for name, time in rows])
    note = "Communication as far as it does not overlap with matrix products."
    return Table("time of a step", columns, shares, note)


def _compiled(load: Load, chips: Machine, built_step: Built) -> tuple[Table, ...]:
    """What the compiler made of the step, beside what its trace says; what chips exchange, and
    how arrays lie."""
    traced = timing(load, chips, built_step.timing.parting)
    axes = axes_of(built_step.timing.parting.sequence)[::-1]
    columns = (
        Column("estimated from"), Column("step", "seconds"), Column("FLOPs", "operations"),
        Column("products", "seconds"), Column("memory-bound", "seconds"),
        *[Column(axis, "seconds") for axis in axes],
        Column("memory of a chip", "bytes"),
    )  # fmt: skip
    products = sum(load.operations.values()) / chips.chips
    rows = [
        (name, t.seconds, n, t.arithmetic, t.memory, *[getattr(t, axis) for axis in axes], t.size)
        for name, t, n in (
            ("trace", traced, products),
            (f"program for {chips.name}", built_step.timing, built_step.operations),
        )
    ]
    note = (
        "FLOPs of products on a chip. Communication over each axis as far as it does not overlap "
        "with products."
    )
    exchanged = [
        (c.operation, ", ".join(map(str, c.axes or "?")), c.devices, c.bytes, c.count,
         c.line)
        for c in built_step.exchanged
    ]  # fmt: skip
    by = (
        Column("operation"), Column("axes"), Column("devices", "count"), Column("bytes", "bytes"),
        Column("runs", "count"), Column("line", "line"),
    )  # fmt: skip
    return (
        Table("trace and compiled program", columns, tuple(rows), note),
        Table("compiled collectives", by, tuple(exchanged), "Bytes of the result on a chip."),
        Table("compiled shardings", _SHARDINGS, built_step.shardings),
    )


def _counts(counts: list[tuple[Machine, Timing]], load: Load) -> Table:
    columns = (
        Column("chips", "count"), Column("mesh"), Column("step", "seconds"),
        Column("memory of a chip", "bytes"), Column("MFU", "share"),
    )  # fmt: skip
    rows = [
        (m.chips, str(t.parting), t.seconds, t.size, load.at_peak(m) / t.seconds) for m, t in counts
    ]
    note = "Numbers of chips on which the step fits."
    if not counts[-1][1].fits:
        alone = len(counts) == 1
        note = "It does not fit." if alone else "It fits on all of these numbers but the last."
    return Table("by number of chips", columns, tuple(rows), note)


def _chart(counts: list[tuple[Machine, Timing]]) -> Chart:
    points = tuple([(float(m.chips), t.seconds) for m, t in counts])
    return Chart(
        "step time by number of chips", Column("chips", "count"), Column("step", "seconds"),
        (("", points),), "Both axes are logarithmic: perfect scaling is a straight line downwards.",
        doublings=True,
    )  # fmt: skip


def _model(chips: Machine) -> Facts:
    system, fitted = chips.system, fitted_to(chips.system)
    return Facts(
        "model",
        (
            ("system", system.title, "text"),
            ("source", ", ".join(system.sources), "text"),
            ("peak reached by products", fitted.efficiency, "share"),
            ("tensor all-reduce", f"{fitted.exchanging} times the time of its bytes", "text"),
            ("overlap of communication", fitted.hidden, "share"),
            ("slowdown per doubling of slices", fitted.straggling, "share"),
        ),
        "The last four are fitted to published training runs of decoders, or measured with the "
        "system. Other kinds of models were not compared.",
    )
