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
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from phalanx.base.tree import PyTreeDef
from phalanx.core.primitive import Primitive
from phalanx.core.program import Program
from phalanx.core.trace import Tracer, current, trace_of
from phalanx.core.types import Array, ArrayType
from phalanx.transforms.closures import resolve

_class_of: Callable[[Any], type[Any]] = type
MOST_OBJECTS: Final = 2_000  # looked at in less time than it takes to trace a function
LARGEST_COPY: Final = 1 << 16  # bytes of a NumPy array: it can change, so its elements are compared


TRACED_ONCE: Final = "__traced_once__"  # an attribute of functions that are under the rule of jit


class NotComparable(Exception):
    """A function reaches something that may change without being seen to, or too much."""


# ---- what objects contain -----------------------------------------------------------------------


def _of_function(f: FunctionType) -> Sequence[Any]:
    if TRACED_ONCE in f.__dict__:
        return ()
    # without the names that it looks up in its module: they follow the rule of jit
    return [f.__code__, *(f.__closure__ or ()), f.__defaults__, f.__kwdefaults__, f.__dict__]


def _of_cell(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # a name that is not bound yet
        return []


def _entries(made: Any) -> Callable[[Any], list[Any]]:
    """Of dicts, the keys and the values as class ``made`` has them, whatever a subclass says."""
    return lambda x: [*made.keys(x), *made.values(x)]


_CONTAINERS: tuple[Any, ...] = (tuple, list, set, frozenset, deque)
_CONTENTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    object: lambda x: (),
    **{made: made.__iter__ for made in _CONTAINERS},
    dict: _entries(dict),
    defaultdict: lambda x: [x.default_factory, *_entries(dict)(x)],
    OrderedDict: _entries(OrderedDict),
    SimpleNamespace: lambda x: [x.__dict__],
    CellType: _of_cell,
    FunctionType: _of_function,
    MethodType: lambda x: [x.__self__, x.__func__],
    BuiltinFunctionType: lambda x: [x.__self__],
    functools.partial: lambda x: [x.func, x.args, x.keywords],
}
_ABSENT: Final = object()  # in place of the value of a slot that has none


@dataclass(frozen=True, slots=True)
class _WithAttributes:
    """What objects of a class written in Python contain: their own, slots, and ``__dict__``."""

    own: Callable[[Any], Iterable[Any]]
    slots: tuple[MemberDescriptorType, ...]
    has_dict: bool

    def __call__(self, x: Any) -> list[Any]:
        parts = [*self.own(x)]
        for member in self.slots:
            try:
                parts.append(member.__get__(x))
            except AttributeError:
                parts.append(_ABSENT)
        if self.has_dict:
            parts.append(object.__getattribute__(x, "__dict__"))  # and not what a proxy stands for
        return parts


def _contents_of(made: type) -> Callable[[Any], Iterable[Any]] | None:
    """What objects of class ``made`` contain; None where that is not known."""
    layout: Any = made
    written: list[type] = []
    while _written_in_python(layout):
        written.append(layout)
        layout = layout.__base__  # from which it has its place in memory
    own = _CONTENTS.get(layout)
    if own is None or not written:
        return own
    attributes = [a for base in written for a in vars(base).values()]
    slots = tuple(a for a in attributes if type(a) is MemberDescriptorType)
    return _WithAttributes(own, slots, made.__dictoffset__ != 0)


def _written_in_python(made: type) -> bool:
    """Whether a class statement made it, so that its state lies in slots and ``__dict__``."""
    on_the_heap, immutable = made.__flags__ & 1 << 9, made.__flags__ & 1 << 8
    own_new = isinstance(vars(made).get("__new__"), BuiltinFunctionType)
    return bool(on_the_heap and not immutable and not own_new)


# ---- how to look at objects of a class ----------------------------------------------------------


def _fixed(x: Any) -> Sequence[Any]:
    """What never changes: its identity says all."""
    return ()


def _traced(x: Tracer) -> Sequence[Any]:
    """A value of a transformation that has ended: it does nothing but raise, where it is used."""
    if trace_of(x).alive or resolve(x, current()) is not x:
        raise NotComparable
    return ()


def _elements(x: np.ndarray) -> Any:
    """The elements of a NumPy array, which change in place."""
    if x.nbytes > LARGEST_COPY or x.dtype.hasobject:
        raise NotComparable
    return x.dtype, x.shape, x.tobytes()


def _unknown(x: Any) -> NoReturn:
    raise NotComparable


_NUMBERS_AND_TEXT = (
    bool, int, float, complex, str, bytes, range, type(None), type(...), type(NotImplemented),
    object,
)  # fmt: skip
_UNCHANGING = (
    type, ModuleType, CodeType, np.generic, np.dtype, np.ufunc, enum.Enum, Array, ArrayType,
    Primitive, Program, PyTreeDef,
)  # fmt: skip


class _Kind(NamedTuple):
    look: Callable[[Any], Any]
    identified: bool  # whether it can be told that an object is the same one as before
    of: weakref.ref[type[Any]]


def _kind_of(made: type[Any]) -> _Kind:
    """How to look at objects of class ``made``; kept for as long as that is there."""
    number = id(made)
    look = _look_at(made)
    identified = look is _fixed or made.__weakrefoffset__ != 0
    kind = _Kind(look, identified, weakref.ref(made, lambda _: _kinds.pop(number, None)))
    return _kinds.setdefault(number, kind)


def _look_at(made: type[Any]) -> Callable[[Any], Any]:
    if issubclass(made, Tracer):
        return _traced
    if made in _NUMBERS_AND_TEXT or issubclass(made, _UNCHANGING):
        return _fixed
    return _elements if made is np.ndarray else _contents_of(made) or _unknown


_kinds: dict[int, _Kind] = {}  # by the identity of the class: nothing is looked up faster


# ---- the walk -----------------------------------------------------------------------------------


class Reach:
    """What can be reached from ``roots`` now.

    Two of them have seen the same if their ``seen`` is equal, and if what the first one saw has
    lived on until the second: that is what its ``references`` are for.

    Raises:
        NotComparable: it cannot be told.
    """

    __slots__ = ("seen", "things")

    def __init__(self, roots: Iterable[Any]) -> None:
        self.seen: list[Any] = []
        self.things: list[Any] = []  # whose identity is part of what was seen
        places: dict[int, int] = {}
        pending = [*roots]
        while pending:
            x = pending.pop()
            number = id(x)
            if number in places:
                self.seen.append(places[number])
                continue
            places[number] = len(places)
            made = _class_of(x)
            look, identified, _ = _kinds.get(id(made)) or _kind_of(made)
            if identified:
                self.seen.append(number)
                self.things.append(x)
            if look is not _fixed:
                pending += self._inside(x, look)
                if len(places) + len(pending) > MOST_OBJECTS:
                    raise NotComparable

    def _inside(self, x: Any, look: Callable[[Any], Any]) -> Sequence[Any]:
        """Note what ``x`` holds; the objects in it are what to look at next."""
        held = look(x)
        parts = () if look is _elements else list(held)
        made = _class_of(x)
        self.seen += (id(made), held if look is _elements else len(parts))
        self.things.append(made)
        return parts

    def references(self, forget: Callable[[Any], Any]) -> list[Any]:
        """What keeps the identities valid: ``forget`` is called when one of them becomes free.

        Only numbers, text and their like are kept alive.
        """
        return [weakref.ref(x, forget) if type(x).__weakrefoffset__ else x for x in self.things]
