"""Bodies of loops and branches: functions of trees, traced once, and found when they come again."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any, NamedTuple, Protocol, TypeVar

from phalanx.base import dtypes, tree
from phalanx.base.config import config
from phalanx.base.source import replaying, scope_name
from phalanx.core import axes
from phalanx.core.program import Program, plain
from phalanx.core.types import ArrayType, is_scalar, typeof
from phalanx.ops.basis import convert
from phalanx.transforms.derive import trace_closed
from phalanx.transforms.reach import NotComparable, Reach
from phalanx.transforms.stage import evaluate, is_value, stage

# ---- tracing ------------------------------------------------------------------------------------


def name_of(fun: Callable) -> str:
    """What to call ``fun`` in messages and programs."""
    return getattr(fun, "__name__", type(fun).__name__)


def leaves_of(x: Any, who: str, what: str) -> tuple[list[Any], tree.PyTreeDef]:
    """The leaves of ``x``, and its structure.

    Raises:
        TypeError: a leaf is neither an array nor a number; ``what`` is the name of ``x``.
    """
    leaves, treedef = tree.flatten(x)
    for leaf in leaves:
        if not is_value(leaf):
            path = next(tree.keystr(p) for p, other in tree.leaves_with_path(x) if other is leaf)
            raise TypeError(
                f"{who}: {what}{path} is {leaf!r} of type {type(leaf).__name__}, "
                "which is not an array or a number"
            )
    return leaves, treedef


@dataclass(frozen=True, slots=True)
class Body:
    """A function traced: its program, what this captured, and the tree that it returns."""

    program: Program
    captured: list[Any]
    out_tree: tree.PyTreeDef


def trace_body(
    fun: Callable, call: Callable, in_tree: tree.PyTreeDef, types: Sequence[ArrayType], who: str
) -> Body:
    """Trace ``call(fun, *args)`` for args of the structure ``in_tree``, with leaves of ``types``.

    ``call`` says how a kind of loop uses the function that the user gave to it.
    """
    flat = _Flat(fun, call, in_tree, who)
    program, captured = stage(flat, types, name_of(fun))
    return Body(program, captured, flat.out_tree)


class _Flat:
    """A function of trees as one of leaves; keeps the structure of what it returned."""

    out_tree: tree.PyTreeDef

    def __init__(self, fun: Callable, call: Callable, in_tree: tree.PyTreeDef, who: str) -> None:
        self.fun = fun
        self.call = call
        self.in_tree = in_tree
        self.who = who

    def __call__(self, *leaves: Any) -> list[Any]:
        args = self.in_tree.unflatten(leaves)
        with replaying():  # nothing now: these are the user's lines
            out = self.call(self.fun, *args)
        found, self.out_tree = leaves_of(out, self.who, "the result")
        return found


def trace_carrying(
    trace: Callable[[Sequence[ArrayType]], Body], types: Sequence[ArrayType]
) -> tuple[Body, list[ArrayType]]:
    """Trace a body that carries values of ``types``; weak ones take the type they turn into.

    Where that may change what the body computes it is traced again.
    """
    carried = list(types)
    while True:
        body = trace(carried)
        found = body.program.output_types[: len(carried)]
        grown = [_promoted(t, f) for t, f in zip(carried, found, strict=False)]
        grown += carried[len(found) :]
        if grown == carried:
            return body, carried
        if _same_with_strong_inputs(body.program, carried, grown):
            return _converting(body, carried, grown), grown
        carried = grown


def _same_with_strong_inputs(
    program: Program, weak: Sequence[ArrayType], strong: Sequence[ArrayType]
) -> bool:
    """Whether ``program`` was the same if some inputs had the types ``strong``, and not ``weak``.

    A weak dtype gives way to others of its kind. Where there is but one, that makes no difference
    to what is computed; it may make one to whether results are weak.
    """
    if program.by_user or any(t.weak for t in program.output_types):
        return False
    changed = [(w.dtype, s.dtype) for w, s in zip(weak, strong, strict=True) if w is not s]
    atoms = (a for e in program.walk() for a in (*e.inputs, *e.outputs))
    inside = {v.type.dtype for v in program.inputs} | {a.type.dtype for a in atoms}
    inexact = [d for d in inside if dtypes.is_inexact(d)]
    integers = [d for d in inside if dtypes.is_integer(d)]
    floating = all(dtypes.is_inexact(before) for before, _ in changed)
    return (
        all(before == after for before, after in changed)
        and len(inexact) <= 1
        and (floating or len(integers) <= 1)  # an integer may turn into a float, not back
    )


def _converting(body: Body, inside: Sequence[ArrayType], outside: Sequence[ArrayType]) -> Body:
    """``body`` with a carry of the types ``outside``, of which it makes those ``inside``."""
    count = len(body.captured)
    fixed, rest = body.program.input_types[:count], body.program.input_types[count + len(inside) :]

    def converted(*inputs: Any) -> tuple[list[Any], None]:
        carry = [as_type(x, t) for x, t in zip(inputs[count:], inside, strict=False)]
        every = [*inputs[:count], *carry, *inputs[count + len(carry) :]]
        return evaluate(body.program, every), None

    made = trace_closed(converted, [*fixed, *outside, *rest], body.program.name)
    return replace(body, program=made.program)


def _promoted(given: ArrayType, found: ArrayType) -> ArrayType:
    if not given.weak or given is found or given.shape != found.shape:
        return given
    dtype, weak = dtypes.promote((given.dtype, True), (found.dtype, found.weak))
    return ArrayType(given.shape, dtype, weak)


def as_type(x: Any, wanted: ArrayType) -> Any:
    """``x`` converted to ``wanted``, a type of the same shape."""
    if plain(typeof(x)) is wanted:
        return x
    if is_scalar(x) and not wanted.weak:
        return dtypes.scalar(x, wanted.dtype)
    return convert(x, dtype=wanted.dtype, weak=wanted.weak)


def with_output_types(program: Program, wanted: Sequence[ArrayType]) -> Program:
    """``program`` with its first results, as many as are ``wanted``, converted to these types."""
    count = len(wanted)
    if program.output_types[:count] == tuple(wanted):
        return program

    def converted(*inputs: Any) -> tuple[list[Any], None]:
        out = evaluate(program, inputs)
        return [*(as_type(x, t) for x, t in zip(out, wanted, strict=False)), *out[count:]], None

    return trace_closed(converted, program.input_types, program.name).program


# ---- finding what was traced before -------------------------------------------------------------


class _Traced(Protocol):
    @property
    def captured(self) -> Sequence[Any]:
        """The traced values from outside that the programs take."""
        ...


T = TypeVar("T", bound=_Traced)


class _Entry(NamedTuple):
    traced: Any
    seen: list[Any]
    references: list[Any]


_MOST_ENTRIES = 1024
_entries: OrderedDict[tuple, _Entry] = OrderedDict()  # those used last are at the end


def remembered(
    functions: Sequence[Callable], key: tuple[Hashable, ...], trace: Callable[[], T]
) -> T:
    """``trace()``, or what that gave before for the same functions and the same key.

    It is the same if the functions, and all that they can reach, have not changed since. What
    tracing itself changed does not count: side effects happen once. An entry goes when one of
    the functions goes, or anything that they had reached.
    """
    roots = [root for f in functions for root in _owners(f)]
    place = (*map(id, roots), config.key, axes.scope(), scope_name(), *key)
    try:
        before = Reach(roots)
    except NotComparable:
        return trace()
    entry = _entries.get(place)
    if entry is not None and entry.seen == before.seen:
        _entries.pop(place, None)
        _entries[place] = entry
        return entry.traced
    traced = trace()
    if not traced.captured:
        _remember(place, roots, traced)
    return traced


def _owners(fun: Callable) -> tuple:
    """What lives as long as ``fun`` means the same; a bound method is made anew at each use."""
    return (fun.__self__, fun.__func__) if isinstance(fun, MethodType) else (fun,)


def _remember(place: tuple, roots: Sequence[Any], traced: Any) -> None:
    if not all(type(root).__weakrefoffset__ for root in roots):
        return
    try:
        reach = Reach(roots)
    except NotComparable:
        return
    while len(_entries) >= _MOST_ENTRIES:
        _entries.popitem(last=False)
    forget = functools.partial(_entries.pop, place)  # called with a dead reference, its default
    _entries[place] = _Entry(traced, reach.seen, reach.references(forget))
