"""The laws of a primitive: its rules, each against what the primitive computes.

A primitive is tried on its examples. Operands that an example gives as types are drawn at
random. Where an example needs named axes, the primitive is mapped over them, so that one
function of whole arrays obeys the same laws as any other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from phalanx.api.derivatives import jvp, linear_transpose
from phalanx.api.devices import device_count
from phalanx.api.jit import jit
from phalanx.api.make_program import make_program
from phalanx.api.meshes import make_mesh
from phalanx.api.pmap import pmap
from phalanx.api.vmap import vmap
from phalanx.base import dtypes
from phalanx.base.config import config
from phalanx.base.extended import is_key
from phalanx.base.kinds import is_sequence
from phalanx.base.numpy_kinds import is_generic, is_ndarray
from phalanx.core.check import check
from phalanx.core.primitive import Example, NoRule, Primitive, ZeroDerivative
from phalanx.core.types import ArrayType, operand_type, typeof
from phalanx.laws.blocks import check_blocks, drawn_cuts
from phalanx.laws.compare import PrimitiveError, require_same, rounding, stacked, to_numpy
from phalanx.laws.derivatives import check_grads, direction, inexact_part, pairing
from phalanx.laws.parameters import check_parameters
from phalanx.primitives.basis import add, move, random_wrap
from phalanx.primitives.shape import slice_dim, squeeze

LANES = 5  # a length that no dimension of an example has, so that a mixed-up one is found


class Case:
    """A primitive at an example, as a function of the operands that are arrays.

    Called inside the scope of the example's axes it would be ``bind``; called from outside, it
    maps ``bind`` over them, and every operand that is drawn leads with those axes.
    """

    def __init__(self, prim: Primitive, example: Example) -> None:
        self.prim = prim
        self.example = example
        self.free = [i for i, a in enumerate(example.args) if not isinstance(a, np.generic)]
        self.drawn = [isinstance(example.args[i], ArrayType) for i in self.free]
        self.sizes = tuple(size for _, size in example.axes)
        self.__name__ = prim.name

    def bind(self, *xs: Any) -> Any:
        """The primitive on the operands of one lane."""
        operands = list(self.example.args)
        for i, x in zip(self.free, xs, strict=True):
            operands[i] = x
        # constants follow the operands into the dtype of the day
        like = [typeof(x).dtype for x in xs if dtypes.is_inexact(typeof(x).dtype)]
        operands = [_constant_like(a, like) if is_generic(a) else a for a in operands]
        return self.prim(*operands, **self.example.params)

    def __call__(self, *xs: Any) -> Any:
        return self.over(vmap)(*xs)

    def over(
        self, mapping: Callable[..., Any], inner: Callable[..., Any] | None = None
    ) -> Callable[..., Any]:
        """``inner``, by default ``bind``, mapped over the axes of the example."""
        f = self.bind if inner is None else inner
        in_axes = tuple(0 if d else None for d in self.drawn)
        for name, size in reversed(self.example.axes):
            f = mapping(f, in_axes=in_axes, axis_name=name, axis_size=size)
        return f

    def operands(self, seed: int = 0) -> list[np.ndarray]:
        """Operands drawn at random; those that the example gives are given."""
        source = np.random.default_rng([seed, len(self.prim.name)])
        return [
            draw(a.update(shape=(*self.sizes, *a.shape)), self.example, source)
            if isinstance(a, ArrayType)
            else self._varied(np.asarray(a), seed)
            for a in (self.example.args[i] for i in self.free)
        ]

    def _varied(self, array: np.ndarray, seed: int) -> np.ndarray:
        """A given operand in another order, where nothing was promised about its order."""
        promised = any(self.example.params.get(k) for k in ("indices_are_sorted", "sorted"))
        return array if promised or not array.ndim else np.roll(array, seed, axis=0)

    def tree(self, out: Any) -> list[Any]:
        """The results as a list."""
        return list(out) if self.prim.multi else [out]

    def who(self, law: str) -> str:
        shown = ", ".join(map(str, self.example.args))
        return f"check_primitive({self.prim.name}): {law} at ({shown}) {self.example.params}"


def _constant_like(x: np.generic, like: Sequence[np.dtype]) -> np.generic:
    same_kind = dtypes.is_inexact(x.dtype) and like
    if not same_kind or dtypes.is_complex(x.dtype) != dtypes.is_complex(like[0]):
        return x
    return x.astype(like[0])


def draw(kind: ArrayType, example: Example, source: np.random.Generator) -> Any:
    """A random array of type ``kind``, within the bounds of ``example``."""
    if is_key(kind.dtype):
        words = source.integers(0, 2**32, kind.physical.shape, np.uint32)
        return random_wrap(words, dtype=kind.dtype)
    low, high, shape = example.low, example.high, kind.shape
    if kind.dtype == np.bool_:
        return source.integers(0, 2, shape).astype(bool)
    if dtypes.is_integer(kind.dtype):
        limits = dtypes.iinfo(kind.dtype)
        bounds = max(int(low), int(limits.min)), min(int(high), int(limits.max))
        return source.integers(bounds[0], bounds[1] + 1, shape).astype(kind.dtype)
    values = source.uniform(low, high, shape)
    if dtypes.is_complex(kind.dtype):
        values = values + 1j * source.uniform(low, high, shape)
    if example.diagonal and len(shape) > 1:
        values = values + example.diagonal * np.eye(shape[-2], shape[-1])
    return np.asarray(values).astype(kind.dtype)


# ---- type, staging ----------------------------------------------------------------------------


def law_type(prim: Primitive, example: Example) -> None:
    """The type rule gives the types of the results."""
    case = Case(prim, example)
    operands = case.operands()
    _check_types(case, operands, case(*operands))


def _check_types(case: Case, operands: Sequence[Any], out: Any) -> None:
    lanes = [operand_type(a) if isinstance(a, np.generic) else a for a in case.example.args]
    for i, x, drawn in zip(case.free, operands, case.drawn, strict=True):
        lanes[i] = ArrayType(x.shape[len(case.sizes) :] if drawn else x.shape, x.dtype)
    wanted = case.prim.type(*lanes, **case.example.params)
    for i, (t, y) in enumerate(zip(_as_tuple(wanted), case.tree(out), strict=True)):
        shape = (*case.sizes, *t.shape)
        if (typeof(y).shape, typeof(y).dtype) != (shape, t.dtype):
            raise PrimitiveError(
                case.who("type"),
                f"result {i} is {typeof(y)}, but the type rule gives {t}, for all lanes {shape}",
                typeof(y),
                t,
            )


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if is_sequence(x) else (x,)


def law_jit(prim: Primitive, example: Example) -> None:
    """Eager, staged and compiled evaluation agree; the staged program passes the checker."""
    case = Case(prim, example)
    operands = case.operands()
    check(make_program(case)(*operands))
    require_same(PrimitiveError, case.who("jit and eager"), jit(case)(*operands), case(*operands))


def law_pmap(prim: Primitive, example: Example) -> None:
    """``pmap`` of it is ``vmap`` of it, and their derivatives are equal."""
    case = Case(prim, example)
    operands = case.operands()
    mapped, local = case.over(pmap), case.over(vmap)
    require_same(PrimitiveError, case.who("pmap and vmap"), mapped(*operands), local(*operands))
    if operands and callable(prim.linearize):
        ts = [direction(x, 1) for x in operands]
        require_same(
            PrimitiveError,
            case.who("jvp of pmap and of vmap"),
            jvp(mapped, operands, ts),
            jvp(local, operands, ts),
        )


# ---- batching -----------------------------------------------------------------------------------


def batch_choices(case: Case, limit: int | None, seed: int) -> list[tuple[int | None, ...]]:
    """Where the lanes of each operand may lie: each choice, or ``limit`` that ``seed`` draws."""
    ranks = [len(np.shape(x)) for x in case.operands()]
    options = [(None, *range(rank + 1)) for rank in ranks]
    choices = [c for c in itertools.product(*options) if any(d is not None for d in c)]
    if limit is None or len(choices) <= limit:
        return choices
    picked = np.random.default_rng(seed).choice(len(choices), limit, replace=False)
    return [choices[i] for i in picked]


def law_batch(prim: Primitive, example: Example, limit: int | None = None, seed: int = 0) -> None:
    """Vectorization is a loop over lanes, whichever operands have lanes, and wherever."""
    case = Case(prim, example)
    choices = batch_choices(case, limit, seed)
    per_lane = [case.operands(seed) for seed in range(LANES)]
    stacks = [stacked(xs) for xs in zip(*per_lane, strict=True)]

    def vectorized(*stacks: Any) -> list[Any]:
        return [
            case.tree(f(*_placed(stacks, dims)))
            for dims in choices
            for f in _vectorizations(case, dims)
        ]

    batched = iter(jit(vectorized)(*stacks))
    loops: dict[tuple[Any, ...], list[Any]] = {}
    for dims in choices:
        mapped = tuple(d is not None for d in dims)
        if mapped not in loops:
            loops[mapped] = _loop(case, per_lane, mapped)
        for _ in _vectorizations(case, dims):
            who = case.who(f"batch with lanes at {dims} and a loop")
            require_same(PrimitiveError, who, next(batched), loops[mapped])


def _vectorizations(case: Case, dims: tuple[Any, ...]) -> Iterator[Callable[..., Any]]:
    """``vmap`` around the axes of the example, and inside them."""
    yield vmap(case, in_axes=dims)
    if case.example.axes:
        n = len(case.sizes)
        if all(d is None or d >= n or not drawn for d, drawn in zip(dims, case.drawn, strict=True)):
            inside = tuple(
                d - n if d is not None and drawn else d
                for d, drawn in zip(dims, case.drawn, strict=True)
            )
            out = len(case.sizes)
            inner = case.over(vmap, vmap(case.bind, in_axes=inside))
            yield lambda *xs: _leading(case, inner(*xs), out)


def _leading(case: Case, out: Any, dim: int) -> Any:
    moved = [move(y, dim, 0) for y in case.tree(out)]
    return tuple(moved) if case.prim.multi else moved[0]


def _placed(stacks: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Lane 0 where there are to be no lanes; otherwise the lanes at the wanted dimension."""
    return [_first(x) if d is None else move(x, 0, d) for x, d in zip(stacks, dims, strict=True)]


