"""Loops and branches that compile: control flow on values that are known only while running."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes, tree
from phalanx.base.config import config
from phalanx.base.source import user_location
from phalanx.control.branch import branch
from phalanx.control.loop import loop
from phalanx.control.scan import scan as scan_rows
from phalanx.control.scan_linear import Parts
from phalanx.core.axes import Axis
from phalanx.core.program import Program, Var, plain
from phalanx.core.trace import Tracer
from phalanx.core.types import ArrayType, typeof
from phalanx.lax.shape import concatenate, index_in_dim, pad, slice_in_dim
from phalanx.ops.basis import BOOL, I32, add, broadcast, convert, full, move, reshape
from phalanx.ops.compare import clamp
from phalanx.ops.shape import iota, reverse
from phalanx.transforms.batch import batch, lane_type, place_lanes
from phalanx.transforms.stage import is_value, stage

__all__ = [
    "associative_scan",
    "cond",
    "fori_loop",
    "map",
    "scan",
    "switch",
    "while_loop",
]


# ---- tracing bodies -----------------------------------------------------------------------------


def _name(fun: Callable) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


def _leaves(x: Any, who: str, what: str) -> tuple[list[Any], Any]:
    leaves, treedef = tree.flatten(x)
    for path, leaf in tree.leaves_with_path(x) if not all(is_value(x) for x in leaves) else []:
        if not is_value(leaf):
            raise TypeError(
                f"{who}: {what}{tree.keystr(path)} is {leaf!r} of type {type(leaf).__name__}, "
                "which is not an array or a number"
            )
    return leaves, treedef


class _Body:
    """``fun`` of trees as a flat function; keeps what it returned."""

    def __init__(self, fun: Callable, in_tree: Any, who: str, carry: Sequence[ArrayType] = ()):
        self.fun = fun
        self.in_tree = in_tree
        self.who = who
        self.carry = carry
        self.out_tree: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        out = self.fun(*self.in_tree.unflatten(leaves))
        found, _ = _leaves(out, self.who, "the result")
        self.out_tree = tree.structure(out)
        return [_matched(x, t) for x, t in zip(found, self.carry, strict=False)] + found[
            len(self.carry) :
        ]


def _matched(x: Any, wanted: ArrayType) -> Any:
    """``x`` as weak or as strong as ``wanted``, where that is all in which they differ."""
    kind = plain(typeof(x))
    same = kind.shape == wanted.shape and kind.dtype == wanted.dtype
    if not same or kind is wanted:
        return x
    return convert(x, dtype=wanted.dtype, weak=wanted.weak)


def _trace(body: _Body, types: Sequence[ArrayType]) -> tuple[Program, list[Any]]:
    return stage(body, types, _name(body.fun))


def _trace_carry(
    fun: Callable, init: list[Any], rest: Sequence[ArrayType], in_tree: Any, who: str
) -> tuple[Program, list[Any], _Body, list[Any]]:
    """Trace a body that carries ``init``; weakly typed values take the type they turn into."""
    types = [plain(typeof(x)) for x in init]
    while True:
        body = _Body(fun, in_tree, who, types)
        program, captured = _trace(body, [*types, *rest])
        found = list(program.output_types[: len(types)])
        grown = [_promoted(t, f) for t, f in zip(types, found, strict=False)]
        if grown == types or len(found) < len(types):
            start = [
                x if plain(typeof(x)) is t else convert(x, dtype=t.dtype, weak=t.weak)
                for x, t in zip(init, types, strict=True)
            ]
            return program, captured, body, start
        types = grown


def _promoted(given: ArrayType, found: ArrayType) -> ArrayType:
    if not given.weak or given is found or given.shape != found.shape:
        return given
    dtype, weak = dtypes.promote((given.dtype, True), (found.dtype, found.weak))
    return ArrayType(given.shape, dtype, weak)


def _check_carry(init: Any, init_leaves: list, out: Any, out_types: Sequence, who: str) -> None:
    """Raise TypeError unless what a turn gives is what the next one takes."""
    wanted = tree.structure(init)
    if out != wanted:
        raise TypeError(
            f"{who}: the carry must keep its structure from turn to turn; it starts as {wanted} "
            f"and the body, called at {user_location()}, returns {out}"
        )
    paths = tree.leaves_with_path(init)
    for (path, _), x, found in zip(paths, init_leaves, out_types, strict=True):
        kind = plain(typeof(x))
        if (kind.shape, kind.dtype) != (found.shape, found.dtype):
            raise TypeError(
                f"{who}: the carry must keep its types from turn to turn; carry"
                f"{tree.keystr(path)} starts as {kind} and the body, called at "
                f"{user_location()}, returns {found}. Convert it where it starts, or in the body"
            )


# ---- loops --------------------------------------------------------------------------------------


def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    """val = body(val) while cond(val), starting from ``init_val``.

    The number of turns is known only while running; so it differentiates forward, not in
    reverse: for that use ``scan``, or ``fori_loop`` with static bounds.

    Args:
        cond_fun: from the carry to a boolean scalar.
        body_fun: from the carry to the next carry, of the same structure and types.
        init_val: a tree of arrays.

    Raises:
        TypeError: the condition is no boolean scalar, or the carry changes its type.

    >>> import phalanx.numpy as jnp
    >>> while_loop(lambda x: x < 100, lambda x: x * 2, jnp.int32(3))
    Array(192, dtype=int32)
    """
    who = "while_loop"
    if config.disable_jit:
        while _is_known(goes := cond_fun(init_val)):
            if not goes:
                return init_val
            init_val = body_fun(init_val)
    init, treedef = _leaves(init_val, who, "init_val")
    one = tree.structure((init_val,))
    program, captured, body, start = _trace_carry(body_fun, init, (), one, who)
    _check_carry(init_val, start, body.out_tree, program.output_types, who)
    test = _Body(cond_fun, one, who)
    condition, asked = _trace(test, [plain(typeof(x)) for x in start])
    _check_condition(condition, who)
    out = loop(
        *asked,
        *captured,
        *start,
        condition=condition,
        program=program,
        asked=len(asked),
        parts=Parts(len(captured), len(start)),
    )
    return treedef.unflatten(out)


def _check_condition(condition: Program, who: str) -> None:
    found = condition.output_types
    if len(found) != 1 or found[0].shape != () or found[0].dtype != BOOL:
        raise TypeError(
            f"{who}: cond_fun must return one boolean without dimensions, got "
            f"{', '.join(str(t) for t in found) or 'nothing'}, at {user_location()}"
        )


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable, init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """val = body(i, val) for i from ``lower`` up to, but without, ``upper``.

    Static bounds differentiate in reverse, too; bounds known only while running, forward.

    Args:
        lower: an integer.
        upper: an integer.
        body_fun: from the index and the carry to the next carry.
        init_val: a tree of arrays.
        unroll: how many turns to write out per turn of the compiled loop; True for all.

    >>> import phalanx.numpy as jnp
    >>> fori_loop(0, 4, lambda i, x: x + i, jnp.int32(0))
    Array(6, dtype=int32)
    """
    first, last = _static_index(lower), _static_index(upper)
    if first is not None and last is not None:
        length = max(last - first, 0)
        rows = add(iota(dtype=I32, shape=(length,), dim=0), first)
        return _scan(
            lambda val, i: (body_fun(i, val), None),
            init_val, rows, length, False, unroll or 1, "fori_loop",
        )[0]  # fmt: skip
    if unroll not in (None, False, 1):
        raise ValueError("fori_loop: only a loop with static bounds can be unrolled")

    def step(state: tuple) -> tuple:
        i, end, val = state
        return i + 1, end, body_fun(i, val)

    bounds = _common_bounds(lower, upper)
    return while_loop(lambda state: state[0] < state[1], step, (*bounds, init_val))[2]


def _static_index(x: Any) -> int | None:
    if isinstance(x, (int, np.integer)):
        return operator.index(x)
    return None


def _common_bounds(lower: Any, upper: Any) -> list[Any]:
    kinds = [typeof(x) for x in (lower, upper)]
    for kind in kinds:
        if kind.shape or not dtypes.is_integer(kind.dtype):
            raise TypeError(
                f"fori_loop: the bounds must be integers, got {plain(kind)} at {user_location()}"
            )
    dtype, _ = dtypes.promote(*((k.dtype, k.weak) for k in kinds))
    return [
        full((), x, dtype) if _static_index(x) is not None else convert(x, dtype=dtype, weak=False)
        for x in (lower, upper)
    ]


def scan(
    f: Callable,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """carry, y = f(carry, x) for each row x of ``xs``; the last carry, and the rows y stacked.

    Args:
        f: from the carry and a row to the next carry, of the same types, and a row.
        init: the first carry, a tree of arrays.
        xs: a tree of arrays ``[length, ...]``, or None.
        length: the number of turns, where ``xs`` has no arrays, or to check it.
        reverse: whether to go from the last row to the first.
        unroll: how many turns to write out per turn of the compiled loop; True for all.

    Returns:
        The last carry, and a tree of arrays ``[length, ...]``.

    Raises:
        ValueError: the lengths of ``xs`` differ, or nothing tells the length.
        TypeError: the carry changes its structure or a type; the message names the leaf.

    >>> import phalanx.numpy as jnp
    >>> total, sums = scan(lambda c, x: (c + x, c + x), 0, jnp.arange(4))
    >>> sums
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _scan(f, init, xs, length, reverse, unroll, "scan")


