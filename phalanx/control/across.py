"""Lanes over processes, operation by operation: each process does what its own lanes do.

Only what communicates is a launch of all processes: of one lane for each, in which lies what all
lanes of the process have.
"""

from __future__ import annotations

from typing import Any

from phalanx.base.config import config
from phalanx.base.recent import Recent
from phalanx.control.spanned import spanned
from phalanx.core.primitive import Primitive
from phalanx.core.program import Program, plain
from phalanx.core.roles import slices
from phalanx.core.trace import InnerTrace, Trace, entering
from phalanx.core.types import typeof
from phalanx.ops.basis import broadcast_lanes, reshape
from phalanx.run.spanning import Sharing
from phalanx.transforms.derive import trace_closed

_programs: Recent[Program] = Recent(256)  # of one operation


class Across(InnerTrace):
    """Hands on each primitive to its parent; over the axis of ``sharing``, in all processes."""

    __slots__ = ("sharing",)

    def __init__(self, parent: Trace, sharing: Sharing) -> None:
        super().__init__(parent, sharing.who)
        self.sharing = sharing

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        axis = self.sharing.axis
        if prim.axes is None or axis not in prim.axes(params):
            return self.parent.process(prim, args, params)
        with entering(self.parent):
            program = _of_one(prim, args, params)
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


def _of_one(prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Program:
    """The program of one ``prim``, the same for the same operands, so that it is compiled once."""
    types = tuple([plain(typeof(x)) for x in args])
    key = (prim, types, tuple(params.items()), config.key)
    program = _programs[key]
    if program is None:

        def once(*xs: Any) -> tuple[Any, None]:
            made = prim(*xs, **params)
            return list(made) if prim.multi else [made], None

        program = _programs[key] = trace_closed(once, types, prim.name).program
    return program
