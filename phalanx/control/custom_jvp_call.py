"""``custom_jvp``: a function whose tangents a rule of the user's computes.

The rule is a function of primals and tangents. In reverse mode, which has the two halves of a
derivative one by one, it is run once and each operation joins the half to which it belongs. Values
that the function closes over are not the rule's concern: they are differentiated as if there
were none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.base.source import user_location
from phalanx.control.custom_derivatives import Applied, RuleOperands, fitted, run, with_rules
from phalanx.control.result_dims import ResultDims
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, Primitive
from phalanx.core.program import Program
from phalanx.core.runs import Marks
from phalanx.core.trace import entering
from phalanx.core.types import typeof
from phalanx.primitives.basis import add_tangents
from phalanx.primitives.vary import sorted_axes
from phalanx.transforms.batch import Dims, batch
from phalanx.transforms.closures import Closure
from phalanx.transforms.linearize import Dual, DualTracer
from phalanx.transforms.rules import RuleTrace

Pair = Callable[[Marks, Sequence[Any]], Sequence[Any]]


class JvpRule:
    """Operands and tangents, of those marked as having some, to results and their tangents.

    ``pair(nonzero, [*operands, *tangents])`` gives ``[*results, *tangents]``.
    """

    def __init__(self, name: str, pair: Pair) -> None:
        self.name = name
        self.pair = pair

    @classmethod
    def of(cls, name: str, pair: Pair, closure: Closure) -> JvpRule:
        """The rule of a function that closes over values: they become its first operands."""

        def explicit(nonzero: Marks, operands: Sequence[Any]) -> list[Any]:
            return closure.run(lambda *xs: pair(nonzero, xs), operands)

        return cls(name, explicit)

    def lanes(self, axis: Axis, dims: Dims, places: ResultDims) -> JvpRule:
        """The rule on all lanes of ``axis``."""

        def pair(nonzero: Marks, operands: Sequence[Any]) -> list[Any]:
            moving = dims[len(dims) - len(nonzero) :]
            where = [*dims, *(d for d, n in zip(moving, nonzero, strict=True) if n)]
            return places.put_pairs(
                *batch(lambda *xs: self.pair(nonzero, xs), axis, operands, where)
            )

        return JvpRule(self.name, pair)

    def with_state(self) -> JvpRule:
        """The rule with an operand before the others, which is the first result as it is."""

        def pair(nonzero: Marks, operands: Sequence[Any]) -> list[Any]:
            state, *others = operands
            out = self.pair(nonzero, others)
            half = len(out) // 2
            return [state, *out[:half], ZERO, *out[half:]]

        return JvpRule(self.name, pair)

    def __str__(self) -> str:
        return self.name


def _differentiate(
    dual: Dual, *args: Any, program: Program | Applied, rule: JvpRule, num_consts: int
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    operands = RuleOperands.of(dual, args, num_consts)
    if not operands.tangents:
        with entering(dual.parent):
            out = custom_jvp(*operands.primals, program=program, rule=rule, num_consts=num_consts)
        with entering(dual):
            via_closed = run(*operands.seen, program=program)
        return out, tuple(dual.split(y)[1] for y in via_closed)
    with entering(RuleTrace(dual)):
        pair = rule.pair(operands.nonzero, [*operands.seen, *operands.tangents])
    count = len(pair) // 2
    halves = [dual.split(y) for y in pair[:count]]
    if any(dual.depends(y) for y, _ in halves):
        raise TypeError(
            f"custom_jvp({rule}): a result depends on tangents, at {user_location()}; the rule "
            "must return a pair, first the result, computed from primals alone, then its tangent"
        )
    tangents = [_of_dual(dual, t) for t in pair[count:]]
    with entering(dual.parent):
        out = fitted([y for y, _ in halves], program)
    _check_varying(out, tangents, rule)
    with entering(dual.tangents):
        return out, tuple(
            add_tangents(t, via_closed) for t, (_, via_closed) in zip(tangents, halves, strict=True)
        )


def _check_varying(results: Sequence[Any], tangents: Sequence[Any], rule: JvpRule) -> None:
    """Raise TypeError if a tangent differs between positions at which its result is the same."""
    for i, (y, t) in enumerate(zip(results, tangents, strict=True)):
        more = () if t is ZERO else sorted_axes(typeof(t).varying - typeof(y).varying)
        if more:
            raise TypeError(
                f"custom_jvp({rule}): the tangent of result {i} varies along axis {more[0]!r}, "
                f"along which the result does not, at {user_location()}. Reduce it as the result "
                f"is, with lax.psum or lax.pmean, or return lax.pvary(result, {more[0]!r})"
            )


def _of_dual(dual: Dual, tangent: Any) -> Any:
    """A tangent that a rule gave; ZERO where it does not depend on the tangents it was given."""
    if isinstance(tangent, DualTracer):
        tangent, _ = dual.split(tangent)
    return tangent if dual.tangents is dual.parent or dual.depends(tangent) else ZERO


custom_jvp: Primitive = with_rules(
    "custom_jvp",
    _differentiate,
    own_lanes=False,
    doc="the results of a program whose tangents a rule gives; func.call",
)
