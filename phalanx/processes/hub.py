"""The coordinator: where processes meet, agree, and learn that one of them is gone.

It lives in the launcher, or in process 0. Each process holds one connection to it for as long as it
runs, so the end of a process, however violent, is the end of a connection, and known at once. What
is slow is silent instead: a process says every so often that it is there.

What members say: ``join``, and ``give up`` if it takes too long; then one of ``forms.MESSAGES``.
What they are told: ``waiting``, ``welcome``, ``refused``, or, where an attempt is over that has not
ended yet, to come ``again``; then ``gathered``, ``got``, ``slow``, ``left``, ``stranger``,
``verdict``, and every so often ``pulse``. A verdict is why nothing can be computed together any
more.

There may be thousands. So one thread serves all (``EventLoop``), what one says costs the same
however many there are, and nothing that names all of them is told to each. Nobody waits for one who
does not read: each connection keeps what is said on it (``Line``). What is of no form that members
have is the end of who said it; and where this fails itself, all are told.
"""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from phalanx.base import log
from phalanx.processes import differing, forms
from phalanx.processes.gathering import Gathering
from phalanx.processes.key_values import KeyValueStore
from phalanx.processes.line import Line
from phalanx.processes.loop import EventLoop
from phalanx.processes.reception import STRANGERS, Reception
from phalanx.processes.watched import PULSE, Lateness, Silence, first_warning, pause
from phalanx.processes.wire import LONGEST, Message, encoded, family_of, is_secret

if TYPE_CHECKING:
    from phalanx.processes.secure import Credentials

_FAREWELL = 1.0  # for so many seconds all are told what they have not read
_STATUS = 0.5  # seconds within which it is known how a process has ended whose connection has
_TOGETHER = 0.05  # seconds in which those who leave are told of together
_FILES = 3  # that are open for each process: its connection, and two ends of the runtime's
_NAMED = 4  # of those who are late at once


class Known(Struct):
    """A process that has joined, as the coordinator knows it."""

    process: int
    line: Line
    about: Message
    silence: Silence = field(default_factory=Silence)
    late: Lateness = field(default_factory=Lateness)
    launched: differing.Counts | None = None  # when it left
    how: str = ""  # it has ended, if that is known
    has_failed: bool = False
    gone: bool = False

    @property
    def who(self) -> Message:
        return {name: self.about[name] for name in ("process", "host", "pid")}

    def __str__(self) -> str:
        return f"process {self.process} (pid {self.about['pid']} on {self.about['host']})"


