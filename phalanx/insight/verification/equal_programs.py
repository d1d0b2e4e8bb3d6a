"""Programs that do the same, as layers of a network do: they need be compiled once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from phalanx.base.kinds import is_tuple
from phalanx.core.program import Literal, Program
from phalanx.core.types import Array

__all__ = ["key_of_program"]


def key_of_program(program: Program) -> Hashable:
    """What is equal for programs that do the same: how they print, and their constants.

    Of what does not print all that it is, such as a function of Python's, it is the object itself.

    >>> import phalanx
    >>> twice, again = [phalanx.make_program(lambda x: 2 * x)(1.0) for _ in range(2)]
    >>> key_of_program(twice) == key_of_program(again)
    True
    """
    types = program.input_types, program.output_types
    return str(program), types, tuple(_details(program))


def _details(program: Program) -> Iterator[Hashable]:
    for e in program.equations:
        yield from [_constant(a) for a in e.inputs if isinstance(a, Literal)]
        yield from [id(value) for value in e.params.values() if not _prints(value)]
        for inner in e.programs:
            yield from _details(inner)
    yield from [_constant(a) for a in program.outputs if isinstance(a, Literal)]


def _constant(literal: Literal) -> Hashable:
    value = literal.value
    return literal.operand_type, id(value) if isinstance(value, Array) else value.tobytes()


def _prints(value: Any) -> bool:
    """Whether equal texts of a parameter mean equal values."""
    if is_tuple(value):
        return all(map(_prints, value))
    return not callable(value) and not isinstance(value, np.ndarray)
