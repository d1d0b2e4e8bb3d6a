"""``custom_jvp``: a function whose tangents a rule of the user's computes.

The rule is a function of primals and tangents. Where the two halves of a derivative are apart,
in reverse mode, it is run once and each operation goes to the half to which it belongs. Values
that the function closes over are not the rule's concern: they are differentiated as if there
were none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.base.source import user_location
from phalanx.control.custom import Applied, Places, fitted, run, with_rules
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, Primitive
from phalanx.core.program import Program
from phalanx.core.trace import entering
from phalanx.ops.basis import add_tangents
from phalanx.transforms.batch import batch
from phalanx.transforms.closures import Closure
from phalanx.transforms.linearize import Dual, DualTracer, Partial

Nonzero = tuple[bool, ...]
Pair = Callable[[Nonzero, Sequence[Any]], Sequence[Any]]


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
        return cls(
            name,
            lambda nonzero, operands: closure.run(lambda *xs: pair(nonzero, xs), operands),
        )

    def lanes(self, axis: Axis, dims: tuple, places: Places) -> JvpRule:
        """The rule on all lanes of ``axis``."""

        def pair(nonzero: Nonzero, operands: Sequence[Any]) -> list[Any]:
            moving = dims[len(dims) - len(nonzero) :]
            where = [*dims, *(d for d, n in zip(moving, nonzero, strict=True) if n)]
            found = batch(lambda *xs: self.pair(nonzero, xs), axis, operands, where)
            return places.put_pairs(*found)

        return JvpRule(self.name, pair)

    def carrying(self, count: int) -> JvpRule:
        """The rule with ``count`` operands before the others, which are the first results."""

        def pair(nonzero: Nonzero, operands: Sequence[Any]) -> list[Any]:
            out = list(self.pair(nonzero, operands[count:]))
            half = len(out) // 2
            return [*operands[:count], *out[:half], *[ZERO] * count, *out[half:]]

        return JvpRule(self.name, pair)

    def __str__(self) -> str:
        return self.name


def _differentiate(
    dual: Dual, *args: Any, program: Program | Applied, rule: JvpRule, closed: int
) -> tuple:
    pairs = [dual.split(a) for a in args]
    primals = [p for p, _ in pairs]
    tangents = [t for _, t in pairs[closed:]]
    nonzero = tuple(t is not ZERO for t in tangents)
    given = [t for t in tangents if t is not ZERO]
    operands = [*args[:closed], *primals[closed:]]  # what is closed over keeps its tangent
    if not given:
        with entering(dual.parent):  # type: ignore[arg-type]
            out = custom_jvp(*primals, program=program, rule=rule, closed=closed)
        with entering(dual):
            found = run(*operands, program=program)
        return out, tuple(dual.split(y)[1] for y in found)
    with entering(Partial(dual)):
        found = rule.pair(nonzero, [*operands, *given])
    count = len(found) // 2
    halves = [dual.split(y) for y in found[:count]]
    if any(dual.depends(y) for y, _ in halves):
        raise TypeError(
            f"custom_jvp({rule}): a result depends on tangents, at {user_location()}; the rule "
            "must return a pair, first the result, computed from primals alone, then its tangent"
        )
    pushed = [_of_dual(dual, t) for t in found[count:]]
    with entering(dual.parent):  # type: ignore[arg-type]
        out = fitted([y for y, _ in halves], program)
    with entering(dual.tangents):
        return out, tuple(
            add_tangents(t, via_closed) for t, (_, via_closed) in zip(pushed, halves, strict=True)
        )


def _of_dual(dual: Dual, tangent: Any) -> Any:
    """A tangent that a rule gave; ZERO where it does not depend on the tangents it was given."""
    if isinstance(tangent, DualTracer):
        tangent, _ = dual.split(tangent)
    return tangent if dual.tangents is dual.parent or dual.depends(tangent) else ZERO


custom_jvp: Primitive = with_rules(
    "custom_jvp",
    _differentiate,
    apart=False,
    doc="the results of a program whose tangents a rule gives; func.call",
)
