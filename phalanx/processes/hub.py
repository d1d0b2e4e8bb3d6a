"""The coordinator: where processes meet, agree, and learn that one of them is gone.

It lives in the launcher, or in process 0. Each process holds one connection to it for as long as it
runs, so the end of a process, however violent, is the end of a connection, and known at once. What
is slow is silent instead: a process says every half second that it is there.

What members say: ``join``, and ``give up`` if it takes too long; then what is in ``forms.SAID``.
What they are told: ``waiting``, ``welcome``, ``refused``, or, where an attempt is over that has not
ended yet, to come ``again``; then ``gathered``, ``got``, ``slow``,
``left``, ``stranger``, ``verdict``, and every half second ``pulse``. A verdict is why nothing can
be computed together any more.

Nobody waits for one who does not read: each connection keeps what is said on it (``Line``). What is
of no form that members have is the end of who said it; and where this fails itself, all are told.
"""

from __future__ import annotations

import contextlib
import hmac
import socket
import threading
import time
import traceback
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from phalanx.processes import differing, forms
from phalanx.processes.apart import start
from phalanx.processes.line import Line
from phalanx.processes.relay import pump
from phalanx.processes.watched import PULSE, Lateness, Silence, first_told
from phalanx.processes.wire import Message, Socket, close, encoded, said_first, say

if TYPE_CHECKING:
    from phalanx.processes.secure import Credentials

_HURRY = 10.0  # for so many seconds somebody who connects may take to say who that is
_FAREWELL = 1.0  # for so many seconds all are told what they have not read
_STRANGERS = 256  # of whom nothing is known yet, at a time


class Known(Struct):
    """A process that has joined, as the coordinator knows it."""

    process: int
    line: Line
    about: Message
    silence: Silence = field(default_factory=Silence)
    late: Lateness = field(default_factory=Lateness)
    left: bool = False
    launched: Message = field(default_factory=dict[str, Any])  # when it left
    gone: bool = False
    pulse: Message = field(default_factory=dict[str, Any])

    @property
    def who(self) -> Message:
        return {name: self.about[name] for name in ("process", "host", "pid")}

    def __str__(self) -> str:
        return f"process {self.process} (pid {self.about['pid']} on {self.about['host']})"


class Gathering(Struct):
    """What the processes ``among`` which something is gathered have said so far."""

    among: tuple[int, ...]
    topics: dict[int, str] = field(default_factory=dict[int, str])
    details: dict[int, str] = field(default_factory=dict[int, str])  # more words for these
    values: dict[int, Any] = field(default_factory=dict[int, Any])
    launched: dict[int, differing.Counts] = field(default_factory=dict[int, differing.Counts])
    since: float = 0.0  # the last of them came
    late: Lateness = field(default_factory=Lateness)

    @property
    def topic(self) -> str:
        return next(iter(self.topics.values()))

    @property
    def said(self) -> dict[int, str]:
        """What those who have come are at, in words."""
        return {i: f"{topic} {self.details[i]}".rstrip() for i, topic in self.topics.items()}

    def absent(self) -> list[int]:
        """Those who have not come."""
        return [i for i in self.among if i not in self.values]


