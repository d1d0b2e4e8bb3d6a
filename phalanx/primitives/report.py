"""``report``: says that something is wrong, as an array of words.

The first word is the number of a ``Fault``, or 0 where nothing is wrong; the others hold values to
be told. So a report is a value as any other: the first of many is chosen by ``select``, lanes have
theirs beside each other, and what a fault is in the user's words stays in the process.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.errors import CheckFailed, ProgramError
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder
from phalanx.core.primitive import (
    Active,
    Batched,
    Derivative,
    Effects,
    Execution,
    LaneDims,
    NoRule,
    Operands,
    Primitive,
    no_results,
)
from phalanx.core.types import ArrayType, Types, typeof
from phalanx.primitives.basis import convert, full, move, reshape, sub
from phalanx.primitives.bits import bitcast
from phalanx.primitives.compare import eq, select
from phalanx.primitives.complex import imag, real
from phalanx.primitives.domains import I32
from phalanx.primitives.dynamic import dynamic_slice
from phalanx.primitives.reduce import argmin
from phalanx.primitives.shape import broadcast, concatenate, pad, slice_dim

WORD = np.dtype("uint32")
REPORTS = frozenset({"reports"})


class Fault(Struct, frozen=True):
    """Something that may be wrong: a text with places for values, and what these are.

    Attributes:
        kind: "user", "nan", "div" or "oob".
        text: a format string.
        types: of the values.
        structure: of the arguments of the format string, a tree of the values.
        location: the user's line.
    """

    kind: str
    text: str
    types: Types
    structure: Any
    location: str

    def text_of(self, words: np.ndarray) -> str:
        """What is wrong, where ``words`` are the values."""
        values: list[np.ndarray] = []
        for t in self.types:
            count = t.size * _words_of(t.dtype)
            values.append(_value(t, words[:count]))
            words = words[count:]
        args, kwargs = self.structure.unflatten(values)
        return f"{self.text.format(*args, **kwargs)}, at {self.location}"


class Faults:
    """The faults of this process, by number: the last ones, in the order of their last use.

    Not even a program that is dropped takes its faults with it, for its results may be about.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._last = 0
        self._faults: dict[int, Fault] = {}
        self._numbers: dict[Fault, int] = {}

    def __len__(self) -> int:
        return len(self._faults)

    def number(self, fault: Fault) -> int:
        """The number of ``fault``, which has none or one."""
        with self._lock:
            number = self._numbers.get(fault)
            if number is None:
                self._last = number = self._last + 1
                self._numbers[fault] = number
            self._used(number, fault)
            if len(self._faults) > self.limit:
                oldest = next(iter(self._faults))
                del self._numbers[self._faults.pop(oldest)]
            return number

    def fault(self, number: int) -> Fault | None:
        """The fault of ``number``, if it is among the last ones."""
        with self._lock:
            fault = self._faults.get(number)
            if fault is not None:
                self._used(number, fault)
            return fault

    def _used(self, number: int, fault: Fault) -> None:
        self._faults.pop(number, None)
        self._faults[number] = fault


_known = Faults(2**14)


def text_of_report(words: np.ndarray) -> str | None:
    """What a report says; None if nothing is wrong."""
    if not words[0]:
        return None
    fault = _known.fault(int(words[0]))
    if fault is None:
        return (
            f"a check failed; its text is forgotten, since {_known.limit} others were met after it"
        )
    return fault.text_of(words[1:])


# ---- values as words --------------------------------------------------------------------------


