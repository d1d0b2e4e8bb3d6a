"""``add.reduce``, ``maximum.accumulate`` and the like: methods of functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from phalanx.numpy import arithmetic, logic, transcendental

IDENTITIES: dict[str, Any] = {
    "add": 0,
    "bitwise_and": -1,
    "bitwise_or": 0,
    "bitwise_xor": 0,
    "logaddexp": -float("inf"),
    "logaddexp2": -float("inf"),
    "logical_and": True,
    "logical_or": False,
    "logical_xor": False,
    "maximum": None,
    "minimum": None,
    "multiply": 1,
    "subtract": None,
}
"""The functions of two operands that have the methods, and what leaves any element as it is."""
OPERANDS = {**dict.fromkeys(IDENTITIES, 2), "negative": 1}
"""All that have the methods, and the number of their operands."""


def attach() -> None:
    """Give the functions their methods; what these do is imported when one is called."""
    for name, nin in OPERANDS.items():
        homes = (arithmetic, logic, transcendental)
        function: Any = next(getattr(home, name) for home in homes if hasattr(home, name))
        function.nin, function.nout, function.nargs = nin, 1, nin
        function.identity = IDENTITIES.get(name)
        for method in ("reduce", "accumulate", "outer", "at", "reduceat"):
            setattr(function, method, _later(name, method))


def _later(name: str, method: str) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        known = importlib.import_module("phalanx.numpy.universal").KNOWN[name]
        return getattr(known, method)(*args, **kwargs)

    run.__name__, run.__qualname__ = method, f"{name}.{method}"
    return run
