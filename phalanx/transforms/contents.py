"""What Python objects contain, by their class: the one table of containers, functions and objects.

It serves two walks over all that a function can reach: for the traced values in it
(``closures.py``), and for whether it is the same as before (``reach.py``).
"""

from __future__ import annotations

import enum
import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
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
from typing import Any, Final

import numpy as np
from msgspec import Struct

from phalanx.base.tree import PyTreeDef
from phalanx.core.primitive import Primitive
from phalanx.core.program import Program
from phalanx.core.refs import Ref
from phalanx.core.types import Array, ArrayType


def of_function(f: FunctionType) -> Sequence[Any]:
    """What a function has besides the names that it looks up in its module."""
    return [f.__code__, *(f.__closure__ or ()), f.__defaults__, f.__kwdefaults__, f.__dict__]


def _of_cell(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # a name that is not bound yet
        return []


def _entries(cls: Any) -> Callable[[Any], list[Any]]:
    """A function that lists keys and values of a dict by the methods of ``cls`` itself, which a
    subclass may override."""
    return lambda x: [*cls.keys(x), *cls.values(x)]


# What never changes, and holds no traced value that a function could use. What a reference holds
# changes, and so a program takes it anew each time it runs: to the program, the reference is fixed.
NUMBERS_AND_TEXT = (
    bool, int, float, complex, str, bytes, range, type(None), type(...), type(NotImplemented),
    object,
)  # fmt: skip
UNCHANGING = (
    type, ModuleType, CodeType, np.generic, np.dtype, np.ufunc, enum.Enum, Array, ArrayType,
    Primitive, Program, PyTreeDef, Ref,
)  # fmt: skip

_CONTAINERS: tuple[Any, ...] = (tuple, list, set, frozenset, deque)
_CONTENTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    object: lambda x: (),
    **{cls: cls.__iter__ for cls in _CONTAINERS},
    dict: _entries(dict),
    defaultdict: lambda x: [x.default_factory, *_entries(dict)(x)],
    OrderedDict: _entries(OrderedDict),
    SimpleNamespace: lambda x: [x.__dict__],
    CellType: _of_cell,
    FunctionType: of_function,
    MethodType: lambda x: [x.__self__, x.__func__],
    BuiltinFunctionType: lambda x: [x.__self__],
    functools.partial: lambda x: [x.func, x.args, x.keywords],
}
_ABSENT: Final = object()  # in place of the value of a slot that has none


class _WithAttributes(Struct, frozen=True):
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


def contents_of(cls: type) -> Callable[[Any], Iterable[Any]] | None:
    """What objects of class ``cls`` contain; None where that is not known."""
    layout: Any = cls
    written: list[type] = []
    while _written_in_python(layout):
        written.append(layout)
        layout = layout.__base__  # from which it has its place in memory
    own = _CONTENTS.get(layout)
    if own is None or not written:
        return own
    attributes = [a for base in written for a in vars(base).values()]
    slots = tuple(a for a in attributes if type(a) is MemberDescriptorType)
    return _WithAttributes(own, slots, cls.__dictoffset__ != 0)


def _written_in_python(cls: type) -> bool:
    """Whether a class statement made it, so that its state lies in slots and ``__dict__``."""
    on_the_heap, immutable = cls.__flags__ & 1 << 9, cls.__flags__ & 1 << 8
    own_new = isinstance(vars(cls).get("__new__"), BuiltinFunctionType)
    return bool(on_the_heap and not immutable and not own_new)
