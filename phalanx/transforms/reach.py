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

import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from phalanx.core.trace import Tracer, current, trace_of
from phalanx.transforms.closures import resolve
from phalanx.transforms.contents import NUMBERS_AND_TEXT, UNCHANGING, contents_of, of_function

_class_of: Callable[[Any], type[Any]] = type
MOST_OBJECTS: Final = 2_000  # looked at in less time than it takes to trace a function
LARGEST_COPY: Final = 1 << 16  # bytes of a NumPy array: it can change, so its elements are compared


TRACED_ONCE: Final = "__traced_once__"  # an attribute of functions that are under the rule of jit


class NotComparable(Exception):
    """A function reaches something that may change without being seen to, or too much."""


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


def _of_function(f: FunctionType) -> Iterable[Any]:
    return () if TRACED_ONCE in f.__dict__ else of_function(f)


def _unknown(x: Any) -> NoReturn:
    raise NotComparable


class _Kind(NamedTuple):
    look: Callable[[Any], Any]
    identified: bool  # whether it can be told that an object is the same one as before
    of: weakref.ref[type[Any]]


def _kind_of(cls: type[Any]) -> _Kind:
    """How to look at objects of class ``cls``; kept for as long as that is there."""
    number = id(cls)
    look = _look_at(cls)
    identified = look is _fixed or cls.__weakrefoffset__ != 0
    kind = _Kind(look, identified, weakref.ref(cls, lambda _: _kinds.pop(number, None)))
    return _kinds.setdefault(number, kind)


def _look_at(cls: type[Any]) -> Callable[[Any], Any]:
    if issubclass(cls, Tracer):
        return _traced
    if cls in NUMBERS_AND_TEXT or issubclass(cls, UNCHANGING):
        return _fixed
    if cls is FunctionType:
        return _of_function
    return _elements if cls is np.ndarray else contents_of(cls) or _unknown


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
            cls = _class_of(x)
            look, identified, _ = _kinds.get(id(cls)) or _kind_of(cls)
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
        cls = _class_of(x)
        self.seen += (id(cls), held if look is _elements else len(parts))
        self.things.append(cls)
        return parts

    def references(self, forget: Callable[[Any], Any]) -> list[Any]:
        """What keeps the identities valid: ``forget`` is called when one of them becomes free.

        Only numbers, text and their like are kept alive.
        """
        return [weakref.ref(x, forget) if type(x).__weakrefoffset__ else x for x in self.things]
