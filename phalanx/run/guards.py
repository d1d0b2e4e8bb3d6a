"""Transfers that a program wants to know of, or that are not to happen by accident.

``device_put`` and ``device_get`` are *explicit*. All others are implicit: the arrays of NumPy and
the numbers that a function is called with, ``np.asarray(x)``, an operand that lies elsewhere.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any

from phalanx.base import log
from phalanx.base.config import Override, config, settings
from phalanx.base.errors import DisallowedTransfer
from phalanx.base.source import user_location
from phalanx.core.trace import is_recorded

_depth: ContextVar[int] = ContextVar("explicit", default=0)


class Explicitly:
    """A block whose transfers somebody asked for."""

    __slots__ = ("_token",)
    _token: Token[int]

    def __enter__(self) -> None:
        self._token = _depth.set(_depth.get() + 1)

    def __exit__(self, *_: object) -> None:
        _depth.reset(self._token)


def unwatched() -> Override:
    """A block whose transfers make a program ready: part of that, and not of the call that happens
    to be the first."""
    return config.override(
        transfer_guard_host_to_device=None,
        transfer_guard_device_to_host=None,
        transfer_guard_device_to_device=None,
    )


def watch(which: str, what: Any) -> None:
    """Log or refuse the transfer of ``what``, if the option for transfers ``which`` says so.

    While a program is recorded, what is put on devices are its constants. They are transferred
    once, and not in each call of it.

    Raises:
        DisallowedTransfer: it is refused.
    """
    level = getattr(settings(), f"transfer_guard_{which}")
    explicit = _depth.get() > 0
    if level in (None, "allow") or (explicit and not level.endswith("_explicit")):
        return
    if which != "device_to_host" and is_recorded():
        return
    way = which.replace("_", "-")
    if level.startswith("log"):
        log.warn("%s transfer of %s at %s", way, what, user_location())
        return
    advice = (
        f"transfer_guard_{which} is {level!r}"
        if explicit
        else "device_put and device_get are transfers that somebody asked for; this one is implicit"
    )
    # "Disallowed host-to-device transfer" is the field's, for matching
    raise DisallowedTransfer(f"Disallowed {way} transfer of {what} at {user_location()}: {advice}")
