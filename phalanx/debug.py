"""Looking into running programs: printing values, calling Python, stopping."""

from phalanx.api.debug import breakpoint, callback, print

__all__ = ["breakpoint", "callback", "print"]