def _scan(
    f: Callable, init: Any, xs: Any, length: int | None, reverse: bool, unroll: int | bool, who: str
) -> tuple[Any, Any]:
    """``scan``, called as ``who``."""
    init_leaves, _ = _leaves(init, who, "init")
    rows, rows_tree = _leaves(xs, who, "xs")
    turns = _length(rows, length)
    if config.disable_jit:
        return _scan_in_python(f, init, rows, rows_tree, turns, reverse)
    row_types = [lane_type(plain(typeof(x)), 0) for x in rows]
    both = tree.structure((init, xs))
    program, captured, body, start = _trace_carry(f, init_leaves, row_types, both, who)
    carry_tree, out_tree = _pair(body.out_tree, who)
    _check_carry(init, start, carry_tree, program.output_types[: len(start)], who)
    out = scan_rows(
        *captured,
        *start,
        *rows,
        program=program,
        parts=Parts(len(captured), len(start)),
        length=turns,
        reverse=bool(reverse),
        unroll=_unrolled(unroll, turns),
    )
    return carry_tree.unflatten(out[: len(start)]), out_tree.unflatten(out[len(start) :])


def _length(rows: list[Any], length: int | None) -> int:
    for x in rows:
        if not typeof(x).shape:
            raise ValueError(
                f"scan: xs must have a leading axis to scan over, got {typeof(x)} at "
                f"{user_location()}"
            )
    found = {typeof(x).shape[0] for x in rows}
    if length is not None:
        found.add(operator.index(length))
    if len(found) != 1:
        what = f"the lengths must agree, got {sorted(found)}"
        what = what if found else "nothing tells the length; give xs or length"
        raise ValueError(f"scan: {what}, at {user_location()}")
    return found.pop()


