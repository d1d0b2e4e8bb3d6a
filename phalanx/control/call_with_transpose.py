"""``linear_call``: a function, linear in some of its operands, with a transpose of the user's.

The operands are those that are closed over, then residuals, then those in which it is linear. A
rule, a Python function, gives the cotangents of the latter, from residuals and cotangents of the
results. Tangents of residuals go through the function as if there were no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.control.custom_derivatives import Applied, as_type, run, with_rules
from phalanx.control.custom_vjp_call import lanes_of_cotangent
from phalanx.control.result_dims import ResultDims
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, Linear, Primitive
from phalanx.core.program import Program
from phalanx.core.trace import entering
from phalanx.core.types import typeof
from phalanx.primitives.basis import add_tangents, instantiate
from phalanx.transforms.batch import Dims, batch
from phalanx.transforms.closures import Closure
from phalanx.transforms.linearize import Dual

Transposed = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


class LinearRule:
    """``transposed(residuals, cts)`` to a cotangent, or ZERO, for each of ``count`` operands.

    These are the last ones, in which the function is linear; ``residuals`` are those before them.
    """

    def __init__(self, name: str, transposed: Transposed, count: int) -> None:
        self.name = name
        self.transposed = transposed
        self.count = count

    @classmethod
    def of(cls, name: str, transposed: Transposed, count: int, closure: Closure) -> LinearRule:
        """The rule of a function that closes over values: they become its first operands."""

        def explicit(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            size = len(residuals) - len(closure.captured)
            return closure.run(lambda *xs: transposed(xs[:size], xs[size:]), [*residuals, *cts])

        return cls(name, explicit, count)

    def lanes(self, axis: Axis, dims: Dims, places: ResultDims) -> LinearRule:
        """The rule on all lanes of ``axis``."""
        known_dims, linear_dims = dims[: len(dims) - self.count], dims[len(dims) - self.count :]

        def transposed(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            size = len(residuals)
            in_dims = [*known_dims, *(places.dims or ())]
            values, where = batch(
                lambda *xs: self.transposed(xs[:size], xs[size:]), axis, [*residuals, *cts], in_dims
            )
            triples = zip(values, where, linear_dims, strict=True)
            return [lanes_of_cotangent(ct, d, to, axis) for ct, d, to in triples]

        return LinearRule(self.name, transposed, self.count)

    def with_state(self) -> LinearRule:
        """The rule with an operand before the others, which is the first result as it is."""

        def transposed(residuals: Sequence[Any], cts: Sequence[Any]) -> Sequence[Any]:
            return self.transposed(residuals[1:], cts[1:])

        return LinearRule(self.name, transposed, self.count)

    def __str__(self) -> str:
        return self.name


def _differentiate(
    dual: Dual, *args: Any, program: Program | Applied, rule: LinearRule, num_consts: int
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    params = {"program": program, "rule": rule, "num_consts": num_consts}
    first_linear = len(args) - rule.count
    primals, tangents = zip(*[dual.split(a) for a in args], strict=True)
    with entering(dual.parent):
        out = linear_call(*primals, **params)
    slopes: Sequence[Any] = (ZERO,) * len(out)
    if any(t is not ZERO for t in tangents[first_linear:]):
        types = [typeof(x) for x in primals[first_linear:]]
        with entering(dual.tangents):
            moved = map(instantiate, tangents[first_linear:], types)
            slopes = linear_call(*primals[:first_linear], *moved, **params)
    if any(t is not ZERO for t in tangents[:first_linear]):
        with entering(dual):
            seen = run(*args[:first_linear], *primals[first_linear:], program=program)
        by_known = [dual.split(y)[1] for y in seen]
        with entering(dual.tangents):
            slopes = [add_tangents(s, t) for s, t in zip(slopes, by_known, strict=True)]
    return out, tuple(slopes)


def _transpose(
    cts: tuple[Any, ...], *operands: Any, program: Program, rule: LinearRule, num_consts: int
) -> list[Any]:
    first_linear = len(operands) - rule.count
    types = program.output_types
    dense = [instantiate(ct, t) for ct, t in zip(cts, types, strict=True)]
    cotangents = rule.transposed(operands[:first_linear], dense)
    pairs = zip(cotangents, operands[first_linear:], strict=True)
    return [None] * first_linear + [
        (ct if ct is ZERO else as_type(ct, x.type)) if isinstance(x, Linear) else None
        for ct, x in pairs
    ]


linear_call: Primitive = with_rules(
    "linear_call",
    _differentiate,
    transpose=_transpose,
    own_lanes=True,
    doc="the results of a program that is linear, whose transpose a rule gives; func.call",
)
