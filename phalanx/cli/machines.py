"""The machines of a launch: what each runs in an attempt, and whether there is another one.

The launcher of the first machine decides. With ``--elastic`` the others stay connected to it: they
say which of their processes are left, and are told which take part in the next attempt. What is
lost, or comes back, is what connects no more, or again.
"""

from __future__ import annotations

import argparse
import math
import socket
import sys
import time
from functools import partial
from queue import Empty, SimpleQueue

import msgspec
from msgspec import Struct, structs

from phalanx.api.distributed import AddressTaken, credentials_of, listening_at
from phalanx.base.errors import RendezvousError
from phalanx.processes.hub import Hub
from phalanx.processes.line import Line
from phalanx.processes.loop import EventLoop
from phalanx.processes.reception import Reception
from phalanx.processes.snapshots import SnapshotServer
from phalanx.processes.wire import Message, family_of, is_secret, split

_ARRIVAL = 300.0  # seconds within which all machines must have come
_END = 30.0  # seconds within which an attempt ends in all machines when it has failed in one
_PAUSE = 0.2
_FAREWELL = 1.0
_STRANGERS_TOLD = 100  # hosts, and why they are turned away: a scanner has as many as it likes


class Assignment(Struct, frozen=True):
    """What a machine runs in an attempt.

    Attributes:
        attempt: how often the program was started again before.
        first: the number of its first process, which the others follow.
        slots: their places on the machine.
        count: how many processes all machines run.
        snapshot_servers: the addresses of the launchers that keep snapshots, this machine's first,
            then its neighbour's.
        coordinator: where the processes meet; "" where the first machine is to listen.
    """

    attempt: int
    first: int
    slots: list[int]
    count: int
    snapshot_servers: list[str] = []
    coordinator: str = ""


class Ending(Struct, frozen=True):
    """How a machine's share of an attempt has ended: a status, and the slots that are lost."""

    status: int
    lost: list[int]


class Fixed:
    """Machines that run the same in each attempt, each of which counts for itself."""

    status = 0

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments, self._attempt = arguments, 0

    def first(self) -> Assignment | None:
        """What this machine runs at first."""
        arguments = self._arguments
        start, count = arguments.node_rank * arguments.nproc, arguments.nproc * arguments.nnodes
        return Assignment(self._attempt, start, [*range(arguments.nproc)], count,
                     coordinator=arguments.coordinator if arguments.node_rank else "")  # fmt: skip

    def begin(self, coordinator: str, hub: Hub | None) -> None:
        """All know already where it is."""

    def after(self, ending: Ending) -> Assignment | None:
        """What this machine runs next."""
        self.status = ending.status
        left = self._arguments.max_restarts - self._attempt
        if not self.status or not left:
            return None
        self._attempt += 1
        report_restart(left - 1, self._arguments.max_restarts)
        return self.first()

    def close(self) -> None:
        """There is nothing to let go of."""


class _Machine(Struct):
    """A machine, as the first one knows it; ``line`` leads to its launcher."""

    slots: list[int]
    snapshot_server: str
    line: Line | None = None
    status: int | None = None  # how its share has ended
    first: int = 0  # the number of its first process
    running: int = 0  # processes

    @property
    def processes(self) -> range:
        """The numbers of those that it runs, in as many of its first slots."""
        return range(self.first, self.first + self.running)