def _first(x: Any) -> Any:
    return squeeze(slice_dim(x, 0, 1, 0), (0,))


def _loop(case: Case, per_lane: Sequence[Sequence[Any]], mapped: tuple[bool, ...]) -> list[Any]:
    lanes = [
        case.tree(case(*(lane[i] if m else per_lane[0][i] for i, m in enumerate(mapped))))
        for lane in per_lane
    ]
    return [stacked(ys) for ys in zip(*lanes, strict=True)]


# ---- derivatives --------------------------------------------------------------------------------


def law_linearize(prim: Primitive, example: Example) -> None:
    """Its derivatives are those of finite differences, and reverse mode agrees with forward."""
    case = Case(prim, example)
    operands = case.operands()
    if isinstance(prim.linearize, ZeroDerivative):
        _check_zero(case, operands)
    else:
        check_grads(case, operands, order=example.order)
        _check_each_alone(case, operands)


def _check_each_alone(case: Case, operands: list[Any]) -> None:
    """Tangents where one operand has one and the others are constants add up to that of all."""
    inner, xs = inexact_part(lambda *xs: case(*xs), operands)
    ts = [direction(x, 2) for x in xs]

    def alone(xs: list[Any], i: int) -> list[Any]:
        def of_one(x: Any) -> Any:
            return inner([*xs[:i], x, *xs[i + 1 :]])

        return jvp(of_one, (xs[i],), (ts[i],))[1]

    def derivatives(xs: list[Any]) -> tuple[list[Any], list[Any]]:
        columns = zip(*[alone(xs, i) for i in range(len(xs))], strict=True)
        return jvp(inner, (xs,), (ts,))[1], [reduce(add, column) for column in columns]

    if len(xs) > 1:
        who = case.who("the derivative in all operands and the sum of those in each")
        require_same(PrimitiveError, who, *jit(derivatives)(xs))


