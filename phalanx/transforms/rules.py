"""Rules of the user's for tangents, which compute both halves of a derivative at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.base.source import user_location
from phalanx.core.interpret import interpret
from phalanx.core.primitive import Primitive
from phalanx.core.program import Program
from phalanx.core.trace import InnerTrace, Tracer
from phalanx.core.types import typeof
from phalanx.primitives.basis import zeros
from phalanx.transforms.linearize import Dual
from phalanx.transforms.partial_eval import partial_eval


class RuleTrace(InnerTrace):
    """Runs a function of primals and tangents at once: its halves go to those of a ``Dual``.

    What depends on tangents joins the linear half; all else is done now. An operation that runs
    programs is taken apart before.
    """

    __slots__ = ("dual",)

    def __init__(self, dual: Dual) -> None:
        super().__init__(dual, dual.name)
        self.dual = dual

    def owns(self, x: Tracer) -> bool:
        return self.dual.depends(x)

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        active = [self.dual.depends(a) for a in args]
        if True not in active or prim.subprograms is None or prim.user_rules is not None:
            return self._sorted(prim, args, params)
        types = [typeof(a) for a in args]
        alone = Program.of_one(prim, types, params, prim.name, user_location())
        parts = partial_eval(alone, active)
        return tuple(interpret(parts, args, lambda e, xs: self._sorted(e.prim, xs, e.params)))

    def _sorted(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """The results of an operation that runs in the primal half, the linear half, or both: each
        result from the half to which it belongs."""
        dual = self.dual
        if not any(dual.depends(a) for a in args):
            return dual.process(prim, tuple(args), params)
        primals = tuple([dual.split(a)[0] for a in args])
        linear = dual.tangents.process(prim, primals, params)
        if not prim.multi:
            return linear
        mark = frozenset({"a tangent"})
        marks = [mark if dual.depends(a) else frozenset[str]() for a in args]
        rule: frozenset[str] | tuple[frozenset[str], ...] = prim.result_varies(marks, params)
        depending = (rule,) * len(linear) if isinstance(rule, frozenset) else rule
        if all(mark <= d for d in depending):
            return linear
        zeroed = tuple([zeros(typeof(a)) if dual.depends(a) else a for a in args])
        now = dual.process(prim, zeroed, params)
        pairs = zip(linear, now, depending, strict=True)
        return tuple([x if mark <= d else y for x, y, d in pairs])
