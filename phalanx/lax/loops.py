"""Loops that compile: what is repeated, and how often, may be known only while running."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast, overload

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes, lattice, tree
from phalanx.base.config import config
from phalanx.base.errors import ShardingTypeError, coded
from phalanx.base.lengths import Length, integer, symbolic
from phalanx.base.source import user_location
from phalanx.base.tree import shown
from phalanx.control.loop import loop
from phalanx.control.scan import scan as scan_rows
from phalanx.control.vectorized import vectorized
from phalanx.core.program import Program
from phalanx.core.refs import Ref, load, refuse_aliases, store, store_all
from phalanx.core.roles import CARRY, FIXED, ROWS, Roles, each
from phalanx.core.trace import is_known
from phalanx.core.types import Array, ArrayLike, ArrayType, is_scalar, typeof
from phalanx.lax.bodies import (
    TracedBody,
    as_type,
    check_functions,
    held,
    joined,
    leaves_of,
    merged,
    remembered,
    retyped,
    trace_body,
    trace_carrying,
    types_of_written,
    without_results,
)
from phalanx.lax.shape import concatenate
from phalanx.lax.slicing import index_in_dim
from phalanx.primitives.basis import broadcast, convert
from phalanx.primitives.domains import BOOL
from phalanx.transforms.batch import lane_type
from phalanx.transforms.stage import loaded, refuse_written

__all__ = ["fori_loop", "map", "scan", "while_loop"]

T = TypeVar("T")  # what a function gives
Carry = TypeVar("Carry")  # and what it hands on to the next step,
A = TypeVar("A")  # or the first part of that,
B = TypeVar("B")  # the second,
C = TypeVar("C")  # and the third
K = TypeVar("K")  # the keys of a dict of them
X = TypeVar("X")  # a row
_Many = tuple[Any, Any, Any, Any, *tuple[Any, ...]]
Many = TypeVar("Many", bound=_Many)  # a carry of four parts or more
_Held = tuple[Any, ...] | list[Any] | dict[Any, Any] | None  # whose numbers are arrays within
_Rows = ArrayLike | Sequence[Any] | None  # arrays of NumPy for a function of arrays, too

_Called = tuple[
    Callable[..., Any], Callable[..., Any]
]  # a function, and the way in which to call it


# ---- loops --------------------------------------------------------------------------------------


@overload
def while_loop(
    cond_fun: Callable[[Array], Any],
    body_fun: Callable[[Array], ArrayLike],
    init_val: ArrayLike,
) -> Array: ...
@overload
def while_loop(cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init_val: _Held) -> T: ...
@overload
def while_loop(cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init_val: T) -> T: ...
def while_loop(cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init_val: Any) -> T:
    """Repeat while a condition holds: val = body_fun(val) while cond_fun(val).

    The number of iterations is known only while running; so it differentiates forward, not in
    reverse: for that use ``scan``, or ``fori_loop`` with static bounds.

    Args:
        cond_fun: from the carry to a boolean scalar.
        body_fun: from the carry to the next carry, of the same structure and types.
        init_val: a tree of arrays.

    Returns:
        A tree like ``init_val``.

    Raises:
        TypeError: the condition is no boolean scalar, or the carry changes its type.

    >>> import phalanx.numpy as jnp
    >>> while_loop(lambda x: x < 100, lambda x: x * 2, jnp.int32(3))
    Array(192, dtype=int32)
    """
    return _while((cond_fun, _with_carry), (body_fun, _with_carry), init_val, "while_loop")


def _with_carry(fun: Callable[..., Any], carry: Any) -> Any:
    return fun(carry)


class _While(Struct, frozen=True):
    """The condition and the body of a loop, traced to carry ``types``.

    What the body passes on as it is, is not carried: ``passed`` says which operand it is. What the
    references hold that are ``written`` is carried before all else. Operands have the roles
    ``ins``.
    """

    condition: Program
    body: Program
    captured: list[Any]
    types: list[ArrayType]
    passed: list[int | None]
    written: dict[Ref, Any]
    ins: Roles


def _not_a_number(x: Any) -> Any:
    """``x``; a number becomes an array, as in a loop that is traced."""
    return convert(x, dtype=typeof(x).dtype, weak=typeof(x).weak) if is_scalar(x) else x


def _while(test: _Called, step: _Called, init_val: Any, who: str, own: int = 0) -> Any:
    """The loop whose condition and body are functions, each with the way in which to call it.

    The first ``own`` keys of a path into what is carried are none that the user knows.
    """
    (cond_fun, test_with), (body_fun, step_with) = test, step
    check_functions(who, cond_fun, body_fun)
    if config.disable_jit:
        init_val = tree.map(_not_a_number, held(init_val))
        while is_known(goes_on := test_with(cond_fun, init_val)):
            if not goes_on:
                return init_val
            init_val = step_with(body_fun, init_val)
    init, treedef = leaves_of(init_val, who, "init_val", own=own)
    types = [typeof(x) for x in init]

    def trace() -> _While:
        in_tree = tree.structure((init_val,))
        body, inside, carried = trace_carrying(
            lambda ts: trace_body(*step, in_tree, ts, who), types
        )
        first = len(body.written)
        returned = body.program.output_types[first:]
        _check_carry(init_val, carried, body.out_tree, returned, who, own)
        body = retyped(body, carried, [*types_of_written(body), *carried])
        condition = trace_body(*test, in_tree, inside, who)
        refuse_written(condition.written, f"the condition of {who}")
        _check_condition(condition.program, who)
        condition = retyped(condition, carried, [])
        # the body first: what it carries of references comes in the order in which it writes them
        (program, test_program), captured = joined((body, condition))
        passed = _passed_by_loop(program, len(captured), len(init), first)
        program = without_results(program, [*[None] * first, *passed])
        ins = _roles(captured, body.written, passed)
        return _While(test_program, program, captured, carried, passed, body.written, ins)

    key = (who, test_with, step_with, tree.flatten_call(init_val)[1], *types)
    traced = remembered((cond_fun, body_fun), key, trace)
    values = [as_type(x, t) for x, t in zip(init, traced.types, strict=True)]
    out = loop(
        *loaded(traced.captured),
        *values,
        condition=traced.condition,
        program=traced.body,
        ins=traced.ins,
    )
    out = store_all(traced.written, (), out)
    return treedef.unflatten(merged(traced.passed, values, out))


def _passed_by_loop(program: Program, start: int, count: int, first: int) -> list[int | None]:
    """The numbers of the values that a loop carries and each run gives as it takes them; or None.

    What is carried stands from ``start`` on among the inputs, and from ``first`` on among the
    outputs.
    """
    same = [program.outputs[first + i] is program.inputs[start + i] for i in range(count)]
    return [i if s else None for i, s in enumerate(same)]


def _roles(
    captured: Sequence[Any], written: Mapping[Ref, Any], passed: Sequence[int | None]
) -> Roles:
    """What a loop captured and what it is given to carry, is to its runs."""
    outer = [CARRY if type(x) is Ref and x in written else FIXED for x in captured]
    return (*outer, *(CARRY if p is None else FIXED for p in passed))


def _check_carry(
    init: Any, types: Sequence[ArrayType], out_tree: Any, out_types: Sequence[ArrayType], who: str,
    own: int = 0,
) -> None:  # fmt: skip
    """Raise TypeError unless what one iteration gives is what the next one takes."""
    wanted = tree.structure(init)
    if out_tree != wanted:
        for _ in range(own):
            wanted, out_tree = wanted.children()[-1], out_tree.children()[-1]
        raise TypeError(
            f"{who}: the carry must keep its structure from iteration to iteration; it starts as "
            f"{shown(wanted)} and the body, called at {user_location()}, returns "
            f"{shown(out_tree)}, where * is an array"
        )
    paths = tree.leaves_with_path(init)
    for (path, _), kind, returned in zip(paths, types, out_types, strict=False):
        if (kind.shape, kind.dtype, kind.spec) != (returned.shape, returned.dtype, returned.spec):
            advice = "Convert it where it starts, or in the body"
            if (kind.shape, kind.dtype) == (returned.shape, returned.dtype):
                advice = (
                    "Lay it out alike where it starts, or in the body: phalanx.reshard(x, "
                    f"{returned.spec or 'P()'}), or phalanx.reshard(x, {kind.spec or 'P()'})"
                )
            error = TypeError(
                f"{who}: the carry must keep its types from iteration to iteration; carry"
                f"{tree.keystr(path[own:])} starts as {kind} and the body, called at "
                f"{user_location()}, returns {returned}. {advice}"
            )
            raise coded(error, "carry changes")


def _check_condition(condition: Program, who: str) -> None:
    types = condition.output_types
    if len(types) != 1 or types[0].shape != () or types[0].dtype != BOOL:
        raise TypeError(
            f"{who}: cond_fun must return one boolean without dimensions, got "
            f"{', '.join(str(t) for t in types) or 'nothing'}, at {user_location()}"
        )


@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Array], ArrayLike],
    init_val: ArrayLike,
    *,
    unroll: int | bool | None = None,
) -> Array: ...
@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, T], T],
    init_val: _Held,
    *,
    unroll: int | bool | None = None,
) -> T: ...
@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, T], T],
    init_val: T,
    *,
    unroll: int | bool | None = None,
) -> T: ...
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, T], T],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> T:
    """A counting loop: val = body_fun(i, val) for i from ``lower`` up to, without, ``upper``.

    Static bounds differentiate in reverse, too; bounds known only while running, forward.

    Args:
        lower: a real number; an integer, unless the loop counts in floats.
        upper: a real number.
        body_fun: from the index and the carry to the next carry.
        init_val: a tree of arrays.
        unroll: how many iterations to write out per iteration of the compiled loop; True for all.

    Returns:
        A tree like ``init_val``.

    Raises:
        OverflowError: the dtype of the index, int32 or with enable_x64 int64, does not hold it.
        ValueError: a loop whose bounds are traced is to be unrolled.

    >>> import phalanx.numpy as jnp
    >>> fori_loop(0, 4, lambda i, x: x + i, jnp.int32(0))
    Array(6, dtype=int32)
    """
    lower, upper = _beside(lower), _beside(upper)
    first, last = _static_index(lower), _static_index(upper)
    if first is not None and last is not None:
        length = max(last - first, 0)
        count = 1 if unroll is None else unroll
        _check_counter(last - 1)
        state, step = (_counter(first), init_val), (body_fun, _with_index)
        return _scan(step, state, None, length, False, count, "fori_loop", 1)[0][1]
    if unroll is True or unroll not in (None, False, 1):
        raise ValueError(
            f"fori_loop: only a loop with static bounds can be unrolled, at {user_location()}"
        )
    state = (*_common_bounds(lower, upper), init_val)
    return _while((_before_end, _with_carry), (body_fun, _counting), state, "fori_loop", 1)[2]


def _counter(first: int) -> Any:
    """``first`` as an index, weakly typed as Python's numbers are."""
    return convert(first, dtype=dtypes.weak_dtype(int), weak=True)