def _check_zero(case: Case, operands: list[Any]) -> None:
    ts = [
        direction(x, 0) if dtypes.is_inexact(x.dtype) else np.zeros(x.shape, dtypes.float0)
        for x in operands
    ]
    outs, tangents = jvp(case, operands, ts)
    for i, (y, t) in enumerate(zip(case.tree(outs), case.tree(tangents), strict=True)):
        if dtypes.is_inexact(typeof(y).dtype) and np.any(to_numpy(t)):
            raise PrimitiveError(
                case.who("zero derivative"), f"the tangent of result {i} is not zero", t, 0.0
            )


def law_transpose(prim: Primitive, example: Example) -> int:
    """In every set of operands in which it is linear: <f t, c> = <t, f^T c>, and f^T^T = f.

    Returns how many such sets there are.
    """
    case = Case(prim, example)
    operands = case.operands()
    inexact = [i for i, x in enumerate(operands) if dtypes.is_inexact(x.dtype)]
    subsets = itertools.chain.from_iterable(
        itertools.combinations(inexact, n + 1) for n in range(len(inexact))
    )
    count = 0
    for subset in subsets:
        f = _partial(case, operands, subset)
        if _is_linear(case, f, [operands[i] for i in subset]):
            _check_transpose(case, f, [operands[i] for i in subset], subset)
            count += 1
    return count


