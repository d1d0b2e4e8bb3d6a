"""``checkpoint``: run a program; for its derivative, run it once more instead of storing values.

Its linearization stores the operands and what the policy grants. The linear half holds the
program again, from what was stored up to what the derivative needs, and the derivative itself:
whatever is done to it, transposed above all, what it computes again never leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.control.call import (
    call,
    spread_cotangents,
    transpose_operands,
    whole_program,
)
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, Primitive
from phalanx.core.program import Program
from phalanx.core.trace import running
from phalanx.core.types import ArrayType
from phalanx.spmd.replication import varying_outputs
from phalanx.transforms.batch import batch_program
from phalanx.transforms.divide import Policy, divide
from phalanx.transforms.linearize import Linearized, jvp_program, linearize_program
from phalanx.transforms.simplify import prune
from phalanx.transforms.stage import Stage, evaluate
from phalanx.transforms.transpose import transpose_program


def _type(
    *types: ArrayType, program: Program, policy: Policy, prevent_cse: bool, again: bool
) -> tuple[ArrayType, ...]:
    return program.output_types


def _lower(
    b: Any, *xs: Any, program: Program, policy: Policy, prevent_cse: bool, again: bool
) -> list:
    # behind a barrier XLA does not see that it computes what has been computed before, nor does
    # it start before the cotangents are there
    operands = b.optimization_barrier(xs) if again and prevent_cse else xs
    return call.lower(b, *operands, program=program)


# ---- derivatives --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Halves:
    """``primal`` takes ``constants`` first, and gives stored values after the results.

    ``linear`` takes values from among (constants, inputs, what ``primal`` gives), at the
    positions ``sources``, then the tangents of inputs; it gives the tangents of the results that
    ``nonzero`` marks. ``recomputes`` says whether there is anything that it computes again.
    """

    primal: Program
    constants: list[Any]
    linear: Program
    sources: tuple[int, ...]
    nonzero: tuple[bool, ...]
    recomputes: bool


def checkpointed_halves(program: Program, nonzero: tuple[bool, ...], policy: Policy) -> Halves:
    """``program`` linearized in the inputs marked ``nonzero``, storing what ``policy`` grants."""
    key = ("checkpoint", nonzero, policy)
    if key not in program.derived:
        program.derived[key] = _split(program, nonzero, policy)
    return program.derived[key]


def _split(program: Program, nonzero: tuple[bool, ...], policy: Policy) -> Halves:
    halves = linearize_program(program, nonzero)
    whole, count = halves.primal, len(program.outputs)
    results, residuals = whole.outputs[:count], whole.outputs[count:]
    parts = divide(Program(whole.inputs, whole.equations, results, whole.name), residuals, policy)
    primal, _ = prune(parts.storing, fixed=len(whole.inputs))
    linear, kept = _joined(parts.resuming, halves, len(halves.constants))
    count = len(whole.inputs)
    sources = tuple(i if i < count else count + parts.stored[i - count] for i in kept)
    recomputes = bool(parts.resuming.equations)
    return Halves(primal, halves.constants, linear, sources, halves.nonzero, recomputes)


def _joined(resuming: Program, halves: Linearized, constants: int) -> tuple[Program, list[int]]:
    """The residuals computed again and the linear half; the inputs of the former it still has."""
    stage = Stage(None, resuming.name)
    start = [stage.input(v.type) for v in resuming.inputs]
    tangents = [stage.input(v.type) for v in halves.linear.inputs[len(halves.forwarded) :]]
    with running(stage):
        computed = evaluate(resuming, start)
        residuals = halves.residuals(start[constants:], computed)
        found = evaluate(halves.linear, [*residuals, *tangents])
    made, _ = stage.finish([*start, *tangents], found, resuming.name)
    return prune(made, fixed=len(tangents))


def _linearize(
    nonzero: tuple[bool, ...], *primals: Any, program: Program, policy: Policy,
    prevent_cse: bool, again: bool,
) -> tuple:  # fmt: skip
    parts = checkpointed_halves(program, nonzero, policy)
    known = [*parts.constants, *primals]
    results = checkpoint(
        *known, program=parts.primal, policy=policy, prevent_cse=prevent_cse, again=again
    )
    every = [*known, *results]
    start = [every[i] for i in parts.sources]

    def linear(*tangents: Any) -> tuple:
        found = iter(
            checkpoint(
                *start,
                *(t for t in tangents if t is not ZERO),
                program=parts.linear,
                policy=policy,
                prevent_cse=prevent_cse and parts.recomputes,
                again=True,
            )
        )
        return tuple(next(found) if n else ZERO for n in parts.nonzero)

    return results[: len(program.outputs)], linear


def _jvp(primals: tuple, tangents: Sequence[Any], *, program: Program, **options: Any) -> tuple:
    made = jvp_program(program, tuple(t is not ZERO for t in tangents))
    given = [t for t in tangents if t is not ZERO]
    found = checkpoint(*made.constants, *primals, *given, program=made.program, **options)
    count = len(program.outputs)
    rest = iter(found[count:])
    return found[:count], tuple(next(rest) if n else ZERO for n in made.nonzero)


def _transpose(cts: tuple, *operands: Any, program: Program, **options: Any) -> list:
    linear, given, known, nonzero = transpose_operands(cts, operands)
    parts = transpose_program(program, linear, given)
    found = checkpoint(*parts.constants, *known, *nonzero, program=parts.program, **options)
    return spread_cotangents(linear, parts.nonzero, found)


def _batch(
    axis: Axis, values: Sequence, dims: tuple, *, program: Program, **options: Any
) -> tuple:
    batched = batch_program(program, axis, dims)
    found = checkpoint(*batched.constants, *values, program=batched.program, **options)
    return found, batched.dims


def _vary(*operands: frozenset, program: Program, **options: Any) -> tuple:
    return varying_outputs(program, operands)


def _thread(
    rewrite: Callable, state: tuple, *xs: Any, program: Program, **options: Any
) -> tuple:
    out = checkpoint(*state, *xs, program=rewrite(program, 0), **options)
    return out[: len(state)], out[len(state) :]


checkpoint: Callable = Primitive(
    "checkpoint",
    _type,
    _lower,
    linearize=_linearize,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    vary=_vary,
    axes=lambda params: params["program"].axes,
    thread=_thread,
    inside=whole_program,
    multi=True,
    doc="the results of a program, which its derivative computes again; "
    "stablehlo.optimization_barrier, func.call",
)