def _check_counter(last: int) -> None:
    """Raise OverflowError if indices up to ``last`` would start anew."""
    kind = dtypes.weak_dtype(int)
    if last > np.iinfo(kind).max:
        raise OverflowError(
            f"fori_loop: the index goes up to {last}, at {user_location()}, and {kind.name} to "
            f"{np.iinfo(kind).max}; set enable_x64 to count in 64-bit integers"
        )


def _with_index(fun: Callable[..., Any], state: tuple[Any, ...], _: None) -> tuple[Any, ...]:
    i, val = state
    return (i + 1, fun(i, val)), None


def _counting(fun: Callable[..., Any], state: tuple[Any, ...]) -> tuple[Any, ...]:
    i, end, val = state
    return i + 1, end, fun(i, val)


def _before_end(state: tuple[Any, ...]) -> Any:
    return state[0] < state[1]


def _beside(bound: Any) -> Any:
    """``bound``; a symbolic length is one that is traced."""
    return bound.__jax_array__() if isinstance(bound, Length) else bound


def _static_index(x: Any) -> int | None:
    if isinstance(x, (int, np.integer)):
        return operator.index(cast(int, x))
    return None


def _common_bounds(lower: Any, upper: Any) -> list[Any]:
    """The bounds in one dtype; the index starts as the lower one and is weakly typed if that is."""
    kinds = [typeof(x) for x in (lower, upper)]
    for kind in kinds:
        if kind.shape or not (dtypes.is_integer(kind.dtype) or dtypes.is_floating(kind.dtype)):
            raise TypeError(
                "fori_loop: the bounds must be real numbers without dimensions, got "
                f"{kind} at {user_location()}"
            )
    dtype, _ = lattice.common(*((k.dtype, k.weak) for k in kinds))
    first, last = (ArrayType((), dtype, k.weak and k.dtype == dtype) for k in kinds)
    return [as_type(lower, first), as_type(upper, last)]


