"""Bodies of loops and branches: functions of trees, traced once and kept for the next time."""

# What a reference is called is private to users, not to what refuses it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import MethodType
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from phalanx.base import dtypes, jax_arrays, lattice, tree
from phalanx.base.config import config
from phalanx.base.errors import RefError, coded
from phalanx.base.kinds import class_of
from phalanx.base.plain import brief
from phalanx.base.recent import Recent
from phalanx.base.registry import how_to_register
from phalanx.base.source import name_of, replaying, scope_name, user_location
from phalanx.core import axes
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.refs import Ref, is_lasting, load, store
from phalanx.core.types import NOWHERE, Array, ArrayType, is_scalar, typeof
from phalanx.primitives.basis import convert
from phalanx.primitives.resharding import resharded
from phalanx.primitives.vary import conversion, varying_along
from phalanx.run.eager import as_array
from phalanx.transforms.reach import NotComparable, Reach
from phalanx.transforms.stage import is_value, stage_with_refs

# ---- tracing ------------------------------------------------------------------------------------


def leaves_of(
    x: Any, who: str, what: str, refs: bool = False, own: int = 0
) -> tuple[list[Any], tree.PyTreeDef]:
    """The leaves of ``x``, and its structure; there may be references if ``refs`` says so.

    The first ``own`` keys of a path are none that the user knows.

    Raises:
        RefError: a leaf is a reference, and there may be none.
        TypeError: a leaf is neither an array nor a number; ``what`` is the name of ``x``.
    """
    leaves, treedef = tree.flatten(x)
    for i, leaf in enumerate(leaves):
        if not is_value(leaf) and not (refs and type(leaf) is Ref):
            path = _path_of_leaf(x, i, own)
            if type(leaf) is Ref:
                raise RefError(
                    f"{who}: {what}{path} is a {leaf._describe()}, at {user_location()}, and only "
                    "arrays can be there; the function may close over the reference"
                )
            raise TypeError(
                f"{who}: {what}{path} is {brief(leaf)} of type {type(leaf).__name__}, "
                "which is not an array or a number"
                f"{jax_arrays.advice_on(leaf) or _registering(leaf)}"
            )
    return leaves, treedef


def check_functions(who: str, *functions: Any) -> None:
    """Raise TypeError for what cannot be called."""
    for fun in functions:
        if not callable(fun):  # "should be a callable" is the field's, for matching
            raise TypeError(
                f"{who}: what it runs should be a callable, got {fun!r} of type "
                f"{type(fun).__name__}, at {user_location()}"
            )


class TracedBody(Struct, frozen=True):
    """A function traced: its program, what this captured, and the tree that it returns.

    The program gives, before its results, what the references hold in the end that ``written``
    has, and after its results those among its arguments that ``stored`` numbers.
    """

    program: Program
    captured: list[Any]
    out_tree: tree.PyTreeDef
    written: dict[Ref, Any] = field(default_factory=dict[Ref, Any])
    stored: tuple[int, ...] = ()


def trace_body(
    fun: Callable[..., Any], call: Callable[..., Any], in_tree: tree.PyTreeDef,
    types: Sequence[ArrayType], who: str, along: frozenset[Any] = NOWHERE, refs: Sequence[int] = (),
) -> TracedBody:  # fmt: skip
    """Trace ``call(fun, *args)`` for args of the structure ``in_tree``, with leaves of ``types``.

    ``call`` says how a kind of loop uses the function that the user gave to it. What the function
    captures may vary ``along`` axes. The leaves numbered ``refs`` are references.
    """
    flat = FlatFunction(lambda *args: call(fun, *args), in_tree, who, refs)
    program, captured, written = stage_with_refs(flat, types, name_of(fun), along=along)
    return TracedBody(program, captured, flat.out_tree, written, flat.stored)


_NUMBERS = (int, float, complex)  # of Python: as results, too, their types are weak


