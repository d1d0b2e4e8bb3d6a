"""Whether this process computes with others, asked by all that may span processes.

Most programs are one process: what it takes to speak with others is imported when one joins them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from phalanx.base.errors import DeviceError, PhalanxError
from phalanx.base.source import user_location

if TYPE_CHECKING:
    from phalanx.processes.group import Group
    from phalanx.processes.member import Member

_joined: list[Member] = []


def become(member: Member) -> Member:
    """This process is ``member`` from now on."""
    _joined[:] = [member]
    return member


def forget() -> None:
    """This process is by itself again."""
    _joined.clear()


def joined_member() -> Member | None:
    """This process among others, if it has joined any."""
    return _joined[0] if _joined else None


def group_over(devices: Sequence[Any], who: str) -> Group | None:
    """The group of the processes that ``devices`` belong to; None if that is one, this process.

    Raises:
        DeviceError: this process is not among them, so ``who`` does not run here.
    """
    member = joined_member()
    if member is None or all(d.process_index == member.process for d in devices):
        return None
    processes = frozenset(d.process_index for d in devices)
    if member.process not in processes:
        raise DeviceError(
            f"{who}: no device of this process, {member.process}, is among {list(devices)}, at "
            f"{user_location()}"
        )
    return member.group_of(processes)


def failure_of_others(who: str) -> PhalanxError | None:
    """What has become of others on which ``who``, which has failed, depended; if that is known."""
    member = joined_member()
    return None if member is None else member.failure(who)
