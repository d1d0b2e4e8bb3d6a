"""Why a function is traced again: what differs between this call and those that were traced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from phalanx.api.arguments import LeafNames, Static, shown_call
from phalanx.base.recent import Recent
from phalanx.core.types import ArrayType

# What a function is found by when it was traced: static arguments, the structure of the others,
# their types; then the settings, axes in scope, and what else a transformation is told.
Key = tuple[Any, ...]
_MOST = 3  # differences that are told
_codes: Recent[int] = Recent(256)  # of functions that were traced, how many had it


def reason(fun: Any, key: Key, before: Sequence[Key], names: LeafNames) -> str:
    """What is new about a call of ``fun`` that has ``key``, where it was traced ``before``.

    It is compared with the one that differs least.
    """
    if not before:
        return _first(fun)

    def distance(old: Key) -> tuple[bool, int]:
        return old[1] != key[1], len(list(_differences(old, key, names)))

    nearest = min(before, key=distance)
    found = list(_differences(nearest, key, names))
    more = f", and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(found[:_MOST]) + more


def moved(key: Key, before: Sequence[Key], names: LeafNames, count: int) -> str:
    """What is new about a call that has ``key``, where the function was traced for its types, but
    compiled for the calls ``before``; the first ``count`` parts of keys are signatures of leaves.
    """
    alike = [old for old in before if len(old) == len(key)]
    told = [list(_places(old, key, names, count)) for old in alike]
    found = min(told, key=len) if told else []
    return "; ".join(found[:_MOST]) or "settings are others, or types in other programs"


def _places(old: Key, new: Key, names: LeafNames, count: int) -> Iterator[str]:
    for i, (was, now) in enumerate(zip(old[:count], new[:count], strict=True)):
        if was is not now and was != now:
            lay, lies = (getattr(sig, "sharding", None) or "on the host" for sig in (was, now))
            yield f"{names[i]} lies {_where(lies)}, and lay {_where(lay)}"


def _where(place: Any) -> str:
    return place if isinstance(place, str) else f"as {place}"


def _first(fun: Any) -> str:
    code = getattr(fun, "__code__", None)
    if code is None:
        return "never seen"
    count = _codes[code] or 0
    _codes[code] = count + 1
    if not count:
        return "never seen"
    return (
        "never seen, but the same code was, in another function object: it is made anew, by a def "
        "or a lambda inside of a loop or a call; make it once, outside"
    )


def _differences(old: Key, new: Key, names: LeafNames) -> Iterator[str]:
    (old_static, old_tree, old_types, *old_rest), (static, tree, types, *rest) = old, new
    yield from _static(old_static, static)
    if old_tree != tree:
        yield f"the arguments have the structure {shown_call(tree)}, and had {shown_call(old_tree)}"
    elif len(old_types) == len(types):
        for i, (was, now) in enumerate(zip(old_types, types, strict=True)):
            if was != now:
                yield f"{names[i]} is {now!r}, and was {was!r}{_how(was, now)}"
    if old_rest != rest:
        yield "settings, the axes in scope, a mesh or how arguments are mapped are others"


def _static(old: Static, new: Static) -> Iterator[str]:
    before = {**dict(old.positional), **dict(old.keywords)}
    for place, value in (*new.positional, *new.keywords):
        if place not in before:
            yield f"static argument {place} is given"
        elif old != new and before[place] is not value and before[place] != value:
            yield f"static argument {place} is {value!r:.60}, and was {before[place]!r:.60}"
    if old != new and before == {**dict(new.positional), **dict(new.keywords)}:
        yield "a static argument is another object, of another type or hash, that compares equal"


def _how(was: Any, now: Any) -> str:
    if not isinstance(was, ArrayType) or not isinstance(now, ArrayType):
        return ""
    if (was.shape, was.dtype) == (now.shape, now.dtype) and was.weak != now.weak:
        return " (one is a Python number, the other an array: convert it once)"
    return ""