class FlatFunction:
    """A function of trees as one of leaves.

    Attributes:
        in_tree: the structure of its arguments.
        out_tree: that of what it returned last; None before.
        who: what calls it, in messages.
        refs: which of its arguments are references: the function of leaves gets what they hold,
            and gives, after its results, what those hold in the end that were written.
        stored: these.
    """

    __slots__ = ("_call", "in_tree", "out_tree", "refs", "stored", "who")

    def __init__(
        self, call: Callable[..., Any], in_tree: tree.PyTreeDef, who: str, refs: Sequence[int] = ()
    ) -> None:
        self._call = call
        self.in_tree = in_tree
        self.who = who
        self.out_tree: Any = None
        self.refs = refs
        self.stored: tuple[int, ...] = ()

    def __call__(self, *leaves: Any) -> list[Any]:
        refs = {i: Ref(leaves[i]) for i in self.refs}
        values = [refs.get(i, x) for i, x in enumerate(leaves)] if refs else leaves
        args = self.in_tree.unflatten(values)
        with replaying():  # nothing now: these are the user's lines
            out = self._call(*args)
        results, self.out_tree = flatten_results(out, self.who)
        results = numbers_as_results(results)
        return [*results, *self._stored(refs, leaves)] if refs else results

    def _stored(self, refs: dict[int, Ref], before: Sequence[Any]) -> list[Any]:
        """What those of ``refs`` hold that were written; note which ones they are."""
        after = {i: load(ref) for i, ref in refs.items()}
        self.stored = tuple([i for i, x in after.items() if x is not before[i]])
        return [after[i] for i in self.stored]


def flatten_results(out: Any, who: str) -> tuple[list[Any], Any]:
    """The leaves of what a function returned, and its structure.

    Raises:
        TypeError: one is neither an array nor a number.
    """
    leaves, treedef = tree.flatten(out)
    for i, leaf in enumerate(leaves):
        if not is_value(leaf):
            path = _path_of_leaf(out, i)
            if type(leaf) is Ref:
                _refuse_result(leaf, path, who)
            message = (
                f"{who}: the function returned {brief(leaf)} of type {type(leaf).__name__}"
                f"{' at ' + path if path else ''}; it must return arrays, numbers, or trees of them"
                f"{_registering(leaf)}"
            )
            raise coded(TypeError(message), "no array returned", type=type(leaf).__name__)
    return leaves, treedef


def _registering(leaf: Any) -> str:
    advice = how_to_register(class_of(leaf))
    return f"; {advice}" if advice else ""


def _path_of_leaf(x: Any, i: int, own: int = 0) -> str:
    """The path to leaf ``i``: by its number, since a class may make its leaves when it is asked."""
    return tree.keystr(tree.leaves_with_path(x)[i][0][own:])


def _refuse_result(ref: Ref, path: str, who: str) -> NoReturn:
    raise RefError(
        f"{who}: the function returned a {ref._describe()}{' at ' + path if path else ''}; "
        "references cannot be returned: return what it holds, ref[...]. One that is made outside, "
        "or passed as an argument, keeps what is written to it"
    )


def trace_carrying(
    trace: Callable[[Sequence[ArrayType]], TracedBody], types: Sequence[ArrayType]
) -> tuple[TracedBody, list[ArrayType], list[ArrayType]]:
    """Trace a body that carries values of ``types``, where weak ones take the type they get.

    Returns:
        The body, the types of the carry that it was traced for, and those of the carry between
        two iterations. They differ in weakness alone: for another dtype the body is traced again,
        and where the carry varies along more axes than it does at first.
    """
    inside = list(types)
    while True:
        body = trace(inside)
        returned = body.program.output_types[len(body.written) :][: len(inside)]
        between = [_promoted(t, f) for t, f in zip(inside, returned, strict=False)]
        between += inside[len(returned) :]
        grown = [
            t if (t.dtype, t.varying, t.spec) == (b.dtype, b.varying, b.spec) else b
            for t, b in zip(inside, between, strict=True)
        ]
        if grown == inside and not _vary_more(body):
            return body, inside, between
        inside = grown