def _partial(case: Case, operands: list[Any], subset: Sequence[int]) -> Callable[..., Any]:
    def f(*xs: Any) -> Any:
        whole = list(operands)
        for i, x in zip(subset, xs, strict=True):
            whole[i] = x
        return case(*whole)

    return f


def _is_linear(case: Case, f: Callable[..., Any], xs: list[Any]) -> bool:
    """Whether f(0) = 0 and f(x - 2y) = f(x) - 2 f(y), up to rounding."""
    ys = [direction(x, 7) for x in xs]
    zero, whole, left, right = (
        [to_numpy(y).astype(np.complex128) for y in case.tree(f(*at))]
        for at in (
            [np.zeros_like(x) for x in xs],
            [x - 2 * y for x, y in zip(xs, ys, strict=True)],
            xs,
            ys,
        )
    )
    close = 8 * max(map(_rounding, [*xs, *case.tree(f(*xs))]))
    return not any(z.any() for z in zero) and all(
        np.allclose(w, a - 2 * b, atol=close * (1 + np.abs(a).max(initial=0)), rtol=close)
        for w, a, b in zip(whole, left, right, strict=True)
    )


def _rounding(x: Any) -> float:
    return rounding(typeof(x).dtype)


def _check_transpose(
    case: Case, f: Callable[..., Any], xs: list[Any], subset: Sequence[int]
) -> None:
    who = case.who(f"transpose in operands {tuple(subset)}")
    out = case.tree(f(*xs))
    cts = [direction(y, 3) for y in out]
    back = linear_transpose(f, *xs)
    pulled = back(tuple(cts) if case.prim.multi else cts[0])
    left, right = float(pairing(out, cts)), float(pairing(xs, pulled))
    scale = 1 + max(abs(left), abs(right))
    if abs(left - right) > 8 * max(map(_rounding, [*xs, *out])) * scale:
        raise PrimitiveError(who, f"<f t, c> is {left}, but <t, f^T c> is {right}", right, left)
    again = linear_transpose(lambda *cs: back(cs if case.prim.multi else cs[0]), *cts)
    twice = again(tuple(pulled) if len(xs) != len(pulled) else tuple(xs))
    require_same(PrimitiveError, f"{who}, twice", list(twice), out)


# ---- replication --------------------------------------------------------------------------------


def law_vary(prim: Primitive, example: Example) -> None:
    """What the replication rule says is the same in every lane is the same in every lane."""
    case = Case(prim, example)
    axis, size = example.axes[0] if example.axes else ("lanes", LANES)
    bare = Case(prim, replace(example, axes=()))
    stacks = [stacked(xs) for xs in zip(*map(bare.operands, range(size)), strict=True)]
    choices = list(itertools.product((0, None), repeat=len(case.free)))

    def mapped(*stacks: Any) -> list[Any]:
        return [
            case.tree(
                vmap(bare.bind, in_axes=dims, axis_name=axis, axis_size=size)(
                    *_placed(stacks, dims)
                )
            )
            for dims in choices
        ]

    for dims, outs in zip(choices, jit(mapped)(*stacks), strict=True):
        rule = prim.result_varies(_varying_sets(case, dims, axis), example.params)
        rules = (rule,) * len(outs) if isinstance(rule, frozenset) else rule
        _check_vary(case, dims, axis, rules, outs)


def _varying_sets(case: Case, dims: Sequence[int | None], axis: Any) -> list[frozenset[Any]]:
    sets: list[frozenset[Any]] = [frozenset()] * len(case.example.args)
    for i, d in zip(case.free, dims, strict=True):
        sets[i] = frozenset() if d is None else frozenset((axis,))
    return sets


