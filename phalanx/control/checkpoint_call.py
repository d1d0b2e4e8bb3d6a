"""``checkpoint``: run a program; for its derivative, run it once more instead of storing values.

Its linearization stores the operands and what the policy grants. The linear half holds the
program again, from what was stored up to what the derivative needs, and the derivative itself:
whatever is done to it, transposed above all, what it computes again never leaves it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from phalanx.control.call import frame_of_one, lower_call
from phalanx.control.family import with_subprograms
from phalanx.core.builder import Builder, Value
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import ZERO, Derivative, Primitive, with_zeros
from phalanx.core.program import Frame, Program
from phalanx.core.runs import Marks
from phalanx.transforms.dce import prune
from phalanx.transforms.linearize import linearize_program
from phalanx.transforms.remat_partition import Policy, partition_for_remat


def _frame(*, program: Program, policy: Policy, prevent_cse: bool, again: bool) -> Frame:
    return frame_of_one(program=program)


def _lower(
    b: Builder, *xs: Value, program: Program, policy: Policy, prevent_cse: bool, again: bool
) -> list[Value]:
    # behind a barrier XLA does not see that it computes what has been computed before, nor does
    # it start before the cotangents are there
    operands = b.optimization_barrier(xs) if again and prevent_cse else xs
    return lower_call(b, *operands, program=program)


# ---- derivatives --------------------------------------------------------------------------------


class _Halves(Struct, frozen=True):
    """``primal`` gives stored values after the results.

    ``linear`` takes values from among (inputs, what ``primal`` gives), at the positions
    ``sources``, then the tangents of inputs; it gives the tangents of the results that ``nonzero``
    marks. ``recomputes`` says whether there is anything that it computes again.
    """

    primal: Program
    linear: Program
    sources: tuple[int, ...]
    nonzero: Marks
    recomputes: bool


def _checkpointed_halves(program: Program, active: Marks, policy: Policy) -> _Halves:
    """``program`` linearized in the inputs marked ``active``, storing what ``policy`` grants."""
    return memoize_on(
        program, ("checkpoint", active, policy), lambda: _split(program, active, policy)
    )


def _split(program: Program, active: Marks, policy: Policy) -> _Halves:
    halves = linearize_program(program, active)
    primal_half, count = halves.primal, len(program.outputs)
    results, residuals = primal_half.outputs[:count], primal_half.outputs[count:]
    parts = partition_for_remat(primal_half.update(outputs=results), residuals, policy)
    primal, _ = prune(parts.storing, fixed=len(primal_half.inputs))
    # the residuals computed again, and the linear half
    resuming, linear = parts.resuming, halves.linear
    count = len(primal_half.inputs)
    first = len(halves.forwarded)
    again = halves.residuals(resuming.inputs[:count], resuming.outputs)
    renamed: dict[Any, Any] = dict(zip(linear.inputs[:first], again, strict=True))
    tangents = linear.inputs[first:]
    half = linear.renamed(renamed)
    joined = resuming.update(
        inputs=[*resuming.inputs, *tangents],
        equations=[*resuming.equations, *half.equations],
        outputs=half.outputs,
    )
    joined, used = prune(joined, fixed=len(tangents))
    sources = tuple([i if i < count else count + parts.stored[i - count] for i in used])
    return _Halves(primal, joined, sources, halves.nonzero, bool(resuming.equations))


def _linearize(
    active: Marks, *primals: Any, program: Program, prevent_cse: bool, **options: Any
) -> Derivative:
    parts = _checkpointed_halves(program, active, options["policy"])
    results = checkpoint(*primals, program=parts.primal, prevent_cse=prevent_cse, **options)
    sources = [*primals, *results]
    start = [sources[i] for i in parts.sources]

    def linear(*tangents: Any) -> tuple[Any, ...]:
        nonzero = [t for t in tangents if t is not ZERO]
        again = {**options, "prevent_cse": prevent_cse and parts.recomputes, "again": True}
        outputs = checkpoint(*start, *nonzero, program=parts.linear, **again)
        return with_zeros(outputs, parts.nonzero)

    return results[: len(program.outputs)], linear


checkpoint: Primitive = with_subprograms(
    "checkpoint",
    _lower,
    _frame,
    linearize=_linearize,
    doc="the results of a program, which its derivative computes again; "
    "stablehlo.optimization_barrier, func.call",
)
