"""Reading the frame of an operation with sub-programs, and binding it with another one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from phalanx.core.primitive import Primitive
from phalanx.core.program import Atom, Equation, Frame, Program
from phalanx.core.runs import Marks
from phalanx.transforms.replication import Varying, varying


def frame_of(prim: Primitive, params: dict[str, Any]) -> Frame:
    """The sub-programs of ``prim`` and the roles of its operands and results."""
    return prim.rule("frame", prim.subprograms)(**params)


def varying_values(program: Program, axis: Any, own: Marks) -> set[Atom]:
    """The values of ``program`` that differ between lanes of ``axis``; ``own`` marks the inputs
    that do."""
    inputs = [frozenset({axis}) if mine else Varying() for mine in own]
    return {v for v, over in varying(program, inputs).items() if axis in over}


def varying_inside(e: Equation, frame: Frame, own: Collection[Atom]) -> Marks:
    """Marks of the inputs of the programs of ``e`` that differ between lanes, where the values in
    ``own`` do."""
    carried = frame.carried_out([v in own for v in e.outputs])
    return tuple(frame.body_operands(frame.with_carried_in([a in own for a in e.inputs], carried)))


def bind_frame(
    prim: Primitive, operands: Sequence[Any], params: dict[str, Any], frame: Frame
) -> tuple[Any, ...]:
    """The results of ``prim`` with another ``frame``, its other parameters as they are."""
    return prim(*operands, **frame.to_params(params))
