"""What a function closes over, made explicit: traced values that it uses without being given.

The derivative rules of a user's function run later than the function, and often elsewhere: when
a compiled function is differentiated, or on all lanes at once. A traced value that such a rule
closes over means nothing there. So it becomes an operand; where the rule runs, whatever stands
for that operand by then takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, cast

import numpy as np
from msgspec import Struct

from phalanx.core import axes
from phalanx.core.primitive import Primitive
from phalanx.core.trace import InnerTrace, Trace, Tracer, current, running
from phalanx.transforms.contents import NUMBERS_AND_TEXT, UNCHANGING, contents_of

MOST_OBJECTS = 10_000  # to look at in search of traced values; any others raise when they are used
_PLAIN = (*UNCHANGING, np.ndarray, Trace)


def closed_over(*reach: Any) -> list[Tracer]:
    """The traced values that can be reached from functions, containers and objects."""
    tracers: list[Tracer] = []
    seen: set[int] = set()
    held: list[Any] = []  # so that the identities stay their own
    looks: dict[int, Callable[[Any], Iterable[Any]]] = {}  # by class
    pending = list(reach)[::-1]
    while pending and len(seen) < MOST_OBJECTS:
        x = pending.pop()
        if id(x) in seen or type(x) in NUMBERS_AND_TEXT:
            continue
        seen.add(id(x))
        held.append(x)
        if isinstance(x, Tracer):
            tracers.append(x)
        elif not isinstance(x, _PLAIN):
            cls = cast(Any, type(x))
            if id(cls) not in looks:
                looks[id(cls)] = contents_of(cls) or _attributes
            pending += [*looks[id(cls)](x)][::-1]
    return tracers


def _attributes(x: Any) -> Iterable[Any]:
    """The values in an object of a class whose contents are unknown: its attributes."""
    return getattr(x, "__dict__", {}).values()


class _SubstitutionTrace(InnerTrace):
    """Puts ``values`` in the place of what a function closes over, for its parent to process."""

    __slots__ = ("values",)

    def __init__(self, parent: Trace, captured: Sequence[Any], values: Sequence[Any]) -> None:
        super().__init__(parent, parent.name)
        self.values = {id(x): v for x, v in zip(captured, values, strict=True)}

    def find(self, x: Any) -> Any:
        """What stands for ``x``."""
        return self.values.get(id(x), x)

    def owns(self, x: Tracer) -> bool:
        return id(x) in self.values

    def store(self, ref: Any, value: Any, where: Any) -> None:
        super().store(ref, self.find(value), where)

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        operands = tuple([self.find(a) for a in args])
        return self.parent.process(prim, operands, params)


def resolve(x: Any, trace: Trace | None) -> Any:
    """What stands for ``x`` in ``trace``."""
    while trace is not None:
        if type(trace) is _SubstitutionTrace:
            x = trace.find(x)
        trace = trace.parent
    return x


class Closure(Struct, frozen=True):
    """The values that functions close over, and the named axes that were in scope for them, and
    facts on which it depends what they do."""

    captured: tuple[Any, ...]
    scope: axes.Scope
    facts: tuple[Hashable, ...]

    @classmethod
    def here(cls, captured: tuple[Any, ...]) -> Closure:
        """The closure of functions that are called here, and later once more."""
        return cls(captured, axes.scope(), axes.facts())

    def run(self, function: Callable[..., Sequence[Any]], operands: Sequence[Any]) -> list[Any]:
        """The results of a flat ``function``; the first operands are the values closed over."""
        count = len(self.captured)
        with axes.only(self.scope, self.facts):
            if not count:
                return list(function(*operands))
            trace = _SubstitutionTrace(current(), self.captured, operands[:count])
            with running(trace):
                return [trace.find(y) for y in function(*operands[count:])]