def _check_vary(
    case: Case, dims: tuple[Any, ...], axis: Any, rules: Sequence[Any], outs: Sequence[Any]
) -> None:
    if len(rules) != len(outs):
        raise PrimitiveError(
            case.who("vary"), f"gives {len(rules)} sets for {len(outs)} results", rules, outs
        )
    for i, (rule, y) in enumerate(zip(rules, outs, strict=True)):
        values = to_numpy(y)
        if axis not in rule and not (values == values[:1]).all():
            raise PrimitiveError(
                case.who(f"vary with lanes at {dims}"),
                f"result {i} differs between lanes, but the rule says that it does not",
                values,
                values[:1],
            )


# ---- blocks of a mesh ---------------------------------------------------------------------------


def law_shard_map(prim: Primitive, example: Example, limit: int | None = 4, seed: int = 0) -> None:
    """Over blocks it is what it is over lanes, and so are its derivatives, whichever operands
    differ along which axes of a mesh."""
    case = Case(prim, example)
    mesh = make_mesh((2, 2) if device_count() > 3 else (1, device_count()), ("x", "y"))
    positions = [case.operands(seed) for seed in range(mesh.size)]
    choices = drawn_cuts(len(case.free), mesh, limit, seed)
    order = 0 if isinstance(prim.linearize, NoRule) else example.order
    who = case.who("shard_map")
    check_blocks(PrimitiveError, who, _all_results(case), positions, mesh, choices, order)


def _all_results(case: Case) -> Callable[..., list[Any]]:
    return lambda *xs: case.tree(case(*xs))


# ---- numbers that move --------------------------------------------------------------------------


def law_copied(prim: Primitive, example: Example) -> None:
    """Where numbers only move, infinities in the place of some of them make no NaN."""
    case = Case(prim, example)
    operands = case.operands()
    before = case.tree(case(*operands))
    after = case.tree(case(*map(_with_infinities, operands)))
    for i, (x, y) in enumerate(zip(before, after, strict=True)):
        if dtypes.is_inexact(typeof(y).dtype) and (np.isnan(y) > np.isnan(x)).any():
            raise PrimitiveError(
                case.who("copied"),
                f"result {i} is NaN where no operand is, but it says that they are copied",
                to_numpy(y),
                to_numpy(x),
            )


def _with_infinities(x: np.ndarray) -> np.ndarray:
    """``x``, of which every second number is infinite if it can be, with the sign it had."""
    if not dtypes.is_inexact(x.dtype):
        return x
    second = np.arange(x.size).reshape(x.shape) % 2 == 1
    return np.where(second, x, np.where(np.real(x) < 0, -np.inf, np.inf)).astype(x.dtype)


# ---- dtypes -------------------------------------------------------------------------------------


DTYPES = ("float16", "bfloat16", "float64", "int8", "uint32", "bool", "complex64", "complex128")


def law_dtypes(prim: Primitive, example: Example) -> None:
    """In every dtype that its type rule takes it compiles, and its results have their types."""
    with config.override(enable_x64=True):
        cases = [Case(prim, e) for e in _in_other_dtypes(prim, example)]
        drawn = [c.operands() for c in cases]
        for mapping in (vmap, pmap) if example.axes else (vmap,):
            mapped_cases = [c.over(mapping) for c in cases]

            def every(drawn: list[Any], mapped_cases: list[Any] = mapped_cases) -> list[Any]:
                return list(map(_apply, mapped_cases, drawn))

            results = jit(every)(drawn)
            for case, xs, out in zip(cases, drawn, results, strict=True):
                _check_types(case, xs, out)


def _apply(f: Callable[..., Any], xs: Sequence[Any]) -> Any:
    return f(*xs)


def _in_other_dtypes(prim: Primitive, example: Example) -> list[Example]:
    casts = [in_dtype(example, dtypes.as_dtype(d)) for d in DTYPES]
    return [e for e in casts if e is not None and _accepted(prim, e)]