# For type checkers: the carry and the rows are what f takes, or numbers and arrays of NumPy, alone
# and in tuples, stand in place of arrays.
@overload
def scan(
    f: Callable[[Array, X], tuple[ArrayLike, T]],
    init: ArrayLike,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Array, T]: ...
@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, T]],
    init: Carry,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, T]: ...
@overload
def scan(  # pyright: ignore[reportOverlappingOverload]: for rows of another type
    f: Callable[[Array, Any], tuple[ArrayLike, T]],
    init: ArrayLike,
    xs: _Rows = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Array, T]: ...
@overload
def scan(  # pyright: ignore[reportOverlappingOverload]: for rows of another type
    f: Callable[[Carry, Any], tuple[Carry, T]],
    init: Carry,
    xs: _Rows = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, T]: ...
@overload
def scan(
    f: Callable[[tuple[A, B], Any], tuple[tuple[Any, Any], T]],
    init: tuple[A | ArrayLike | _Held, B | ArrayLike | _Held],
    xs: _Rows = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[tuple[A, B], T]: ...
@overload
def scan(
    f: Callable[[tuple[A, B, C], Any], tuple[tuple[Any, Any, Any], T]],
    init: tuple[A | ArrayLike | _Held, B | ArrayLike | _Held, C | ArrayLike | _Held],
    xs: _Rows = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[tuple[A, B, C], T]: ...
@overload
def scan(
    f: Callable[[Many, Any], tuple[Many, T]],
    init: _Many,
    xs: _Rows = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Many, T]: ...
@overload
def scan(
    f: Callable[[list[A], Any], tuple[list[A], T]],
    init: list[Any],
    xs: _Rows = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[list[A], T]: ...
@overload
def scan(
    f: Callable[[dict[K, A], Any], tuple[dict[K, A], T]],
    init: dict[K, Any],
    xs: _Rows = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[dict[K, A], T]: ...
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Loop over the rows of ``xs`` with a carry: carry, y = f(carry, x); the y are stacked.

    Args:
        f: from the carry and a row to the next carry, of the same types, and a row.
        init: the first carry, a tree of arrays.
        xs: a tree of arrays ``[length, ...]``, or None.
        length: the number of iterations, where ``xs`` has no arrays, or to check it; also a
            float that is whole.
        reverse: whether to go from the last row to the first.
        unroll: how many iterations to write out per iteration of the compiled loop; True for all
            of them, False or 0 for one.
        _split_transpose: has no meaning.

    Returns:
        The last carry, and a tree of arrays ``[length, ...]``.

    Raises:
        ValueError: the lengths of ``xs`` differ, nothing tells the length, or it is negative.
        ShardingTypeError: an axis of type Explicit cuts the rows of ``xs``.
        TypeError: the carry changes its structure or a type; the message names the leaf; or
            ``length`` is no whole number.

    >>> import phalanx.numpy as jnp
    >>> total, sums = scan(lambda c, x: (c + x, c + x), 0, jnp.arange(4))
    >>> sums
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _scan((f, _with_row), init, xs, length, reverse, unroll, "scan")


def _with_row(f: Callable[..., Any], carry: Any, row: Any) -> Any:
    return f(carry, row)


class _Scan(Struct, frozen=True):
    """The body of a loop over rows, traced to carry ``types``; for the others see ``_While``.

    Of results, ``carries`` are carried, and the others are rows: at the end those of the references
    ``stored``, by their numbers among the rows that it takes.
    """

    program: Program
    captured: list[Any]
    types: list[ArrayType]
    passed: list[int | None]
    written: dict[Ref, Any]
    ins: Roles
    outs: Roles
    carries: int
    carry_tree: tree.PyTreeDef
    out_tree: tree.PyTreeDef
    stored: list[int]


def _scan(
    step: _Called,
    init: Any,
    xs: Any,
    length: int | None,
    reverse: bool,
    unroll: int | bool,
    who: str,
    own: int = 0,
) -> tuple[Any, Any]:
    """``scan`` with a function and the way in which to call it, as ``who``.

    The first ``own`` keys of a path into the carry are none that the user knows.
    """
    f, call = step
    check_functions(who, f)
    init_leaves, _ = leaves_of(init, who, "init_val" if own else "init", own=own)
    leaves, rows_tree = leaves_of(xs, who, "xs", refs=True)
    refs = [i for i, x in enumerate(leaves) if type(x) is Ref]
    rows = loaded(leaves)
    steps = _length(rows, length, who)
    if config.disable_jit:
        return _scan_in_python(partial(call, f), init, leaves, rows_tree, steps, reverse)
    types = [typeof(x) for x in init_leaves]
    row_types = [lane_type(typeof(x), 0) for x in rows]

    def trace() -> _Scan:
        in_tree, count = tree.structure((init, xs)), len(types)
        numbers = [count + i for i in refs]
        body, _, carried = trace_carrying(
            lambda ts: trace_body(f, call, in_tree, [*ts, *row_types], who, refs=numbers), types
        )
        first = len(body.written)
        carry_tree, out_tree = _pair(body.out_tree, who)
        returned = body.program.output_types[first:]
        _check_carry(init, carried, carry_tree, returned, who, own)
        body = retyped(body, carried, [*types_of_written(body), *carried])
        passed = _passed_by_loop(body.program, len(body.captured), count, first)
        rest = [None] * (len(body.program.outputs) - first - count)
        program = without_results(body.program, [*[None] * first, *passed, *rest])
        ins = (*_roles(body.captured, body.written, passed), *(each(0),) * len(row_types))
        carries = passed.count(None)
        outs = (CARRY,) * (first + carries) + (each(0),) * len(rest)
        stored = [i - count for i in body.stored]
        return _Scan(
            program, body.captured, carried, passed, body.written, ins, outs, carries, carry_tree,
            out_tree, stored,
        )  # fmt: skip

    key = (who, call, tree.flatten_call((init, xs))[1], *types, *row_types, *refs)
    traced = remembered((f,), key, trace)
    refuse_aliases(leaves, traced.captured, who)
    values = [as_type(x, t) for x, t in zip(init_leaves, traced.types, strict=True)]
    out = scan_rows(
        *loaded(traced.captured),
        *values,
        *rows,
        program=traced.program,
        ins=traced.ins,
        outs=traced.outs,
        length=steps,
        reverse=bool(reverse),
        unroll=_unrolled(unroll, steps, who),
    )
    out = store_all(traced.written, [leaves[i] for i in traced.stored], out)
    carry = merged(traced.passed, values, out[: traced.carries])
    return traced.carry_tree.unflatten(carry), traced.out_tree.unflatten(out[traced.carries :])


def _length(rows: list[Any], length: int | None, who: str) -> int:
    for kind in [typeof(x) for x in rows]:
        if not kind.shape:
            raise ValueError(
                f"{who}: xs must have a leading axis to scan over, got {kind} at {user_location()}"
            )
        if kind.layout[0]:
            cutting = " and ".join([repr(axis) for axis in kind.layout[0]])
            error = ShardingTypeError(
                f"{who}: rows of xs are taken one after the other, and dimension 0 of {kind} is "
                f"cut by {cutting}, at {user_location()}: each would be fetched from the device "
                "that has it. Lay xs out anew before, with phalanx.reshard(xs, P(None, ..)), or "
                "let rows run together, with vmap"
            )
            raise coded(error, "rows are cut")
    lengths = {typeof(x).shape[0] for x in rows}
    if length is not None:
        lengths.add(_iterations(length, who))
    if len(lengths) != 1:
        what = f"the lengths must agree, got {sorted(lengths)}"
        what = what if lengths else "there is nothing to scan over and no length; give xs or length"
        raise ValueError(f"{who}: {what}, at {user_location()}")
    (only,) = lengths
    if only < 0:
        raise ValueError(f"{who}: the length must be at least 0, got {only} at {user_location()}")
    return only


def _iterations(length: Any, who: str) -> int:
    """``length``, also as a float that is whole: programs compute it as ``5e5 // 128``."""
    if isinstance(length, (float, np.floating)) and (x := float(cast(float, length))).is_integer():
        return int(x)
    return integer(who, "length", length)


def _unrolled(unroll: int | bool, length: int, who: str) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    count = operator.index(unroll)
    if count < 0:
        raise ValueError(f"{who}: unroll must be at least 0, got {unroll} at {user_location()}")
    return max(min(count, length), 1)


def _pair(out_tree: Any, who: str) -> tuple[Any, Any]:
    children = out_tree.children()
    if len(children) != 2 or out_tree.node_data() != (tuple, None):
        got = shown(out_tree) if children else "one array alone; of no rows, row is None"
        raise TypeError(
            f"{who}: the body, called at {user_location()}, must return a pair (carry, row), "
            f"got {got}"
        )
    return children[0], children[1]


def _scan_in_python(
    f: Callable[..., Any], init: Any, leaves: list[Any], rows_tree: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    carry, rows = held(init), loaded(leaves)
    out: list[tuple[Any, dict[int, Any]]] = []
    order = range(length - 1, -1, -1) if reverse else range(length)
    for i in order:
        row = [index_in_dim(x, i, 0, keepdims=False) for x in rows]
        refs = {n: Ref(row[n]) for n, x in enumerate(leaves) if type(x) is Ref}
        carry, y = f(carry, rows_tree.unflatten([refs.get(n, x) for n, x in enumerate(row)]))
        out.append((y, {n: load(ref) for n, ref in refs.items()}))
    if not out:
        with config.override(disable_jit=False):
            return cast(Any, scan)(f, init, rows_tree.unflatten(rows), length)
    ys, after = tree.map(lambda *ys: _stacked(ys), *(out[::-1] if reverse else out))
    for n, rows_after in after.items():
        store(leaves[n], rows_after)
    return carry, ys


def _stacked(parts: Sequence[Any]) -> Any:
    shape = typeof(parts[0]).shape
    return concatenate([broadcast(p, shape=(1, *shape), dims=_after(shape)) for p in parts], 0)


def _after(shape: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(range(1, len(shape) + 1))


def map(f: Callable[[Any], T], xs: Any, *, batch_size: int | None = None) -> T:
    """Apply ``f`` to each row of ``xs``, one after the other, and stack the results.

    Args:
        f: from a row to a tree of arrays.
        xs: a tree of arrays ``[n, ...]``.
        batch_size: how many rows to treat at once, vectorized. Where ``f`` writes a reference from
            outside, which the next row may read, or n is a symbolic length, it is one.

    Returns:
        A tree like the result of ``f``, whose arrays have one dimension more in front.

    Raises:
        ValueError: ``batch_size`` is less than 1.

    >>> import phalanx.numpy as jnp
    >>> map(lambda x: x * 2, jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    if batch_size is not None and operator.index(batch_size) < 1:
        raise ValueError(
            f"map: batch_size must be at least 1, got {batch_size} at {user_location()}"
        )
    batched = None if batch_size is None else _map_in_batches(f, xs, operator.index(batch_size))
    if batched is None:
        return _scan((f, _without_carry), None, xs, None, False, 1, "map")[1]
    return batched[0]


def _map_in_batches(f: Callable[..., Any], xs: Any, at_once: int) -> tuple[Any] | None:
    """What ``map`` gives, alone in a tuple; None if a row may read what the one before wrote, or
    the number of batches is not known."""
    if config.disable_jit:
        return None
    leaves, _ = leaves_of(xs, "map", "xs", refs=True)
    refs = [i for i, x in enumerate(leaves) if type(x) is Ref]
    rows = loaded(leaves)
    size = _length(rows, None, "map")
    if symbolic((size,)):
        return None
    types = [lane_type(typeof(x), 0) for x in rows]

    def trace() -> TracedBody:
        return trace_body(f, _on_a_row, tree.structure((xs,)), types, "map", refs=refs)

    body = remembered((f,), ("map in batches", tree.flatten_call(xs)[1], *types, *refs), trace)
    if body.written:
        return None
    refuse_aliases(leaves, body.captured, "map")
    out = vectorized(
        *loaded(body.captured), *rows, program=body.program, axes=((ROWS, size),),
        ins=(*[FIXED] * len(body.captured), *[each(0)] * len(rows)),
        outs=(each(0),) * len(body.program.outputs), at_once=at_once,
    )  # fmt: skip
    out = store_all({}, [leaves[i] for i in body.stored], out)
    return (body.out_tree.unflatten(out),)


def _without_carry(f: Callable[..., Any], _: None, row: Any) -> tuple[Any, ...]:
    return None, f(row)


def _on_a_row(f: Callable[..., Any], row: Any) -> Any:
    return f(row)
