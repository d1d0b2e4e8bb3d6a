"""Tables that do not grow for ever: what was used last, objects that exist once, results.

Every table that grows with what the user does is one of them, and states its limit. All can be told
at once to forget: everything, or what was not used since they were told before.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet, WeakValueDictionary

F = TypeVar("F", bound=Callable[..., Any])
Value = TypeVar("Value")

if TYPE_CHECKING:
    _Dict = dict[Any, Any]
else:
    _Dict = dict  # whose methods are found faster than through super()


class Recent(dict[Any, Any], Generic[Value]):
    """A mapping that forgets what was not used for longest; a missing key has the value None.

    Entries lie in two generations. An entry that is set, or read from the old one, goes to the
    young one. When that has ``limit`` entries it becomes the old one, and the old one is dropped:
    what was used within the last ``limit`` changes is there, and never more than twice as much.

    Threads may share it. An entry may be dropped as soon as it is set, so what was set is returned
    from a variable and not read again.

    >>> squares = Recent(2)
    >>> for n in 1, 2, 3, 4, 5:
    ...     squares[n] = n * n
    >>> squares[1], squares[3], squares[5], 1 in squares
    (None, 9, 25, False)
    >>> squares.peek(5), squares.peek(2)
    (25, None)
    >>> sorted(squares.all_values())
    [9, 16, 25]
    """

    __slots__ = ("__weakref__", "_old", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._old: dict[Any, Value] = _NONE
        _every[id(self)] = self

    @property
    def peek(self) -> Callable[[Any], Value | None]:
        """What reads the young generation alone, and gives None for a key that is not in it.

        It takes a third of the time of ``mapping[key]``, which calls a method of the class.
        """
        return super().get

    def __missing__(self, key: Hashable) -> Value | None:
        value = self._old.get(key)
        if value is not None:
            self[key] = value
        return value

    def __setitem__(self, key: Hashable, value: Value) -> None:
        if len(self) >= self.limit and not _Dict.__contains__(self, key):
            self.age()
        _Dict.__setitem__(self, key, value)

    def __contains__(self, key: object) -> bool:
        return _Dict.__contains__(self, key) or key in self._old

    def __bool__(self) -> bool:
        return len(self) > 0 or len(self._old) > 0

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The value of ``key``, or ``default``; ``mapping[key]`` is cheaper."""
        value = self[key]
        return default if value is None else value

    def all_values(self) -> list[Value]:
        """All values, each of which stays in its generation."""
        return [*{**self._old, **self}.values()]

    def forget(self, key: Hashable) -> None:
        """Drop the entry of ``key``, if there is one."""
        self.pop(key, None)
        if self._old is not _NONE:
            self._old.pop(key, None)

    def age(self) -> None:
        """Forget what was neither set nor read since the young generation was empty."""
        self._old = dict(self) if len(self) else _NONE
        _Dict.clear(self)

    def clear(self) -> None:
        """Forget everything."""
        self._old = _NONE
        _Dict.clear(self)


_NONE: dict[Any, Any] = {}  # the old generation of all that have none; nobody writes there
_every: WeakValueDictionary[int, Recent[Any]] = WeakValueDictionary()  # they cannot be hashed
_functions: WeakSet[Any] = WeakSet()


def memoized(limit: int) -> Callable[[F], F]:
    """Decorate a function so that it is not run again for any of its last arguments.

    ``limit`` is how many results are kept: of those that cost little, so that they are dropped when
    everything is, and not before.

    >>> @memoized(8)
    ... def square(n):
    ...     print("squaring", n)
    ...     return n * n
    >>> square(3) + square(3)
    squaring 3
    18
    """

    def decorate(function: F) -> F:
        cached: Any = functools.lru_cache(maxsize=limit)(function)
        _functions.add(cached)
        return cached

    return decorate


def forget_old() -> None:
    """Forget, in all mappings, what was neither set nor read since this was called before."""
    for mapping in _living():
        mapping.age()


def forget_everything() -> None:
    """Forget everything, in all tables."""
    for mapping in _living():
        mapping.clear()
    for function in list(_functions):
        function.cache_clear()


def _living() -> list[Recent[Any]]:
    found = [reference() for reference in _every.valuerefs()]
    return [mapping for mapping in found if mapping is not None]


class InternTable(Recent[Value]):
    """The one object for each key, so that equal objects are the same one.

    An object that somebody holds is always found again, however long ago it was used: it is
    dropped here only when nobody could tell it from a new one.

    >>> class Name(str): pass
    >>> names = InternTable(100)
    >>> ada = names.add("ada", Name("ada"))
    >>> names["ada"] is ada is names.add("ada", Name("ada"))
    True
    """

    __slots__ = ("_held", "_lock")

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._held: WeakValueDictionary[Any, Any] = WeakValueDictionary()
        self._lock = threading.RLock()  # collecting garbage may make types, inside `add`

    def __missing__(self, key: Hashable) -> Value | None:
        value = super().__missing__(key)
        if value is None:
            value = self._held.get(key)
            if value is not None:
                self[key] = value
        return value

    def add(self, key: Hashable, candidate: Value) -> Value:
        """The object for ``key``: ``candidate``, unless there is one already."""
        with self._lock:
            value = self._held.setdefault(key, candidate)
        self[key] = value
        return value
