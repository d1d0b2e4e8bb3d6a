"""``custom_vmap``: a function, and a rule for what it does on all lanes of an axis at once.

Derivatives, and what is on all lanes where the rule cannot know, are those of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.control.call import as_call, call, frame_of_one, lower_call
from phalanx.control.family import with_subprograms
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Batched, LaneDims, Operands, Primitive, UserRules
from phalanx.core.program import Frame, Program
from phalanx.ops.basis import move
from phalanx.transforms.closures import Closure

OnLanes = Callable[[int, Sequence[bool], Sequence[Any]], tuple[Sequence[Any], Sequence[bool]]]


class VmapRule:
    """``on_lanes(size, moving, operands)`` to results, and which of them have lanes.

    It is about the last operands, ``count`` in number. Those that are ``moving`` have their lanes
    first, and so do the results that have some.
    """

    def __init__(self, name: str, on_lanes: OnLanes, count: int, closure: Closure) -> None:
        self.name = name
        self.on_lanes = on_lanes
        self.count = count
        self.closure = closure

    def run(
        self, size: int, moving: Sequence[bool], operands: Sequence[Any]
    ) -> tuple[list[Any], Sequence[bool]]:
        """The same, where the first operands are the values that the function closes over."""
        marks: list[bool] = []

        def flat(*xs: Any) -> Sequence[Any]:
            results, with_lanes = self.on_lanes(size, moving, xs)
            marks.extend(with_lanes)
            return results

        return self.closure.run(flat, operands), marks

    def __str__(self) -> str:
        return self.name


def _frame(*, program: Program, rule: VmapRule, closed: int) -> Frame:
    return frame_of_one(program=program)


def _lower(b: Builder, *xs: Value, program: Program, **_: Any) -> list[Value]:
    return lower_call(b, *xs, program=program)


def _batch(
    axis: Axis,
    values: Operands,
    dims: LaneDims,
    *,
    program: Program,
    rule: VmapRule,
    closed: int,
) -> Batched:
    moving = [d is not None for d in dims]
    known = len(values) - rule.count  # what it closes over, and before that, lifted constants
    if any(moving[:known]) or not any(moving):  # of what it closes over, the rule knows nothing
        return call.rule("batch")(axis, values, dims, program=program)
    front = [v if d is None else move(v, d, 0) for v, d in zip(values, dims, strict=True)]
    given = front[known - len(rule.closure.closed) :]
    results, marks = rule.run(axis.size, moving[known:], given)
    return tuple(results), tuple([0 if m else None for m in marks])


custom_vmap: Primitive = with_subprograms(
    "custom_vmap",
    _lower,
    _frame,
    linearize=as_call(call.rule("linearize")),
    jvp=as_call(call.rule("jvp", call.subprograms)),
    transpose=as_call(call.rule("transpose")),
    batch=_batch,
    carry_state=as_call(call.rule("carry_state", call.effects)),
    user_rules=UserRules(),
    doc="the results of a program that a rule vectorizes; func.call",
)
