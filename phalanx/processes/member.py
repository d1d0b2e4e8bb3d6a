"""This process among those that compute together: what it says to the coordinator, and hears.

There is at most one ``Member``, ``joined_member()``. What spans processes asks it before it
starts, and when it fails: ``check`` raises what has become of the others.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import select
import socket
import sys
import threading
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from phalanx.base import log
from phalanx.base.config import config
from phalanx.base.errors import (
    PeerLost,
    PeerSlow,
    PhalanxError,
    ProgramMismatch,
    RendezvousError,
)
from phalanx.base.source import user_location
from phalanx.processes.differing import launches
from phalanx.processes.forms import numbers
from phalanx.processes.joined import become, joined_member
from phalanx.processes.line import Line
from phalanx.processes.loop import EventLoop
from phalanx.processes.relay import Relay
from phalanx.processes.threads import in_another_thread, start
from phalanx.processes.watched import PULSE, Lateness, Silence, first_warning, pause
from phalanx.processes.wire import LONGEST, Message, encoded, is_loopback, split

if TYPE_CHECKING:
    from phalanx.processes.secure import Credentials, Seal

_GRACE = 2.0  # how long what is under way may go on when a process has ended, in seconds
_STUBBORN = 30.0  # how long after a verdict something may still begin to wait for others
_REMEMBERED = 4096  # launches
_LAST = 32  # of them are told at once by name
_SOME = 16  # of the others every so many
_MODULUS = (1 << 61) - 1
T = TypeVar("T")


class Settings(Struct, frozen=True):
    """What a process has to know to join the others."""

    address: str
    process: int
    count: int
    token: str = ""
    patience: float = 300.0
    credentials: Credentials | None = None
    silence: float = 100.0  # after which a process counts as lost, in seconds
    attempt: int = 0  # how often the program was started again before
    coordinator_process: int | None = None  # in which the coordinator is, if it is in one


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
        self._gathered: dict[str, Message] = {}
        self._requests = itertools.count()
        self._answers: dict[int, Any] = {}  # to requests for what is stored, by their numbers
        self._left = False
        self.reachable = True  # whether the coordinator is there
        self._coordinator = Silence()
        self._late = Lateness(first_warning(settings.silence))
        self._pause = pause(welcome["silence"])  # between signs of life
        self._sent_at = self._looked = time.monotonic()
        self.relay = Relay(loop, partial(connected, settings), self._to_runtime)
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

    def _to_runtime(self, sock: socket.socket) -> Line:
        """A connection to the service of the runtime."""
        line = Line(self._loop, sock, _seal(self.settings))
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
            case "gathered":
                with self._changed:
                    self._gathered[message["key"]] = message
                    self._changed.notify_all()
            case "got":
                with self._changed:
                    if message["number"] in self._answers:
                        self._answers[message["number"]] = message["value"]
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
            self._changed.wait_for(
                lambda: key in self._gathered or self.verdict is not None, patience
            )
            if key in self._gathered:
                return self._gathered.pop(key)
        self.check(topic)
        raise RendezvousError(f"{topic}: waited {patience:.0f} s, and not all processes have come")

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
            self._answers[number] = _NONE_YET
            self._send("key_value_get", what="get", key=key, wait=wait, number=number)
            try:
                self._changed.wait_for(
                    lambda: self._answers[number] is not _NONE_YET or self.verdict is not None,
                    patience,
                )
            finally:
                answer = self._answers.pop(number)
        if answer is not _NONE_YET:
            return answer
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
        self.relay.close()


class Group:
    """Processes over which programs are launched together, all in the same order."""

    def __init__(self, member: Member, processes: frozenset[int]) -> None:
        self.processes = processes
        self.key = numbers(sorted(processes))
        self.count = self.total = 0
        self.last: deque[tuple[int, int, str]] = deque(maxlen=_REMEMBERED)
        self._reported = 0
        self._met: set[int] = set()  # the programs for whose first launch all have met
        self._launched = Counter[int]()  # how often each program was launched
        self.gathers = 0
        self.member = member

    def launch(self, program: int, name: str) -> bool:
        """A launch of ``program`` begins; gives whether it is the first one.

        Raises:
            PeerLost, ProgramMismatch: nothing can be launched any more.
        """
        member = self.member
        if member.verdict is not None or member.gone:
            member.check(name, self)
        if program not in self._met:
            self.meet(program, name, lambda group, topic: group.gather(topic, None))
        first = not self._launched[program]
        self._launched[program] += 1
        self.count += 1
        self.total = (self.total * 1_000_003 + program) % _MODULUS
        self.last.append((self.count, self.total, name))
        member.latest = (self, self.count, name)
        return first

    def meet(self, program: int, name: str, compare: Callable[[Group, str], Any]) -> None:
        """Before the first launch of ``program``, ``compare`` by a gather what is to be alike.

        Gloo connects in that launch, and waits for all: after this none of them compiles any more,
        or is gone. ``debug_replicated`` says after how many launches to compare again.

        Raises:
            PeerLost, ProgramMismatch: somebody is gone, launches something else, or differs.
        """
        count, often = self._launched[program], config.debug_replicated
        if program not in self._met:
            compare(self, f"the first launch of {name}")
            self._met.add(program)
        elif often and count and count % often == 0:
            compare(self, f"launch {count + 1} of {name}")

    def news(self) -> list[tuple[int, int, str]]:
        """The launches that were not told yet: the last ones, and of those before some."""
        count = self.count - self._reported
        if not count:
            return []
        new = list(itertools.islice(reversed(self.last), count))[::-1]
        self._reported = new[-1][0]
        before, last = new[:-_LAST], new[-_LAST:]
        return [(n, total, "") for n, total, _ in before if n % _SOME == 0] + last

    def names(self) -> str:
        """The last launches by name, in words."""
        runs = [(n, sum(1 for _ in same)) for n, same in itertools.groupby(x[2] for x in self.last)]
        names = ", ".join(name if n == 1 else f"{name} ({n} times)" for name, n in runs[-6:])
        return f"the last launches over processes {self.key} here were {names}"

    def launch_in_words(self, number: int) -> str:
        """The launch of that ``number``, in words."""
        name = next((f" ({name})" for n, _, name in self.last if n == number), "")
        return f"launch {number}{name} over {self}"

    def __str__(self) -> str:
        return f"processes {self.key}"

    def gather(
        self, topic: str, value: Any, patience: float | None = None, detail: str = ""
    ) -> list[Any]:
        """What every process of the group gives, in order; all of them say the same ``topic``.

        Where some do something else, ``detail`` is told with it. Values in a row that are the same
        are told once: so what is the same in all costs little, and else all hear of all.

        Raises:
            PeerLost: one of them is gone.
            ProgramMismatch: one of them has something else to say.
            RendezvousError: somebody has not come after ``patience`` seconds.
            ValueError: what this one gives is too long.
        """
        answer = self.member.gather(
            self, topic, patience, value=value, detail=detail, compared=dict[str, Any]()
        )
        return _expanded(answer)

    def compare(
        self, topic: str, compared: Mapping[str, Any], value: Any = None
    ) -> tuple[dict[str, Differing], list[Any]]:
        """What differs of the ``compared``, by name, and what every process gives as ``value``.

        The coordinator compares, and tells only what differs, of many things some. What a process
        does not name is not compared with what it has.

        Raises:
            PeerLost, ProgramMismatch, ValueError: as ``gather``.
        """
        answer = self.member.gather(self, topic, None, value=value, detail="", compared=compared)
        return answer["differing"], _expanded(answer)


Differing = list[tuple[str, Any]]  # some values, each with the numbers of processes that have it


def _expanded(answer: Message) -> list[Any]:
    return [value for length, value in answer["runs"] for _ in range(length)]


_NONE_YET = object()
_LONGEST_TRACEBACK = 20_000


def join(settings: Settings, about: Message) -> Member:
    """Meet the other processes at the coordinator; ``about`` says what must be alike in all.

    Raises:
        RendezvousError: the coordinator does not answer or refuses, or not all have come in time.
    """
    loop = EventLoop()
    try:
        return _joined(settings, loop, about)
    except BaseException:
        loop.call(partial(loop.later, _GRACE, loop.stop))  # when all is said
        raise


def _joined(settings: Settings, loop: EventLoop, about: Message) -> Member:
    deadline = time.monotonic() + settings.patience
    closed = ""
    while True:
        try:
            sock = _found(settings, deadline)
        except RendezvousError:
            if closed:
                raise RendezvousError(_joining(settings, closed)) from None
            raise
        call = _Call(settings, loop, sock)
        answer = call.answer(about, deadline)
        if answer.get("what") == "welcome":
            member = become(Member(settings, loop, call.line, answer))
            loop.call(partial(member.begin, call.received))
            return member
        call.line.close()
        if answer.get("what") == "refused":
            raise RendezvousError(_joining(settings, f"the coordinator refuses: {answer['why']}"))
        early = answer.get("what") == "again"
        if early and closed != _EARLY:
            log.warn("%s", _joining(settings, f"{_EARLY}; waiting for it"))
        closed = _EARLY if early else call.unmet()
        over = time.monotonic() + (_PAUSE if early else 0) >= deadline
        if call.is_final or over:
            raise RendezvousError(_joining(settings, closed))
        time.sleep(_PAUSE)  # what listens there may carry it on to a coordinator that comes later


_PAUSE = 0.5
_EARLY = "the coordinator there belongs to an attempt that is over and has not ended yet"


class _Call:
    """A call of the coordinator, by a process that wants to join.

    Attributes:
        received: the messages that come; an empty one when there will be none any more.
    """

    def __init__(self, settings: Settings, loop: EventLoop, sock: socket.socket) -> None:
        self._settings = settings
        self.received: SimpleQueue[Message] = SimpleQueue()
        end = partial(self.received.put, {})
        self.line = Line(loop, sock, _seal(settings), self.received.put, end)
        self._is_known = False  # to the coordinator

    def answer(self, about: Message, deadline: float) -> Message:
        """What the coordinator says; empty if it says nothing in time."""
        settings = self._settings
        self.line.send(
            what="join", token=settings.token, process=settings.process, count=settings.count,
            silence=settings.silence, attempt=settings.attempt, host=socket.gethostname(),
            pid=os.getpid(), **about,
        )  # fmt: skip
        answer = self._next(deadline)
        if answer is not None and answer.get("what") == "waiting":
            self._is_known = True
            answer = self._next(deadline)
        if answer is None:
            waited, advice = f"waited {settings.patience:g} s", self._whom_it_reaches()
            self.line.send(what="give up", waited=waited, advice=advice)
            answer = self._next(time.monotonic() + _PAUSE)  # for whom, which it tells all
        return answer or {}

    def _next(self, deadline: float) -> Message | None:
        with contextlib.suppress(Empty):
            return self.received.get(timeout=max(deadline - time.monotonic(), 0))
        return None

    @property
    def is_final(self) -> bool:
        """Whether it is in vain to call again."""
        return bool(self._is_known or self.line.nonsense or self.line.fault)

    def unmet(self) -> str:
        """Why a coordinator that has neither welcomed nor refused this process did not."""
        if self.line.fault:
            return self.line.fault
        if self.line.nonsense:
            return (
                f"what listens there is no coordinator of this program: it says "
                f"{self.line.nonsense!r}; choose another port, and speak TLS in all processes or "
                "none"
            )
        if self._is_known:
            return "the coordinator waited for others, and has ended"
        return (
            f"waited {self._settings.patience:g} s, and what listens there has not said a word: it "
            "may be no coordinator, or one that speaks TLS"
        )

    def _whom_it_reaches(self) -> str:
        """A name of this machine may lead to an address that only this machine has."""
        host, _ = split(self._settings.address)
        there = self.line.host
        if is_loopback(host) or not is_loopback(there):
            return ""
        return (
            f"; {host} is {there} here, which no other machine reaches: give the address that all "
            "do"
        )


def _joining(settings: Settings, why: str) -> str:
    return (
        f"distributed.initialize: process {settings.process} of {settings.count}, with the "
        f"coordinator at {settings.address}: {why}"
    )


def _found(settings: Settings, deadline: float) -> socket.socket:
    """A connection to the coordinator, which may not be there yet."""
    pause = 0.01
    while True:
        try:
            return connected(settings, max(deadline - time.monotonic(), 0.1))
        except OSError as e:
            why = ""
            if settings.coordinator_process is None and _nobody_reads_output():
                why = "the launcher that started this process has ended"
            elif time.monotonic() + pause > deadline:
                why = f"nobody answers there after {settings.patience:g} s: {e.strerror or e}"
            if why:
                raise RendezvousError(_joining(settings, why)) from None
        time.sleep(pause)
        pause = min(2 * pause, 0.1)


def _nobody_reads_output() -> bool:
    """Whether the standard output is a pipe whose other end is closed, as a launcher's is then."""
    poll = select.poll()
    poll.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def connected(settings: Settings, patience: float = 10.0) -> socket.socket:
    """A connection to the coordinator, on which nothing has been said, made within ``patience``.

    Raises:
        OSError: there is nobody, or not in time.
    """
    return socket.create_connection(split(settings.address), timeout=patience)


def _seal(settings: Settings) -> Seal | None:
    """What TLS makes of such a connection, if it is to be spoken on it."""
    host, _ = split(settings.address)
    return None if settings.credentials is None else settings.credentials.call(host)


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
