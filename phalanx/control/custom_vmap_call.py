"""``custom_vmap``: a function, and a rule for what it does on all lanes of an axis at once.

A derivative of it is such a function, too, whose rule is the derivative of what the rule gives.
The rule is not asked, and the function itself runs on all lanes, where only tangents of arguments
have lanes, and where values that the function closes over have lanes or are differentiated: the
rule does not know of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from phalanx.base import dtypes
from phalanx.control.call import as_call, call, frame_of_one, lower_call
from phalanx.control.family import with_subprograms
from phalanx.control.forward import (
    dense,
    dual_rule,
    jvp_rule,
    linearize_rule,
    linearized,
    paired,
    types_of,
)
from phalanx.control.result_dims import ResultDims, program_on_lanes
from phalanx.control.reverse import transposed
from phalanx.control.rules_on_lanes import (
    Backwards,
    InTangents,
    LanesRule,
    OnLanes,
    OnOtherLanes,
    Storing,
    TangentsAlone,
    WithTangents,
)
from phalanx.core.axes import Axis
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import (
    ZERO,
    Batched,
    Derivative,
    Execution,
    LaneDims,
    Linear,
    Operands,
    Primitive,
    UserRules,
    selected,
    with_zeros,
)
from phalanx.core.program import Frame, Program, Var
from phalanx.core.runs import Marks
from phalanx.core.types import ArrayType
from phalanx.primitives.basis import move, zeros
from phalanx.transforms.closures import Closure
from phalanx.transforms.simplify import filled

UsersRule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[Sequence[Any], Sequence[bool]]]


class VmapRule:
    """``on_lanes(size, moving, operands)`` to results, and which of them have lanes.

    It is about the last operands, ``count`` in number. Those that are ``moving`` have their lanes
    first, and so do the results that have some.
    """

    steady, separate = 0, False

    def __init__(self, name: str, on_lanes: UsersRule, count: int, closure: Closure) -> None:
        self.name = name
        self.on_lanes = on_lanes
        self.closure = closure
        self.total = len(closure.captured) + count
        self.linear = (False,) * self.total

    def asked(self, moving: Marks) -> bool:
        """Whether there is something to ask: any argument has lanes."""
        return any(moving[len(self.closure.captured) :])

    def run(self, axis: Axis, moving: Marks, operands: Sequence[Any]) -> OnLanes:
        """The results, where the first operands are the values that the function closes over."""
        marks: list[bool] = []
        own = moving[len(self.closure.captured) :]

        def flat(*xs: Any) -> Sequence[Any]:
            results, with_lanes = self.on_lanes(axis.size, own, xs)
            marks.extend(with_lanes)
            return results

        return self.closure.run(flat, operands), marks

    def __str__(self) -> str:
        return self.name


def _all_consts(operands: Sequence[Any], rule: LanesRule, num_consts: int) -> int:
    """How many operands are closed over: lifted constants, which come first, are of them."""
    return len(operands) - rule.total + num_consts


def _frame(*, program: Program, rule: LanesRule, num_consts: int) -> Frame:
    return frame_of_one(program=program)


def _batch(
    axis: Axis,
    values: Operands,
    dims: LaneDims,
    *,
    program: Program,
    rule: LanesRule,
    num_consts: int,
) -> Batched:
    moving = tuple([d is not None for d in dims])
    lifted = len(values) - rule.total
    if any(moving[: lifted + num_consts]):
        return call.rule("batch")(axis, values, dims, program=program)
    if not rule.asked(moving[lifted:]):
        places = ResultDims(axis, f"custom_vmap({rule})", own_lanes=False)
        vectorized = program_on_lanes(program, dims, places)
        outer = OnOtherLanes(rule, axis, dims[lifted:], places)
        out = custom_vmap(*values, program=vectorized, rule=outer, num_consts=num_consts)
        return out, places.dims
    front = [v if d is None else move(v, d, 0) for v, d in zip(values, dims, strict=True)]
    results, marks = rule.run(axis, moving[lifted:], front[lifted:])
    return tuple(results), tuple([0 if m else None for m in marks])


# ---- derivatives --------------------------------------------------------------------------------


_call_jvp = jvp_rule(lambda: call)
_call_linearize = linearize_rule(lambda: call)


def _jvp(
    primals: tuple[Any, ...],
    tangents: Sequence[Any],
    /,
    *,
    program: Program,
    rule: LanesRule,
    num_consts: int,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    active = tuple([t is not ZERO for t in tangents])
    if any(active[: _all_consts(primals, rule, num_consts)]):
        return _call_jvp(primals, tangents, program=program)
    pair = paired(frame_of_one(program=program), active)
    nonzero = _with_tangents(program, rule, pair.nonzero)
    both = _with_zero_tangents(pair.frame.programs[0], program, pair.nonzero, nonzero)
    tangent_rule = WithTangents(rule, active[len(active) - rule.total :], nonzero)
    operands = [*primals, *dense(tangents, types_of(primals), active)]
    results = custom_vmap(*operands, program=both, rule=tangent_rule, num_consts=num_consts)
    count = len(program.outputs)
    return results[:count], with_zeros(results[count:], nonzero)


def _linearize(
    active: Marks, /, *primals: Any, program: Program, rule: LanesRule, num_consts: int
) -> Derivative:
    if any(active[: _all_consts(primals, rule, num_consts)]):
        return _call_linearize(active, *primals, program=program)
    own = active[len(active) - rule.total :]
    in_tangents = all([m or not a for a, m in zip(own, rule.linear, strict=True)])
    # of a linear one, neither what is stored nor the second half depends on what it is linear in
    seen = [zeros(t) if a else x for x, t, a in _typed(primals, active)] if in_tangents else primals
    halves = linearized(frame_of_one(program=program), active)
    nonzero = _with_tangents(program, rule, halves.nonzero)
    if in_tangents:
        nonzero = tuple([n and i >= rule.steady for i, n in enumerate(nonzero)])
    first, count = halves.primal.programs[0], len(program.outputs)
    storing = Storing(rule, first.output_types[count:])
    results = custom_vmap(*seen, program=first, rule=storing, num_consts=num_consts)
    stored = halves.collected(seen, results)
    if in_tangents:
        again = custom_vmap(*primals, program=program, rule=rule, num_consts=num_consts)
        pairs = zip(again, results, nonzero, strict=False)
        results = [y if moved else x for y, x, moved in pairs]
        known = tuple([not a for a in active])
        alone: LanesRule = InTangents(rule, own, nonzero, len(stored))
    else:
        known = (True,) * len(active)
        alone = TangentsAlone(rule, own, nonzero, len(stored))
    half = _with_zero_tangents(halves.linear.programs[0], program, halves.nonzero, nonzero)
    second = _with_known(half, program, known)
    types = types_of(primals)

    def linear(*tangents: Any) -> tuple[Any, ...]:
        operands = [*selected(primals, known), *stored, *dense(tangents, types, active)]
        out = custom_vmap(*operands, program=second, rule=alone, num_consts=num_consts)
        return with_zeros(out, nonzero)

    return results[:count], linear


def _with_tangents(program: Program, rule: LanesRule, found: Marks) -> Marks:
    """Which results have a tangent: for a function of the user's those marked in ``found``.

    For a derivative these are all results: its program may have zeros where its rule has a tangent,
    since the program computes with residuals, and the rule with the operands.
    """
    if type(rule) is VmapRule:
        return found
    return tuple([dtypes.is_inexact(t.dtype) for t in program.output_types])


def _with_zero_tangents(program: Program, whole: Program, found: Marks, nonzero: Marks) -> Program:
    """``program``, whose last results are the tangents that ``found`` marks, with zeros for the
    others of those that ``nonzero`` marks."""
    if found == nonzero:
        return program

    def make() -> Program:
        first = len(program.outputs) - sum(found)
        types = [*program.output_types[:first], *selected(whole.output_types, nonzero)]
        present = [*[True] * first, *selected(found, nonzero)]
        return filled(program, types, present)

    return memoize_on(program, ("with zero tangents", found, nonzero), make)


def _typed(primals: Sequence[Any], active: Marks) -> Iterable[tuple[Any, ArrayType, bool]]:
    return zip(primals, types_of(primals), active, strict=True)


def _with_known(linear: Program, whole: Program, known: Marks) -> Program:
    """The ``linear`` half of ``whole``, which takes the inputs that are ``known`` before others."""

    def make() -> Program:
        first = [Var(t) for t in selected(whole.input_types, known)]
        return linear.update(inputs=[*first, *linear.inputs])

    return memoize_on(linear, ("with known", known), make)


def _transpose(
    cts: tuple[Any, ...], /, *operands: Any, program: Program, rule: LanesRule, num_consts: int
) -> Sequence[Any]:
    linear = tuple([isinstance(x, Linear) for x in operands])
    if any(linear[: _all_consts(operands, rule, num_consts)]) or not _inexact(program, linear):
        return call.rule("transpose")(cts, *operands, program=program)
    nonzero = tuple([ct is not ZERO for ct in cts])
    back = transposed(frame_of_one(program=program), linear, nonzero)
    types = [x.type for x in operands if isinstance(x, Linear)]
    transposed_program = back.frame.programs[0]

    def whole() -> Program:
        return filled(transposed_program, [t.cotangent for t in types], back.nonzero)

    backwards = Backwards(rule, linear[len(linear) - rule.total :], types, nonzero)
    known = [x for x in operands if not isinstance(x, Linear)]
    results = custom_vmap(
        *known,
        *[ct for ct in cts if ct is not ZERO],
        program=memoize_on(transposed_program, ("whole", back.nonzero), whole),
        rule=backwards,
        num_consts=num_consts,
    )
    return [r if w else None for r, w in zip(with_zeros(results, linear), linear, strict=True)]


def _inexact(program: Program, marks: Marks) -> bool:
    """Whether all inputs that are marked can have a cotangent."""
    types = zip(program.input_types, marks, strict=True)
    return all([dtypes.is_inexact(t.dtype) for t, mark in types if mark])


custom_vmap: Primitive = with_subprograms(
    "custom_vmap",
    lower_call,
    _frame,
    linearize=dual_rule(_linearize, _jvp),
    transpose=_transpose,
    batch=_batch,
    carry_state=as_call(call.rule("carry_state", call.effects)),
    whole=True,
    user_rules=UserRules(),
    execution=Execution(run=as_call(call)),
    doc="the results of a program that a rule vectorizes; func.call",
)
