"""Where those who connect say who they are, before anything else is done for them.

Anybody may connect: so nobody waits for those who say nothing, and few are kept at a time.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from phalanx.processes.line import Line
from phalanx.processes.loop import EventLoop
from phalanx.processes.watched import PULSE
from phalanx.processes.wire import FIRST, Message

if TYPE_CHECKING:
    from phalanx.processes.secure import Credentials

STRANGERS = 256  # of whom nothing is known yet, at a time
_HURRY = 10.0  # seconds that somebody who connects may take to say who that is
_UNCLEAR = "it says nothing that is understood"
_SILENT = "it has not said who it is"


class Reception:
    """Accepts connections to ``listener``, in the thread of the ``loop``.

    Args:
        meet: called with a connection and the first message on it; gives whether it is understood.
        turned_away: called with a connection that has ended before that, and why.
        room: for so many strangers at a time.
    """

    def __init__(
        self,
        loop: EventLoop,
        listener: socket.socket,
        credentials: Credentials | None,
        meet: Callable[[Line, Message], bool],
        turned_away: Callable[[Line, str], object],
        room: int = STRANGERS,
    ) -> None:
        self._loop, self._credentials = loop, credentials
        self._on_first, self._turned_away, self._room = meet, turned_away, room
        self.strangers: dict[Line, float] = {}  # until when, in the order in which they came
        loop.call(partial(loop.accept, listener, self._admit))
        loop.call(partial(loop.every, PULSE, self._watch))

    def _admit(self, sock: socket.socket) -> None:
        """Have one more stranger. The oldest makes room: it has had more time to say who it is
        than others, and would keep those out who do."""
        line = Line(self._loop, sock, self._credentials and self._credentials.answer())
        line.longest = FIRST
        line.on_message = partial(self._meet, line)
        line.on_end = partial(self._dismiss, line, _UNCLEAR)
        self.strangers[line] = time.monotonic() + _HURRY
        while len(self.strangers) > self._room:
            self._dismiss(next(iter(self.strangers)), _SILENT)

    def _meet(self, line: Line, first: Message) -> None:
        self.strangers.pop(line, None)
        line.on_message, line.on_end = _ignore, _ignore
        if not self._on_first(line, first):
            self._dismiss(line, _UNCLEAR)

    def _watch(self) -> None:
        now = time.monotonic()
        for line, until in list(self.strangers.items()):
            if now > until:
                self._dismiss(line, _SILENT)

    def _dismiss(self, line: Line, why: str) -> None:
        """Somebody who has no business here goes, or has gone."""
        self.strangers.pop(line, None)
        line.on_end = _ignore
        self._turned_away(line, line.fault or why)
        line.end()


def _ignore(*_: object) -> None:
    """What one says who is turned away, or that it ends."""
