"""Kernels are called: every program of the grid in turn."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from phalanx import lax, tree
from phalanx import numpy as jnp
from phalanx.api.jit import jit
from phalanx.base.dtypes import canonical
from phalanx.base.kinds import is_list, is_mapping, is_sequence
from phalanx.base.source import user_location
from phalanx.base.tree import PyTreeDef
from phalanx.compat.experimental.pallas.blocks import Operand, operands_of, unwritten
from phalanx.compat.experimental.pallas.specs import (
    BlockSpec,
    CostEstimate,
    GridSpec,
    no_block_spec,
)
from phalanx.core import axes
from phalanx.core.refs import Ref, load
from phalanx.core.types import ArrayType, typeof
from phalanx.numpy.refs import freeze, new_ref

__all__ = [
    "estimate_cost", "num_programs", "pallas_call", "program_id", "run_scoped", "run_state",
    "with_scoped",
]  # fmt: skip


class _Program(Struct, frozen=True):
    """Which program of which grid runs."""

    ids: Sequence[Any]
    grid: Sequence[Any]


_running: ContextVar[_Program | None] = ContextVar("_running", default=None)


def program_id(axis: int) -> Any:
    """The number of the program that runs, along ``axis`` of the grid."""
    return _of_running("program_id", axis, lambda program: program.ids)


def num_programs(axis: int) -> Any:
    """How many programs there are along ``axis`` of the grid."""
    return _of_running("num_programs", axis, lambda program: program.grid)


def _of_running(who: str, axis: int, which: Callable[[_Program], Sequence[Any]]) -> Any:
    program = _running.get()
    count = len(program.grid) if program else 0
    if program is None or not 0 <= axis < count:
        where = f"a kernel with a grid of {count} axes" if program else "no kernel"
        raise ValueError(f"{who}({axis}) is called in {where}, at {user_location()}")
    return which(program)[axis]


@contextlib.contextmanager
def _as(program: _Program) -> Generator[None]:
    before = _running.set(program)
    sizes = [size if type(size) is int else None for size in program.grid]  # others are captured
    try:
        with axes.knowing(("grid", *sizes)):
            yield
    finally:
        _running.reset(before)


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    name: str | None = None,
    debug: bool = False,
    interpret: Any = False,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    metadata: Any = None,
) -> Callable[..., Any]:
    """A function of arrays that runs ``kernel`` for every point of the grid.

    The programs run one after the other, the last axis first, on every platform and whatever
    ``interpret`` says. What no program writes is NaN, or the least integer.

    Args:
        kernel: takes references to blocks of the operands, of the results, and scratch.
        out_shape: shapes and dtypes of the results, a tree.
        grid_spec: the grid, specs and scratch in one, instead of those here.
        grid: how many programs there are along each axis.
        in_specs: how operands are cut, as they are structured.
        out_specs: how results are cut.
        scratch_shapes: memory that all programs share; by name in a mapping.
        input_output_aliases: by the number of an operand, that of the result which shares its
            memory: a later program sees in one what was written to the other.
        name: of the function that is compiled.
        debug: has no meaning, as have those below.
        interpret: see above.
        compiler_params: see above.
        cost_estimate: see above.
        metadata: see above.

    Raises:
        ValueError: specs do not fit, or the kernel returns something.
    """
    own = {"grid": grid, "in_specs": in_specs, "out_specs": out_specs, "scratch": scratch_shapes}
    twice = [name for name, x in own.items() if x is not no_block_spec and x != ()]
    if grid_spec is not None and twice:
        raise ValueError(
            f"pallas_call: {' and '.join(twice)} is given, and grid_spec has it, at "
            f"{user_location()}; give one of both"
        )
    if not callable(kernel):
        raise TypeError(
            f"pallas_call: a kernel is a function of references, got {kernel!r}, at "
            f"{user_location()}"
        )
    spec = grid_spec or GridSpec(grid, in_specs, out_specs, scratch_shapes)
    several = is_sequence(out_shape)
    outs, out_tree = tree.flatten(tuple(out_shape) if several else out_shape)
    _check_typed(outs)
    cut_outs = _specs(spec.out_specs, out_tree, "out_specs", "out_shape")

    def called(*args: Any) -> Any:
        scalars, args = args[: spec.num_scalar_prefetch], args[spec.num_scalar_prefetch :]
        leaves, in_tree = tree.flatten(args)
        cut = _specs(spec.in_specs, in_tree, "in_specs", "the operands, a list")
        first, held = tree.flatten(scalars)
        aliases = dict(input_output_aliases or {})
        _check_aliases(aliases, [*first, *leaves], outs)
        inputs, results = _placed(first, zip(leaves, cut, strict=True), outs, cut_outs, aliases)
        known: Any = held.unflatten([new_ref(x) for x in first])
        scratch, named = allocated(spec.scratch_shapes)

        def program(*blocks: Ref) -> None:
            last = out_tree.unflatten(blocks[len(leaves) :])
            to = last if several else (last,)
            passed = in_tree.unflatten(blocks[: len(leaves)])
            _refuse_result(kernel, kernel(*known, *passed, *to, *scratch, **named))

        over_grid(program, spec.grid, [*inputs, *results], known, stands=True)
        return out_tree.unflatten([r.result() for r in results])

    called.__name__ = called.__qualname__ = name or getattr(kernel, "__name__", "kernel")
    return jit(called)


def over_grid(
    program: Callable[..., None],
    grid: Sequence[Any],
    operands: Sequence[Operand],
    scalars: Sequence[Any] = (),
    *,
    stands: bool,
) -> None:
    """Run ``program`` of the blocks of ``operands`` for every point of ``grid``.

    Whether it ``stands`` there: it is what ``program_id`` tells the program.
    """

    def step(number: Any, _: None) -> None:
        ids = _unraveled(jnp.int32(number), grid)
        starts = [o.starts(ids, scalars) for o in operands]
        blocks = [o.block(s) for o, s in zip(operands, starts, strict=True)]
        before = [load(block) for block in blocks]
        with _as(_Program(ids, grid)) if stands else contextlib.nullcontext():
            program(*blocks)
        # those of operands after those of results, as where kernels are interpreted
        for o, block, x, s in reversed([*zip(operands, blocks, before, starts, strict=True)]):
            o.keep(block, x, s)

    if grid:
        lax.fori_loop(0, functools.reduce(lambda a, b: a * b, grid), step, None)
    else:
        step(jnp.int32(0), None)


def _unraveled(number: Any, grid: Sequence[Any]) -> list[Any]:
    """The point of ``grid`` with this number, of which the last axis counts fastest."""
    ids: list[Any] = []
    for size in reversed(grid):
        number, last = lax.div(number, jnp.int32(size)), lax.rem(number, jnp.int32(size))
        ids.insert(0, last)
    return ids


def _check_typed(outs: Sequence[Any]) -> None:
    for out in outs:
        if not (hasattr(out, "shape") and hasattr(out, "dtype")):
            raise ValueError(
                f"pallas_call: out_shape needs a shape and a dtype for each result, got {out!r}, "
                f"at {user_location()}; give jax.ShapeDtypeStruct(shape, dtype)"
            )


def _specs(specs: Any, of: PyTreeDef, what: str, like: str) -> Sequence[Any]:
    """A spec for each leaf of the structure ``of``."""
    if specs is no_block_spec:
        return [None] * of.num_leaves
    specs = tuple(specs) if is_list(specs) else specs
    try:
        return of.flatten_up_to(specs)
    except ValueError as e:
        raise ValueError(
            f"pallas_call: {what} must be structured as {like}, got {specs!r}: {e}; at "
            f"{user_location()}"
        ) from None


def _check_aliases(aliases: Mapping[int, int], leaves: Sequence[Any], outs: Sequence[Any]) -> None:
    for i, o in aliases.items():
        if i not in range(len(leaves)) or o not in range(len(outs)):
            raise ValueError(
                f"pallas_call: input_output_aliases has {i}: {o}, and there are {len(leaves)} "
                f"operands and {len(outs)} results, at {user_location()}"
            )
        operand = typeof(leaves[i])
        wanted = ArrayType(tuple(outs[o].shape), canonical(outs[o].dtype))
        if (operand.shape, operand.dtype) != (wanted.shape, wanted.dtype):
            raise ValueError(
                f"pallas_call: operand {i} is {operand} and shares memory with result {o}, which "
                f"is {wanted}, at {user_location()}; both must have the same shape and dtype"
            )
    if len({*aliases.values()}) < len(aliases):
        raise ValueError(
            f"pallas_call: input_output_aliases {aliases} has two operands share the memory of one "
            f"result, at {user_location()}; only one can"
        )


def _placed(
    scalars: Sequence[Any],
    leaves: Iterable[tuple[Any, BlockSpec | None]],
    outs: Sequence[Any],
    cut_outs: Sequence[BlockSpec | None],
    aliases: Mapping[int, int],
) -> tuple[list[Operand], list[Operand]]:
    """In memory: operands with how they are cut, after ``scalars``, and results."""
    inputs: list[Operand] = []
    results: dict[int, Operand] = {}
    for i, (x, spec) in enumerate(leaves, len(scalars)):
        cuts = {f"operand {i}": spec}
        if i in aliases:
            cuts[f"result {aliases[i]}"] = cut_outs[aliases[i]]
        first, *rest = operands_of(x, cuts)
        inputs.append(first)
        if rest:
            results[aliases[i]] = rest[0]
    begun = {aliases[i]: x for i, x in enumerate(scalars) if i in aliases}
    for o in {*range(len(outs))} - {*results}:
        x = begun[o] if o in begun else unwritten(outs[o].shape, outs[o].dtype)
        results[o] = operands_of(x, {f"result {o}": cut_outs[o]})[0]
    return inputs, [results[o] for o in range(len(outs))]


def _refuse_result(kernel: Any, result: Any) -> None:
    if result is not None:
        raise ValueError(
            f"pallas_call: the kernel {getattr(kernel, '__name__', kernel)} returned "
            f"{type(result).__name__}, and should return None, at {user_location()}: it writes its "
            "results to references"
        )


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """What the operations of ``fun`` would cost, as the compiler counts them."""
    counted = jit(functools.partial(fun, **kwargs)).lower(*args).cost_analysis() or {}
    names = "flops", "transcendentals", "bytes accessed"
    return CostEstimate(*[int(counted.get(name, 0)) for name in names])


# ---- memory -------------------------------------------------------------------------------------


def allocated(shapes: Any) -> tuple[list[Any], dict[str, Any]]:
    """References for ``shapes``: those in order, and those by name."""
    if is_mapping(shapes):
        return [], tree.map(_scratch, dict(shapes))
    return list(tree.map(_scratch, tuple(shapes))), {}


def _scratch(kind: Any) -> Ref:
    allocate = getattr(kind, "allocate", None)
    return allocate() if allocate else new_ref(unwritten(kind.shape, kind.dtype))


def run_scoped(f: Callable[..., Any], *types: Any, collective_axes: Any = (), **named: Any) -> Any:
    """What ``f`` returns, given references to memory of these ``types``."""
    by_position, by_name = allocated(types)[0], allocated(named)[1]
    return f(*by_position, **by_name)


def with_scoped(*types: Any, collective_axes: Any = (), **named: Any) -> Callable[..., Any]:
    """A decorator: the function gets references to memory of these ``types``, last."""

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            return run_scoped(
                lambda *refs, **more: f(*args, *refs, **kwargs, **more), *types, **named
            )

        return scoped

    return decorate


def run_state(f: Callable[[Any], None]) -> Callable[[Any], Any]:
    """A function of arrays that gives ``f`` references to them, and returns what they then hold."""

    def run(values: Any) -> Any:
        refs = tree.map(new_ref, values)
        f(refs)
        return tree.map(freeze, refs)

    return run
