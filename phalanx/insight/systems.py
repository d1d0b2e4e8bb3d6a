"""Systems by name: what a chip computes and holds, and how long a message takes between chips.

Communication is modelled by a latency and a bandwidth (Hockney 1994): rings along the dimensions of
a torus, trees and rings on a switch, and what spans slices or machines first inside of each, then
between them (Thakur, Rabenseifner and Gropp 2005).
"""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from phalanx.base import dtypes
from phalanx.base.errors import ArgumentError, suggest
from phalanx.core.blocks import Blocks

__all__ = ["Link", "Machine", "System", "Together", "balanced", "enough", "machine", "systems"]


class Link(Struct, frozen=True):
    """What joins chips: bytes a second in one direction, and seconds until the first arrives."""

    bandwidth: float
    latency: float


class Together(Struct, frozen=True):
    """What so many processes of one computer do together.

    Attributes:
        processes: how many.
        computing: how many times as many operations as one of them alone.
        moving: how many times as many bytes of memory as one of them alone.
        link: the bytes a second that all of them exchange.
        latency: seconds of an exchange, for each doubling of their number.
    """

    processes: int
    computing: float
    moving: float
    link: float
    latency: float


class System(Struct, frozen=True):
    """A kind of chip, and the network of such chips. The table is ``systems.toml``.

    Attributes:
        name: what the command line calls it.
        title: what it is.
        operations: how many a second for products of a dtype.
        memory: the bytes of a chip.
        bandwidth: the bytes that a chip reads or writes in a second.
        torus: the dimensions of its torus; 0: chips are on a switch.
        chips: how many a slice, or a machine, has at most.
        link: between two of these.
        between: between slices or machines, of each chip.
        sources: where the figures are from.
        reached: the share of the peak that large products reach.
        hidden: of exchanges that have products to hide behind, the share that does.
        launch: the seconds that an operation takes at least, however small.
        shared: whether figures are those of all chips together, as of processes on one computer.
        together: what some numbers of them do together; else as much as one alone.
        gpu: what XLA's plugin for GPUs calls it; empty if it is none that it knows.
    """

    name: str
    title: str
    operations: Mapping[str, float]
    memory: float
    bandwidth: float
    torus: int
    chips: int
    link: Link
    between: Link
    sources: tuple[str, ...]
    reached: float = 1.0
    hidden: float = 0.0
    launch: float = 0.0
    shared: bool = False
    together: tuple[Together, ...] = ()
    gpu: str = ""

    def part(self, count: int) -> System:
        """What each of ``count`` chips has of it: all, unless they share."""
        if not self.shared:
            return self
        every = self._of_all(count)
        each = {d: every.computing * rate / count for d, rate in self.operations.items()}
        return replace(
            self, operations=each, memory=self.memory / count,
            link=Link(every.link / count, every.latency),
            bandwidth=every.moving * self.bandwidth / count,
        )  # fmt: skip

    def _of_all(self, count: int) -> Together:
        """What ``count`` do together: between the numbers that were measured as on a curve, beyond
        them as at the last."""
        alone = Together(1, 1.0, 1.0, self.link.bandwidth, self.link.latency)
        if not self.together or count == 1:
            return replace(alone, processes=count)
        rows = sorted(self.together, key=lambda row: row.processes)
        if rows[0].processes > 1:
            rows = [replace(alone, link=rows[0].link, latency=rows[0].latency), *rows]
        counts = [math.log(row.processes) for row in rows]

        def curve(values: Iterable[float]) -> float:
            return math.exp(np.interp(math.log(count), counts, [math.log(v) for v in values]))

        return Together(
            count, curve(row.computing for row in rows), curve(row.moving for row in rows),
            curve(row.link for row in rows), curve(row.latency for row in rows),
        )  # fmt: skip

    def peak(self, dtype: np.dtype) -> float:
        """Operations a second of products of ``dtype``."""
        if dtypes.is_integer(dtype) and dtype.itemsize == 1:
            return self.operations.get("int8", self.operations["bf16"])
        if dtype.itemsize <= 2:
            return self.operations["bf16"]
        wide = dtype.itemsize // (2 if dtypes.is_complex(dtype) else 1) > 4
        return self.operations.get("f64" if wide else "f32", self.operations["f32"] / 8)


