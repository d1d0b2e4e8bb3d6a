"""Inside of a transformation: what is known is computed now, what is traced where it belongs."""

from __future__ import annotations

from typing import Any

from phalanx.core.primitive import Primitive
from phalanx.core.trace import InnerTrace, Trace, current, entering, owner_of


class CompileTimeEvalTrace(InnerTrace):
    """Sends each operation to the innermost trace to which one of its operands belongs.

    Where none is traced that is eager evaluation. What names an axis is left to the transformation
    around the block, which knows it.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(current(), "ensure_compile_time_eval")

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        trace = self.parent if prim.axes(params) else owner_of(args, self.parent)
        with entering(trace):
            return trace.process(prim, args, params)

    def owner_of(self, value: Any) -> Trace:
        return owner_of((value,), self.parent)
