"""One thread that serves many connections: whatever one of them asks for is done at once, or later.

Nothing that it does may wait. Other threads leave to it what concerns a connection (``call``), so
that needs no lock.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import selectors
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial

from phalanx.processes.threads import start

Work = Callable[[], object]
Ready = Callable[[int], object]
_AT_ONCE = 16  # connections are accepted before those are heard that have been
_LATER = 0.5  # seconds until they are again, when too many files are open
_BUFFER = 1 << 16  # bytes that are read at a time
_WAKING = 1 << 12  # bytes that wake it are read at a time


class EventLoop:
    """Such a thread.

    Attributes:
        fault: told the traceback where something fails, which goes on with the next thing.
    """

    def __init__(self) -> None:
        self.fault: Callable[[str], object] = sys.stderr.write
        self._selector = selectors.DefaultSelector()
        self._calls: deque[Work] = deque()
        self._timers: list[tuple[float, int, Work]] = []
        self._numbers = itertools.count()  # of timers: those of one time are done in order
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self.watch(self._woken, selectors.EVENT_READ, lambda _: self._woken.recv(_WAKING))
        self._buffer = memoryview(bytearray(_BUFFER))  # one for all: making it takes longest
        self._ended = False
        self._thread = start(self._run)

    @property
    def is_here(self) -> bool:
        """Whether this is its thread."""
        return threading.current_thread() is self._thread

    def call(self, work: Work) -> None:
        """Do ``work`` soon; from any thread."""
        self._calls.append(work)
        if not self.is_here:
            with contextlib.suppress(OSError):  # it is full of calls, or has ended
                self._waker.send(b".")

    def later(self, seconds: float, work: Work) -> None:
        """Do ``work`` in so many seconds."""
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), work))

    def every(self, seconds: float, work: Work) -> None:
        """Do ``work`` again and again, until it gives False."""

        def again() -> None:
            over = False
            try:
                over = work() is False
            finally:
                if not over:
                    self.later(seconds, again)

        self.later(seconds, again)

    def watch(self, sock: socket.socket, events: int, ready: Ready | None = None) -> None:
        """Call ``ready`` whenever ``sock`` is for one of the ``events``; 0: no more."""
        known = self._selector.get_map().get(sock)
        if known is None and events:
            self._selector.register(sock, events, ready)
        elif known is not None and not events:
            self._selector.unregister(sock)
        elif known is not None and known.events != events:
            self._selector.modify(sock, events, ready)

    def accept(self, listener: socket.socket, arrived: Callable[[socket.socket], object]) -> None:
        """Call ``arrived`` with each connection that is made to ``listener``."""
        listener.setblocking(False)

        def ready(_: int) -> None:
            for _ in range(_AT_ONCE):
                try:
                    sock, _ = listener.accept()
                except BlockingIOError:
                    return
                except OSError:  # this process has too many files open
                    self.watch(listener, 0)
                    self.later(_LATER, partial(self.accept, listener, arrived))
                    return
                arrived(sock)

        if listener.fileno() >= 0:
            self.watch(listener, selectors.EVENT_READ, ready)

    def dismiss(self, listener: socket.socket) -> None:
        """Accept nothing there any more."""
        self.watch(listener, 0)
        listener.close()

    def received(self, sock: socket.socket) -> bytes:
        """What has come to ``sock``; empty at its end.

        Raises:
            OSError: nothing has, or it is broken.
        """
        return bytes(self._buffer[: sock.recv_into(self._buffer)])

    def stop(self) -> None:
        """Close all that is watched, and end."""
        self._ended = True

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def _run(self) -> None:
        while not self._ended:
            for key, events in self._selector.select(self._patience()):
                self._do(partial(key.data, events))
            for _ in range(len(self._calls)):
                self._do(self._calls.popleft())
            while self._timers and self._timers[0][0] <= time.monotonic():
                self._do(heapq.heappop(self._timers)[2])
        for key in list(self._selector.get_map().values()):
            with contextlib.suppress(OSError):
                key.fileobj.close()  # type: ignore[union-attr]
        self._waker.close()
        self._selector.close()

    def _patience(self) -> float | None:
        """The seconds in which nothing is to be done if nothing comes; None: for ever."""
        if self._calls:
            return 0
        return max(self._timers[0][0] - time.monotonic(), 0) if self._timers else None

    def _do(self, work: Work) -> None:
        try:
            work()
        except Exception:
            self.fault(traceback.format_exc())
