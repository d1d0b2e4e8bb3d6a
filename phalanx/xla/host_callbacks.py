"""Calls from a running program back to Python, and what becomes of exceptions there."""

from __future__ import annotations

import itertools
import random
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from phalanx.base import dtypes
from phalanx.base.errors import DeviceError, RuntimeFailure
from phalanx.core.types import ArrayType
from phalanx.xla.host_transfers import HostTransfers

Function = Callable[..., Sequence[Any]]
Types = Sequence[ArrayType]


class _EntryPoint:
    """What the runtime calls. It holds the functions of a module weakly: jaxlib never lets go."""

    __slots__ = ("_callbacks", "_number")

    def __init__(self, callbacks: Callbacks, number: int) -> None:
        self._callbacks = weakref.ref(callbacks)
        self._number = number

    def __call__(self, *args: Any) -> tuple[np.ndarray, ...]:
        callbacks = self._callbacks()
        if callbacks is None:
            raise RuntimeFailure("callback: the program that calls it is no longer there")
        return callbacks.call(self._number, args)


class Launch:
    """A run of a program that calls back and goes on, for the length of a block.

    ``raised`` is what its functions raised.
    """

    __slots__ = ("_callbacks", "_waiting", "raised")

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks
        self._waiting: list[threading.Event] = []
        self.raised: list[BaseException] = []

    def __enter__(self) -> Launch:
        self._callbacks.turn.acquire()
        self._callbacks.launch = self
        underway[id(self._waiting)] = self._waiting
        return self

    def __exit__(self, *_: object) -> None:
        end(self._waiting)
        self._callbacks.turn.release()


class Stopped(Exception):
    """Stops a program because a function that it called raised ``cause``."""

    _causes: ClassVar[dict[int, BaseException]] = {}
    _numbers: ClassVar[Iterator[int]] = itertools.count()

    def __init__(self, cause: BaseException) -> None:
        number = next(Stopped._numbers)
        Stopped._causes[number] = cause
        Stopped._causes.pop(number - 256, None)  # nobody waited for that program
        super().__init__(f"a callback raised exception number {number}.")

    @staticmethod
    def cause(error: RuntimeError) -> BaseException | None:
        """The exception that made the runtime fail with ``error``, if it was one."""
        match = re.search(r"a callback raised exception number (\d+)\.", str(error))
        return Stopped._causes.pop(int(match[1]), None) if match else None


# Who waits for each program that runs and calls back. It is a list by its own identity: a lock for
# each run would take longer than all that a small program does.
underway: dict[int, list[threading.Event]] = {}
_here = threading.local()


class Callbacks:
    """The Python functions that a module for ``devices`` calls, and its launches.

    A program on one device stops where a function raises: the runtime fails with a text in
    which the number of the exception is looked up. On several devices it has to go on to its
    end, or others would wait for ever for the one that stopped, and so has one that receives
    what functions give; functions are not called any more then, and nobody sees the results made
    up for them. The runtime does not say which launch a call belongs to, so launches that go on
    come one after the other.
    """

    def __init__(self, devices: Sequence[Any]) -> None:
        self.stops = len(devices) == 1
        self.entries: list[_EntryPoint] = []
        self.waiting: Sequence[Any] = ()  # devices that receive what functions give
        self._devices = devices
        self._transfers: list[HostTransfers | None] = []
        self._functions: list[tuple[Function, tuple[ArrayType, ...]]] = []
        self.turn = threading.Lock()
        self.launch: Launch | None = None  # the one that goes on
        self._count = 0  # of calls with made-up results

    def add(
        self, function: Function, out_types: Types, transfers: HostTransfers | None = None
    ) -> int:
        """Let the module call ``function``, by ``transfers`` if at all; returns its number."""
        number = len(self.entries)
        self.entries.append(_EntryPoint(self, number))
        self._transfers.append(transfers)
        self._functions.append((function, tuple(out_types)))
        if transfers is not None:
            self.stops, self.waiting = False, self._devices
        return number

    def attached(self, client: Any) -> list[Any]:
        """The functions, as an executable of ``client`` takes them."""
        return [
            entry if by is None else by.attached(client, entry)
            for entry, by in zip(self.entries, self._transfers, strict=True)
        ]

    def call(self, number: int, args: Sequence[Any]) -> tuple[np.ndarray, ...]:
        """The results of function ``number``."""
        function, out_types = self._functions[number]
        launch = self.launch
        if launch is not None and launch.raised:
            return self._zeros(out_types)
        outer, _here.calling = called_by(), self
        try:
            return _fitted(function, function(*map(_copied, args)), out_types)
        except BaseException as e:
            if launch is None:
                raise Stopped(e) from None
            launch.raised.append(e)
            self._count = 0
            return self._zeros(out_types)
        finally:
            _here.calling = outer

    def _zeros(self, types: Types) -> tuple[np.ndarray, ...]:
        """Values in place of results; negative in every second one of ever longer runs of calls."""
        self._count += 1
        sign = 1 if self._count.bit_length() // 2 % 2 else -1
        return tuple([_anything(t, sign) for t in types])


