"""Functions as analyses take them: traced, and with what they capture as arguments."""

# What a traced function holds is private to users, not to the analyses of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from phalanx.api.jit import jit
from phalanx.api.stages import Traced, TracedCall

__all__ = ["traceable", "whole"]


def traceable(f: Any, who: str) -> Any:
    """``f``, compiled if it is not yet: what has a method ``trace``.

    Raises:
        TypeError: it is no function.
    """
    if not callable(f):
        raise TypeError(f"{who}: a function is needed, got {type(f).__name__}")
    return f if hasattr(f, "trace") and hasattr(f, "lower") else jit(f)


def whole(traced: Traced) -> TracedCall:
    """The call, of which what was captured are arguments."""
    call = traced._traced
    return call.with_captured() if call.captured else call
