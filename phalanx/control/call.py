"""``call``: run a program. It is what ``jit`` binds inside other transformations.

The sub-program's linearization, transpose and batched form are programs themselves, derived
once and kept with it; so a call stays a call under every transformation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, Inside, Linear, Primitive
from phalanx.core.program import Program
from phalanx.core.types import ArrayType
from phalanx.spmd.replication import varying_outputs
from phalanx.transforms.batch import batch_program
from phalanx.transforms.linearize import linearize_program
from phalanx.transforms.transpose import transpose_program


def _type(*types: ArrayType, program: Program) -> tuple[ArrayType, ...]:
    return program.output_types


def _lower(b: Any, *xs: Any, program: Program) -> list:
    if program.axes or any(e.prim.spread is not None for e in program.walk()):
        return b.inline(program, *xs)  # what it communicates over depends on where it stands
    return b.call(program, lambda b, *ys: b.inline(program, *ys), xs)


def _linearize(nonzero: tuple[bool, ...], *primals: Any, program: Program) -> tuple:
    parts = linearize_program(program, nonzero)
    results = call(*parts.constants, *primals, program=parts.primal)
    out, computed = parts.divide(results)
    residuals = parts.residuals(primals, computed)

    def linear(*tangents: Any) -> tuple:
        given = [t for t in tangents if t is not ZERO]
        found = iter(call(*residuals, *given, program=parts.linear))
        return tuple(next(found) if n else ZERO for n in parts.nonzero)

    return out, linear


def transpose_operands(
    cts: Sequence[Any], operands: Sequence[Any]
) -> tuple[tuple[bool, ...], tuple[bool, ...], list, list]:
    """Which operands are linear, which cotangents are given, the other operands, the given."""
    linear = tuple(isinstance(x, Linear) for x in operands)
    given = tuple(ct is not ZERO for ct in cts)
    known = [x for x in operands if not isinstance(x, Linear)]
    return linear, given, known, [ct for ct in cts if ct is not ZERO]


def spread_cotangents(linear: Sequence[bool], nonzero: Sequence[bool], found: Any) -> list:
    """One entry per operand: its cotangent, ZERO, or None where it is not linear."""
    values, marks = iter(found), iter(nonzero)
    return [(next(values) if next(marks) else ZERO) if x else None for x in linear]


def _transpose(cts: tuple, *operands: Any, program: Program) -> list:
    linear, given, known, nonzero = transpose_operands(cts, operands)
    parts = transpose_program(program, linear, given)
    found = call(*parts.constants, *known, *nonzero, program=parts.program)
    return spread_cotangents(linear, parts.nonzero, found)


def _batch(axis: Axis, values: Sequence, dims: tuple, *, program: Program) -> tuple:
    batched = batch_program(program, axis, dims)
    return call(*batched.constants, *values, program=batched.program), batched.dims


def _thread(rewrite: Callable, state: tuple, *xs: Any, program: Program) -> tuple:
    out = call(*state, *xs, program=rewrite(program, 0))
    return out[: len(state)], out[len(state) :]


def _vary(*operands: frozenset, program: Program) -> tuple:
    return varying_outputs(program, operands)


def whole_program(params: dict[str, Any]) -> Inside:
    """The sub-program of an operation whose operands and results are the program's own."""
    return Inside(params["program"], lambda program, *_: {**params, "program": program})


call: Callable = Primitive(
    "call",
    _type,
    _lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    vary=_vary,
    axes=lambda params: params["program"].axes,
    thread=_thread,
    inside=whole_program,
    multi=True,
    doc="the results of a program; func.call",
)
