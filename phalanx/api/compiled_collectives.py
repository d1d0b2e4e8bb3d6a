"""``compiled.collectives()``: what devices exchange in a program, in the user's words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.run.backend import Exchange
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.sharding import Devices


class Collective(Struct, frozen=True):
    """An operation in which devices exchange data.

    Attributes:
        operation: what XLA calls it: ``all-reduce``, ``all-gather``, ``reduce-scatter``,
            ``all-to-all``, ``collective-permute``, ...
        axes: the axes of a mesh along which those that exchange differ, or of a ``pmap``; where
            they are fewer than differ along these, ``devices`` tells it. None if that is unknown.
        bytes: the size of the result on each device.
        count: how often it runs in a call. In a loop whose length is not known, once.
        line: the user's line that it comes from.
        devices: how many exchange with each other.

    >>> Collective("all-reduce", ("batch",), 4096, 1, "train.py:7 (step)", 8).axes
    ('batch',)
    """

    operation: str
    axes: tuple[Any, ...] | None
    bytes: int
    count: int
    line: str
    devices: int


class Collectives(tuple[Collective, ...]):
    """What devices exchange in a program, the most bytes first; it prints as a table.

    Args:
        iterable: the collectives.

    >>> print(Collectives([Collective("all-reduce", ("batch",), 4096, 1, "train.py:7 (step)", 8)]))
    operation   axes   bytes  count  line
    all-reduce  batch  4,096      1  train.py:7 (step)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        head = ("operation", "axes", "bytes", "count", "line")
        rows = [
            (r.operation, "?" if r.axes is None else ", ".join(map(str, r.axes)),
             f"{r.bytes:,}", str(r.count), r.line)
            for r in self
        ]  # fmt: skip
        if not rows:
            return "no collectives"
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        return "\n".join(_line(row, widths) for row in (head, *rows))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    operation, axes, size, count, line = row
    a, b, c, d, _ = widths
    return f"{operation:<{a}}  {axes:<{b}}  {size:>{c}}  {count:>{d}}  {line}"


def collectives(
    exchanged: Iterable[Exchange], devices: Devices, names: Iterable[NamedSharding]
) -> Collectives:
    """A table of what is ``exchanged`` among ``devices``, over axes of the meshes of ``names``."""
    meshes = list(dict.fromkeys(s.mesh for s in names))
    rows: dict[tuple[Any, ...], Collective] = {}
    for e in exchanged:
        axes = _axes(e, devices, meshes)
        key = (e.operation, axes, e.bytes, e.line)
        count = e.count + (rows[key].count if key in rows else 0)
        rows[key] = Collective(e.operation, axes, e.bytes, count, e.line, _group(e, len(devices)))
    return Collectives(sorted(rows.values(), key=lambda r: -r.bytes * r.count))


def _group(e: Exchange, devices: int) -> int:
    """How many devices exchange with each other; all, where that is not told."""
    if e.pairs is not None:
        return 2
    return max(map(len, e.groups)) if e.groups else devices


def _axes(e: Exchange, devices: Devices, meshes: Sequence[Mesh]) -> tuple[str, ...] | None:
    """The axes of a mesh along which the fewest differ, with those that exchange among them."""
    who = e.groups if e.pairs is None else e.pairs
    if who is None:
        return None
    found: list[tuple[int, tuple[str, ...]]] = []
    for mesh in meshes:
        for names, rows in _divisions(mesh, devices):
            row = {i: n for n, members in enumerate(rows) for i in members}
            if all(len({row[i] for i in group}) == 1 for group in who):
                found.append((len(rows[0]), names))
    return min(found, key=lambda f: f[0], default=(0, None))[1]


def _divisions(mesh: Mesh, devices: Devices) -> Iterator[tuple[tuple[str, ...], list[list[int]]]]:
    """Some axes of ``mesh``, and the devices, by number, that differ in those alone."""
    number = {device: i for i, device in enumerate(devices)}
    if set(mesh.flat) != set(devices):
        return
    ids = np.array([number[d] for d in mesh.flat]).reshape(mesh.axis_sizes)
    dims = [i for i, n in enumerate(mesh.axis_sizes) if n > 1]
    for length in range(1, len(dims) + 1):
        for last in itertools.combinations(dims, length):
            first = [i for i in range(ids.ndim) if i not in last]
            size = int(np.prod([mesh.axis_sizes[i] for i in last]))
            rows = ids.transpose([*first, *last]).reshape(-1, size).tolist()
            yield tuple(mesh.axis_names[i] for i in last), rows
