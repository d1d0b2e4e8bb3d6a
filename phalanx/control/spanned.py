"""``spanned``: a program in the lanes of an axis that processes share. It is what ``pmap`` binds
where its devices belong to several.

Operands and results are those of this process: of what the axis cuts, the rows of its own lanes.
What all lanes have alike is one value, the same in all processes, and so is its cotangent: of an
operand it is the sum over the lanes of all processes.

To transformations it is ``mapped``: what they change is the body. What is around it is of this
process alone, and may be of other shapes elsewhere; so it is launched by itself, as ``mapped`` over
the devices of all processes, or, if its lanes neither communicate nor act, over those of this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from phalanx.base.config import config
from phalanx.control.chunks import AtOnce
from phalanx.control.family import with_subprograms
from phalanx.control.mapped import mapped
from phalanx.core.builder import Builder, Value
from phalanx.core.layouts import Axes
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import Execution, Primitive
from phalanx.core.program import Frame, Program
from phalanx.core.roles import Role, Roles
from phalanx.core.runs import Lanes
from phalanx.core.types import ArrayType
from phalanx.run.array import Signature
from phalanx.run.calls import LoadedProgram
from phalanx.run.execute import compile_program
from phalanx.run.launched import not_compiled
from phalanx.run.spanning import MultiProcessExecutable, SpannedAxis
from phalanx.transforms.dce import without_unused_inputs


def _frame(
    *, program: Program, axes: Axes, ins: Roles, outs: Roles, at_once: AtOnce, span: SpannedAxis
) -> Frame:
    return Frame((program,), ins, outs, Lanes(axes, span))


def _lower(b: Builder, *xs: Value, span: SpannedAxis, **params: Any) -> NoReturn:
    raise not_compiled(span.who, None)


def _launch(alone: Program, sigs: Sequence[Signature], donate: tuple[int, ...]) -> LoadedProgram:
    """What runs ``alone``, whose only equation is ``spanned``."""
    (equation,) = alone.equations
    params, program = dict(equation.params), equation.params["program"]
    span: SpannedAxis = params.pop("span")
    if not program.axes and not program.effects:
        params |= {"devices": span.local_devices, "mesh": None}
        local = memoize_on(alone, "here", lambda: _of_one(alone.input_types, params))
        return compile_program(local, sigs, donate)
    shard, ins = span.shard, tuple(map(_cut_in, params["ins"]))
    params |= {"devices": shard.devices, "mesh": None, "lane_blocks": shard.lane_blocks}
    params["axes"] = ((shard.axis, shard.lane_blocks.size),)
    types = tuple([shard.whole(s.type, d) for s, d in zip(sigs, ins, strict=True)])

    def make() -> MultiProcessExecutable:
        outs = tuple(map(_cut_in, params["outs"]))
        unused = frozenset(range(len(ins))).difference(without_unused_inputs(program)[1])
        return MultiProcessExecutable(_of_one(types, params), shard, ins, outs, donate, unused)

    # Not again for arrays that lie elsewhere in this process: others would not compile it again.
    settings = [value for value in params.values() if value is not program]
    return memoize_on(program, ("over processes", types, *settings, donate, config.key), make)


def _of_one(types: tuple[ArrayType, ...], params: dict[str, Any]) -> Program:
    """The program of one ``mapped`` on operands of ``types``."""
    return Program.of_one(mapped, types, params, f"pmap_{params['program'].name}")


def _cut_in(role: Role) -> int | None:
    """The dimension in which the axis cuts what has ``role``; None: it does not."""
    return len(role.layout) - 1 if role.layout else None


spanned: Primitive = with_subprograms(
    "spanned",
    _lower,
    _frame,
    execution=Execution(launch=_launch),
    doc="a program in the lanes of an axis over processes; a launch of all of them",
)
