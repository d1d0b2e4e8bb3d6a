"""Values as parts of keys: apart from what equals them but acts otherwise."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.kinds import class_of
from phalanx.base.recent import Recent
from phalanx.xla.pytrees import PyTreeDef


def key_of(value: Any) -> Hashable:
    """``value`` as part of a key, told apart from what is equal but another value.

    That is a number of another type, a zero of the other sign, and what holds such: a tuple, or
    an object whose class says that two of them are equal. A NaN is the same as any other of its
    bits.

    >>> 1 == True == 1.0, key_of((1,)) == key_of((True,)), key_of(0.0) == key_of(-0.0)
    (True, False, False)
    >>> key_of(float("nan")) == key_of(float("nan"))
    True
    """
    kind = class_of(value)
    if kind in PLAIN:
        return value
    if kind is tuple:
        return tuple([x if class_of(x) in PLAIN else key_of(x) for x in value])
    rule = _recent(kind) or _rules[kind]
    if rule is None:
        rule = _rules[kind] = _rule_of(kind)
    return rule(value)


# Equal ones of the same class are the same, and nothing of another class equals them, but for
# numbers of other classes, which are marked.
PLAIN = frozenset(
    {int, str, bytes, NoneType, type, FunctionType, BuiltinFunctionType, ModuleType, type(...)}
    | {PyTreeDef}
    | {type(d) for d in dtypes.ALL}
)


class _Mark:
    """In front of a value in a key, so that it equals nothing that a user could give."""

    __slots__ = ("of",)

    def __init__(self, of: str) -> None:
        self.of = of


_BOOL, _FLOAT, _COMPLEX, _SCALAR, _SET, _OBJECT = map(
    _Mark, ("bool", "float", "complex", "scalar", "frozenset", "object")
)
_double, _two_doubles = struct.Struct("<d").pack, struct.Struct("<2d").pack
KeyRule = Callable[[Any], Hashable]

_OF_NUMBERS: dict[type, KeyRule] = {
    bool: lambda x: (_BOOL, x),
    float: lambda x: (_FLOAT, _double(x)),
    complex: lambda x: (_COMPLEX, _two_doubles(x.real, x.imag)),
}
_rules: Recent[KeyRule] = Recent(1024)
_recent = _rules.peek
_TUPLES: tuple[type, ...] = (tuple,)


def _rule_of(kind: Any) -> KeyRule:
    """What makes a part of a key of an object of class ``kind``."""
    if kind in _OF_NUMBERS:
        return _OF_NUMBERS[kind]
    if kind is frozenset:
        return lambda x: (_SET, frozenset(map(key_of, x)))
    if kind is slice:
        return lambda x: (_OBJECT, kind, *map(key_of, (x.start, x.stop, x.step)))
    if issubclass(kind, np.generic):
        return lambda x: (_SCALAR, x.dtype, x.tobytes())
    if kind.__eq__ is object.__eq__:
        return lambda x: x  # equal to itself alone
    for number in (float, complex):
        if issubclass(kind, number):
            return lambda x: (_OBJECT, kind, _OF_NUMBERS[number](x), *distinctions(x))
    if issubclass(kind, _TUPLES):
        return lambda x: (_OBJECT, kind, *map(key_of, x))
    if not (kind.__dictoffset__ or _slots(kind)):
        return lambda x: (_OBJECT, kind, x)  # what it holds it alone can compare
    return lambda x: (_OBJECT, kind, x, *distinctions(x))


def _slots(kind: type) -> list[str]:
    return [name for c in kind.__mro__ for name in getattr(c, "__slots__", ())]


def distinctions(x: Any) -> list[Hashable]:
    """What tells ``x`` apart from objects that equal it, if its class says what equals it.

    That is what it compares, where that is known, or the numbers among its attributes.
    """
    kind = class_of(x)
    if kind.__eq__ is object.__eq__:
        return []
    if is_dataclass(kind):
        return [_key_if_hashable(getattr(x, f.name)) for f in fields(kind) if f.compare]
    if issubclass(kind, Struct):
        return [_key_if_hashable(getattr(x, name)) for name in kind.__struct_fields__]
    slots = [name for name in _slots(kind) if hasattr(x, name)]
    held = {**{n: getattr(x, n) for n in slots}, **getattr(x, "__dict__", {})}
    return [(name, key_of(v)) for name, v in held.items() if type(v) in _OF_NUMBERS]


def _key_if_hashable(value: Any) -> Hashable:
    """What an object holds, for its key; None where the object alone can compare it."""
    try:
        key = key_of(value)
        hash(key)
    except TypeError:
        return None
    return key