def _unrolled(unroll: int | bool, length: int) -> int:
    count = length if unroll is True else operator.index(unroll)
    if count < 1 and unroll is not True:
        raise ValueError(f"scan: unroll must be at least 1, got {unroll} at {user_location()}")
    return max(min(count, length), 1)


def _pair(out_tree: Any, who: str) -> tuple[Any, Any]:
    children = out_tree.children()
    if len(children) != 2 or out_tree.type is not tuple:
        raise TypeError(
            f"{who}: the body, called at {user_location()}, must return a pair (carry, row), "
            f"got {out_tree}"
        )
    return children[0], children[1]


def _scan_in_python(
    f: Callable, init: Any, rows: list, rows_tree: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    carry, out = init, []
    order = range(length - 1, -1, -1) if reverse else range(length)
    for i in order:
        row = rows_tree.unflatten([index_in_dim(x, i, 0, keepdims=False) for x in rows])
        carry, y = f(carry, row)
        out.append(y)
    if not out:
        with config.override(disable_jit=False):
            return scan(f, init, rows_tree.unflatten(rows), length)
    return carry, tree.map(lambda *ys: _stacked(ys), *(out[::-1] if reverse else out))


def _stacked(parts: Sequence[Any]) -> Any:
    shape = typeof(parts[0]).shape
    return concatenate([broadcast(p, shape=(1, *shape), dims=_after(shape)) for p in parts], 0)


def _after(shape: tuple) -> tuple[int, ...]:
    return tuple(range(1, len(shape) + 1))


def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """f(x) for each row x of ``xs``, one after the other, the results stacked.

    Args:
        f: from a row to a tree of arrays.
        xs: a tree of arrays ``[n, ...]``.
        batch_size: how many rows to treat at once, vectorized.

    >>> import phalanx.numpy as jnp
    >>> map(lambda x: x * 2, jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    rows, rows_tree = _leaves(xs, "map", "xs")
    n = _length(rows, None)
    whole = n - n % batch_size
    cut = [slice_in_dim(x, 0, whole) for x in rows]
    blocks = [
        reshape(x, shape=(whole // batch_size, batch_size, *typeof(x).shape[1:])) for x in cut
    ]
    many = _vectorized(f, rows_tree)
    _, found = scan(lambda _, x: (None, many(x)), None, blocks)
    flat = tree.map(lambda y: reshape(y, shape=(whole, *typeof(y).shape[2:])), found)
    if whole == n:
        return flat
    rest = many([slice_in_dim(x, whole, n) for x in rows])
    return tree.map(lambda a, b: concatenate([a, b], 0), flat, rest)


def _vectorized(f: Callable, rows_tree: Any) -> Callable[[list], Any]:
    """``f`` on all rows of a list of leaves at once."""

    def many(rows: list[Any]) -> Any:
        size = typeof(rows[0]).shape[0]
        body = _Body(lambda *leaves: f(rows_tree.unflatten(leaves)), _flat_tree(rows), "map")
        values, lanes = batch(body, Axis(None, size), rows, [0] * len(rows))
        placed = [place_lanes(v, d, 0, size) for v, d in zip(values, lanes, strict=True)]
        return body.out_tree.unflatten(placed)

    return many


def _flat_tree(leaves: Sequence[Any]) -> Any:
    return tree.structure(tuple(0 for _ in leaves))


# ---- branches -----------------------------------------------------------------------------------


def cond(pred: Any, true_fun: Callable, false_fun: Callable, *operands: Any) -> Any:
    """true_fun(*operands) if pred else false_fun(*operands); only one of them runs.

    Under ``vmap`` with a predicate that differs between lanes both run, and each lane takes
    its own.

    Args:
        pred: a boolean scalar.
        true_fun: of the operands.
        false_fun: of the operands, with results of the same structure and types.
        *operands: trees of arrays.

    Raises:
        TypeError: the predicate is not boolean, or the branches return different types.

    >>> import phalanx.numpy as jnp
    >>> cond(jnp.array(True), lambda x: x + 1, lambda x: x - 1, 5)
    Array(6, dtype=int32, weak_type=True)
    """
    kind = typeof(pred) if is_value(pred) else None
    if kind is None or kind.shape != () or kind.dtype != BOOL:
        found = repr(pred) if kind is None else str(plain(kind))
        raise TypeError(
            f"cond: the predicate must be one boolean without dimensions, got {found}, at "
            f"{user_location()}; compare it with something, as in x > 0"
        )
    if config.disable_jit and _is_known(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    index = convert(full((), pred, BOOL), dtype=I32, weak=False)
    return _choose("cond", index, [false_fun, true_fun], operands)


def switch(index: Any, branches: Sequence[Callable], *operands: Any) -> Any:
    """branches[index](*operands); an index out of range is moved to the nearest in range.

    Args:
        index: an integer scalar.
        branches: functions of the operands, with results of the same structure and types.
        *operands: trees of arrays.

    >>> import phalanx.numpy as jnp
    >>> switch(jnp.array(1), [lambda x: x, lambda x: -x], 3)
    Array(-3, dtype=int32, weak_type=True)
    """
    if not branches:
        raise ValueError(f"switch: at least one branch is needed, at {user_location()}")
    kind = typeof(index) if is_value(index) else None
    if kind is None or kind.shape != () or not dtypes.is_integer(kind.dtype):
        found = repr(index) if kind is None else str(plain(kind))
        raise TypeError(
            f"switch: the index must be an integer without dimensions, got {found} at "
            f"{user_location()}"
        )
    if config.disable_jit and _is_known(index):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    number = convert(full((), index, kind.dtype), dtype=I32, weak=False)
    inside = clamp(np.int32(0), number, np.int32(len(branches) - 1))
    return _choose("switch", inside, branches, operands)


def _is_known(x: Any) -> bool:
    """Whether Python can look at ``x``: not where it stands for the values of many lanes."""
    return not isinstance(x, Tracer) or x.concrete() is not None


def _choose(who: str, index: Any, functions: Sequence[Callable], operands: tuple) -> Any:
    leaves, in_tree = _leaves(operands, who, "operands")
    types = [plain(typeof(x)) for x in leaves]
    bodies = [_Body(f, in_tree, who) for f in functions]
    traced = [_trace(body, types) for body in bodies]
    wanted = _common_types(who, functions, bodies, [p.output_types for p, _ in traced])
    bodies = [_Body(f, in_tree, who, wanted) for f in functions]
    traced = [_trace(body, types) for body in bodies]
    captured = [c for _, values in traced for c in values]
    programs = tuple(_widened(i, traced) for i in range(len(traced)))
    out = branch(index, *captured, *leaves, programs=programs)
    return bodies[0].out_tree.unflatten(out)


def _common_types(
    who: str, functions: Sequence[Callable], bodies: list[_Body], found: list[tuple]
) -> list[ArrayType]:
    """The types of the results, on which all branches must agree but for weakness."""
    first = bodies[0].out_tree
    names = [_name(f) for f in functions]
    for name, body in zip(names, bodies, strict=True):
        if body.out_tree != first:
            raise TypeError(
                f"{who}: all branches must return the same structure; {names[0]} returns {first}, "
                f"{name} returns {body.out_tree}, at {user_location()}"
            )
    paths = tree.leaves_with_path(first.unflatten([0] * first.num_leaves))
    common = []
    for i, (path, _) in enumerate(paths):
        column = [types[i] for types in found]
        for name, kind in zip(names, column, strict=True):
            if (kind.shape, kind.dtype) != (column[0].shape, column[0].dtype):
                raise TypeError(
                    f"{who}: all branches must return the same types; result{tree.keystr(path)} is "
                    f"{column[0]} from {names[0]} and {kind} from {name}, at {user_location()}"
                )
        common.append(column[0].update(weak=all(t.weak for t in column)))
    return common


def _widened(which: int, traced: list[tuple[Program, list]]) -> Program:
    """Branch ``which`` with what all branches captured among its inputs."""
    program, _ = traced[which]
    own = len(traced[which][1])
    inputs: list[Var] = []
    for i, (_, values) in enumerate(traced):
        mine = program.inputs[:own]
        inputs += mine if i == which else [Var(plain(typeof(v))) for v in values]
    return Program(
        [*inputs, *program.inputs[own:]], program.equations, program.outputs, program.name
    )


# ---- associative scan ---------------------------------------------------------------------------


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """out[i] = x[0] * x[1] * ... * x[i] for an associative operation *, in logarithmic depth.

    Adjacent elements are combined in pairs, the pairs are scanned, and the elements between
    follow from their neighbours (Blelloch, 1990).

    Args:
        fn: from two trees of arrays to one, elementwise along ``axis``.
        elems: a tree of arrays of equal length along ``axis``.
        reverse: whether to start from the end.
        axis: the dimension to scan over.

    >>> import phalanx.numpy as jnp
    >>> associative_scan(lambda a, b: a * b, jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    leaves, treedef = _leaves(elems, "associative_scan", "elems")
    dims = [axis % typeof(x).ndim for x in leaves]
    rows = [move(x, d, 0) for x, d in zip(leaves, dims, strict=True)]
    lengths = {typeof(x).shape[0] for x in rows}
    if len(lengths) != 1:
        raise ValueError(f"associative_scan: lengths along axis {axis} differ: {sorted(lengths)}")
    if reverse:
        rows = [_flipped(x) for x in rows]

    def combine(a: list, b: list) -> list:
        first, second = treedef.unflatten(a), treedef.unflatten(b)
        return tree.leaves(fn(second, first) if reverse else fn(first, second))

    out = _scan_pairs(combine, rows, lengths.pop())
    if reverse:
        out = [_flipped(x) for x in out]
    return treedef.unflatten([move(x, 0, d) for x, d in zip(out, dims, strict=True)])


def _flipped(x: Any) -> Any:
    return reverse(x, dims=(0,))


def _scan_pairs(combine: Callable, rows: list, n: int) -> list:
    if n < 2:
        return rows
    even = [slice_in_dim(x, 0, n - 1, 2) for x in rows]
    odd = [slice_in_dim(x, 1, n, 2) for x in rows]
    at_odd = _scan_pairs(combine, combine(even, odd), n // 2)
    before = at_odd if n % 2 else [slice_in_dim(x, 0, n // 2 - 1) for x in at_odd]
    later = [slice_in_dim(x, 2, n, 2) for x in rows]
    between = combine(before, later) if n > 2 else later
    at_even = [
        concatenate([slice_in_dim(x, 0, 1), y], 0) for x, y in zip(rows, between, strict=True)
    ]
    return [_interleaved(a, b, n) for a, b in zip(at_even, at_odd, strict=True)]


def _interleaved(even: Any, odd: Any, n: int) -> Any:
    """Rows of ``even`` and ``odd`` in turn, ``n`` in all."""
    zero = full((), 0, typeof(even).dtype)
    rest = [(0, 0, 0)] * (typeof(even).ndim - 1)
    spread = pad(even, zero, [(0, (n + 1) % 2, 1), *rest])
    behind = pad(odd, zero, [(1, n % 2, 1), *rest])
    if typeof(even).dtype == BOOL:
        return convert(
            add(convert(spread, dtype=I32, weak=False), convert(behind, dtype=I32, weak=False)),
            dtype=BOOL,
            weak=False,
        )
    return add(spread, behind)
