"""The benchmarks: one small function each, from `(np, api)` to what is to be timed.

`api` is the module phalanx or jax, with its submodules. `calls` are called again and again and
waited for at the end of a round; `waits` are waited for after each call, as programs with
collectives must be on some runtimes; `fresh` cases return a pair, and the first makes an argument
for the second outside the timing; `once` cases are called once in a process. `second` cases are
called once in a process of their own, which is timed from its start, and which is not the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

DEVICES = 8


@dataclass(frozen=True)
class Case:
    """What is timed, and how."""

    name: str
    kind: str
    make: Callable[[Any, Any], Any]


CASES: list[Case] = []


def case(name: str, kind: str = "calls") -> Callable:
    def register(make: Callable) -> Callable:
        CASES.append(Case(name, kind, make))
        return make

    return register
