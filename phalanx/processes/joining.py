"""How a process joins the others: it calls the coordinator until that welcomes or refuses it."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from functools import partial
from queue import Empty, SimpleQueue

from phalanx.base import log
from phalanx.base.errors import RendezvousError
from phalanx.processes.joined import become
from phalanx.processes.line import Line
from phalanx.processes.loop import EventLoop
from phalanx.processes.member import Member
from phalanx.processes.settings import Settings
from phalanx.processes.wire import Message, is_loopback, split

_FAREWELL = 2.0  # seconds in which the coordinator hears what who cannot join has said
_PAUSE = 0.5  # seconds between two calls
_EARLY = "the coordinator there belongs to an attempt that is over and has not ended yet"


def join(settings: Settings, about: Message) -> Member:
    """Meet the other processes at the coordinator; ``about`` says what must be alike in all.

    Raises:
        RendezvousError: the coordinator does not answer or refuses, or not all have come in time.
    """
    loop = EventLoop()
    try:
        return _joined(settings, loop, about)
    except BaseException:
        loop.call(partial(loop.later, _FAREWELL, loop.stop))  # when all is said
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


class _Call:
    """A call of the coordinator, by a process that wants to join.

    Attributes:
        received: the messages that come; an empty one when there will be none any more.
    """

    def __init__(self, settings: Settings, loop: EventLoop, sock: socket.socket) -> None:
        self._settings = settings
        self.received: SimpleQueue[Message] = SimpleQueue()
        end = partial(self.received.put, {})
        self.line = Line(loop, sock, settings.seal(), self.received.put, end)
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
            return settings.connected(max(deadline - time.monotonic(), 0.1))
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