class Machine(Struct, frozen=True):
    """So many chips of a system.

    Attributes:
        system: what kind.
        shape: of the torus of a slice, or how many chips a machine with a switch has.
        slices: how many slices or machines there are.
    """

    system: System
    shape: tuple[int, ...]
    slices: int = 1

    @property
    def inside(self) -> int:
        """The chips of a slice or of a machine."""
        return math.prod(self.shape)

    @property
    def chips(self) -> int:
        """All chips."""
        return self.inside * self.slices

    @property
    def chip(self) -> System:
        """The figures of one of them."""
        return self.system.part(self.chips)

    @property
    def name(self) -> str:
        """What the command line calls it."""
        shape = "x".join(map(str, self.shape if self.system.torus else (self.slices, self.inside)))
        slices = f":{self.slices}" if self.system.torus and self.slices > 1 else ""
        return f"{self.system.name}:{shape}{slices}"

    def __str__(self) -> str:
        return f"{self.chips:,} x {self.system.title}"

    # ---- how long ----

    def roofline(self, operations: float, moved: float, dtype: np.dtype) -> float:
        """Seconds of one chip for ``operations``, while it reads and writes ``moved`` bytes."""
        chip = self.chip
        return max(operations / chip.peak(dtype), moved / chip.bandwidth)

    def exchange(
        self, operation: str, size: float, group: int, stride: int = 1
    ) -> tuple[float, float]:
        """Seconds of latency and of bandwidth of a collective that gives ``size`` bytes to each of
        a ``group`` of chips, of which every one is the next but ``stride``."""
        if group <= 1:
            return 0.0, 0.0
        near = min(group, max(1, self.inside // stride))
        far = max(1, round(group / near))
        latency, time = self._within(operation, size, near)
        if far > 1:
            link = self.system.between
            moved = _moved(operation, size / near, far)
            latency += math.log2(far) * link.latency
            time += moved / link.bandwidth
        return latency, time

    def _within(self, operation: str, size: float, group: int) -> tuple[float, float]:
        if group <= 1:
            return 0.0, 0.0
        link, moved = self.chip.link, _moved(operation, size, group)
        if not self.system.torus:
            return math.log2(group) * link.latency, moved / link.bandwidth
        share = math.log(group) / math.log(max(self.inside, 2)) * self.system.torus
        rings = min(max(1.0, share), self.system.torus)  # the dimensions over which it lies
        side = group ** (1 / rings)
        hops = rings * side / 2
        if operation == "collective-permute":
            return link.latency, size / link.bandwidth
        if operation.endswith("all-to-all"):  # each byte goes side / 4 hops along each dimension
            return hops * link.latency, size * side / 8 / link.bandwidth
        return hops * link.latency, moved / (2 * rings * link.bandwidth)


def _moved(operation: str, size: float, group: int) -> float:
    """The bytes that each of a group sends, for a result of ``size`` bytes."""
    share = (group - 1) / group
    if operation == "all-reduce":
        return 2 * size * share
    if operation == "reduce-scatter":
        return size * (group - 1)
    if operation in ("collective-permute", "collective-broadcast"):
        return size
    return size * share


# ---- by name ------------------------------------------------------------------------------------


@functools.cache
def systems() -> dict[str, System]:
    """All systems of the table, by name.

    >>> sorted(systems())
    ['a100', 'h100', 'h200', 'v5e', 'v5p', 'v6e']
    """
    text = files("phalanx.insight").joinpath("systems.toml").read_text(encoding="utf-8")
    return {name: _system(name, **row) for name, row in tomllib.loads(text).items()}


def _read(path: str) -> System:
    """The system of a file of the user's, a table as in ``systems.toml``."""
    if not Path(path).is_file():
        raise ArgumentError(
            f"there is no file {path}; phalanx measure --out {path} writes what this computer does"
        )
    try:
        (row,) = tomllib.loads(Path(path).read_text(encoding="utf-8")).values()
        return _system(path, **row)
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise ArgumentError(
            f"{path}: it must have one table, with a system in the form that phalanx measure "
            f"writes: {e}"
        ) from None


def _system(
    name: str,
    link: float,
    latency: float,
    between: dict[str, float],
    sources: list[str],
    together: Sequence[dict[str, Any]] = (),
    **row: Any,
) -> System:
    outer = Link(between["link"], between["latency"])
    rows = tuple([Together(**measured) for measured in together])
    return System(
        name, link=Link(link, latency), between=outer, sources=tuple(sources), together=rows, **row
    )


def machine(name: str) -> Machine:
    """The machine called ``name``: ``v5p:8x8x8``, ``v5e:16x16:4`` for four slices, ``h100:64``, or
    ``h100:16x4`` for hosts with four each; ``cpu.toml:8`` for one of a system that is in a file.

    Raises:
        TypeError: it is no name.
        ValueError: there is no such system, or no machine of it of that shape.

    >>> str(machine("v5p:8x8x8")), machine("h100:64").slices
    ('512 x TPU v5p', 8)
    >>> machine("v5pp:8x8x8")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx.errors.ArgumentError: there is no system 'v5pp'. Did you mean 'v5p'? ...
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"a machine is called by its system and shape, as 'v5p:8x8x8', got {name!r} of type "
            f"{type(name).__name__}"
        )
    kind, _, rest = name.partition(":")
    system = _read(kind) if kind.endswith(".toml") else systems().get(kind.lower())
    if system is None:
        raise ArgumentError(
            f"there is no system {kind!r}. {suggest(kind, [*systems()])}".rstrip()
            + f" The systems are {', '.join(sorted(systems()))}"
        )
    form = re.fullmatch(r"(\d+(?:x\d+)*)(?::(\d+))?", rest or "1")
    sizes = [int(n) for n in form[1].split("x")] if form else []
    if form is None or 0 in sizes or form[2] == "0":
        raise ArgumentError(
            f"{name!r}: a shape follows the system, as in v5p:8x8x8 or h100:64; :4 behind it is "
            "for four slices"
        )
    slices = int(form[2] or 1)
    return _on_switch(system, sizes, slices) if not system.torus else _torus(system, sizes, slices)


def enough(system: System, count: int) -> Machine:
    """The smallest machine of a system that has ``count`` chips.

    >>> str(enough(systems()["h100"], 12))
    '16 x NVIDIA H100 SXM'
    """
    inside = min(count, system.chips)
    shape = balanced(inside, system.torus) if system.torus else (inside,)
    return Machine(system, shape, count // inside + (count % inside > 0))


def _on_switch(system: System, sizes: list[int], slices: int) -> Machine:
    count, machines = math.prod(sizes) * slices, math.prod(sizes[:-1]) * slices
    if sizes[-1] <= system.chips:
        return Machine(system, (sizes[-1],), machines)
    if machines > 1 or count % system.chips:
        raise ArgumentError(
            f"a machine has {system.chips} of {system.title}, got {'x'.join(map(str, sizes))}; "
            f"take a multiple, such as {system.name}:{count // system.chips * system.chips}"
        )
    return Machine(system, (system.chips,), count // system.chips)


def _torus(system: System, sizes: list[int], slices: int) -> Machine:
    if len(sizes) == 1:
        sizes = list(balanced(sizes[0], system.torus))
    count = math.prod(sizes)
    if len(sizes) > system.torus or count > system.chips:
        several = Blocks(count, system.chips).length
        fitting = "x".join(map(str, balanced(min(count, system.chips), system.torus)))
        take = f"for several slices write {system.name}:{fitting}:{several}"
        if several == 1:
            take = f"for as many chips write {system.name}:{fitting}"
        raise ArgumentError(
            f"{system.title} has a torus of {system.torus} dimensions and up to {system.chips:,} "
            f"chips, got {'x'.join(map(str, sizes))}; {take}"
        )
    return Machine(system, tuple(sizes), slices)


def balanced(count: int, dims: int) -> tuple[int, ...]:
    """``count`` as a product of ``dims`` numbers that differ little.

    >>> balanced(128, 3), balanced(256, 2)
    ((4, 4, 8), (16, 16))
    """
    if dims == 1:
        return (count,)
    wanted = count ** (1 / dims)
    first = max(n for n in range(1, count + 1) if count % n == 0 and n <= wanted + 1e-9)
    return (first, *balanced(count // first, dims - 1))
