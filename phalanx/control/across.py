"""Lanes over processes, operation by operation: each process does what its own lanes do.

Only what communicates is a launch of all processes: of one lane for each, in which lies what all
lanes of the process have.
"""

from __future__ import annotations

from typing import Any

from phalanx.control.spanned import spanned
from phalanx.core.primitive import Primitive
from phalanx.core.program import plain
from phalanx.core.roles import slices
from phalanx.core.trace import InnerTrace, Trace, entering
from phalanx.core.types import typeof
from phalanx.ops.basis import broadcast_lanes, reshape
from phalanx.run.eager import program_of
from phalanx.run.spanning import Sharing


class Across(InnerTrace):
    """Hands on each primitive to its parent; over the axis of ``sharing``, in all processes."""

    __slots__ = ("sharing",)

    def __init__(self, parent: Trace, sharing: Sharing) -> None:
        super().__init__(parent, sharing.who)
        self.sharing = sharing

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        axis = self.sharing.axis
        if axis not in prim.axes(params):
            return self.parent.process(prim, args, params)
        with entering(self.parent):
            program = program_of(prim, tuple([plain(typeof(x)) for x in args]), params)
            lane = slices(((axis,),))
            results = spanned(
                *[broadcast_lanes(x, 0, 1) for x in args],
                program=program,
                axes=((axis, 1),),
                ins=(lane,) * len(program.inputs),
                outs=(lane,) * len(program.outputs),
                at_once=None,
                sharing=self.sharing,
            )
            out = [reshape(y, shape=typeof(y).shape[1:]) for y in results]
        return tuple(out) if prim.multi else out[0]