class Hub:
    """Listens at ``address`` for the ``count`` processes of a program.

    Args:
        count: how many processes there are.
        address: host and port; port 0 is any that is free.
        token: what those who come must know, "" for nothing.
        runtime: the socket of the runtime's coordination service, to which they are led.
        ended: what is known of how a process has ended, for those that are told that it did.
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
        ended: Callable[[int], str] = lambda process: "",
        credentials: Credentials | None = None,
        attempt: int = 0,
    ) -> None:
        self._attempt = attempt
        self.count, self.token, self.runtime = count, token, runtime
        self._silence = 0.0  # after so many seconds without a sign of life a process is lost
        self._ended = ended
        self._credentials = credentials
        self._lock = threading.RLock()
        self._members: dict[int, Known] = {}
        self._refusal: Message = {}
        self._turned_away = 0  # since there is one
        self._stranger = ""  # the last who had no business here
        self._verdict: Message = {}
        self._gathers: dict[str, Gathering] = {}
        self._sums = differing.Sums()
        self._stored: dict[str, str] = {}
        self._asked: dict[str, dict[tuple[int, int], Known]] = {}  # by process and number
        self._to_runtime: list[socket.socket] = []
        self._welcomed = False
        self.everyone_left = threading.Event()
        self._strangers: dict[socket.socket, None] = {}  # in the order in which they came
        self._closed = False
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._listener = socket.create_server(address, family=family, backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        start(self._accept)
        start(self._watch)

    def close(self) -> None:
        """Accept nobody any more, and let go of all.

        Members are cut off from the service of the runtime before that ends: what it says then
        would end them.
        """
        self._closed = True
        close(self._listener)
        with self._lock:
            for sock in self._to_runtime:
                close(sock)
            lines = [known.line for known in self._members.values()]
            self.everyone_left.set()
        for line in lines:
            line.close()
        until = time.monotonic() + _FAREWELL
        for line in lines:
            line.close(max(until - time.monotonic(), 0))

    # ---- who comes ----

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(PULSE)  # this process has too many files open
                continue
            self._admit(sock)
            try:
                start(self._meet, sock)
            except RuntimeError:  # this process ends
                self._dismiss(sock)
                close(sock)

    def _admit(self, stranger: socket.socket) -> None:
        """Have one more of whom nothing is known yet. The oldest makes room: it has had more time
        to say who it is than others, and would keep those out who do."""
        with self._lock:
            self._strangers[stranger] = None
            while len(self._strangers) > _STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                with contextlib.suppress(OSError):  # it has gone
                    oldest.shutdown(socket.SHUT_RDWR)

    def _dismiss(self, stranger: socket.socket) -> None:
        """It is known now, or gone."""
        with self._lock:
            self._strangers.pop(stranger, None)

    def _meet(self, stranger: socket.socket) -> None:
        try:
            sock = self._sealed(stranger)
            first = said_first(sock, _HURRY)
            if not _understood(first):
                raise ConnectionAbortedError("it says nothing that is understood")
        except OSError as e:
            self._note_stranger(stranger, str(e))
            close(stranger)
            return
        finally:
            self._dismiss(stranger)
        with self._telling():
            self._meet_caller(sock, first)

    def _meet_caller(self, sock: Socket, first: Message) -> None:
        token, ours = (text.encode(errors="replace") for text in (first["token"], self.token))
        if not hmac.compare_digest(token, ours):
            why = "it belongs to another launch: its token differs"
            self._note_stranger(sock, why)
            with contextlib.suppress(OSError):
                say(sock, what="refused", why=why)
            close(sock)
        elif first["what"] == "runtime":
            self._lead_to_runtime(sock)
        else:
            self._join(Line(sock), first)

    def _note_stranger(self, sock: socket.socket, why: str) -> None:
        with contextlib.suppress(OSError):  # it is gone
            self._stranger = f"; somebody at {sock.getpeername()[0]} was turned away: {why}"

    def _sealed(self, sock: socket.socket) -> Socket:
        """The connection, by which both ends speak TLS if they are to.

        Raises:
            OSError: the other end is not who it should be, or takes too long.
        """
        sock.settimeout(_HURRY)
        return sock if self._credentials is None else self._credentials.answer(sock)

    def _lead_to_runtime(self, sock: Socket) -> None:
        sock.settimeout(None)
        with self._lock:
            self._to_runtime.append(sock)
        there = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            there.connect(self.runtime)
        except OSError:
            close(sock)
            return
        start(pump, there, sock, True)
        pump(sock, there, True)

    def _join(self, line: Line, about: Message) -> None:
        with self._lock:
            early = self._is_early(about)
            why = "" if early else self._refused(about)
            if why:
                self._turn_away_one(why)
            known = None if why or early else self._let_in(line, about)
        if known is None:
            line.send(what="again") if early else line.send(what="refused", why=why)
            _part(line)
            return
        with self._telling():
            self._listen(known)
        self._end_of(known)

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
        if self._welcomed:
            self._tell({"what": "stranger", "why": why})
        else:
            self._turn_away(why)
        self._turned_away += 1
        self._note_end()

    def _let_in(self, line: Line, about: Message) -> Known:
        known = Known(about["process"], line, about)
        line.heard = known.silence.end
        self._members[known.process] = known
        if len(self._members) < self.count:
            missing = [i for i in range(self.count) if i not in self._members]
            self._tell({"what": "waiting", "missing": missing})
        else:
            self._welcomed = True
            self._silence = min(k.about["silence"] for k in self._members.values())
            for member in self._members.values():
                member.late = Lateness(first_told(self._silence))
            self._tell({"what": "welcome", "members": self._roll()})
        return known

    def absent(self, process: int, how: str) -> None:
        """A process has ended; if it has not come yet, nobody needs to wait for it."""
        with self._lock:
            if not self._welcomed and process not in self._members:
                self._turn_away(f"process {process} {how} before it came")
                self._turned_away += 1
                self._note_end()

    def _turn_away(self, why: str) -> None:
        """Let nobody join any more, neither those who have come nor those who will."""
        if not self._refusal:
            self._refusal = {"what": "refused", "why": why}
            self._turned_away = len(self._members)
            self._tell(self._refusal)

    def _note_end(self) -> None:
        """There is nothing more to do for anybody when all have left, or know why they cannot."""
        ended = all(known.gone for known in self._members.values())
        if ended if self._welcomed else self._turned_away >= self.count:
            self.everyone_left.set()

    def _roll(self) -> list[Message]:
        every = sorted(self._members.values(), key=lambda k: k.process)
        return [k.who for k in every]

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
        for other in self._members.values():
            for name, words in _ALIKE.items():
                if about[name] != other.about[name]:
                    return (
                        f"{words} differ: {other.about[name]} in {other}, and {about[name]} in "
                        f"{new}; they must be the same everywhere"
                    )
        return ""

    # ---- what they say ----

    def _listen(self, known: Known) -> None:
        while message := known.line.receive():
            early = not self._welcomed and message.get("what") != "give up"
            if early or not forms.is_understood(message, known.process, self.count):
                known.line.fault = f"it says what is not understood: {str(message)[:200]}"
                return
            with self._lock:
                self._answers[message["what"]](self, known, message)

    def _end_of(self, known: Known) -> None:
        """Nothing more is heard of a process, which has left, or is lost."""
        how = "" if known.left else known.line.fault or self._ended(known.process)
        with self._lock, self._telling():
            if not known.left:
                self._on_end(known, how)
            known.gone = True
            self._note_end()
        _part(known.line)

    @contextlib.contextmanager
    def _telling(self) -> Generator[None]:
        """A block whose failure, a fault of this coordinator's, is told to all."""
        try:
            yield
        except Exception:
            fault = traceback.format_exc()
            with self._lock:
                if self._welcomed:
                    self._decide(kind="fault", why=fault)
                else:
                    self._turn_away(f"the coordinator has failed: {fault}")

    def _on_end(self, known: Known, how: str) -> None:
        if not self._welcomed:
            self._turn_away(f"{known} ended before all had come")
            return
        self._lost(known, how or "it ended without a word: its connection is closed, as when a "
                   "process is killed")  # fmt: skip

    def _lost(self, known: Known, why: str, traceback: str = "") -> None:
        self._decide(kind="lost", why=why, traceback=traceback, **known.who)

    def _decide(self, **verdict: Any) -> None:
        if not self._verdict:
            self._verdict = {"what": "verdict", **verdict}
            self._tell(self._verdict)

    def _tell(self, message: Message) -> None:
        line = encoded(message)
        for known in self._members.values():
            if not known.gone:
                known.line.post(line)

    def _pulse(self, known: Known, message: Message) -> None:
        known.pulse = message

    def _failed(self, known: Known, message: Message) -> None:
        known.gone = True
        last = str(message["traceback"]).strip().rpartition("\n")[2]
        self._lost(known, f"it ended by an exception, {last}", message["traceback"])

    def _give_up(self, known: Known, message: Message) -> None:
        if not self._welcomed:
            self._turn_away(f"{known} {message['why']}{self._stranger}")
            self.everyone_left.set()

    def _bye(self, known: Known, message: Message) -> None:
        known.left, known.launched = True, message["launched"]
        self._tell({"what": "left", "process": known.process, "launched": known.launched})
        for key in list(self._gathers):
            self._settle(key)

    def _gather(self, known: Known, message: Message) -> None:
        if why := self._sums.differ({known.process: message}):
            self._decide(kind="mismatch", why=why)
            return
        key, process = message["key"], known.process
        gathering = self._gathers.setdefault(key, Gathering(forms.among(key)))
        gathering.topics[process] = message["topic"]
        gathering.details[process] = message["detail"]
        gathering.values[process] = message["value"]
        gathering.launched[process] = message["launched"]
        gathering.since = time.monotonic()
        self._settle(key)

    def _settle(self, key: str) -> None:
        """Answer a gather to which all have come, or to which somebody never will."""
        gathering = self._gathers[key]
        if len(set(gathering.topics.values())) > 1:
            self._decide(kind="mismatch", why=differing.topics(gathering.said))
            return
        if why := differing.ahead(gathering.said, gathering.launched, {}):
            self._decide(kind="mismatch", why=why)
            return
        absent = [self._members[i] for i in gathering.absent()]
        if not absent:
            del self._gathers[key]
            values = [gathering.values[i] for i in gathering.among]
            line = encoded({"what": "gathered", "key": key, "values": values})
            for i in gathering.among:
                self._members[i].line.post(line)
        for known in absent:
            if known.left:
                count = known.launched.get(key.partition("/")[0], 0)
                when = f"after {differing.launches(count)}, and the others wait for it"
                self._decide(kind="ended", why=f"{when}: {gathering.topic}", **known.who)

    def _set(self, known: Known, message: Message) -> None:
        del known
        key, value = message["key"], message["value"]
        self._stored[key] = value
        for (_, number), asking in self._asked.pop(key, {}).items():
            asking.line.send(what="got", number=number, value=value)

    def _get(self, known: Known, message: Message) -> None:
        key, number = message["key"], message["number"]
        if key in self._stored or not message["wait"]:
            known.line.send(what="got", number=number, value=self._stored.get(key))
        else:
            self._asked.setdefault(key, {})[known.process, number] = known

    def _no_more(self, known: Known, message: Message) -> None:
        asked = self._asked.get(message["key"], {})
        asked.pop((known.process, message["number"]), None)
        if not asked:
            self._asked.pop(message["key"], None)

    def _delete(self, known: Known, message: Message) -> None:
        del known
        self._stored.pop(message["key"], None)

    _answers = {  # noqa: RUF012  (a table of methods)
        "pulse": _pulse,
        "failed": _failed,
        "give up": _give_up,
        "bye": _bye,
        "gather": _gather,
        "set": _set,
        "get": _get,
        "no more": _no_more,
        "delete": _delete,
    }

    # ---- who is late, and who waits for ever ----

    def _watch(self) -> None:
        while not self.everyone_left.wait(PULSE):
            with self._lock, self._telling():
                if self._welcomed:
                    self._tell({"what": "pulse"})
                if self._welcomed and not self._verdict:
                    self._look(time.monotonic())

    def _look(self, now: float) -> None:
        there = [k for k in self._members.values() if not (k.left or k.gone)]
        for known in there:
            silent = known.silence.seconds(now)
            if silent > self._silence:
                self._lost(known, f"nothing has been heard of it for {silent:.0f} s")
            elif known.late.is_told(silent):
                self._warn(known, silent, "nothing has been heard of it")
        for gathering in self._gathers.values():
            waited = now - gathering.since
            if gathering.late.is_told(waited):
                for process in gathering.absent():
                    why = f"others wait for it ({gathering.topic})"
                    self._warn(self._members[process], waited, why)
        pulses = {k.process: k.pulse for k in there}
        settled = [g for g in self._gathers.values() if now - g.since > PULSE]
        every = [self._ahead(gathering, pulses) for gathering in settled]
        why = next(filter(None, [self._sums.differ(pulses), *every]), "")
        if why:
            self._decide(kind="mismatch", why=why)

    @staticmethod
    def _ahead(gathering: Gathering, pulses: differing.Pulses) -> str:
        absent = {i: pulses[i] for i in gathering.absent() if i in pulses}
        return differing.ahead(gathering.said, gathering.launched, absent)

    def _warn(self, known: Known, seconds: float, why: str) -> None:
        """Tell the others of one who is late."""
        for other in self._members.values():
            if other is not known and not other.gone:
                other.line.send(
                    what="slow", process=known.process, host=known.about["host"],
                    seconds=seconds, why=why,
                )  # fmt: skip


def _part(line: Line) -> None:
    """End a connection; what still comes does not matter."""
    line.close(_FAREWELL)
    while line.receive():
        pass


def _understood(first: Message) -> bool:
    """Whether somebody who connects says what there is to say: for runtime, or to join."""
    told = {"token": str} | (_TOLD if first.get("what") == "join" else {})
    return first.get("what") in ("join", "runtime") and all(
        isinstance(first.get(name), kind) for name, kind in told.items()
    )


_TOLD: dict[str, type] = {
    "process": int,
    "count": int,
    "attempt": int,
    "host": str,
    "pid": int,
    "silence": float,
    "phalanx": str,
    "runtime": str,
    "platform": str,
    "devices": int,
}
_ALIKE = {
    "phalanx": "the versions of phalanx",
    "runtime": "the versions of jaxlib",
    "platform": "the platforms",
    "devices": "the numbers of CPU devices",
}
