"""Programs made of programs: the one place where they are traced.

A program that is traced here is closed: its constants are part of it, and there is nothing else
that it could refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from phalanx.core.memoize import memoize_on
from phalanx.core.program import Program
from phalanx.core.trace import refuse_escaped, running
from phalanx.core.types import ArrayType
from phalanx.transforms.stage import Stage

T = TypeVar("T")


class Derived(Struct, Generic[T], frozen=True):
    """A program made of another, and what there is to know ``about`` it."""

    program: Program
    about: T


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
    return memoize_on(source, key, lambda: trace_closed(function, types, source.name))
