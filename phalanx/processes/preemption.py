"""All processes agree on a step at which to save when one of them is told that it must end.

Schedulers tell a process that with SIGTERM, some time before they kill it. Whoever is told sets a
key in the store of the coordinator, for which all wait. Each then tells the last step that it has
asked about, and lets no later one pass; process 0 tells all the step after the last of these, to
which nobody has come yet.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any

from phalanx.base.errors import PhalanxError
from phalanx.processes.member import Member
from phalanx.processes.threads import start
from phalanx.processes.watched import PULSE

_WHO = "reached_preemption_sync_point"
_KEY = "phalanx/preemption"


class Watch:
    """What a process knows of a step at which all are to save; from now on SIGTERM asks for one.

    A second SIGTERM does what the first would have done without this.

    Raises:
        ValueError: this is not the main thread, which alone can listen to signals.
    """

    def __init__(self, member: Member) -> None:
        self.member = member
        self._is_signalled = threading.Event()
        self._changed = threading.Condition()
        self._latest = -1
        self._is_holding = False  # whether no later step passes
        self._agreed: int | None = None
        before = signal.getsignal(signal.SIGTERM)

        def handle(number: int, frame: Any) -> None:
            del number, frame
            signal.signal(signal.SIGTERM, before)
            self._is_signalled.set()

        signal.signal(signal.SIGTERM, handle)
        start(self._notify)
        start(self._agree)

    def reached(self, step: int) -> bool:
        """Whether ``step`` is the one at which all are to save.

        Raises:
            PeerLost: a process is gone.
        """
        with self._changed:
            while self._is_holding and self._agreed is None and step > self._latest:
                self._changed.wait(PULSE)
                self.member.check(_WHO, self.member.everyone)
            if not self._is_holding:
                self._latest = max(self._latest, step)
            return step == self._agreed

    def _notify(self) -> None:
        self._is_signalled.wait()
        with contextlib.suppress(PhalanxError):  # there is nobody left who could save
            self.member.store(_KEY, "")

    def _agree(self) -> None:
        with contextlib.suppress(PhalanxError):  # `reached` raises it
            self.member.stored(_KEY, True, None)
            with self._changed:
                self._is_holding = True
            self.member.store(f"{_KEY}/{self.member.process}", str(self._latest))
            if self.member.process == 0:
                keys = [f"{_KEY}/{process}" for process in range(self.member.count)]
                steps = [int(self.member.stored(key, True, None) or -1) for key in keys]
                self.member.store(f"{_KEY}/agreed", str(max(steps) + 1))
            agreed = self.member.stored(f"{_KEY}/agreed", True, None)
            with self._changed:
                self._agreed = None if agreed is None else int(agreed)
                self._changed.notify_all()


_watching: list[Watch] = []


def reached(member: Member, step: int) -> bool:
    """``Watch.reached`` of the watch of this process, which begins with the first call."""
    if not _watching or _watching[0].member is not member:
        _watching[:] = [Watch(member)]
    return _watching[0].reached(step)
