"""A run that goes on when processes are lost, from a snapshot that launchers keep in memory.

``phalanx launch --elastic 2: -n 4 train.py`` starts again with those that are left.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from phalanx.api.aot import ShapeDtypeStruct
from phalanx.api.distributed import credentials_of
from phalanx.base import log
from phalanx.base import tree as trees
from phalanx.base.boundary import bound
from phalanx.base.numpy_kinds import is_ndarray
from phalanx.experimental.checkpoint import together
from phalanx.experimental.checkpoint.index import Stored, index_of
from phalanx.experimental.checkpoint.leaves import Content, content, stored_dtype
from phalanx.experimental.checkpoint.manager import latest
from phalanx.experimental.checkpoint.outline import outline
from phalanx.experimental.checkpoint.restoring import read, restore
from phalanx.experimental.checkpoint.saving import (
    alike,
    as_wholes,
    by_number,
    check_alike,
    is_written,
    rows_of,
)
from phalanx.experimental.checkpoint.wanted import Wanted
from phalanx.processes.cluster import restarts
from phalanx.processes.forms import numbers
from phalanx.processes.snapshots import Number, SnapshotClient, number_of
from phalanx.run.array import DeviceArray
from phalanx.run.replicas import digest

__all__ = ["resume", "snapshot"]

_WHO = "elastic.snapshot"
_RESUMED = "elastic.resume of this snapshot"
_COPIES = 2  # of each part: with the launcher of this machine, and with its neighbour's
T = TypeVar("T")


def snapshot(state: Any) -> None:
    """Keep ``state`` in the memory of launchers, for ``resume`` when a process has been lost.

    In a program of several processes all of them call it, with the same tree; each gives what its
    devices hold. A launcher keeps what its own processes give, and what those of one other machine
    do. It returns when the arrays are copied, and sends them meanwhile; what was kept before is
    forgotten when all have sent theirs. Where no launcher keeps snapshots it does nothing but look
    at ``state``, and the log says so once.

    Args:
        state: nested dicts, lists, tuples and registered classes. Its leaves are Phalanx arrays,
            wherever they lie, NumPy arrays, and numbers. Arrays that are whole in each process, and
            numbers, must be the same in all, but for results of ``pmap``, of which each has rows.

    Raises:
        TypeError: a leaf is neither an array nor a number; the message names it.
        TreeError: the processes give different trees or values.
        TreeError, ShapeError, ArgumentError: it is the first one, and what ``resume`` was given is
            not like it, so that it could not be restored.
        PeerLost: a process is gone.
        OSError: the launcher of this machine does not take it, now or the last time.

    >>> import phalanx
    >>> from phalanx.experimental import elastic
    >>> elastic.snapshot({"w": phalanx.numpy.ones(3), "step": 7})
    """
    tree, leaves = outline(state, _WHO)
    contents = [content(trees.keystr(path), leaf, True, _WHO) for path, leaf in leaves]
    servers = _snapshot_servers()
    if servers:
        _sender.begin(servers, tree, contents)
    elif not _logged:
        _logged.append(_WHO)
        log.warn("%s: no launcher keeps snapshots here; phalanx launch --elastic does", _WHO)


_logged: list[str] = []  # what the log has said once


def resume(state: T, directory: str | os.PathLike[str] | None = None) -> T:
    """What a run begins with: the newest snapshot, else the newest checkpoint, else ``state``.

    The processes may be others, and more or fewer, than those that gave the snapshot. In a program
    of several processes all of them call it.

    Args:
        state: what the run begins with if it is the first time. It says what is wanted as ``like``
            of ``checkpoint.restore`` does: each leaf is restored as one like it.
        directory: where the checkpoints of the run are, if there are any: the newest is restored
            where no snapshot is left, and the log says why.

    Returns:
        A tree like ``state``.

    Raises:
        TreeError, ShapeError, ArgumentError: what was kept is not like ``state``.
        OSError: a launcher does not give what it keeps.

    >>> from phalanx.experimental import elastic
    >>> elastic.resume({"w": 0.5, "step": 0})
    {'w': 0.5, 'step': 0}
    """
    servers = _snapshot_servers()
    _sender.wait()
    _sender.like = [trees.map(_likeness, state)]
    together.gather("what is kept before resuming", None)
    mine = _found(servers if together.process() == 0 else [])
    places, why = together.gather("resuming from a snapshot", mine)[0]
    if places:
        snapshot = _Snapshot(servers, places)
        wanted = Wanted(snapshot.stored, state, "elastic.resume")
        return wanted.tree_of(read(snapshot.stored, wanted.targets, snapshot.opened))
    step = together.gather(
        "resuming from a checkpoint", None if directory is None else latest(directory)
    )[0]
    if why:
        then = "begins anew" if step is None else f"goes on from step {step} in {directory}"
        log.warn("elastic.resume: %s; the run %s", why, then)
    return state if directory is None or step is None else restore(directory, state, step)


def _likeness(leaf: Any) -> Any:
    """What asks for the same as ``leaf``, and keeps no memory."""
    if is_ndarray(leaf):
        return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)
    if isinstance(leaf, DeviceArray):
        return ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    return leaf


def _snapshot_servers() -> list[SnapshotClient]:
    """The launchers that keep snapshots: that of this machine, its neighbour's, and all others."""
    addresses = os.environ.get("PHALANX_SNAPSHOT_SERVERS", "")
    token = os.environ.get("PHALANX_TOKEN", "")
    credentials = credentials_of() if addresses else None
    return [
        SnapshotClient(address, token, credentials) for address in addresses.split(",") if address
    ]


