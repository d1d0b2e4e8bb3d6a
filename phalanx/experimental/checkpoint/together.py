"""The processes that save and restore together: what they agree on, and how they know that all
have done their part.

What they agree on is gathered in the order of the program. That all is written they tell each other
in the store of the coordinator, which a thread may ask at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phalanx.processes.joined import joined_member


def process() -> int:
    """Which process this is."""
    member = joined_member()
    return 0 if member is None else member.process


def gather(topic: str, value: Any) -> list[Any]:
    """What each process gives, as JSON, by their numbers.

    Raises:
        PeerLost, ProgramMismatch: one is gone, or does something else.
    """
    member = joined_member()
    return [value] if member is None else member.everyone.gather(topic, value)


def compare(
    topic: str, compared: Mapping[str, Any], value: Any
) -> tuple[dict[str, Any], list[Any]]:
    """``Group.compare`` of all processes.

    Raises:
        PeerLost, ProgramMismatch: one is gone, or does something else.
    """
    member = joined_member()
    return ({}, [value]) if member is None else member.everyone.compare(topic, compared, value)


Failure = tuple[int, str]  # a number of the system's, or 0, and what is told


def failure_of(error: BaseException) -> Failure:
    """An error as other processes are told of it."""
    if isinstance(error, OSError) and error.errno:
        return error.errno, error.strerror or str(error)
    return 0, f"{type(error).__name__}: {error}"


def raised(failure: Failure, process: int, place: str) -> Exception:
    """The error of another process."""
    number, message = failure
    why = f"{message} (in process {process})"
    return OSError(number, why, place) if number else RuntimeError(why)


def report(name: str, who: str, failure: Failure | None) -> None:
    """Tell the others how ``who`` has ended its part of what has a ``name``."""
    member = joined_member()
    if member is not None:
        member.store(f"{name}/{who}", encode(failure))


def reported(name: str, who: str) -> Failure | None:
    """How ``who`` has ended its part; waits for it.

    Raises:
        PeerLost: a process is gone.
    """
    member = joined_member()
    return None if member is None else decode(member.stored(f"{name}/{who}", True, None) or "")


def encode(failure: Failure | None) -> str:
    """A failure as text.

    >>> decode(encode((28, "No space left"))), decode(encode(None))
    ((28, 'No space left'), None)
    """
    return f"{failure[0]} {failure[1]}" if failure else ""


def decode(text: str) -> Failure | None:
    """The inverse of ``encode``."""
    number, _, message = text.partition(" ")
    return (int(number), message) if text else None


def others() -> list[int]:
    """The processes that are not number 0."""
    member = joined_member()
    return [] if member is None else list(range(1, member.count))
