"""What functions can reach, compared: whether tracing them again would give the same program.

A function is more than its code. It sees what it closes over, its defaults, the object that it is
a method of, and whatever these contain. A walk through all that writes down, in order, what it
sees: the identity of what cannot change, the contents of what can. Two walks that wrote the same
have seen the same things in the same places.

What modules and classes hold is not looked at: as with ``jit``, it is what it was when the function
was traced. Where a function reaches an object of which it is not known how it changes, it cannot be
compared.
"""

from __future__ import annotations

import enum
import functools
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, Final, NoReturn

import numpy as np

from phalanx.base.tree import PyTreeDef
from phalanx.core.primitive import Primitive
from phalanx.core.program import Program
from phalanx.core.trace import Tracer, current
from phalanx.core.types import Array, ArrayType
from phalanx.transforms.closures import resolve

MOST_OBJECTS: Final = 2_000  # looked at in less time than it takes to trace a function
LARGEST_COPY: Final = 1 << 16  # bytes of a NumPy array: it can change, so its elements are compared


class TracedOnce:
    """Base class of functions under the rule of ``jit``: what they reach does not matter."""


class NotComparable(Exception):
    """A function reaches something that may change without being seen to, or too much."""


# ---- what objects contain -----------------------------------------------------------------------


def _of_function(f: FunctionType) -> list:
    # without the names that it looks up in its module: they follow the rule of jit
    return [f.__code__, *(f.__closure__ or ()), f.__defaults__, f.__kwdefaults__, f.__dict__]


def _of_cell(cell: CellType) -> list:
    try:
        return [cell.cell_contents]
    except ValueError:  # a name that is not bound yet
        return []


def _of_dict(x: dict) -> list:
    return [*dict.keys(x), *dict.values(x)]


_CONTENTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    object: lambda x: (),
    tuple: tuple.__iter__,
    list: list.__iter__,
    set: set.__iter__,
    frozenset: frozenset.__iter__,
    deque: deque.__iter__,
    dict: _of_dict,
    defaultdict: lambda x: [x.default_factory, *_of_dict(x)],
    OrderedDict: lambda x: [*OrderedDict.keys(x), *OrderedDict.values(x)],
    SimpleNamespace: lambda x: [x.__dict__],
    CellType: _of_cell,
    FunctionType: _of_function,
    MethodType: lambda x: [x.__self__, x.__func__],
    BuiltinFunctionType: lambda x: [x.__self__],
    functools.partial: lambda x: [x.func, x.args, x.keywords],
}
_ABSENT: Final = object()  # in place of the value of a slot that has none


@dataclass(frozen=True, slots=True)
class _Contents:
    """What objects of one class contain, in themselves and in their attributes."""

    own: Callable[[Any], Iterable[Any]]
    slots: tuple[MemberDescriptorType, ...]
    has_dict: bool

    def __call__(self, x: Any) -> tuple[Any, list]:
        parts = [*self.own(x)]
        for member in self.slots:
            try:
                parts.append(member.__get__(x))
            except AttributeError:
                parts.append(_ABSENT)
        if self.has_dict:
            parts.append(x.__dict__)
        return len(parts), parts


def _contents_of(made: type) -> _Contents | None:
    """How to look into objects of class ``made``; None where that is not known."""
    layout, written = made, []
    while _written_in_python(layout):
        written.append(layout)
        layout = layout.__base__  # type: ignore[assignment]
    if layout not in _CONTENTS:
        return None
    attributes = [a for base in made.__mro__ if base in written for a in vars(base).values()]
    slots = tuple(a for a in attributes if type(a) is MemberDescriptorType)
    return _Contents(_CONTENTS[layout], slots, bool(written) and made.__dictoffset__ != 0)


def _written_in_python(made: type) -> bool:
    """Whether a class statement made it, so that its state lies in slots and ``__dict__``."""
    on_the_heap, immutable = made.__flags__ & 1 << 9, made.__flags__ & 1 << 8
    own_new = isinstance(vars(made).get("__new__"), BuiltinFunctionType)
    return bool(on_the_heap and not immutable and not own_new)


# ---- how to look at objects of a class ----------------------------------------------------------

Look = Callable[[Any], tuple[Any, Sequence[Any]]]  # to what there is to note, and what to look at


def _fixed(x: Any) -> tuple[Any, Sequence[Any]]:
    """What never changes is noted by identity alone."""
    return None, ()


def _traced(x: Tracer) -> tuple[Any, Sequence[Any]]:
    """A value of a transformation that has ended does nothing but raise, where it is used."""
    if x.trace.alive or resolve(x, current()) is not x:
        raise NotComparable
    return None, ()


def _numpy(x: np.ndarray) -> tuple[Any, Sequence[Any]]:
    if x.nbytes > LARGEST_COPY or x.dtype.hasobject:
        raise NotComparable
    return (x.dtype, x.shape, x.tobytes()), ()


def _unknown(x: Any) -> NoReturn:
    raise NotComparable


_NUMBERS_AND_TEXT = (
    bool, int, float, complex, str, bytes, range, type(None), type(...), type(NotImplemented),
    object,
)  # fmt: skip
_UNCHANGING = (
    type, ModuleType, CodeType, np.generic, np.dtype, np.ufunc, enum.Enum, Array, ArrayType,
    Primitive, Program, PyTreeDef, TracedOnce,
)  # fmt: skip


def _classified(made: type) -> Look:
    if issubclass(made, Tracer):
        return _traced
    if made in _NUMBERS_AND_TEXT or issubclass(made, _UNCHANGING):
        return _fixed
    return _numpy if issubclass(made, np.ndarray) else _contents_of(made) or _unknown


_BUILT_IN: dict[type, Look] = {
    made: _classified(made) for made in (*_CONTENTS, *_NUMBERS_AND_TEXT, CodeType)
}
_others: weakref.WeakKeyDictionary[type, Look] = weakref.WeakKeyDictionary()


def _look_at(made: type) -> Look:
    look = _others.get(made)
    if look is None:
        look = _others[made] = _classified(made)
    return look


# ---- the walk -----------------------------------------------------------------------------------


class Reach:
    """What can be reached from ``roots`` now.

    Two of them have seen the same if ``seen`` is equal, and if the ``things`` that one refers to
    by identity have lived on since; a list of weak references to them tells.

    Raises:
        NotComparable: it cannot be told.
    """

    __slots__ = ("seen", "things")

    def __init__(self, roots: Iterable[Any]) -> None:
        self.seen: list[Any] = []
        self.things: list[Any] = []
        seen, things = self.seen, self.things
        places: dict[int, int] = {}
        pending = [*roots]
        while pending:
            x = pending.pop()
            place = places.get(id(x))
            if place is not None:
                seen.append(place)
                continue
            places[id(x)] = len(places)
            made = type(x)
            look = _BUILT_IN.get(made) or _look_at(made)
            if look is _fixed or made.__weakrefoffset__:
                seen.append(id(x))
                things.append(x)
            if look is not _fixed:
                note, parts = look(x)
                seen += (id(made), note)
                pending += parts
                if made not in _BUILT_IN:
                    things.append(made)
            if len(places) > MOST_OBJECTS:
                raise NotComparable

    def references(self, forget: Callable[[Any], Any]) -> list[Any]:
        """What keeps the identities valid: ``forget`` is called when one of them becomes free.

        Only numbers, text and their like are kept alive.
        """
        return [
            weakref.ref(x, forget) if type(x).__weakrefoffset__ else x for x in self.things
        ]
