"""Somebody who gives signs of life: for how long there were none, and when others are told so."""

from __future__ import annotations

import time

PULSE = 0.5  # seconds between looks at what has come
LATE = 10.0  # after so many seconds others are told that a process is slow


class Silence:
    """How long nothing has been heard of somebody who gives signs of life.

    What this process has slept through itself, stopped or without a processor, does not count.
    """

    def __init__(self) -> None:
        self._last = self._looked = time.monotonic()

    def end(self) -> None:
        """Something was heard."""
        self._last = time.monotonic()

    def seconds(self, now: float) -> float:
        """How long it has lasted; asked every PULSE seconds."""
        slept = now - self._looked - PULSE
        if slept > PULSE:
            self._last += slept
        self._looked = now
        return now - self._last


class Lateness:
    """Whether to tell that something is late: at first, and each time that this has doubled."""

    def __init__(self, first: float = LATE) -> None:
        self._first = first
        self._next = first

    def is_due(self, seconds: float) -> bool:
        """Whether to tell it now, as it lasts for ``seconds``.

        >>> late = Lateness(10)
        >>> [late.is_due(seconds) for seconds in (9, 11, 12, 23, 24, 0, 10)]
        [False, True, False, True, False, False, True]
        """
        if seconds < self._first:
            self._next = self._first
        if seconds < self._next:
            return False
        self._next = 2 * seconds
        return True


def first_warning(silence: float) -> float:
    """The seconds of silence after which others are told of it, if ``silence`` of it is a loss."""
    return min(LATE, silence / 3)


def pause(silence: float) -> float:
    """How many seconds are between two signs of life.

    >>> pause(100), pause(2)
    (5.0, 0.3333333333333333)
    """
    return max(first_warning(silence) / 2, 0.02)
