"""Branches that compile: which function runs may be known only while running."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, TypeVarTuple, overload

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes, tree
from phalanx.base.config import config
from phalanx.base.nodes import outline
from phalanx.base.source import place_of, user_location
from phalanx.base.tree import shown
from phalanx.control.branch import branch
from phalanx.core.program import Program
from phalanx.core.refs import Ref, refuse_aliases, store_all
from phalanx.core.trace import is_known
from phalanx.core.types import NOWHERE, Array, ArrayLike, ArrayType, is_scalar, typeof
from phalanx.lax.bodies import (
    TracedBody,
    as_type,
    held,
    joined,
    leaves_of,
    merged,
    passed_on,
    remembered,
    retyped,
    trace_body,
    without_results,
)
from phalanx.primitives.compare import clamp, ne
from phalanx.primitives.domains import BOOL, I32
from phalanx.primitives.vary import varying_along
from phalanx.transforms.stage import is_value, loaded

__all__ = ["cond", "switch"]

Ts = TypeVarTuple("Ts")  # the operands: what branches take
A = TypeVar("A")  # the first of them
B = TypeVar("B")  # and the second
R = TypeVar("R")  # what branches give
OneArray = TypeVar("OneArray", bound=Array)  # where that is an array
_NOTHING: Any = object()  # in place of an operand that is not given: None is one

# For type checkers: operands are what branches take, or numbers and arrays of NumPy in its place;
# where branches give numbers, and not arrays alone, the result is an array all the same.


@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[[*Ts], OneArray],
    false_fun: Callable[[*Ts], OneArray],
    *operands: *Ts,
) -> OneArray: ...
@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[[*Ts], ArrayLike],
    false_fun: Callable[[*Ts], ArrayLike],
    *operands: *Ts,
) -> Array: ...
@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[[*Ts], R],
    false_fun: Callable[[*Ts], R],
    *operands: *Ts,
) -> R: ...
@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[[A], R],
    false_fun: Callable[[A], R],
    operand: A | ArrayLike,
) -> R: ...
@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[[A, B], R],
    false_fun: Callable[[A, B], R],
    a: A | ArrayLike,
    b: B | ArrayLike,
    /,
) -> R: ...
@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., R],
    false_fun: Callable[..., R],
    a: Any,
    b: Any,
    c: Any,
    /,
    *operands: Any,
) -> R: ...
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _NOTHING,
) -> Any:
    """Choose a branch: true_fun(*operands) if pred else false_fun(*operands); only one runs.

    Under ``vmap`` with a predicate that differs between lanes both run, and each lane takes
    its own. There is an older form, in which each function has an operand of its own:
    ``cond(pred, true_operand, true_fun, false_operand, false_fun)``.

    Args:
        pred: a boolean or a real number without dimensions; a number is true if it is not 0.
        true_fun: the branch where the predicate holds, a function of the operands.
        false_fun: the other branch, a function of the operands with results of the same structure
            and types.
        *operands: trees of arrays.
        operand: the only operand, by name.

    Returns:
        What the branch returns.

    Raises:
        TypeError: the predicate is no boolean or number, or the branches return different types.

    >>> import phalanx.numpy as jnp
    >>> cond(jnp.array(True), lambda x: x + 1, lambda x: x - 1, 5)
    Array(6, dtype=int32, weak_type=True)
    """
    branches: list[Callable[..., Any]] = [false_fun, true_fun]
    if operand is not _NOTHING:
        operands = (*operands, operand)
    elif len(operands) == 2 and _has_own_operands(true_fun, false_fun, operands):
        branches = [_OfItsOwn(operands[1], 1), _OfItsOwn(false_fun, 0)]
        operands = (true_fun, operands[0])
    _check_callable("cond", *reversed(branches))
    truth = _truth(pred)
    if config.disable_jit and is_known(truth):
        return branches[bool(truth)](*held(operands))
    return choose("cond", _whole_number(truth), branches, operands)


def _check_callable(who: str, *functions: Any) -> None:
    for fun in functions:
        if not callable(fun):
            raise TypeError(
                f"{who}: a branch must be a function, got {fun!r} of type {type(fun).__name__}, "
                f"at {user_location()}; operands come after the branches"
            )


def _has_own_operands(first: Any, second: Any, rest: tuple[Any, ...]) -> bool:
    """Whether ``cond`` is given an operand, a function of it, and the same once more."""
    return callable(second) and callable(rest[1]) and not callable(first)


class _OfItsOwn(Struct, frozen=True):
    """``func`` of one of the operands; messages name it as they name that of a partial."""

    func: Callable[..., Any]
    which: int

    def __call__(self, *operands: Any) -> Any:
        return self.func(operands[self.which])


def _truth(pred: Any) -> Any:
    """The predicate of ``cond`` as a boolean."""
    kind = typeof(pred) if is_value(pred) else None
    if kind is None or kind.shape != () or not _is_real(kind.dtype):
        got = repr(pred) if kind is None else str(kind)
        raise TypeError(
            "cond: the predicate must be one boolean or real number without dimensions, got "
            f"{got}, at {user_location()}; compare it with something, as in x > 0"
        )
    return pred if kind.dtype == BOOL else ne(pred, dtypes.scalar(0, kind.dtype))


def _is_real(dtype: Any) -> bool:
    return dtype == BOOL or dtypes.is_integer(dtype) or dtypes.is_floating(dtype)


@overload
def switch(
    index: ArrayLike, branches: Sequence[Callable[[*Ts], OneArray]], *operands: *Ts
) -> OneArray: ...
@overload
def switch(
    index: ArrayLike, branches: Sequence[Callable[[*Ts], ArrayLike]], *operands: *Ts
) -> Array: ...
@overload
def switch(index: ArrayLike, branches: Sequence[Callable[[*Ts], R]], *operands: *Ts) -> R: ...
@overload
def switch(index: ArrayLike, branches: Sequence[Callable[[A], R]], operand: A | ArrayLike) -> R: ...
@overload
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[[A, B], R]],
    a: A | ArrayLike,
    b: B | ArrayLike,
    /,
) -> R: ...
@overload
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., R]],
    a: Any,
    b: Any,
    c: Any,
    /,
    *operands: Any,
) -> R: ...
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _NOTHING,
) -> Any:
    """Choose one of several branches: branches[index](*operands), and only that one runs.

    An index out of range is moved to the nearest in range.

    Args:
        index: an integer scalar.
        branches: functions of the operands, with results of the same structure and types.
        *operands: trees of arrays.
        operand: the only operand, by name.

    Returns:
        What the branch returns.

    Raises:
        TypeError: the index is no integer, or has dimensions.
        ValueError: there are no branches.

    >>> import phalanx.numpy as jnp
    >>> switch(jnp.array(1), [lambda x: x, lambda x: -x], 3)
    Array(-3, dtype=int32, weak_type=True)
    """
    operands = operands if operand is _NOTHING else (*operands, operand)
    if not branches:
        raise ValueError(f"switch: at least one branch is needed, at {user_location()}")
    _check_callable("switch", *branches)
    kind = typeof(index) if is_value(index) else None
    if kind is None or kind.shape != () or not dtypes.is_integer(kind.dtype):
        got = repr(index) if kind is None else str(kind)
        raise TypeError(
            f"switch: the index must be an integer without dimensions, got {got} at "
            f"{user_location()}"
        )
    if config.disable_jit and is_known(index):
        return branches[_nearest(index, branches)](*held(operands))
    if is_scalar(index):
        which: Any = np.int32(_nearest(index, branches))
    else:
        which = clamp(np.int32(0), _whole_number(index), np.int32(len(branches) - 1))
    return choose("switch", which, branches, operands)


def _nearest(index: Any, branches: Sequence[Any]) -> int:
    return min(max(int(index), 0), len(branches) - 1)


def _whole_number(x: Any) -> Any:
    return as_type(x, ArrayType((), I32))


class _Choice(Struct, frozen=True):
    """Branches, traced to take the same operands and to give results of the same types.

    What all of them pass on as it is, they do not give: ``passed`` says which operand it is. They
    first give what the references hold in the end that any of them has ``written``.
    """

    programs: tuple[Program, ...]
    captured: list[Any]
    passed: list[int | None]
    out_tree: tree.PyTreeDef
    written: dict[Ref, Any]


def choose(
    who: str, index: Any, functions: Sequence[Callable[..., Any]], operands: tuple[Any, ...]
) -> Any:
    """functions[index](*operands), where the index is in range."""
    # What a branch takes varies where the choice does: sums over the positions of what it does with
    # that, as of cotangents, are then made outside, where all positions are.
    along = typeof(index).varying
    values, in_tree = leaves_of(operands, who, "operands", refs=True)
    refs = tuple([(i, x) for i, x in enumerate(values) if type(x) is Ref])
    leaves = [varying_along(x, along) for x in values if type(x) is not Ref]
    types = [typeof(x) for x in leaves]
    call: Callable[..., Any] = _with_operands
    if refs:  # each branch uses those that are meant
        call, in_tree = _WithRefs(in_tree, refs), tree.structure(tuple(leaves))

    def trace() -> _Choice:
        once = {id(f): f for f in functions}
        each = {i: trace_body(f, call, in_tree, types, who, along) for i, f in once.items()}
        bodies = [each[id(f)] for f in functions]
        bodies, written = _writing_the_same(bodies)
        wanted = _common_types(who, functions, bodies)
        alike = [retyped(body, [], wanted) for body in bodies]
        programs, captured = [b.program for b in alike], alike[0].captured
        passed = [None] * len(written) + _passed_by_all(programs, len(captured))[len(written) :]
        programs = tuple([without_results(p, passed) for p in programs])
        return _Choice(programs, captured, passed[len(written) :], bodies[0].out_tree, written)

    key = (who, tree.flatten_call(operands)[1], along, *types, *refs)
    traced = remembered(functions, key, trace)
    refuse_aliases([ref for _, ref in refs], (), who)
    outer = loaded(traced.captured)
    out = branch(index, *outer, *leaves, programs=traced.programs)
    out = store_all(traced.written, (), out)
    return traced.out_tree.unflatten(merged(traced.passed, [*outer, *leaves], out))


class _WithRefs(Struct, frozen=True):
    """How to call a function of operands with the references that are among their leaves."""

    tree: tree.PyTreeDef
    refs: tuple[tuple[int, Ref], ...]

    def __call__(self, fun: Callable[..., Any], *leaves: Any) -> Any:
        inserted = [*leaves]
        for i, ref in self.refs:
            inserted.insert(i, ref)
        return fun(*self.tree.unflatten(inserted))


def _writing_the_same(bodies: Sequence[TracedBody]) -> tuple[list[TracedBody], dict[Ref, Any]]:
    """``bodies``, which take all that any of them captured, and give all that any writes.

    Returns:
        They, and the references that they write, each with the line of one that does.
    """
    programs, captured = joined(bodies)
    written = {ref: where for body in bodies for ref, where in body.written.items()}
    alike: list[TracedBody] = []
    for body, program in zip(bodies, programs, strict=True):
        places = zip(captured, program.inputs, strict=False)
        before = {x: var for x, var in places if type(x) is Ref}
        after = dict(zip(body.written, program.outputs, strict=False))
        outputs = [after.get(ref, before[ref]) for ref in written]
        outputs += program.outputs[len(after) :]
        alike.append(TracedBody(program.update(outputs=outputs), captured, body.out_tree, written))
    return alike, written


def _passed_by_all(programs: Sequence[Program], captured: int) -> list[int | None]:
    """Which operand each result is in all branches, if it is one."""
    places = range(captured, len(programs[0].inputs))
    columns = zip(*[passed_on(p, places) for p in programs], strict=True)
    return [column[0] if len({*column}) == 1 else None for column in columns]


def _with_operands(fun: Callable[..., Any], *operands: Any) -> Any:
    return fun(*operands)


_ROLES = {"cond": ["false_fun", "true_fun"]}


def _common_types(
    who: str, functions: Sequence[Callable[..., Any]], bodies: Sequence[TracedBody]
) -> list[ArrayType]:
    """The types of the results, on which all branches must agree but for weakness."""
    first = bodies[0].out_tree
    roles = _ROLES.get(who) or [f"branches[{i}]" for i in range(len(functions))]
    names = [f"{role} ({place_of(f)})" for role, f in zip(roles, functions, strict=True)]
    for name, body in zip(names, bodies, strict=True):
        if body.out_tree != first:
            raise TypeError(
                f"{who} branch outputs must have the same pytree structure; {names[0]} returns "
                f"{shown(first)}, {name} returns {shown(body.out_tree)}, at {user_location()}"
            )
    paths = [path for path, _ in tree.leaves_with_path(outline(first))]
    common: list[ArrayType] = []
    for i, path in enumerate([*[()] * len(bodies[0].written), *paths]):
        column = [body.program.output_types[i] for body in bodies]
        for name, kind in zip(names, column, strict=True):
            first = column[0]
            if (kind.shape, kind.dtype, kind.spec) != (first.shape, first.dtype, first.spec):
                same = (kind.shape, kind.dtype) == (first.shape, first.dtype)
                advice = "; lay one out as the other, with phalanx.reshard(x, P(..))" * same
                raise TypeError(
                    f"{who} branches must have equal output types; result{tree.keystr(path)} is "
                    f"{first} from {names[0]} and {kind} from {name}, at {user_location()}{advice}"
                )
        varying = NOWHERE.union(*[t.varying for t in column])
        common.append(column[0].update(varying=varying))
    return common