_own = random.Random()  # what the user draws is not to depend on what failed


def _anything(type: ArrayType, sign: int) -> np.ndarray:
    """A value of some size, which is at least n with a probability of 1 / n.

    A loop may wait for a result that is large enough, or for results that add up, or run as many
    times as a result says: so large ones must come, and must be rare.
    """
    size = int(1 / (1 - _own.random())) - 1
    value = sign * size
    if type.dtype == np.bool_:
        value = size % 2
    elif dtypes.is_integer(type.dtype):
        limits = dtypes.iinfo(type.dtype)
        value = min(max(value, int(limits.min)), int(limits.max))
    return np.full(type.shape, value).astype(type.dtype)


def called_by() -> Callbacks | None:
    """Whose function this thread runs, if a program calls it."""
    return getattr(_here, "calling", None)


def refuse_in_callback(who: str) -> None:
    """Raise DeviceError inside a callback, where waiting for devices may be waiting for ever."""
    if called_by() is not None:
        raise DeviceError(
            f"{who}: a function that a program calls cannot run a program on several devices: "
            "they may be waiting for that function. Compute with NumPy inside it, or return what "
            "it needs from the program and go on outside"
        )


def refuse_where_devices_wait(who: str, device: Any) -> None:
    """Raise DeviceError inside a function that ``device`` waits for: it does nothing meanwhile."""
    caller = called_by()
    if caller is not None and device in caller.waiting:
        raise DeviceError(
            f"{who}: a function that a program calls cannot run a program on {device}, which waits "
            "for that function. Compute with NumPy inside it, or on a CPU, "
            "jit(f, device=phalanx.devices('cpu')[0])"
        )


def end(waiting: list[threading.Event]) -> None:
    """A run of a program is over, for which those wait that are ``waiting``."""
    del underway[id(waiting)]
    for event in waiting:
        event.set()


def wait_for_callbacks() -> None:
    """Wait until the programs underway that call back are over; nothing to do inside of one."""
    if called_by() is None:
        for waiting in list(underway.values()):
            event = threading.Event()
            waiting.append(event)
            if underway.get(id(waiting)) is waiting:  # or nobody looks at it any more
                event.wait()


def _copied(x: Any) -> np.ndarray:
    """An argument as an array that outlives the call: jaxlib copies, but does not promise to."""
    array = np.asarray(x)
    if not array.flags.owndata:
        array = array.copy()
    array.flags.writeable = False
    return array


def _fitted(
    function: Function, results: Sequence[Any], out_types: tuple[ArrayType, ...]
) -> tuple[np.ndarray, ...]:
    """The results, of the types declared: the runtime would read out of bounds."""
    fitted = tuple(
        np.asarray(dtypes.as_held(np.asarray(r), t.dtype), order="C")
        for r, t in zip(results, out_types, strict=True)
    )
    for result, t in zip(fitted, out_types, strict=True):
        if result.shape != t.shape:
            raise ValueError(
                f"callback: the result of {function} has shape {result.shape}, but {t} was declared"
            )
    return fitted
