"""Waiting for others where nothing can be told to who waits: another thread goes there.

In the runtime neither an exception nor a signal reaches a thread, and not everything that waits
there is woken when a process is lost: Gloo forgets whoever waits to send what it could not write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from phalanx.processes.relay import start
from phalanx.processes.wire import PULSE

T = TypeVar("T")

_idle: list[SimpleQueue[Any]] = []  # where threads that have nothing to do are asked for more


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


def _desk() -> SimpleQueue[Any]:
    try:
        return _idle.pop()
    except IndexError:
        desk: SimpleQueue[Any] = SimpleQueue()
        start(_serve, desk)
        return desk


def _serve(desk: SimpleQueue[Any]) -> None:
    while True:
        work, outcome, done = desk.get()
        try:
            outcome[:] = work(), None
        except BaseException as e:
            outcome[:] = None, e
        _idle.append(desk)
        done.release()
        del work, outcome, done  # arrays among them
