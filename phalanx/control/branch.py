"""``branch``: one of several programs, chosen by an index while running.

The branches take the same operands and give the same types. Each is transformed for itself;
where branches differ in what they give (residuals, tangents, lanes), what one lacks is zero.

Lanes of an axis may choose differently. Then each branch runs on all lanes, and every lane takes
what is its own. What that means for a lane that chose another branch:

- it takes part in what lanes tell each other, as each of them does, so that none waits for it;
- it has no part in effects and in derivatives (``transforms/masking.py``).

A branch that is worth a question runs only where some lane takes it: where all lanes agree, that is
one branch. If it communicates over the axis, the question goes to all of its devices, since they
must agree what they run. If it does not communicate at all, nobody sees what it computes for lanes
that do not take it: they are given the operands of one that does, which end the loops in it and
have finite derivatives if anything has, so that values that all lanes share need not be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.control.call import call
from phalanx.control.family import with_subprograms
from phalanx.control.forward import linearize_rule
from phalanx.control.lanes import anyone, batch_rule
from phalanx.control.reverse import transpose_rule
from phalanx.core.axes import Axis
from phalanx.core.builder import Body, Builder, Value
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import Active, Derivative, Primitive
from phalanx.core.program import Frame, Program
from phalanx.core.roles import CHOICE, FIXED
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import broadcast, broadcast_lanes, convert, move, reshape, zeros
from phalanx.primitives.collective import pmax
from phalanx.primitives.compare import eq, select
from phalanx.primitives.domains import I32
from phalanx.primitives.guard import guarded
from phalanx.primitives.lanes import rows_at
from phalanx.primitives.reduce import reduce_min
from phalanx.primitives.shape import iota
from phalanx.transforms.batch import Dims, batch_program, on_lanes, place_lanes
from phalanx.transforms.derive import derive
from phalanx.transforms.masking import where_taken, with_condition
from phalanx.transforms.replication import Varying
from phalanx.transforms.simplify import filled
from phalanx.transforms.stage import evaluate
from phalanx.transforms.work import MESSAGE, work

INDEX = ArrayType((), I32)
Branches = tuple[Program, ...]
Results = Sequence[Any]

# A question keeps a compiler from fusing what stands around it, and has a GPU wait for the answer.
_WORTH_A_QUESTION = 2 * MESSAGE  # of operations that may be saved
_MANY_COPIES = 2**14  # elements that would be repeated, to be guarded in every lane


def _frame(*, programs: Branches, agreed: bool = False) -> Frame:
    first = programs[0]
    ins = (CHOICE, *(FIXED,) * len(first.inputs))
    return Frame(programs, ins, (FIXED,) * len(first.outputs))


def _lower(b: Builder, *xs: Value, programs: Branches, agreed: bool = False) -> list[Value]:
    index, *operands = xs

    def body(program: Program) -> Body:
        return lambda b: b.inline(program, *operands)

    return b.case(index, list(map(body, programs)))


# ---- lanes that choose differently --------------------------------------------------------------


def _batch(
    axis: Axis, values: Sequence[Any], dims: Dims, *, programs: Branches, agreed: bool = False
) -> tuple[tuple[Any, ...], Dims]:
    if dims[0] is None:
        return _batch_alike(axis, values, dims, programs=programs, agreed=agreed)
    index = place_lanes(values[0], dims[0], 0, axis.size)
    takers = [eq(index, np.int32(i)) for i in range(len(programs))]
    worth_asking = [_is_worth_asking(axis, p, dims[1:]) for p in programs]
    any_taken: list[Any] = [None] * len(programs)
    if any(worth_asking):
        everywhere = axis.together or any(axis.name in p.axes for p in programs)
        answers = anyone(axis, takers, everywhere)
        any_taken = [y if a else None for y, a in zip(answers, worth_asking, strict=True)]
    of_branches = [
        _on_lanes(axis, p, values[1:], dims[1:], taken, some, agreed)
        for p, taken, some in zip(programs, takers, any_taken, strict=True)
    ]
    results = tuple([_selected(takers, column) for column in zip(*of_branches, strict=True)])
    return results, (0,) * len(results)


_batch_alike = batch_rule(lambda: branch)


def _is_worth_asking(axis: Axis, program: Program, dims: Dims) -> bool:
    """Whether ``program`` is worth the question if any lane takes it."""
    if work(program) * axis.size >= _WORTH_A_QUESTION:
        return True
    shared = sum(v.type.size for v, d in zip(program.inputs, dims, strict=True) if d is None)
    return not program.axes and shared * axis.size >= _MANY_COPIES


def _on_lanes(
    axis: Axis,
    program: Program,
    values: Results,
    dims: Dims,
    taken: Any,
    any_taken: Any,
    agreed: bool,
) -> Results:
    """The results of one branch, lanes first; any in lanes where it is not ``taken``.

    They are zeros where ``any_taken`` says that no lane takes it; None: it runs in any case.
    """
    if program.axes or any_taken is None:
        program = where_taken(program)
    else:
        values, dims = _of_takers(axis, values, dims, taken)
        program = with_condition(program)
    operands, places = [taken, *values], (0, *dims)
    if any_taken is None:
        return on_lanes(program, axis, operands, places)
    all_results = (True,) * len(program.outputs)
    return _if_any_taken(
        any_taken, operands, batch_program(program, axis, places, all_results).program, agreed
    )


def _of_takers(axis: Axis, values: Results, dims: Dims, taken: Any) -> tuple[list[Any], Dims]:
    """``values``, in lanes that do not take a branch those of the first one that takes it."""
    lanes = iota(dtype=I32, shape=(axis.size,), dim=0)
    last = broadcast(np.int32(axis.size - 1), shape=(axis.size,), dims=())
    first = reshape(reduce_min(select(taken, lanes, last), dims=(0,)), shape=(1,))

    def chosen(x: Any) -> Any:
        row = reshape(rows_at(x, first), shape=typeof(x).shape[1:])
        return guarded(taken, x, broadcast_lanes(row, 0, axis.size))

    placed = [v if d is None else chosen(move(v, d, 0)) for v, d in zip(values, dims, strict=True)]
    return placed, tuple([None if d is None else 0 for d in dims])


def _if_any_taken(any_taken: Any, operands: Results, program: Program, agreed: bool) -> Results:
    """The results of ``program``, or zeros."""

    def make() -> Program:
        empty = program.update(equations=[], outputs=())
        return filled(empty, program.output_types, (False,) * len(program.outputs))

    programs = memoize_on(program, "not taken", make), program
    which = convert(any_taken, dtype=I32, weak=False)
    return branch(which, *operands, programs=programs, agreed=agreed)


def _selected(takers: Sequence[Any], column: Sequence[Any]) -> Any:
    """The result of the branch that is taken; ``column`` has that of each branch."""
    chosen, *others = column
    shape = typeof(chosen).shape
    for taken, value in zip(takers[1:], others, strict=True):
        leading = tuple(range(len(typeof(taken).shape)))
        chosen = select(broadcast(taken, shape=shape, dims=leading), value, chosen)
    return chosen


# ---- derivatives --------------------------------------------------------------------------------


def _linearize(
    active: Active, *primals: Any, programs: Branches, agreed: bool = False
) -> Derivative:
    """Branches that communicate have residuals in all lanes, which the collectives may use.

    So it is settled now that every lane runs what any of them takes.
    """
    if agreed or not any(p.axes for p in programs):
        return _linearize_alike(active, *primals, programs=programs, agreed=agreed)
    return _linearize_call(active, *primals, program=_in_agreement(programs))


_linearize_alike = linearize_rule(lambda: branch)
_linearize_call = linearize_rule(lambda: call)


def _in_agreement(programs: Branches) -> Program:
    """The program of ``branch`` that runs, in all lanes, each branch that any lane takes."""
    frame = _frame(programs=programs)
    names = frozenset[Any]().union(*(p.axes for p in programs))
    axes = tuple(sorted(names, key=str))

    def run(index: Any, *operands: Any) -> tuple[list[Any], None]:
        takers = [eq(index, np.int32(i)) for i in range(len(programs))]
        marks = [convert(t, dtype=I32, weak=False) for t in takers]
        any_taken = pmax(*marks, axes=axes, groups=None)
        of_branches = [
            _if_any_taken(w, [taken, *operands], where_taken(p), True)
            for p, taken, w in zip(programs, takers, any_taken, strict=True)
        ]
        return [_selected(takers, column) for column in zip(*of_branches, strict=True)], None

    types = [INDEX, *programs[0].input_types]
    return derive(programs[0], ("in agreement", frame.key), run, types).program


def _transpose(
    cts: Results, index: Any, *operands: Any, programs: Branches, agreed: bool = False
) -> Sequence[Any]:
    """A rule of the user's may send cotangents to other lanes: zeros, where it is not taken."""
    params = {"programs": programs, "agreed": agreed}
    if agreed or not any(p.has_user_rules for p in programs):
        return _transpose_alike(cts, index, *operands, **params)
    params["programs"] = tuple([_if_chosen(p, i) for i, p in enumerate(programs)])
    _, _, *cotangents = _transpose_alike(cts, index, index, *operands, **params)
    return [None, *cotangents]


_transpose_alike = transpose_rule(lambda: branch)


def _if_chosen(program: Program, number: int) -> Program:
    """``program``, with zeros as results unless its first input, the index, is ``number``."""

    def run(index: Any, *inputs: Any) -> tuple[list[Any], None]:
        chosen = eq(index, np.int32(number))
        outputs = evaluate(program, inputs)
        return [_selected([None, chosen], [zeros(typeof(y)), y]) for y in outputs], None

    return derive(program, ("if chosen", number), run, [INDEX, *program.input_types]).program


def _decides(operands: Sequence[Varying], **_: Any) -> Varying:
    return operands[0]


branch: Primitive = with_subprograms(
    "cond",
    _lower,
    _frame,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    decides=_decides,
    doc="programs[index](operands); stablehlo.case",
)