def _vary_more(body: TracedBody) -> bool:
    """Let each reference that ``body`` writes vary along the axes along which what it writes does.

    Returns:
        Whether one did not.
    """
    more = False
    for (ref, where), kind in zip(body.written.items(), body.program.output_types, strict=False):
        now = load(ref)
        if kind.varying - typeof(now).varying:
            store(ref, varying_along(now, kind.varying), where)
            more = True
    return more


def _promoted(carried: ArrayType, returned: ArrayType) -> ArrayType:
    if carried is returned or carried.shape != returned.shape:
        return carried
    spec = carried.spec and carried.spec.without_axes(carried.reduced & returned.varying)
    over = {"varying": carried.varying | returned.varying, "spec": spec}
    if not carried.weak:
        return carried.update(**over)
    dtype, weak = lattice.common((carried.dtype, True), (returned.dtype, returned.weak))
    return carried.update(dtype=dtype, weak=weak and dtype == carried.dtype, **over)


def as_type(x: Any, wanted: ArrayType) -> Any:
    """``x`` converted to ``wanted``, a type of the same shape."""
    kind = typeof(x)
    if is_scalar(x) and not wanted.weak:
        x = dtypes.scalar(x, wanted.dtype)
    elif (kind.dtype, kind.weak) != (wanted.dtype, wanted.weak):
        x = convert(x, dtype=wanted.dtype, weak=wanted.weak)
    return varying_along(resharded(x, wanted.spec or typeof(x).spec), wanted.varying)


def retyped(
    body: TracedBody, args: Sequence[ArrayType], results: Sequence[ArrayType]
) -> TracedBody:
    """``body`` with conversions at its ends: of as many args, and of as many results, as given."""
    program, start = body.program, len(body.captured)
    inputs, outputs = list(program.inputs), list(program.outputs)
    before: list[Equation] = []
    after: list[Equation] = []
    for i, kind in enumerate(args, start):
        if kind is not inputs[i].type:
            inputs[i] = Var(kind)
            before += _conversion(inputs[i], program.inputs[i])
    for i, kind in enumerate(results):
        if kind is not outputs[i].type:
            outputs[i] = result = Var(kind)
            after += _conversion(program.outputs[i], result)
    if not before and not after:
        return body
    equations = [*before, *program.equations, *after]
    return replace(
        body, program=program.update(inputs=inputs, equations=equations, outputs=outputs)
    )


def _conversion(x: Atom, result: Var) -> list[Equation]:
    """What makes ``result`` of ``x``: of another dtype, and another kind along Manual axes."""
    kind, wanted = x.type, result.type
    equations: list[Equation] = []
    if (kind.dtype, kind.weak) != (wanted.dtype, wanted.weak):
        numbers = {"dtype": wanted.dtype, "weak": wanted.weak}
        converted = Var(kind.update(**numbers))
        equations.append(Equation(convert, [x], numbers, (converted,), user_location()))
        x = converted
    equations += conversion(x, wanted)
    equations[-1] = equations[-1].update(outputs=(result,))
    return equations


def joined(bodies: Sequence[TracedBody]) -> tuple[list[Program], list[Any]]:
    """The programs of ``bodies`` with what any of them captured among their inputs, and that."""
    captured = {id(x): x for body in bodies for x in body.captured}
    own = [dict(zip(map(id, b.captured), b.program.inputs, strict=False)) for b in bodies]
    kinds = {i: var.type for variables in own for i, var in variables.items()}
    programs: list[Program] = []
    for body, variables in zip(bodies, own, strict=True):
        outer = [variables[i] if i in variables else Var(kinds[i]) for i in captured]
        rest = body.program.inputs[len(body.captured) :]
        programs.append(body.program.update(inputs=[*outer, *rest]))
    return programs, [*captured.values()]