class Piece(Struct, frozen=True):
    """Some rows of a leaf, as bytes among those that a process gave: how many, from where."""

    leaf: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    offset: int
    size: int


class Head(Struct, frozen=True):
    """What a process tells of its part: the index of the snapshot, and what it has of it."""

    index: str
    pieces: list[Piece]


class _Sender:
    """Sends the snapshots of this process, one after the other."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "snapshot")
        self._sending: Future[None] | None = None
        self._numbers = itertools.count()
        self.like: list[Any] = []  # what was resumed; the first snapshot is to be like it

    def begin(self, servers: Sequence[SnapshotClient], tree: Any, contents: list[Content]) -> None:
        """Agree with the others, who have then sent all before, and begin to send."""
        self.wait()
        number = next(self._numbers)
        contents, givers = _agreed(f"snapshot {number}", contents)
        attempt, leaves = restarts(os.environ), [c.leaf for c in contents]
        for like in self.like:
            Wanted(Stored(Path(f"snapshot {attempt}.{number}"), tree, leaves), like, _RESUMED)
        self.like = []
        if together.process() not in givers:
            return
        index = index_of(number, tree, leaves)
        before = f"{attempt}.{number - 1}" if number else ""
        part = _Part(givers.index(together.process()), len(givers))
        name = f"{attempt}.{number}/{part.name}"
        self._sending = self._thread.submit(_send, servers, before, name, index, contents)

    def wait(self) -> None:
        """Wait until what was given is sent.

        Raises:
            OSError: this machine's launcher has not taken it.
        """
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.result()


_sender = _Sender()


def _agreed(topic: str, contents: Sequence[Content]) -> tuple[list[Content], list[int]]:
    """The contents as parts of the whole that all processes have, and who gives some.

    Raises:
        TreeError: the processes differ.
    """
    compared = by_number([*alike(c), *_value(c)] for c in contents)
    mine = {"rows": rows_of(contents), "gives": any(c.parts and is_written(c) for c in contents)}
    differing, every = together.compare(topic, compared, mine)
    check_alike(differing, _WHO)
    givers = [process for process, one in enumerate(every) if one["gives"] or not process]
    return as_wholes(contents, [one["rows"] for one in every]), givers


def _value(c: Content) -> list[str]:
    """What a leaf is that must be the same in all processes, in words; of others nothing."""
    if c.leaf.is_number:
        return [c.leaf.value]
    whole = c.parts if c.local and c.joined is None else ()
    return [f"{c.leaf} with checksum {digest(part.data):08x}" for part in whole]


def _send(
    servers: Sequence[SnapshotClient],
    before: str,
    name: str,
    index: str,
    contents: Sequence[Content],
) -> None:
    """Give this machine's launcher and its neighbour's the parts that this process owns.

    All have sent theirs of the snapshot ``before``, if there is one.

    Raises:
        OSError: this machine's does not take them.
    """
    pieces: list[Piece] = []
    data: list[memoryview] = []
    offset = 0
    for number, c in enumerate(contents):
        for part in c.parts if is_written(c) else ():
            held = np.ascontiguousarray(part.data)
            pieces.append(Piece(number, part.start, part.data.shape, offset, held.nbytes))
            data.append(held.reshape(-1).view(np.uint8).data)
            offset += held.nbytes
    head = msgspec.json.encode(Head(index, pieces))
    for at, server in enumerate(servers[:_COPIES]):
        try:
            if before:
                server.forget_before(before)
            server.put(f"{name}.data", data)
            server.put(name, [head])
        except OSError as e:
            if at == 0:
                raise
            if server.address not in _logged:
                _logged.append(server.address)
                log.warn("%s: the neighbour does not keep copies: %s", _WHO, e)


class _Part(Struct, frozen=True):
    """Which part of a snapshot one process gave, of how many."""

    number: int
    count: int

    @property
    def name(self) -> str:
        """What the servers call what is told of it; its data are beside that.

        >>> _Part(1, 4).name
        '1.of.4'
        """
        return f"{self.number}.of.{self.count}"

    @classmethod
    def of_name(cls, name: str) -> _Part:
        """The inverse, of the last part of a path."""
        number, _, count = name.rpartition("/")[2].split(".")
        return cls(int(number), int(count))


Places = dict[str, list[str]]  # the names of a snapshot's parts, and the launchers that keep them


def _found(servers: Sequence[SnapshotClient]) -> tuple[Places, str]:
    """The newest snapshot that is there as a whole; if none is, why, or "" if none was taken."""
    every: dict[Number, Places] = {}
    for server in servers:
        try:
            names = server.names()
        except OSError as e:
            log.warn("elastic.resume: the launcher at %s does not answer: %s", server.address, e)
            continue
        for name in names:
            if not name.endswith(".data"):
                every.setdefault(number_of(name), {}).setdefault(name, []).append(server.address)
    why = ""
    for number in sorted(every, reverse=True):
        parts = [_Part.of_name(name) for name in every[number]]
        if len(parts) == parts[0].count:
            return every[number], ""
        missing = sorted({*range(parts[0].count)} - {part.number for part in parts})
        text = f"part{'s' * (len(missing) > 1)} {numbers(missing, ', ')}"
        why = why or (
            f"no snapshot is left as a whole: {text} of {parts[0].count}, from 0, of the newest "
            "went with the launchers that kept them"
        )
    return {}, why


class _Snapshot:
    """A snapshot of which every part is kept, each in some ``places``.

    Raises:
        OSError: a launcher does not give what it keeps.
    """

    def __init__(self, servers: Sequence[SnapshotClient], places: Places) -> None:
        near = [server.address for server in servers]
        self._pieces: list[tuple[Piece, SnapshotClient, str]] = []
        index = ""
        for name, addresses in places.items():
            server = servers[min(map(near.index, addresses))]
            head = msgspec.json.decode(server.get(name), type=Head)
            self._pieces += [(piece, server, f"{name}.data") for piece in head.pieces]
            index = head.index
        folder = Path(f"snapshot {next(iter(places)).partition('/')[0]}")
        self.stored = Stored.of(folder, index.encode())

    def opened(self, stored: Stored, number: int) -> _Rows:
        """The array that is leaf ``number``."""
        dtype = stored_dtype(stored.leaves[number].type.physical.dtype)
        return _Rows([piece for piece in self._pieces if piece[0].leaf == number], dtype)


class _Rows:
    """An array, in pieces that launchers keep."""

    def __init__(
        self, pieces: Sequence[tuple[Piece, SnapshotClient, str]], dtype: np.dtype
    ) -> None:
        self._pieces, self._dtype = pieces, dtype

    def begin(self, rows: Sequence[range]) -> Callable[[], np.ndarray]:
        """A function that asks for some rows of each dimension."""
        return lambda: self._read(rows)

    def _read(self, rows: Sequence[range]) -> np.ndarray:
        found = np.empty([len(r) for r in rows], self._dtype)
        for piece, server, name in self._pieces:
            held = [range(a, a + n) for a, n in zip(piece.start, piece.shape, strict=True)]
            both = [range(max(r.start, h.start), min(r.stop, h.stop))
                    for r, h in zip(rows, held, strict=True)]  # fmt: skip
            if all(both):
                data = self._rows_of(piece, server, name, both)
                found[_within(both, rows)] = data
        return found

    def _rows_of(
        self, piece: Piece, server: SnapshotClient, name: str, rows: list[range]
    ) -> np.ndarray:
        """Those ``rows`` of a piece; along its first dimension others do not come here."""
        shape, first = list(piece.shape), piece.offset
        if shape:
            each = piece.size // shape[0]
            first += (rows[0].start - piece.start[0]) * each
            shape[0] = len(rows[0])
        size = math.prod(shape) * self._dtype.itemsize
        data = np.frombuffer(server.get(name, first, first + size), self._dtype).reshape(shape)
        others = [range(a, a + n) for a, n in zip(piece.start[1:], shape[1:], strict=True)]
        return data[_within(rows, [*rows[:1], *others])]


def _within(rows: Sequence[range], held: Sequence[range]) -> tuple[slice, ...]:
    """Where ``rows`` are among those that are ``held``."""
    return tuple(
        slice(r.start - h.start, r.stop - h.start) for r, h in zip(rows, held, strict=True)
    )


bound(sys.modules[__name__])
