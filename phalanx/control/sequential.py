"""Lanes of an operation that runs for one lane only: one after the other, in a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phalanx.base.recent import memoized
from phalanx.control.scan import scan
from phalanx.core.axes import Axis
from phalanx.core.primitive import Batched, BatchRule, LaneDims, Operands, Primitive
from phalanx.core.program import Program
from phalanx.core.roles import FIXED, Role, each
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import move


def sequential(itself: Callable[[], Primitive]) -> BatchRule:
    """The batching rule of an operation with several results that runs once for every lane."""

    def rule(axis: Axis, values: Operands, dims: LaneDims, **params: Any) -> Batched:
        roles = tuple([FIXED if d is None else each(0) for d in dims])
        placed = [v if d is None else move(v, d, 0) for v, d in zip(values, dims, strict=True)]
        types = tuple([_of_lane(typeof(v), r) for v, r in zip(placed, roles, strict=True)])
        program = _program(itself(), types, tuple(params.items()))
        results = scan(
            *placed,
            program=program,
            ins=roles,
            outs=(each(0),) * len(program.outputs),
            length=axis.size,
            reverse=False,
            unroll=1,
        )
        return results, (0,) * len(program.outputs)

    return rule


def _of_lane(type: ArrayType, role: Role) -> ArrayType:
    return type if role is FIXED else type.update(shape=type.shape[1:])


@memoized(256)
def _program(prim: Primitive, types: tuple[ArrayType, ...], params: tuple[Any, ...]) -> Program:
    """The program of one operation; the same one each time, since more is kept with it."""
    return Program.of_one(prim, types, dict(params), prim.name)
