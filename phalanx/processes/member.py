"""This process among those that compute together: what it says to the coordinator, and hears.

There is at most one ``Member``, ``joined_member()``. What spans processes asks it before it
starts, and when it fails: ``check`` raises what has become of the others.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from phalanx.base.errors import (
    PeerLost,
    PeerSlow,
    PhalanxError,
    ProgramMismatch,
    RendezvousError,
)
from phalanx.base.source import user_location
from phalanx.processes.differing import launches
from phalanx.processes.group import Group
from phalanx.processes.joined import joined_member
from phalanx.processes.line import Line
from phalanx.processes.loop import EventLoop
from phalanx.processes.relay import Relay
from phalanx.processes.settings import Settings
from phalanx.processes.threads import in_another_thread, start
from phalanx.processes.watched import PULSE, Lateness, Silence, first_warning, pause
from phalanx.processes.wire import LONGEST, Message, encoded, split

_GRACE = 2.0  # how long what is under way may go on when a process has ended, in seconds
_STUBBORN = 30.0  # how long after a verdict something may still begin to wait for others
T = TypeVar("T")


class Member:
    """A connection to the coordinator, from ``join`` to ``leave``."""

    def __init__(self, settings: Settings, loop: EventLoop, line: Line, welcome: Message) -> None:
        self.settings = settings
        self.process, self.count = settings.process, settings.count
        self._first: Message = welcome["first"]  # who process 0 is
        self.host: str = line.socket.getsockname()[0]  # at which others reach this process
        self.groups: dict[frozenset[int], Group] = {}
        self.latest: tuple[Group, int, str] | None = None  # what was launched last
        # those that have ended in peace, in this order, and how many they launched over each group
        self.gone: dict[int, dict[str, int]] = {}
        self._who_left: dict[int, Message] = {}
        self.verdict: PhalanxError | None = None
        self.over = math.inf  # the time of the verdict
        self._letting_go: list[threading.Thread] = []
        self._leaving = threading.Event()
        self.let_go: Callable[[], None] = lambda: None  # ends what waits for others in the runtime
        self.is_caught: Callable[[], bool] = lambda: False  # whether a thread waits there
        self._loop, self._line = loop, line
        self._changed = threading.Condition()
        self._requests = itertools.count()  # for what is stored
        # to those that are waited for, by the keys of gathers and the numbers of requests
        self._answers: dict[str | int, Message | None] = {}
        self._left = False
        self.reachable = True  # whether the coordinator is there
        self._coordinator = Silence()
        self._late = Lateness(first_warning(settings.silence))
        self._pause = pause(welcome["silence"])  # between signs of life
        self._sent_at = self._looked = time.monotonic()
        loop.fault = self._failed_here
        line.on_life = self._coordinator.end
        line.longest = LONGEST * (self.count + 1)  # what all have said, and more words

    def begin(self, received: SimpleQueue[Message]) -> None:
        """Hear the coordinator from now on, after what was ``received`` before; in the loop."""
        self._line.on_message, self._line.on_end = self._receive, self._end
        self._loop.every(min(PULSE, self._pause), self._beat)
        while not received.empty():
            message = received.get()
            self._receive(message) if message else self._end()

    def relay(self) -> Relay:
        """A way to the service of the runtime, for as long as it takes to connect."""
        return Relay(self._loop, self.settings.connected, self._to_runtime)

    def _to_runtime(self, sock: socket.socket) -> Line:
        """A connection to the service of the runtime."""
        line = Line(self._loop, sock, self.settings.seal())
        line.send(what="runtime", token=self.settings.token)
        return line

    # ---- what others do ----

    def _failed_here(self, fault: str) -> None:
        """What comes has failed here, a fault of ours, so that nobody waits for it."""
        last = fault.strip().rpartition("\n")[2]
        self._decide(self._alone(f"what comes from it fails here: {last}", fault))

    def _end(self) -> None:
        self.reachable = False
        if not self._left:
            closed = "its connection is closed, as when a process is killed"
            self._decide(self._alone(self._line.fault or closed))

    def _alone(self, why: str, traceback: str = "") -> PeerLost:
        """The error where the coordinator is gone, and with it the process in which it lives."""
        where = f"the coordinator at {self.settings.address}"
        if self.settings.coordinator_process is None:
            host, _ = split(self.settings.address)
            return PeerLost.of(None, host, f"{where}: {why}", traceback=traceback)
        there = self._first
        return PeerLost.of(there["process"], there["host"], f"{where}, which lives in it: {why}",
                           there["pid"], traceback)  # fmt: skip

    def _receive(self, message: Message) -> None:
        match message["what"]:
            case "gathered" | "got" as what:
                to = message["key" if what == "gathered" else "number"]
                with self._changed:
                    if to in self._answers:
                        self._answers[to] = message
                        self._changed.notify_all()
            case "slow":
                _warn(_late(message))
            case "stranger":
                _warn(f"somebody came to the coordinator and was turned away: {message['why']}")
            case "left":
                with self._changed:
                    for one in message["those"]:
                        self._who_left[one["process"]] = one
                        self.gone[one["process"]] = one["launched"]
                    self._changed.notify_all()
            case "verdict":
                self._decide(self._verdict(message))
            case _:  # what a later version says
                pass

    def _verdict(self, message: Message) -> PhalanxError:
        if message["kind"] == "fault":
            return self._alone("it has failed, by a fault of its own", message["why"])
        if message["kind"] == "mismatch":
            parts = [message["why"], *(g.names() for g in self.groups.values() if g.last)]
            return ProgramMismatch.of("; ".join(parts))
        if message["kind"] == "left":
            left = message["process"], message["host"], message["why"], message["pid"]
            return PeerLost.left(*left)
        return PeerLost.of(
            message["process"], message["host"], message["why"], message["pid"],
            message["traceback"],
        )  # fmt: skip

    def _missed(self, process: int) -> str:
        """The first launch here without ``process``, which has ended in peace; "" if none was."""
        for group in list(self.groups.values()):
            number = self.gone[process].get(group.key, 0) + 1
            if process in group.processes and group.count >= number:
                return group.launch_in_words(number)
        return ""

    def _ended(self, process: int, next: str = "") -> PeerLost:
        """The error that ``process`` has ended in peace, before the ``next`` launch or others."""
        there, missed = self._who_left[process], self._missed(process) or next
        count = sum(self.gone[process].values())
        when = f"after {launches(count)}" + (f", before {missed}" if missed else "")
        if there["how"]:
            return PeerLost.of(process, there["host"], f"it {there['how']} {when}", there["pid"])
        return PeerLost.left(process, there["host"], when, there["pid"])

    def _decide(self, verdict: PhalanxError) -> None:
        with self._changed:
            self._changed.notify_all()
            if self.verdict is not None:
                return
            self.verdict, self.over = verdict, time.monotonic()
            if self._leaving.is_set():  # nothing waits here any more
                return
            try:  # before anybody hears of it, and leaves: that waits for this thread
                self._letting_go.append(start(self._let_all_go))
            except RuntimeError:  # at its exit Python starts no thread
                self.let_go()

    def _let_all_go(self) -> None:
        """End what waits for others, also what was about to wait when the verdict came."""
        self.let_go()
        while time.monotonic() < self.over + _STUBBORN:
            if self._leaving.wait(PULSE):
                return
            self.let_go()
        if self.is_caught():
            text = f"phalanx: {self.verdict}. The runtime waits on, so this process ends here\n"
            os.write(2, text.encode())
            os._exit(1)

    # ---- what this process does ----

    def _beat(self) -> bool:
        """Give a sign of life, if it is time to, and look for others; gives whether to go on."""
        if self._left:
            return False
        now = time.monotonic()
        with self._changed:
            news = self._news()
            if news or now > self._sent_at + self._pause:
                self._sent_at = now
                self._line.send(what="pulse", launches=news)
        if now > self._looked + PULSE:
            self._looked = now
            self._look(now)
        return True

    def _look(self, now: float) -> None:
        """Whether all are there without which something here waits in vain.

        The coordinator may be in a process that is stopped, or behind a network.
        """
        missing = next(filter(self._missed, list(self.gone)), None)
        if missing is not None:
            self._decide(self._ended(missing))
        silent = self._coordinator.seconds(now)
        if silent > self.settings.silence and self.reachable:
            self.reachable = False
            self._decide(self._alone(f"nothing has been heard of it for {silent:.0f} s"))
        elif self.reachable and self._late.is_due(silent):
            where = self._alone("nothing has been heard of it")
            message = {"process": where.process, "host": where.host, "why": where.why}
            _warn(_late(message | {"seconds": silent}))

    def check(self, who: str, group: Group | None = None) -> None:
        """Raise what has become of the others, if nothing can be computed with them any more.

        Raises:
            PeerLost: one of them is gone.
            ProgramMismatch: they run something else.
        """
        if self.verdict is None and group is not None:
            there = [p for p in list(self.gone) if p in group.processes]
            missing = [p for p in there if self.gone[p].get(group.key, 0) <= group.count]
            if missing:  # of which the first one to end is the cause
                next = f"launch {group.count + 1} ({who}) over {group}"
                self._decide(self._ended(missing[0], next))
        if self.verdict is not None:
            raise self._raised(who)

    def _raised(self, who: str) -> PhalanxError:
        """The verdict, for ``who`` to raise, with the launch before which or in which it came."""
        if self.latest is None:
            who = f"{who} (before the first launch over processes)"
        else:
            group, number, name = self.latest
            where = "" if name == who else f" was {name}"
            who = f"{who} (launch {number} over processes {group.key}{where})"
        return self.verdict.at(who)  # type: ignore[union-attr]

    def failure(self, who: str) -> PhalanxError | None:
        """Why what spans processes has failed, if others are the cause; waits to be told."""
        with self._changed:
            self._changed.wait_for(lambda: self.verdict is not None or self.gone, timeout=5)
        if self.verdict is None and self.gone:
            self._decide(self._ended(next(iter(self.gone))))
        return None if self.verdict is None else self._raised(who)

    def group_of(self, processes: frozenset[int]) -> Group:
        """The group of those ``processes``, one object for each."""
        if processes not in self.groups:
            self.groups[processes] = Group(self, processes)
        return self.groups[processes]

    @property
    def everyone(self) -> Group:
        """The group of all processes."""
        return self.group_of(frozenset(range(self.count)))

    def in_another_thread(self, work: Callable[[], T], who: str, in_vain: Callable[[], bool]) -> T:
        """The result of ``work``, in which ``who`` may wait for others, out of reach.

        Raises:
            PeerLost, ProgramMismatch: it still waits a while after nothing can be computed with
                them any more, and ``in_vain``; then it is left alone.
        """
        return in_another_thread(work, self._looking(who, in_vain))

    def _looking(self, who: str, in_vain: Callable[[], bool]) -> Callable[[], None]:
        begun = time.monotonic()

        def look() -> None:
            if self.verdict is None or not in_vain():
                return
            if time.monotonic() > max(self.over, begun) + _GRACE:
                self.check(who)

        return look

    def gather(self, group: Group, topic: str, patience: float | None, **content: Any) -> Message:
        """What ``Group.gather`` and ``Group.compare`` tell of."""
        with self._changed:
            key = f"{group.key}/{group.gathers + 1}"
            self._send(
                topic, what="gather", key=key, topic=topic, launched=self._launched(),
                launches=self._news(), **content,
            )  # fmt: skip
            group.gathers += 1
            answer = self._await(key, patience)
        if answer is None:
            self.check(topic)
            raise RendezvousError(
                f"{topic}: waited {patience:.0f} s, and not all processes have come"
            )
        return answer

    def _await(self, to: str | int, patience: float | None) -> Message | None:
        """The answer ``to`` what was asked; None if it is not there in time, or a verdict is."""
        self._answers[to] = None
        try:
            self._changed.wait_for(
                lambda: self._answers[to] is not None or self.verdict is not None, patience
            )
        finally:
            answer = self._answers.pop(to)
        return answer

    def _send(self, who: str, **message: Any) -> None:
        """Tell the coordinator something of the user's.

        Raises:
            ValueError: it is too long.
        """
        line = encoded(message)
        if len(line) > LONGEST:
            raise ValueError(
                f"{who}: processes tell each other {LONGEST >> 20} MiB at once, and this takes "
                f"{len(line) / (1 << 20):.1f}, at {user_location()}; tell it in parts, or in a "
                "file that all can read"
            )
        self._line.post(line)

    def _launched(self) -> dict[str, int]:
        """How many launches there were over each group."""
        return {group.key: group.count for group in list(self.groups.values())}

    def _news(self) -> dict[str, list[tuple[int, int, str]]]:
        """What ``Group.news`` tells of each group that has some."""
        return {g.key: news for g in list(self.groups.values()) if (news := g.news())}

    # ---- what users store ----

    def store(self, key: str, value: str) -> None:
        """Let all processes find ``value``.

        Raises:
            ValueError: it is too long.
        """
        self.check("key_value_set")
        self._send(f"key_value_set({key[:40]!r})", what="set", key=key, value=value)

    def stored(self, key: str, wait: bool, patience: float | None) -> str | None:
        """What a process has stored; None if nobody has, or not in time."""
        number = next(self._requests)
        with self._changed:
            self._send("key_value_get", what="get", key=key, wait=wait, number=number)
            answer = self._await(number, patience)
        if answer is not None:
            return answer["value"]
        self._line.send(what="no more", key=key, number=number)
        self.check("key_value_get")
        return None

    def forget(self, key: str) -> None:
        """Delete a key of the key-value store that processes share."""
        self._send("key_value_delete", what="delete", key=key)

    # ---- the end ----

    @property
    def is_with_others(self) -> bool:
        """Whether this process still can compute with others, as far as it knows."""
        return self.verdict is None and not self._left

    def fail(self, error: BaseException) -> None:
        """Tell the others of the exception by which this process ends."""
        if self.verdict is None:
            text = "".join(traceback.format_exception(error))
            self._line.send(what="failed", traceback=text[-_LONGEST_TRACEBACK:])
            self._left = True

    def leave(self) -> None:
        """Tell the others that this process has done its part, and hear them no more."""
        if not self._left:
            self._left = True
            self._line.send(what="bye", launched=self._launched())
        with self._changed:
            self._leaving.set()
        for thread in self._letting_go:
            thread.join(_GRACE)  # in the runtime, where Python ends no thread in peace
        self._line.close(_GRACE)


_LONGEST_TRACEBACK = 20_000


def _warn(text: str) -> None:
    """Warn of a process, in a thread of its own: what users do with warnings may take long."""
    with contextlib.suppress(RuntimeError):  # at its exit Python starts no thread
        start(_warn_here, text)


def _warn_here(text: str) -> None:
    """Warn of it, also where warnings are errors."""
    try:
        warnings.warn(PeerSlow(text), stacklevel=1)
    except Exception:  # nobody has called this who could be raised to
        print(f"phalanx: {text}", file=sys.stderr, flush=True)


def _late(message: Message) -> str:
    number = message["process"]
    who = "the coordinator" if number is None else f"process {number}"
    return f"{who} on {message['host']} is late: {message['why']} for {message['seconds']:.0f} s"


def report_exceptions() -> None:
    """Let the others hear of an exception that ends this process."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, frames: Any) -> None:
        member = joined_member()
        if member is not None:
            member.fail(error)
        before(kind, error, frames)

    sys.excepthook = hook
