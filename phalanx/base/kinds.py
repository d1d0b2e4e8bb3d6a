"""Questions about values that may be anything.

``type(x)`` and ``isinstance(x, list)`` leave type checkers with what holds unknown things; these
say that it may be anything. Those about what NumPy has are in ``numpy_kinds``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

class_of: Callable[[Any], Any] = type

# Classes for ``isinstance`` that leave a value as it was, known or not: for what is asked often.
TUPLE: type = tuple
LIST: type = list
SEQUENCE: tuple[type, ...] = (tuple, list)
SLICE: type = slice


def is_tuple(x: object) -> TypeGuard[tuple[Any, ...]]:
    """Whether ``x`` is a tuple."""
    return isinstance(x, tuple)


def is_list(x: object) -> TypeGuard[list[Any]]:
    """Whether ``x`` is a list."""
    return isinstance(x, list)


def is_sequence(x: object) -> TypeGuard[Sequence[Any]]:
    """Whether ``x`` is a tuple or a list."""
    return isinstance(x, (tuple, list))


def is_iterable(x: object) -> TypeGuard[Iterable[Any]]:
    """Whether ``x`` can be iterated over: a sequence may do without ``__iter__``."""
    return isinstance(x, Iterable) or (hasattr(x, "__len__") and hasattr(x, "__getitem__"))


def is_dict(x: object) -> TypeGuard[dict[Any, Any]]:
    """Whether ``x`` is a dict."""
    return isinstance(x, dict)


def is_mapping(x: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether ``x`` is a mapping."""
    return isinstance(x, Mapping)


def is_subclass(x: Any, kind: type) -> bool:
    """Whether ``x`` is a class, and one below ``kind``."""
    return isinstance(x, type) and issubclass(x, kind)