class Leader:
    """The first machine, or the only one.

    Raises:
        RendezvousError, ValueError: it cannot listen.
    """

    def __init__(self, arguments: argparse.Namespace, token: str) -> None:
        self._arguments, self._token = arguments, token
        self._least, self._most = arguments.elastic or (0, None)
        self._attempt, self._restarts = 0, arguments.max_restarts
        self.status = 1  # until an attempt has ended well
        self._lost = 0  # processes in this attempt
        self._processes: dict[Line, range] = {}  # of the other machines in this attempt
        self._hub: Hub | None = None  # of this attempt
        self._inbox: SimpleQueue[tuple[Line, Message | Hello]] = SimpleQueue()
        self._turned_away: set[str] = set()  # who, and why
        self._credentials = credentials_of()
        host, port = listening_at(arguments.coordinator or "127.0.0.1:0", "--coordinator")
        snapshots = arguments.elastic or arguments.max_restarts
        self._snapshots: SnapshotServer | None = None
        self._loop: EventLoop | None = None
        try:
            if snapshots:
                self._snapshots = SnapshotServer(host, token, self._credentials)
            if arguments.nnodes > 1:
                self._listener = socket.create_server((host, port), family=family_of(host))
                self._loop = EventLoop()
        except OSError as e:
            raise AddressTaken.at(host, port, e) from None
        snapshot_server = self._snapshots.address if self._snapshots else ""
        self._there = {0: _Machine([*range(arguments.nproc)], snapshot_server)}
        if self._loop is not None:
            Reception(
                self._loop, self._listener, self._credentials, self._meet, self._note_stranger
            )

    # ---- who comes, says something, and goes; the first in the thread of the loop ----

    def _meet(self, line: Line, first: Message) -> bool:
        """Somebody says who that is; who has the secret may come between two attempts."""
        try:
            hello = msgspec.convert(first, Hello)
        except msgspec.ValidationError:
            return False
        if is_secret(hello.token, self._token):
            line.on_message = partial(self._note, line)
            line.on_end = partial(self._note_end, line)
            self._note(line, hello)
        else:
            self._refuse(line, "it belongs to another launch: PHALANX_TOKEN differs")
        return True

    def _refuse(self, line: Line, why: str) -> None:
        line.send(what="over", status=1, why=why)
        line.close()
        self._note_stranger(line, why)

    def _note_stranger(self, line: Line, why: str) -> None:
        told = f"somebody at {line.host} was turned away: {why}"
        if told not in self._turned_away and len(self._turned_away) < _STRANGERS_TOLD:
            self._turned_away.add(told)
            report(told)

    def _note_end(self, line: Line) -> None:
        for process in self._processes.get(line, ()):
            if self._hub is not None:
                self._hub.process_ended(process, "was lost with its machine", True)
        self._note(line, {})

    def _note(self, line: Line, message: Message | Hello) -> None:
        self._inbox.put((line, message))

    def _receive(self, patience: float) -> bool:
        """Take what is said next; whether something is."""
        try:
            line, message = self._inbox.get(timeout=max(patience, 0.001))
        except Empty:
            return False
        rank = next((r for r, m in self._there.items() if m.line is line), None)
        if isinstance(message, Hello):
            self._let_in(line, message)
        elif rank is None:  # it was not let in, or is lost
            pass
        elif not message:
            self._lose(rank, "the connection to its launcher is closed")
        else:
            try:
                self._take(self._there[rank], msgspec.convert(message, Ending))
            except msgspec.ValidationError:
                self._lose(rank, f"it says what is not understood: {str(message)[:80]}")
        return True

    def _let_in(self, line: Line, hello: Hello) -> None:
        if not 0 < hello.rank < self._arguments.nnodes:
            self._refuse(
                line, f"--node-rank {hello.rank} is not one of {self._arguments.nnodes} machines"
            )
        elif hello.rank in self._there:
            self._refuse(line, f"two launchers have --node-rank {hello.rank}")
        else:
            self._there[hello.rank] = _Machine(hello.slots, hello.snapshot_server, line)

    # ---- attempts ----

    def first(self) -> Assignment | None:
        """What this machine runs at first, when all have come, or enough of them in time.

        Raises:
            RendezvousError: too few have.
        """
        until = time.monotonic() + _ARRIVAL
        while len(self._there) < self._arguments.nnodes and time.monotonic() < until:
            self._receive(until - time.monotonic())
        if self._count() < self._least:
            raise RendezvousError(
                f"after {_ARRIVAL:g} s, {self._count()} processes have come, and --elastic needs "
                f"{self._least}"
            )
        return self._assignments()[0]

    def _count(self) -> int:
        return sum(len(machine.slots) for machine in self._there.values())

    def _too_few(self) -> str:
        return f"{self._count()} left, and --elastic needs {self._least}"

    def _assignments(self) -> dict[int, Assignment]:
        """What each machine runs, by its rank; what is more than the most is spare."""
        ranks = sorted(self._there)
        snapshot_servers = [k for rank in ranks if (k := self._there[rank].snapshot_server)]
        slots: dict[int, list[int]] = {}
        count = 0
        for rank in ranks:
            room = None if self._most is None else self._most - count
            slots[rank] = self._there[rank].slots[:room]
            count += len(slots[rank])
        assigned: dict[int, Assignment] = {}
        first = 0
        for at, rank in enumerate(ranks):
            near = [*snapshot_servers[at:], *snapshot_servers[:at]]
            assigned[rank] = Assignment(self._attempt, first, slots[rank], count, near)
            first += len(slots[rank])
        return assigned

    def begin(self, coordinator: str, hub: Hub | None) -> None:
        """Tell the other machines what they run, and where the processes meet, in ``hub``."""
        self._lost, self._hub = 0, hub
        self._processes.clear()
        for rank, assignment in self._assignments().items():
            machine = self._there[rank]
            machine.status, machine.running = None, len(assignment.slots)
            machine.first = assignment.first
            if machine.line is not None:
                self._processes[machine.line] = machine.processes
                assigned = structs.replace(assignment, coordinator=coordinator)
                machine.line.send(what="begin", assignment=msgspec.to_builtins(assigned))

    def _take(self, machine: _Machine, ending: Ending) -> None:
        machine.status = ending.status
        if self._least:
            silent = self._hub.silent if self._hub else ()  # who is back too late is lost, too
            places = zip(machine.processes, machine.slots, strict=False)
            lost = {*ending.lost, *(slot for process, slot in places if process in silent)}
            self._lost += len(lost)
            machine.slots = [slot for slot in machine.slots if slot not in lost]

    def after(self, ending: Ending) -> Assignment | None:
        """What this machine runs next, when all others have ended, too; None if nothing."""
        before = sum(machine.running for machine in self._there.values())
        self._take(self._there[0], ending)
        self._wait_for_all()
        self.status = next((m.status for m in self._there.values() if m.status), 0)
        if not self.status or not self._is_another(before):
            return None
        self._attempt += 1
        return self._assignments()[0]

    def _wait_for_all(self) -> None:
        """Until all machines have ended their shares; when one has failed the others soon do."""
        until = math.inf
        while late := [r for r, m in self._there.items() if m.running and m.status is None]:
            if until == math.inf and any(machine.status for machine in self._there.values()):
                until = time.monotonic() + _END
            if time.monotonic() > until:
                for rank in late:
                    self._lose(rank, f"it has not ended {_END:g} s after another has failed")
            else:
                self._receive(_PAUSE)
        while self._receive(0):  # who has come back meanwhile takes part
            pass

    def _lose(self, rank: int, why: str) -> None:
        machine = self._there.pop(rank)
        if machine.status is None:
            self._lost += machine.running
        if machine.line is not None:
            machine.line.end()
        report(f"machine {rank} is lost: {why}")

    def _is_another(self, before: int) -> bool:
        """Whether there is another attempt, after one of so many processes."""
        if self._least and self._lost:
            if self._count() < self._least:
                report(f"lost {self._lost} of {before} processes: {self._too_few()}")
                return False
            left = self._assignments()[0].count
            report(f"lost {self._lost} of {before} processes; starting again with {left}")
            return True
        if self._restarts:
            self._restarts -= 1
            report_restart(self._restarts, self._arguments.max_restarts)
            return True
        return False

    def close(self) -> None:
        """Let go of the other machines, and of what is kept."""
        if self._snapshots is not None:
            self._snapshots.close()
        if self._loop is not None:
            for machine in self._there.values():
                if machine.line is not None:
                    machine.line.send(what="over", status=self.status, why="")
                    machine.line.close(_FAREWELL)
            self._loop.call(partial(self._loop.dismiss, self._listener))


