"""What is in flight: launches over several devices or processes, and who waits for them."""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from phalanx.base.errors import PeerLost, ProgramMismatch
from phalanx.processes.joined import joined_member
from phalanx.processes.threads import are_idle, begin
from phalanx.processes.watched import PULSE
from phalanx.xla import cout
from phalanx.xla.failures import translated
from phalanx.xla.jaxlib_versions import to_numpy, xc

if TYPE_CHECKING:
    from phalanx.processes.member import Member

# XLA's CPU client deadlocks when more than 32 launches that span devices are in flight. One
# window of 16 for the whole process, kept under a lock, was measured to be safe and free. Other
# clients run what they are given in order.
WINDOW = 16
WINDOWED = ("cpu",)
_LOOKS = (50e-6, 50e-6, 100e-6, 200e-6, 400e-6)  # seconds between looks whether arrays are there
_LINGERS = 2.0  # seconds that such a launch has, when the process ends

T = TypeVar("T")
Launched = tuple[list[Any], Any]  # the outputs, and the token
launching = threading.RLock()
in_flight: deque[Sequence[Any]] = deque()  # the tokens of each launch over several devices
_beginning = threading.Lock()  # while a launch over processes begins in a thread apart
_caught = threading.Lock()  # while one does in the thread that asks
_compiling = threading.Lock()  # while a program over processes is compiled
_last: deque[tuple[Any, bool]] = deque(maxlen=1)  # if it goes on: token, whether on one device here
_asked: deque[tuple[Any, threading.Lock]] = deque(maxlen=1)  # and what is held until that is over


def is_windowed(devices: Sequence[Any]) -> bool:
    """Whether launches over ``devices`` are counted, and wait for room among those in flight."""
    return len(devices) > 1 and devices[0].platform in WINDOWED


def make_room(who: str) -> None:
    """Make room for one more launch over several devices among those in flight."""
    if len(in_flight) < WINDOW:
        return
    tokens = in_flight.popleft()
    waiting_in_another_thread(lambda: _wait_for(tokens), who)


def _wait_for(tokens: Sequence[Any]) -> None:
    for token in tokens:
        try:  # noqa: SIM105  (each launch pays for `suppress`)
            token.block_until_ready()
        except xc.JaxRuntimeError:
            pass  # what that launch failed with surfaces where its outputs are used


def over_processes(
    member: Member, execute: Callable[[], Launched], one_here: bool, first: bool, who: str
) -> Launched:
    """The outputs and the token of ``execute``, a launch of ``who`` over several processes.

    Processes tell what they exchange apart by its order alone. The runtime keeps it where launches
    span devices of this process, and else lets one overtake another; so where there is but
    ``one_here``, the launch before ends before this one begins. The ``first`` launch of a program
    is over when it returns: processes connect meanwhile, and nothing may come between.

    Raises:
        PeerLost, ProgramMismatch: it still waits a while after nothing can be computed any more.
    """
    before = [token for token, one_there in _last if one_here or one_there]
    if before:
        waiting_in_another_thread(lambda: _wait_for(before), who)
    if first:
        return member.in_another_thread(
            lambda: _connecting(member, execute, one_here), who, _hanging
        )
    if one_here:  # in the thread that asks: another one would take half as long again for a sum
        return _begun(_caught, execute, one_here)
    return member.in_another_thread(lambda: _begun(_beginning, execute, one_here), who, _hanging)


def _begun(lock: threading.Lock, execute: Callable[[], Launched], one_here: bool) -> Launched:
    with lock:
        outs, token = execute()
        _last.clear()
        if not outs or not all([out.is_ready() for out in outs]):
            _last.append((token, one_here))
            in_flight.append((token,))
    return outs, token


def _connecting(member: Member, execute: Callable[[], Launched], one_here: bool) -> Launched:
    with cout.on_stderr():
        outs, token = _begun(_beginning, execute, one_here)
        token.block_until_ready()
    member.is_caught = _caught.locked
    return outs, token


def compiling(member: Member, work: Callable[[], T], name: str) -> T:
    """The result of ``work``, which compiles a program over processes, of that ``name``.

    Raises:
        PeerLost, ProgramMismatch: it goes on a while after nothing can be computed any more.
    """

    def compiled() -> T:
        with _compiling:
            return work()

    return member.in_another_thread(compiled, f"compiling {name}", lambda: True)


def waiting_in_another_thread(work: Callable[[], T], who: str) -> T:
    """The result of ``work``, in which ``who`` may wait for launches over processes under way.

    Raises:
        PeerLost, ProgramMismatch: they wait for others in vain.
    """
    member = joined_member()
    if member is None or not (_last or _is_beginning()):
        return work()
    return member.in_another_thread(work, who, _hanging)


def _hanging() -> bool:
    """Whether a launch over processes goes on though nothing can be computed with them any more."""
    for token, _ in _last:
        if not any(token is asked for asked, _ in _asked):
            _asked.append((token, begin(partial(_wait_for, [token]))))
    return _is_beginning() or any(over.locked() for _, over in _asked)


def _is_beginning() -> bool:
    return _beginning.locked() or _caught.locked()


def waited(arrays: Sequence[Any], work: Callable[[], T], who: str) -> T:
    """The result of ``work``, in which ``who`` waits for ``arrays``.

    Raises:
        PeerLost, ProgramMismatch: they wait for others in vain.
    """
    member = joined_member()
    if member is not None and not _are_ready_soon(arrays):
        member.in_another_thread(partial(_wait_for, arrays), who, _hanging)
    return work()


def _are_ready_soon(arrays: Sequence[Any]) -> bool:
    """Whether they are when one has looked a few times: for a sum of few numbers, another thread
    takes longer; for one of many, looks take the processor from those who add up."""
    for pause in _LOOKS:
        if all([array.is_ready() for array in arrays]):
            return True
        time.sleep(pause)
    return False


def read(array: Any) -> np.ndarray:
    """The elements of a single-device array, when they are there."""
    return waited((array,), lambda: to_numpy(array), "reading an array")


def complete() -> None:
    """Wait for the last launch over processes, which fails in the others without its part here.

    Raises:
        PeerLost, ProgramMismatch: others never do their part.
    """
    for token, _ in list(_last):
        try:
            waiting_in_another_thread(token.block_until_ready, "distributed.shutdown")
        except xc.JaxRuntimeError as e:
            failure = translated(e, "distributed.shutdown")
            if isinstance(failure, (PeerLost, ProgramMismatch)):
                raise failure from None
    _last.clear()


def end_anyway() -> None:
    """Let this process end, also with a launch over processes for which the runtime would wait."""
    with _compiling:  # in a thread that was left alone; when Python has ended it would abort
        pass
    if _hanging():
        for _, over in _asked:
            if over.acquire(timeout=PULSE):
                over.release()
    if not are_idle(PULSE) or _hanging():  # so it ends as one that failed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        faulthandler.dump_traceback_later(_LINGERS, exit=True, file=nowhere)
