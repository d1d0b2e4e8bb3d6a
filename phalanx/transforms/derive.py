"""Programs made of programs: the one place where they are traced, and kept.

What is made of a program is kept with it, and lives and dies with it. A program that is traced here
is closed: its constants are part of it, and there is nothing else that it could refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from phalanx.base.config import settings
from phalanx.core.program import Program
from phalanx.core.trace import refuse_escaped, running
from phalanx.core.types import ArrayType
from phalanx.transforms.stage import Stage

T = TypeVar("T")


class Derived(Struct, Generic[T], frozen=True):
    """A program made of another, and what there is to know ``about`` it."""

    program: Program
    about: T


def keep(source: Program, key: Hashable, make: Callable[[], T]) -> T:
    """What ``make`` makes of ``source``; made once for each ``key``, which must not hold it, and
    for the options here: rules may ask for them, the user's and ours."""
    place = settings().key, key
    kept = source.derived[place]
    if kept is None:
        kept = make()
        source.derived[place] = _NOTHING if kept is None else kept
    return kept if kept is not _NOTHING else None  # type: ignore[return-value]


_NOTHING: Any = object()  # in place of None, which stands for what has not been made


def trace_closed(
    function: Callable[..., tuple[Sequence[Any], T]], types: Iterable[ArrayType], name: str
) -> Derived[T]:
    """The program of ``function``, of values of ``types`` to results and what is known of them."""
    stage = Stage(None, name)
    inputs = [stage.input(t) for t in types]
    with running(stage):
        outputs, about = function(*inputs)
    program, captured, _ = stage.finish(inputs, outputs, name)
    for value in captured:
        refuse_escaped(value)
    return Derived(program, about)


def derive(
    source: Program,
    key: Hashable,
    function: Callable[..., tuple[Sequence[Any], T]],
    types: Iterable[ArrayType],
) -> Derived[T]:
    """``trace_closed`` of what is done to ``source``; once for each ``key``."""
    return keep(source, key, lambda: trace_closed(function, types, source.name))