def types_of_written(body: TracedBody) -> list[ArrayType]:
    """The types as which ``body`` gets the references that it writes."""
    if not body.written:
        return []
    places = zip(body.captured, body.program.input_types, strict=False)
    return [kind for x, kind in places if type(x) is Ref and x in body.written]


def passed_on(program: Program, inputs: Sequence[int]) -> list[int | None]:
    """Which of ``inputs`` each result of ``program`` is, if it is one of them unchanged."""
    places = {program.inputs[i]: i for i in inputs}
    return [places.get(a) if type(a) is Var else None for a in program.outputs]


def without_results(program: Program, passed: Sequence[Any]) -> Program:
    """``program`` without the results for which ``passed`` says what they are."""
    outputs = [a for a, p in zip(program.outputs, passed, strict=True) if p is None]
    return program.update(outputs=outputs)


def merged(passed: Sequence[Any], values: Sequence[Any], computed: Sequence[Any]) -> list[Any]:
    """All results: those of ``values`` to which ``passed`` points, and the ``computed`` others."""
    rest = iter(computed)
    return [next(rest) if p is None else as_result(values[p]) for p in passed]


def as_result(x: Any) -> Any:
    """A value that came from the user as what operations return."""
    if isinstance(x, Array):
        return x
    kind = typeof(x)
    return convert(x, dtype=kind.dtype, weak=kind.weak)


def numbers_as_results(values: Sequence[Any]) -> list[Any]:
    """``values``, of which Python's numbers became what operations on such numbers return."""
    return [as_result(x) if type(x) in _NUMBERS else x for x in values]


def held(x: Any) -> Any:
    """The tree ``x`` with arrays that its NumPy arrays no longer change with."""
    return tree.map(lambda leaf: as_array(leaf) if isinstance(leaf, np.ndarray) else leaf, x)


# ---- finding what was traced before -------------------------------------------------------------


class _Traced(Protocol):
    @property
    def captured(self) -> Sequence[Any]:
        """The traced values from outside that the programs take."""
        ...


T = TypeVar("T", bound=_Traced)


class _Remembered(NamedTuple):
    traced: Any
    seen: list[Any]
    references: list[Any]


_entries: Recent[_Remembered] = Recent(1024)


def remembered(
    functions: Sequence[Callable[..., Any]], key: tuple[Hashable, ...], trace: Callable[[], T]
) -> T:
    """``trace()``, or what that gave before for the same functions and the same key.

    It is the same if the functions, and all that they can reach, have not changed since. What
    tracing itself changed does not count: side effects happen once. An entry is dropped with any
    of the functions, and with anything that they had reached.
    """
    roots = [root for f in functions for root in _owners(f)]
    place = (*map(id, roots), config.key, axes.key(), scope_name(), *key)
    before = _reach(roots)
    if before is None:
        return trace()
    entry = _entries[place]
    if entry is not None and entry.seen == before.seen:
        return entry.traced
    traced = trace()
    if all(type(x) is Ref and is_lasting(x) for x in traced.captured):
        _remember(place, roots, traced)
    return traced


def _owners(fun: Callable[..., Any]) -> tuple[Any, ...]:
    """What lives as long as ``fun`` means the same; a bound method is made anew at each use."""
    return (fun.__self__, fun.__func__) if isinstance(fun, MethodType) else (fun,)


def _reach(roots: Sequence[Any]) -> Reach | None:
    """What can be reached from ``roots`` now; None if it cannot be told."""
    try:
        return Reach(roots)
    except NotComparable:
        return None


def _remember(place: tuple[Any, ...], roots: Sequence[Any], traced: Any) -> None:
    if not all(type(root).__weakrefoffset__ for root in roots):
        return
    reach = _reach(roots)
    if reach is None:
        return
    references = reach.references(lambda dead: _entries.forget(place))
    _entries[place] = _Remembered(traced, reach.seen, references)
