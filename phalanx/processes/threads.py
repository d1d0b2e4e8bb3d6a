"""Waiting for others where nothing can be told to who waits: another thread goes there.

In the runtime neither an exception nor a signal reaches a thread, and not everything that waits
there is woken when a process is lost: Gloo forgets whoever waits to send what it could not write.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from phalanx.processes.watched import PULSE

T = TypeVar("T")

_desks: list[SimpleQueue[Any]] = []  # where threads are asked for work
_idle: list[SimpleQueue[Any]] = []  # those of threads that have nothing to do
_reserved: list[SimpleQueue[Any]] = []  # those for the end of this process
_AT_THE_END = 4  # threads that may be needed then


def in_another_thread(work: Callable[[], T], look: Callable[[], None]) -> T:
    """The result of ``work``, which another thread does, or what it raises.

    ``look`` is called every PULSE seconds meanwhile; if it raises, as when a signal does, that
    thread is left alone with its work.
    """
    done = threading.Lock()
    done.acquire()
    outcome: list[Any] = []
    _desk().put((work, outcome, done))
    while not done.acquire(timeout=PULSE):
        look()
    result, failure = outcome
    if failure is None:
        return result
    try:
        raise failure
    finally:
        del failure, outcome  # or the exception would hold itself, through this frame


def begin(work: Callable[[], object]) -> threading.Lock:
    """Have another thread do ``work``; a lock that is free when it is done."""
    done = threading.Lock()
    done.acquire()
    _desk().put((work, list[Any](), done))
    return done


def _desk() -> SimpleQueue[Any]:
    try:
        return _idle.pop()
    except IndexError:
        desk = _new_desk()
        _desks.append(desk)
        return desk


def _new_desk() -> SimpleQueue[Any]:
    desk: SimpleQueue[Any] = SimpleQueue()
    try:
        start(_serve, desk)
    except RuntimeError:  # Python 3.12.1 starts none when it ends
        if not _reserved:
            raise
        return _reserved.pop()
    return desk


def reserve_threads() -> None:
    """Have threads for the end of this process, when none can be started any more."""
    while len(_reserved) < _AT_THE_END:
        _reserved.append(_new_desk())


def are_idle(patience: float) -> bool:
    """Whether within ``patience`` seconds no thread works any more, those left alone included.

    One that comes back from the runtime after Python has ended aborts the process.
    """
    end = time.monotonic() + patience
    while len(_idle) < len(_desks):
        if time.monotonic() > end:
            return False
        time.sleep(PULSE / 100)
    return True


def _serve(desk: SimpleQueue[Any]) -> None:
    while True:
        work, outcome, done = desk.get()
        try:
            outcome[:] = work(), None
        except BaseException as e:
            outcome[:] = None, e
        del work, outcome  # arrays among them; when `done` is released, Python may end
        _idle.append(desk)
        done.release()


def start(function: Callable[..., object], *args: object) -> threading.Thread:
    """Run ``function`` in a thread that keeps no process alive."""
    thread = threading.Thread(target=function, args=args, name="phalanx", daemon=True)
    thread.start()
    return thread