class Hub:
    """Listens at ``address`` for the ``count`` processes of a program.

    Args:
        count: how many processes there are.
        address: host and port; port 0 is any that is free.
        token: what those who come must know, "" for nothing.
        runtime: the socket of the runtime's coordination service, to which they are led.
        watched: the processes of whose end ``process_ended`` tells.
        credentials: what this shows to those who come, and they must show; None for no TLS.
        attempt: how often the program was started again before.

    Raises:
        OSError: the address is not to be had.
    """

    def __init__(
        self,
        count: int,
        address: tuple[str, int],
        token: str,
        runtime: str,
        watched: Collection[int] = (),
        credentials: Credentials | None = None,
        attempt: int = 0,
    ) -> None:
        self._attempt = attempt
        self.count, self.token, self.runtime = count, token, runtime
        self._silence = 0.0  # after so many seconds without a sign of life a process is lost
        self._watched = watched
        self._members: dict[int, Known] = {}
        self._refusal: Message = {}
        self._turned_away = 0  # since there is one
        self._stranger = ""  # the last who had no business here
        self._strangers_reported = 0.0  # the time
        self._verdict: Message = {}
        self.silent: set[int] = set()  # processes that are lost, as nothing was heard of them
        self._losing: Known | None = None  # of which it is not known yet how it has ended
        self._awaited: dict[int, Callable[[Known], None]] = {}  # what is done when that is known
        self._left: dict[int, Known] = {}
        self._unannounced: list[Message] = []  # of those
        self._gathers: dict[str, Gathering] = {}
        self._sums = differing.Sums()
        self._stored = KeyValueStore()
        self._to_runtime: list[Line] = []
        self._welcomed = False
        self.everyone_left = threading.Event()
        self._closed = threading.Event()
        _let_open(_FILES * count)
        self._listener = socket.create_server(address, family=family_of(address[0]), backlog=4096)
        self.port: int = self._listener.getsockname()[1]
        self._loop = EventLoop()
        self._loop.fault = self._failed_here
        self._reception = Reception(
            self._loop, self._listener, credentials, self._meet, self._note_stranger,
            max(STRANGERS, count),
        )  # fmt: skip
        self._loop.call(partial(self._loop.every, PULSE, self._watch))

    def close(self) -> None:
        """Accept nobody any more, and let go of all.

        Members are cut off from the service of the runtime before that ends: what it says then
        would end them.
        """
        if not self._closed.is_set():
            self._loop.call(self._close)
            self._closed.wait(2 * _FAREWELL)

    def _close(self) -> None:
        self._loop.dismiss(self._listener)
        for line in self._to_runtime:
            line.end()
        self.everyone_left.set()
        for known in self._members.values():
            known.line.close()
        self._stop(time.monotonic() + _FAREWELL)

    def _stop(self, until: float) -> None:
        """Stop when all have heard what they were told, or at the time ``until``."""
        if time.monotonic() < until and not all(k.line.is_over for k in self._members.values()):
            self._loop.later(0.01, partial(self._stop, until))
        else:
            self._loop.stop()
            self._closed.set()

    # ---- who comes ----

    def _meet(self, line: Line, first: Message) -> bool:
        if not forms.is_call(first):
            return False
        if not is_secret(first["token"], self.token):
            why = "it belongs to another launch: its token differs"
            self._note_stranger(line, why)
            line.send(what="refused", why=why)
            line.close()
        elif first["what"] == "runtime":
            self._lead_to_runtime(line)
        else:
            self._join(line, first)
        return True

    def _note_stranger(self, line: Line, why: str) -> None:
        self._stranger = f"; somebody at {line.host} was turned away: {why}"

    def _lead_to_runtime(self, line: Line) -> None:
        there = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        there.settimeout(PULSE)
        try:
            there.connect(self.runtime)
        except OSError:
            line.end()
            return
        service = Line(self._loop, there, on_end=line.end)
        line.on_end = service.end
        line.carry_to(service)
        self._to_runtime.append(line)

    def _join(self, line: Line, about: Message) -> None:
        if self._is_early(about):
            answer: Message = {"what": "again"}
        elif why := self._refused(about):
            self._turn_away_one(why)
            answer = {"what": "refused", "why": why}
        else:
            self._let_in(line, about)
            return
        line.send(**answer)
        line.close()

    def _is_early(self, about: Message) -> bool:
        """Whether this attempt is over for who comes, and has not ended: then there will be another
        coordinator, to which it belongs."""
        newer = about["attempt"] > self._attempt
        if not self._welcomed:
            return newer and bool(self._refusal)
        there = self._members.get(about["process"])
        return newer or bool(self._verdict) or (there is not None and there.gone)

    def _turn_away_one(self, why: str) -> None:
        """Somebody cannot join; if all others have, these go on, and are told."""
        now = time.monotonic()
        if not self._welcomed:
            self._turn_away(why)
        elif now > self._strangers_reported + PULSE:
            self._strangers_reported = now
            self._broadcast({"what": "stranger", "why": why})
        self._turned_away += 1
        self._note_end()

    def _let_in(self, line: Line, about: Message) -> None:
        known = Known(about["process"], line, about)
        line.longest = LONGEST
        line.on_life = known.silence.end
        line.on_message = partial(self._receive, known)
        line.on_end = partial(self._end_of, known)
        self._members[known.process] = known
        if len(self._members) < self.count:
            line.send(what="waiting")
            return
        self._welcomed = True
        self._silence = min(k.about["silence"] for k in self._members.values())
        for member in self._members.values():
            member.late = Lateness(first_warning(self._silence))
            member.silence = Silence()
            member.line.on_life = member.silence.end
        self._broadcast(
            {"what": "welcome", "first": self._members[0].who, "silence": self._silence}
        )
        self._loop.every(pause(self._silence), self._give_sign)

    def process_ended(self, process: int, how: str, has_failed: bool) -> None:
        """A process has ended; its connection may end before this is known, or never have been."""
        self._loop.call(partial(self._note_status, process, how, has_failed))

    def _note_status(self, process: int, how: str, has_failed: bool) -> None:
        known = self._members.get(process)
        if known is not None:
            known.how, known.has_failed = how, has_failed
            self._settle(known)
        elif not self._welcomed:
            self._turn_away(f"process {process} {how} before it came")
            self._turned_away += 1
            self._note_end()

    def _turn_away(self, why: str) -> None:
        """Let nobody join any more, neither those who have come nor those who will."""
        if not self._refusal:
            self._refusal = {"what": "refused", "why": why}
            self._turned_away = len(self._members)
            self._broadcast(self._refusal)

    def _note_end(self) -> None:
        """There is nothing more to do for anybody when all have left, or know why they cannot."""
        if not self._welcomed:
            ended = self._turned_away >= self.count
        else:
            ended = all(known.gone for known in self._members.values())
        if ended:
            self.everyone_left.set()

    def _refused(self, about: Message) -> str:
        """Why a process that wants to join cannot; "" if it can."""
        if self._refusal:
            return self._refusal["why"]
        new = Known(about["process"], None, about)  # type: ignore[arg-type]
        if about["count"] != self.count:
            return (
                f"{new} was told that there are {about['count']} processes, and the coordinator "
                f"that there are {self.count}; num_processes must be the same everywhere"
            )
        if not 0 <= new.process < self.count:
            return f"{new} is not one of {self.count} processes, which are numbered from 0"
        there = self._members.get(new.process)
        if there is not None:
            return (
                f"two have the same process_id: {there}, and {new}; where these belong to two "
                "programs, give each a port of its own, or a secret in PHALANX_TOKEN"
            )
        other = next(iter(self._members.values()), new)  # which all that have come are like
        for name, words in _ALIKE.items():
            if about[name] != other.about[name]:
                return (
                    f"{words} differ: {other.about[name]} in {other}, and {about[name]} in "
                    f"{new}; they must be the same everywhere"
                )
        return ""

    # ---- what they say ----

    def _receive(self, known: Known, message: Message) -> None:
        early = not self._welcomed and message.get("what") != "give up"
        if early or not forms.is_understood(message, known.process, self.count):
            known.line.end(f"it says what is not understood: {str(message)[:200]}")
            return
        try:
            self._answers[message["what"]](self, known, message)
        except RecursionError:
            known.line.end("it says what is not understood: it is nested too deeply")

    def _end_of(self, known: Known) -> None:
        """Nothing more is heard of a process, which has left, or is lost."""
        if known.launched is None and not known.gone:
            self._on_end(known)
        known.gone = True
        self._note_end()

    def _on_end(self, known: Known) -> None:
        if not self._welcomed:
            self._turn_away(f"{known} ended before all had come")
        elif known.line.fault:
            self._lost(known, known.line.fault)
        elif self._losing is None:  # else that one is the cause
            self._losing = known
            self._once_known(known, self._lose)

    def _once_known(self, known: Known, work: Callable[[Known], None]) -> None:
        """Do ``work`` when it is known how a process has ended, or nobody tells it soon."""
        if known.how or known.process not in self._watched:
            work(known)
        else:
            self._awaited[known.process] = work
            self._loop.later(_STATUS, partial(self._settle, known))

    def _settle(self, known: Known) -> None:
        """Do what waits for how a process has ended, once."""
        work = self._awaited.pop(known.process, None)
        if work is not None:
            work(known)

    def _lose(self, known: Known) -> None:
        self._losing = None
        how = known.how or (
            "ended without a word: its connection is closed, as when a process is killed"
        )
        self._lost(known, f"it {how}")

    def _failed_here(self, fault: str) -> None:
        """Something has failed, a fault of this coordinator's, which is told to all."""
        if self._welcomed:
            self._decide(kind="fault", why=fault)
        else:
            self._turn_away(f"the coordinator has failed: {fault}")

    def _lost(self, known: Known, why: str, traceback: str = "") -> None:
        self._decide(kind="lost", why=why, traceback=traceback, **known.who)

    def _decide(self, **verdict: Any) -> None:
        if not self._verdict:
            self._verdict = {"what": "verdict", **verdict}
            self._broadcast(self._verdict)

    def _broadcast(self, message: Message, but: Iterable[int] = ()) -> None:
        """Tell it to all that are there, but those."""
        line = encoded(message)
        for known in self._members.values():
            if not known.gone and known.process not in but:
                known.line.post(line)

    def _compare(self, known: Known, message: Message) -> bool:
        """Whether the launches that a process tells of are those of others."""
        why = self._sums.differ(known.process, message["launches"])
        if why:
            self._decide(kind="mismatch", why=why)
        return not why

    def _failed(self, known: Known, message: Message) -> None:
        known.gone = True
        last = str(message["traceback"]).strip().rpartition("\n")[2]
        self._lost(known, f"it ended by an exception, {last}", message["traceback"])

    def _give_up(self, known: Known, message: Message) -> None:
        if not self._welcomed:
            missing = [i for i in range(self.count) if i not in self._members]
            absent = f"process {missing[0]} of {self.count} has"
            if len(missing) > 1:
                absent = f"processes {forms.numbers(missing, ', ')} of {self.count} have"
            why = f"{message['waited']}, and {absent} not come{message['advice']}"
            self._turn_away(f"{known} {why}{self._stranger}")
            self.everyone_left.set()

    def _bye(self, known: Known, message: Message) -> None:
        known.launched = message["launched"]
        self._once_known(known, self._leave)

    def _leave(self, known: Known) -> None:
        if known.process in self._left:
            return
        self._left[known.process] = known
        how = known.how if known.has_failed else ""
        self._unannounced.append({**known.who, "launched": known.launched, "how": how})
        if len(self._unannounced) == 1:
            self._loop.later(_TOGETHER, self._announce_who_left)
        for gathering in list(self._gathers.values()):
            self._look_for(gathering)

    def _announce_who_left(self) -> None:
        if len(self._left) < self.count:
            self._broadcast({"what": "left", "those": self._unannounced}, but=self._left)
        self._unannounced = []

    def _gather(self, known: Known, message: Message) -> None:
        if not self._compare(known, message):
            return
        key = message["key"]
        if key not in self._gathers:
            self._gathers[key] = Gathering(key, self.count)
        gathering = self._gathers[key]
        gathering.come(known.process, message)
        is_whole = len(gathering.values) == len(gathering.among)
        if message["topic"] != gathering.topic:
            self._decide(kind="mismatch", why=differing.topics(gathering.positions))
        elif is_whole and (why := self._ahead(gathering, ())):
            self._decide(kind="mismatch", why=why)
        elif is_whole:
            del self._gathers[key]
            answer = gathering.answer(key)
            for i in gathering.among:
                self._members[i].line.post(answer)
        elif self._left:
            self._look_for(gathering)

    def _look_for(self, gathering: Gathering) -> None:
        """Whether those for whom others wait have not left."""
        left = gathering.absent() & self._left.keys()
        if left:
            known = next(k for i, k in self._left.items() if i in left)
            count = (known.launched or {}).get(gathering.group, 0)
            when = f"after {differing.launches(count)}, and the others wait for it"
            when = f"{when}: {gathering.topic}"
            if known.has_failed:
                self._lost(known, f"it {known.how} {when}")
            else:
                self._decide(kind="left", why=when, **known.who)

    def _ahead(self, gathering: Gathering, absent: Iterable[int]) -> str:
        last = {i: self._sums.last[i] for i in absent if i in self._sums.last}
        return differing.ahead(gathering.positions, gathering.launched, last, self.count)

    def _store(self, known: Known, message: Message) -> None:
        self._stored.receive(known.process, known.line, message)

    _answers = {  # noqa: RUF012  (a table of methods)
        "pulse": _compare,
        "failed": _failed,
        "give up": _give_up,
        "bye": _bye,
        "gather": _gather,
        **dict.fromkeys(("set", "get", "no more", "delete"), _store),
    }

    # ---- who is late, and who waits for ever ----

    def _give_sign(self) -> None:
        if not self.everyone_left.is_set():
            self._broadcast({"what": "pulse"})

    def _watch(self) -> None:
        now = time.monotonic()
        if self._welcomed and not self._verdict and not self.everyone_left.is_set():
            self._look(now)

    def _look(self, now: float) -> None:
        late: list[Known] = []
        longest = 0.0
        for known in self._members.values():
            if known.launched is not None or known.gone:
                continue
            silent = known.silence.seconds(now)
            if silent > self._silence:
                self.silent.add(known.process)
                self._lost(known, f"nothing has been heard of it for {silent:.0f} s")
            elif known.late.is_due(silent):
                late.append(known)
                longest = max(longest, silent)
        self._warn(late, longest, "nothing has been heard of it")
        for gathering in self._gathers.values():
            waited = now - gathering.since
            absent = sorted(gathering.absent())
            if gathering.late.is_due(waited):
                why = f"others wait for it ({gathering.topic})"
                self._warn([self._members[i] for i in absent], waited, why)
            if waited > PULSE and (why := self._ahead(gathering, absent)):
                self._decide(kind="mismatch", why=why)

    def _warn(self, late: Sequence[Known], seconds: float, why: str) -> None:
        """Tell the others of those who are late, of many only of some."""
        more = len(late) - _NAMED
        for known in late[:_NAMED]:
            text = why + f", and {more} more are late, too," * (more > 0)
            message = {"what": "slow", "process": known.process, "host": known.about["host"],
                       "seconds": seconds, "why": text}  # fmt: skip
            self._broadcast(message, but=(known.process,))


def _let_open(files: int) -> None:
    """Let this process have so many more files open, if the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = files + STRANGERS + 256
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < needed:
        log.warn("the coordinator needs some %d open files, and may have %d: see ulimit -Hn",
                 needed, most)  # fmt: skip


_ALIKE = {
    "phalanx": "the versions of phalanx",
    "runtime": "the versions of jaxlib",
    "platform": "the platforms",
    "devices": "the numbers of CPU devices",
}
