"""Operations with sub-programs are one family: what transformations do to them follows from roles.

A member says, as a ``Frame``, which programs it runs, how often, and what each operand and result
is to them. It writes its own lowering, and states what is an exception to the rules of the family:

- types, effects and the replication analysis stand here;
- derivatives in ``forward`` and ``reverse``, vectorization in ``lanes``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.control.forward import dual_rule, jvp_rule, linearize_rule
from phalanx.control.framed import bind_frame, frame_of
from phalanx.control.lanes import batch_rule
from phalanx.control.reverse import transpose_rule
from phalanx.core.primitive import (
    BatchRule,
    DualRule,
    Effects,
    Execution,
    FrameRule,
    LinearizeRule,
    LowerRule,
    NoRule,
    OnDevices,
    Primitive,
    Rule,
    SubPrograms,
    TransposeRule,
    UserRules,
)
from phalanx.core.program import Frame, Program
from phalanx.core.roles import CARRY
from phalanx.core.types import ArrayType
from phalanx.transforms.replication import Varying, varying_outputs
from phalanx.transforms.simplify import fixpoint

Rewrite = Callable[[Program], Program]  # to one with a state, its first input and first output
StateAndResults = tuple[Any, list[Any]]
_ON_ANY_DEVICES, _COMPILED = OnDevices(), Execution()


def with_subprograms(
    name: str,
    lower: LowerRule,
    frame: FrameRule,
    *,
    linearize: LinearizeRule | DualRule | None = None,
    transpose: TransposeRule | NoRule | None = None,
    batch: BatchRule | None = None,
    carry_state: Rule | None = None,
    decides: Rule | None = None,
    whole: bool = False,
    user_rules: UserRules | None = None,
    on_devices: OnDevices = _ON_ANY_DEVICES,
    execution: Execution = _COMPILED,
    doc: str,
) -> Primitive:
    """Declare an operation with sub-programs; the rules given stand in place of the family's."""

    def type_rule(*types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return _result_types(frame(**params), types)

    def vary(*operands: Varying, **params: Any) -> tuple[Varying, ...]:
        return varying_results(frame(**params), operands)[0]

    def itself() -> Primitive:
        return prim

    if not isinstance(linearize, DualRule):
        linearize = dual_rule(linearize or linearize_rule(itself), jvp_rule(itself))
    prim = Primitive(
        name,
        type_rule,
        lower,
        linearize=linearize,
        transpose=transpose or transpose_rule(itself),
        batch=batch or batch_rule(itself),
        vary=vary,
        multi=True,
        subprograms=SubPrograms(frame, decides, whole),
        effects=Effects(carry_state=carry_state or _carry_state(itself)),
        user_rules=user_rules,
        on_devices=on_devices,
        execution=execution,
        doc=doc,
    )
    return prim


def _result_types(frame: Frame, types: Sequence[ArrayType]) -> tuple[ArrayType, ...]:
    """The types of the results for operands of ``types``, on which some choices may depend.

    A result varies where any of the programs' does, or what chooses between them, or what says how
    often they run; what is carried where it does to begin with.
    """
    results = frame.result_types
    each = [t for p in (*frame.programs, frame.condition) if p for t in p.output_types]
    if not any(t.varying for t in (*types, *results, *each)):
        return results
    chosen = Varying().union(*[t.varying for t in frame.choices(types)])
    if frame.condition is not None:
        chosen |= frame.condition.output_types[0].varying
    columns = zip(*[p.output_types for p in frame.programs], strict=True)
    varying = [chosen.union(*[t.varying for t in column]) for column in columns]
    taken = zip(frame.body_roles, frame.programs[0].input_types, strict=True)
    starts = [t.varying for r, t in taken if r is CARRY]
    carried = zip(frame.carried_out(varying), starts, strict=True)
    of_results = frame.with_carried_out(varying, [v | start for v, start in carried])
    return tuple(
        [t.update(varying=v - frame.lanes) for t, v in zip(results, of_results, strict=True)]
    )


# ---- replication --------------------------------------------------------------------------------


def varying_results(
    frame: Frame, operands: Sequence[Varying]
) -> tuple[tuple[Varying, ...], Varying]:
    """The axes over which each result differs, and those over which the condition does."""
    own = frame.lanes
    shadowed = own.intersection(Varying().union(*operands))  # axes of the same names, outside
    chosen = Varying().union(*frame.choices(operands))
    start = [(v - own) | (r.axes & own) for r, v in zip(frame.ins, operands, strict=True)]

    def results(carry: Sequence[Varying]) -> tuple[list[Varying], Varying]:
        inputs = frame.body_operands(frame.with_carried_in(start, carry))
        columns = zip(*(varying_outputs(p, inputs) for p in frame.programs), strict=True)
        stops = _varying_condition(frame.condition, inputs)
        return [chosen.union(stops, *column) for column in columns], stops

    carry = fixpoint(frame.carried_in(start), lambda c: frame.carried_out(results(c)[0]))
    outputs, stops = results(carry)
    # what does not differ after a run may differ where there is none
    of_results = frame.with_carried_out(outputs, carry)
    return tuple([(v - own) | shadowed for v in of_results]), stops


def _varying_condition(condition: Program | None, inputs: Sequence[Varying]) -> Varying:
    return Varying() if condition is None else varying_outputs(condition, inputs)[0]


# ---- effects ------------------------------------------------------------------------------------


def _carry_state(prim: Callable[[], Primitive]) -> Rule:
    """The rule for effects: the state goes into every program and out of it, from run to run."""

    def rule(rewrite: Rewrite, state: Any, /, *operands: Any, **params: Any) -> StateAndResults:
        frame = frame_of(prim(), params)
        carrying = frame.rewritten(rewrite, (frame.state,), (frame.state,))
        inputs = frame.prepended([state], operands)
        after, *results = bind_frame(prim(), inputs, params, carrying)
        return after, results

    return rule