def in_dtype(example: Example, dtype: np.dtype) -> Example | None:
    """``example`` with its operands in another dtype; None if they are of several dtypes."""
    kinds = {a.dtype for a in example.args if isinstance(a, ArrayType)}
    has_arrays = any(is_ndarray(a) and dtypes.is_inexact(a.dtype) for a in example.args)
    if len(kinds - {np.dtype(bool)}) != 1 or has_arrays:
        return None
    (kind,) = kinds - {np.dtype(bool)}

    def cast(a: Any) -> Any:
        if isinstance(a, ArrayType):
            return a.update(dtype=dtype) if a.dtype == kind else a
        if a.dtype != kind or not isinstance(a, np.generic):
            return a
        return (a if dtypes.is_complex(dtype) else a.real).astype(dtype)

    return replace(example, args=tuple(map(cast, example.args)), low=max(example.low, 0.0))


def _accepted(prim: Primitive, example: Example) -> bool:
    types = (a if isinstance(a, ArrayType) else operand_type(a) for a in example.args)
    try:
        prim.type(*types, **example.params)
    except (TypeError, ValueError):
        return False
    return True


# ---- all laws -----------------------------------------------------------------------------------


def _always(prim: Primitive, example: Example) -> bool:
    return True


def _in_an_axis(prim: Primitive, example: Example) -> bool:
    return bool(example.axes)


def _takes_other_dtypes(prim: Primitive, example: Example) -> bool:
    with config.override(enable_x64=True):
        return bool(_in_other_dtypes(prim, example))


def _with_operands(prim: Primitive, example: Example) -> bool:
    return not isinstance(prim.batch, NoRule) and bool(Case(prim, example).free)


def _takes_what_varies(prim: Primitive, example: Example) -> bool:
    """Whether operands may vary along any axes: not where a parameter says along which they do."""
    return _with_operands(prim, example) and "varying" not in example.params


def _differentiated(prim: Primitive, example: Example) -> bool:
    return not isinstance(prim.linearize, NoRule) and _inexact(prim, example)


def _transposed(prim: Primitive, example: Example) -> bool:
    return callable(prim.transpose) and _inexact(prim, example)


def _inexact(prim: Primitive, example: Example) -> bool:
    return any(dtypes.is_inexact(example.args[i].dtype) for i in Case(prim, example).free)


def _copying(prim: Primitive, example: Example) -> bool:
    return prim.elements.copied and _inexact(prim, example)


def _replicated(prim: Primitive, example: Example) -> bool:
    return prim.vary is not None and len(example.axes) <= 1


class Law(NamedTuple):
    """What must hold of a primitive at each of its examples to which it ``applies``."""

    check: Callable[..., Any]
    applies: Callable[[Primitive, Example], bool]


LAWS = {
    "type": Law(law_type, _always),
    "dtypes": Law(law_dtypes, _takes_other_dtypes),
    "jit": Law(law_jit, _always),
    "pmap": Law(law_pmap, _in_an_axis),
    "batch": Law(law_batch, _with_operands),
    "linearize": Law(law_linearize, _differentiated),
    "transpose": Law(law_transpose, _transposed),
    "vary": Law(law_vary, _replicated),
    "shard_map": Law(law_shard_map, _takes_what_varies),
    "copied": Law(law_copied, _copying),
}


def check_primitive(prim: Primitive, laws: Sequence[str] = tuple(LAWS)) -> None:
    """Every rule of ``prim`` holds, at each of its examples.

    The type rule against the results, in all dtypes that it takes; eager against compiled
    evaluation; the batching rule against a loop, for every choice of operands and dimensions;
    the linearize rule against finite differences; the transpose rule by
    <f t, c> = <t, f^T c> and f^T^T = f; the replication rule against the lanes; ``shard_map`` of it
    against ``vmap`` of it, with operands that differ along some axes of a mesh; that numbers only
    move, if it says so, with infinities; and that all rules take the parameters that it declares.
    Where the primitive communicates, ``pmap`` of it against ``vmap`` of it.

    Args:
        prim: a primitive with examples.
        laws: which laws, by name.

    Raises:
        PrimitiveError, DerivativeError: a rule is wrong; the message says which.
        ValueError: there are no examples, or no such law.

    >>> from phalanx.primitives.elementwise import sin
    >>> check_primitive(sin)
    """
    if not prim.examples:
        raise ValueError(f"check_primitive: {prim.name} has no examples; give it at least one")
    check_parameters(prim)
    for law in laws:
        if law not in LAWS:
            raise ValueError(f"check_primitive: no law {law!r}; there are {', '.join(LAWS)}")
        for example in prim.examples:
            if LAWS[law].applies(prim, example):
                LAWS[law].check(prim, example)
