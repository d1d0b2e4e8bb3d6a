"""Inside of a transformation: what is known is computed now, what is traced where it belongs."""

from __future__ import annotations

from typing import Any

from phalanx.core.primitive import Primitive
from phalanx.core.trace import InnerTrace, Trace, Tracer, current, entering


class KnownNow(InnerTrace):
    """Sends each operation to the innermost trace to which one of its operands belongs.

    Where none is traced that is eager evaluation. What names an axis is left to the transformation
    around the block, which knows it.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(current(), "ensure_compile_time_eval")

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        trace = self.parent if prim.axes(params) else self._owner(args)
        with entering(trace):
            return trace.process(prim, args, params)

    def home_of(self, value: Any) -> Trace:
        return self._owner((value,))

    def _owner(self, values: tuple[Any, ...]) -> Trace:
        trace: Trace = self.parent
        traced = [x for x in values if isinstance(x, Tracer)]
        while trace.parent is not None and not any(map(trace.owns, traced)):
            trace = trace.parent
        return trace
