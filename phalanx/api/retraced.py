"""Why a function is traced again: what differs between this call and those that were traced."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any
from weakref import ref

from msgspec import Struct
from msgspec.structs import astuple

from phalanx.api.arguments import LeafNames, Static, shown_call
from phalanx.base.config import differing_options
from phalanx.base.recent import Recent
from phalanx.core.types import ArrayType


class TraceKey(Struct, frozen=True):
    """What a traced function is found by.

    Attributes:
        static: the static arguments.
        structure: that of the others, ``(args, kwargs)``.
        types: the types of their leaves.
        settings: the options that are set.
        scope: the named axes in scope, and other facts that a function can ask for.
        context: None, or a record of what else it was traced for.
    """

    static: Static
    structure: Any
    types: tuple[Any, ...]
    settings: Any
    scope: Any
    context: Any


_MOST = 3  # differences that are told
_traced: Recent[Any] = Recent(256)  # by code, the function of the user's that had it last


def reason(fun: Any, key: TraceKey, before: Sequence[TraceKey], names: LeafNames) -> str:
    """What is new about a call of ``fun`` that has ``key``, where it was traced ``before``.

    It is compared with the one that differs least.
    """
    if not before:
        return _first(fun)

    def distance(old: TraceKey) -> tuple[bool, int, int]:
        found = list(_differences(old, key, names))
        alike = sum(map(_same_elements, old.types, key.types))
        return old.structure != key.structure, len(found), -alike

    nearest = min(before, key=distance)
    found = list(_differences(nearest, key, names))
    more = f", and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(found[:_MOST]) + more


def moved(
    key: tuple[Any, ...], before: Sequence[tuple[Any, ...]], names: LeafNames, count: int
) -> str:
    """What is new about a call that has ``key``, where the function was traced for its types, but
    compiled for the calls ``before``; the first ``count`` parts of keys are signatures of leaves.
    """
    alike = [old for old in before if len(old) == len(key)]
    differences = [list(_places(old, key, names, count)) for old in alike]
    found = min(differences, key=len) if differences else []
    return "; ".join(found[:_MOST]) or "settings are others, or types in other programs"


def _places(
    old: tuple[Any, ...], new: tuple[Any, ...], names: LeafNames, count: int
) -> Iterator[str]:
    for i, (was, now) in enumerate(zip(old[:count], new[:count], strict=True)):
        if was is not now and was != now:
            before, there = (getattr(sig, "sharding", None) or "on the host" for sig in (was, now))
            yield f"{names[i]} lies {_where(there)}, and lay {_where(before)}"


def _where(place: Any) -> str:
    return place if isinstance(place, str) else f"as {place}"


def _first(fun: Any) -> str:
    unwrapped = inspect.unwrap(fun)
    inner = unwrapped.func if isinstance(unwrapped, functools.partial) else unwrapped
    own = getattr(inner, "__func__", inner)  # of a method
    code = getattr(own, "__code__", None)
    if code is None:
        return "never seen"
    before, _traced[code] = _traced[code], ref(own)
    if before is None:
        return "never seen"
    if before() is not own:
        return (
            "never seen, but the same code was, in another function object: it is made anew, by a "
            f"def or a lambda inside of a loop or a call; make it once, outside{_passed(code)}"
        )
    if inner is not unwrapped:
        return "never seen, but the same function was, in another partial: pass what differs"
    if own is not inner:
        return "never seen, but the same method was, of another object"
    return "never seen, but the same function was, with other options, as of what is donated"


def _passed(code: CodeType) -> str:
    closed = ", ".join(code.co_freevars[:_MOST])
    return f", and pass it as arguments what differs of {closed}" if closed else ""


def _differences(old: TraceKey, new: TraceKey, names: LeafNames) -> Iterator[str]:
    yield from _static(old.static, new.static)
    if old.structure != new.structure:
        now, was = shown_call(new.structure), shown_call(old.structure)
        yield f"the arguments have the structure {now}, and had {was}"
    elif len(old.types) == len(new.types):
        for i, (was, now) in enumerate(zip(old.types, new.types, strict=True)):
            if was != now:
                yield f"{names[i]} is {now!r}, and was {was!r}{_how(was, now)}"
    if old.settings != new.settings:
        yield from differing_options(old.settings, new.settings)
    if old.scope != new.scope:
        yield f"axes in scope are {_axes(new.scope)}, and were {_axes(old.scope)}"
    if old.context != new.context:
        both = zip(astuple(old.context), astuple(new.context), strict=True)
        fields = zip(new.context.__struct_fields__, both, strict=True)
        yield from [f"{field} differ" for field, (was, now) in fields if was != now]


def _static(old: Static, new: Static) -> Iterator[str]:
    if old == new:
        return
    before = {**dict(old.positional), **dict(old.keywords)}
    now = {**dict(new.positional), **dict(new.keywords)}
    found = [
        f"static argument {p} is not given, and was {before[p]!r:.60}"
        for p in before
        if p not in now
    ]
    for place, value in now.items():
        was = before.get(place, value)
        if place not in before:
            found.append(f"static argument {place} is given")
        elif was != value:
            found.append(f"static argument {place} is {value!r:.60}, and was {was!r:.60}")
        elif (type(was), hash(was)) != (type(value), hash(value)):
            found.append(f"static argument {place} is {_typed(value)}, and was {_typed(was)}")
    if not found:
        found.append("a static argument has parts of other types or hashes, which compare equal")
    yield from found


def _typed(value: Any) -> str:
    return f"{value!r:.60} of type {type(value).__name__}"


def _axes(axes: Sequence[tuple[Any, Any]]) -> str:
    return ", ".join([f"{name!r} of size {size}" for name, size in axes]) or "none"


def _same_elements(was: Any, now: Any) -> bool:
    """Whether two types have one shape and dtype."""
    both = isinstance(was, ArrayType) and isinstance(now, ArrayType)
    return both and (was.shape, was.dtype) == (now.shape, now.dtype)


def _how(was: Any, now: Any) -> str:
    if _same_elements(was, now) and was.weak != now.weak:
        return " (one is a Python number, the other an array: convert it once)"
    return ""