def _words_of(dtype: np.dtype) -> int:
    return max(dtype.itemsize // 4, 1)


def _carrier(dtype: np.dtype) -> np.dtype:
    """The dtype of 32 or 64 bits in which values of ``dtype`` are told."""
    if dtype.itemsize >= 4:
        return dtype
    if dtypes.is_inexact(dtype):
        return np.dtype("float32")
    return I32 if dtypes.is_signed(dtype) else WORD


def _bits(x: Any) -> Any:
    type = typeof(x)
    if dtypes.is_complex(type.dtype):
        return concatenate(_bits(real(x)), _bits(imag(x)), dim=0)
    x = convert(x, dtype=_carrier(type.dtype), weak=False)
    return reshape(bitcast(x, dtype=WORD), shape=(type.size * _words_of(type.dtype),))


class _ShownAsArray(np.ndarray):
    """A value that is told: within a tree it is shown as the array that it was."""


_ShownAsArray.__name__ = "Array"  # with which NumPy begins what it shows


def _value(type: ArrayType, words: np.ndarray) -> np.ndarray:
    return _decoded(type, np.ascontiguousarray(words)).view(_ShownAsArray)


def _decoded(type: ArrayType, words: np.ndarray) -> np.ndarray:
    if dtypes.is_complex(type.dtype):
        parts = words.view(dtypes.to_real(type.dtype)).reshape(2, *type.shape)
        return (parts[0] + 1j * parts[1]).astype(type.dtype)
    return words.view(_carrier(type.dtype)).astype(type.dtype).reshape(type.shape)


def words_of_fault(fault: Fault, is_wrong: Any, values: Sequence[Any] = ()) -> Any:
    """The report of ``fault``, if ``is_wrong``, with ``values``."""
    number = select(is_wrong, np.uint32(_known.number(fault)), np.uint32(0))
    parts = [reshape(number, shape=(1,)), *map(_bits, values)]
    return concatenate(*parts, dim=0) if values else parts[0]


def width_of(types: Types) -> int:
    """How many words a report with values of ``types`` has."""
    return 1 + sum(t.size * _words_of(t.dtype) for t in types)


def earlier(first: Any, second: Any) -> Any:
    """The ``first`` report, or the ``second``, which is no longer, where that says nothing."""
    (n,) = typeof(first).shape
    missing = n - typeof(second).size
    if missing:
        second = pad(second, np.uint32(0), config=((0, missing, 0),))
    empty = eq(slice_dim(first, 0, 1, 0), np.uint32(0))
    return select(broadcast(reshape(empty, shape=()), shape=(n,), dims=()), second, first)


def first_of(reports: Any) -> Any:
    """The one of ``reports`` [..., n] whose fault was noted first, [n]."""
    *lanes, n = typeof(reports).shape
    count = math.prod(lanes)
    if not count:
        return full((n,), 0, WORD)
    rows = reshape(reports, shape=(count, n))
    numbers = reshape(slice_dim(rows, 0, 1, 1), shape=(count,))
    place = argmin(sub(numbers, np.uint32(1)), dim=0, index_dtype=I32)  # 0 becomes the greatest
    return reshape(dynamic_slice(rows, place, np.int32(0), sizes=(1, n)), shape=(n,))


# ---- the operation ----------------------------------------------------------------------------


def _type(words: ArrayType, *, debug: bool) -> tuple[()]:
    return ()


def _run(words: Any, debug: bool) -> tuple[()]:
    found = None if debug else text_of_report(np.asarray(words))
    if found is not None:
        raise CheckFailed(found)
    return ()


def _lower(b: Builder, words: Any, debug: bool) -> list[Any]:
    if debug:
        return []
    raise ProgramError(
        "checkify.check was not functionalized: it stands in a program that is compiled; give the "
        "function that is compiled to checkify.checkify first, as in jit(checkify(f)), or use "
        "debug_check, which is left out of such programs"
    )


def _linearize(active: Active, words: Any, debug: bool) -> Derivative:
    report(words, debug=debug)
    return (), no_results


def _batch(axis: Axis, values: Operands, dims: LaneDims, debug: bool) -> Batched:
    ((words,), (dim,)) = values, dims
    report(words if dim is None else first_of(move(words, dim, 0)), debug=debug)
    return (), ()


def _carry_state(rewrite: Any, state: Any, words: Any, debug: bool) -> tuple[Any, tuple[()]]:
    """The rule under a condition: nothing is reported where the condition does not hold."""
    if rewrite.type.dtype == np.bool_:
        n = typeof(words).size
        words = select(broadcast(state, shape=(n,), dims=()), words, np.uint32(0))
    report(words, debug=debug)
    return state, ()


def _effects(*, debug: bool) -> frozenset[str]:
    return REPORTS


report: Primitive = Primitive(
    "report",
    _type,
    _lower,
    linearize=_linearize,
    transpose=NoRule("it has no results"),
    batch=_batch,
    effects=Effects(_effects, _carry_state),
    execution=Execution(run=_run),
    multi=True,
    doc="says what is wrong, if the first word is not 0; no operation: derived programs carry it",
)