class Hello(Struct, frozen=True):
    """Which machine it is whose launcher connects, and what it has."""

    token: str
    rank: int
    slots: list[int]
    snapshot_server: str


class Follower:
    """A machine that is not the first.

    Raises:
        RendezvousError, OSError, ValueError: the first does not answer, or refuses.
    """

    status = 1

    def __init__(self, arguments: argparse.Namespace, token: str) -> None:
        self._arguments = arguments
        host, _ = split(arguments.coordinator)
        credentials = credentials_of()
        sock = _connected(arguments.coordinator)
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self._snapshots = SnapshotServer(sock.getsockname()[0], token, credentials)
        self._line = Line(EventLoop(), sock, credentials and credentials.call(host),
                          self._inbox.put, partial(self._inbox.put, {}))  # fmt: skip
        self._line.send(token=token, rank=arguments.node_rank, slots=[*range(arguments.nproc)],
                        snapshot_server=self._snapshots.address)  # fmt: skip
        report(f"connected to the first machine, at {arguments.coordinator}")

    def first(self) -> Assignment | None:
        """What this machine runs at first."""
        return self._next()

    def _next(self) -> Assignment | None:
        message = self._inbox.get()
        if message.get("what") == "begin":
            return msgspec.convert(message["assignment"], Assignment)
        if not message:
            why = self._line.fault or "the connection to its launcher is closed"
            raise RendezvousError(f"the first machine, at {self._arguments.coordinator}: {why}")
        if message["why"]:
            raise RendezvousError(f"the first machine refuses this one: {message['why']}")
        self.status = message["status"]
        return None

    def begin(self, coordinator: str, hub: Hub | None) -> None:
        """The others know already where it is."""

    def after(self, ending: Ending) -> Assignment | None:
        """What this machine runs next, as the first one decides."""
        self._line.send(**msgspec.to_builtins(ending))
        return self._next()

    def close(self) -> None:
        """Let go of the first machine, and of what is kept."""
        self._snapshots.close()
        self._line.close(_FAREWELL)


def _connected(address: str) -> socket.socket:
    """A connection to the launcher of the first machine, which may not be there yet.

    Raises:
        RendezvousError: nobody answers in time.
    """
    until = time.monotonic() + _ARRIVAL
    while True:
        try:
            return socket.create_connection(split(address), timeout=_END)
        except OSError as e:
            if time.monotonic() > until:
                why = f"nobody answers there after {_ARRIVAL:g} s: {e.strerror or e}"
                raise RendezvousError(f"the first machine, at {address}: {why}") from None
        time.sleep(_PAUSE)


def report_restart(left: int, most: int) -> None:
    """Say that all start again, which they may so many times more."""
    report(f"starting all processes again ({left} of {most} times left)")


def report(words: str) -> None:
    """Tell the user something of the launcher's."""
    print(f"phalanx launch: {words}", file=sys.stderr, flush=True)
