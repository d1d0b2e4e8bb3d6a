"""``custom_vjp``: a function whose cotangents a pair of rules of the user's computes.

The first rule, forward, gives the results and what the second one, backward, needs of them. The
linear half of the derivative is one operation: it can be transposed, which is to run the backward
rule, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from phalanx.base import dtypes
from phalanx.base.source import user_location
from phalanx.control.custom import Applied, Places, fitted, run, with_rules
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, Linear, Primitive
from phalanx.core.program import Program, plain
from phalanx.core.trace import entering
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import mul, reduce_sum
from phalanx.transforms.batch import batch, place_lanes
from phalanx.transforms.closures import Closure
from phalanx.transforms.linearize import Dual

Nonzero = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What the forward rule gives: results, residuals, and ``kept``, which goes to the backward."""

    results: Sequence[Any]
    residuals: Sequence[Any]
    kept: Any


Forward = Callable[[Nonzero, Sequence[Any]], Found]
Backward = Callable[[Nonzero, Any, Sequence[Any]], Sequence[Any]]


class VjpRule:
    """``forward(nonzero, operands)``, and ``backward(nonzero, kept, [*closed, *residuals, *cts])``.

    The backward rule gives a cotangent, or ZERO, for each operand that is not closed over. Its
    ``cts`` may be ZERO, too.
    """

    def __init__(self, name: str, forward: Forward, backward: Backward) -> None:
        self.name = name
        self.forward = forward
        self.backward = backward

    @classmethod
    def of(cls, name: str, forward: Forward, backward: Backward, closure: Closure) -> VjpRule:
        """The rules of a function that closes over values: they become its first operands."""

        def explicit(nonzero: Nonzero, operands: Sequence[Any]) -> Found:
            return _flat(lambda xs: forward(nonzero, xs), lambda f: closure.run(f, operands))

        return cls(
            name,
            explicit,
            lambda nonzero, kept, operands: closure.run(
                lambda *xs: backward(nonzero, kept, xs), operands
            ),
        )

    def lanes(self, axis: Axis, dims: tuple, places: Places) -> VjpRule:
        """The rules on all lanes of ``axis``."""

        def forward(nonzero: Nonzero, operands: Sequence[Any]) -> Found:
            where: list[int | None] = []

            def vectorized(function: Callable) -> list[Any]:
                values, found = batch(function, axis, operands, dims)
                where.extend(found)
                return values

            found = _flat(lambda xs: self.forward(nonzero, xs), vectorized)
            count = len(found.results)
            results = places.put(found.results, where[:count])
            return Found(results, found.residuals, (found.kept, tuple(where[count:])))

        def backward(nonzero: Nonzero, kept: Any, operands: Sequence[Any]) -> list[Any]:
            inner, residuals = kept
            moving = dims[len(dims) - len(nonzero) :]
            where = [*dims[: len(dims) - len(nonzero)], *residuals, *(places.dims or ())]
            lanes = [None if x is ZERO else d for x, d in zip(operands, where, strict=True)]
            found = batch(lambda *xs: self.backward(nonzero, inner, xs), axis, operands, lanes)
            return [_lanes_of(ct, d, to, axis) for ct, d, to in zip(*found, moving, strict=True)]

        return VjpRule(self.name, forward, backward)

    def carrying(self, count: int) -> VjpRule:
        """The rules with ``count`` operands before the others, which are the first results."""

        def forward(nonzero: Nonzero, operands: Sequence[Any]) -> Found:
            found = self.forward(nonzero, operands[count:])
            results = [*operands[:count], *found.results]
            return Found(results, found.residuals, (found.kept, len(found.results)))

        def backward(nonzero: Nonzero, kept: Any, operands: Sequence[Any]) -> Sequence[Any]:
            inner, results = kept
            cts = len(operands) - results
            return self.backward(
                nonzero, inner, [*operands[count : cts - count], *operands[cts:]]
            )

        return VjpRule(self.name, forward, backward)

    def __str__(self) -> str:
        return self.name


def _flat(forward: Callable[[Sequence[Any]], Found], through: Callable) -> Found:
    """``forward`` as a function of flat results, run by ``through``."""
    split: list[Any] = []

    def function(*xs: Any) -> list[Any]:
        found = forward(xs)
        split[:] = [len(found.results), found.kept]
        return [*found.results, *found.residuals]

    values = through(function)
    count, kept = split
    return Found(values[:count], values[count:], kept)


def _lanes_of(ct: Any, dim: int | None, to: int | None, axis: Axis) -> Any:
    """A cotangent where its operand has its lanes; the sum over lanes where it has none."""
    if ct is ZERO:
        return ct
    if to is not None:
        return place_lanes(ct, dim, to, axis.size)
    return mul(ct, axis.size) if dim is None else reduce_sum(ct, dims=(dim,))


# ---- the function -------------------------------------------------------------------------------


def _differentiate(
    dual: Dual, *args: Any, program: Program | Applied, rule: VjpRule, closed: int
) -> tuple:
    pairs = [dual.split(a) for a in args]
    primals = [p for p, _ in pairs]
    tangents = [t for _, t in pairs[closed:]]
    nonzero = tuple(t is not ZERO for t in tangents)
    given = [t for t in tangents if t is not ZERO]
    operands = [*args[:closed], *primals[closed:]]  # what is closed over keeps its tangent
    if not given:
        with entering(dual):
            _check_closed(dual, run(*operands, program=program), rule)
        with entering(dual.parent):  # type: ignore[arg-type]
            out = custom_vjp(*primals, program=program, rule=rule, closed=closed)
        return out, (ZERO,) * len(out)
    if dual.tangents is dual.parent:
        refuse_forward(rule.name)
    with entering(dual):
        found = rule.forward(nonzero, operands)
    _check_closed(dual, found.results, rule)
    residuals = [dual.split(x)[0] for x in found.residuals]
    with entering(dual.parent):  # type: ignore[arg-type]
        out = fitted([dual.split(y)[0] for y in found.results], program)
    types = tuple(plain(typeof(y)) for y in out)
    with entering(dual.tangents):
        pushed = iter(
            linear(
                *primals[:closed], *residuals, *given, rule=rule, kept=Kept(found.kept),
                nonzero=nonzero, known=closed + len(residuals), types=types,
            )
        )  # fmt: skip
    return out, tuple(next(pushed) if dtypes.is_inexact(t.dtype) else ZERO for t in types)


def _check_closed(dual: Dual, results: Sequence[Any], rule: VjpRule) -> None:
    """Raise TypeError if ``results`` depend on what is differentiated besides by the operands."""
    for y in results:
        if dual.split(y)[1] is not ZERO:
            refuse_closed(rule.name, dual.name)


def refuse_closed(name: str, by: str) -> NoReturn:
    """Raise the error for a function that closes over what is differentiated."""
    raise TypeError(
        f"custom_vjp({name}): {by} differentiates, at {user_location()}, by a value that {name} or "
        "its forward rule closes over, or takes as a nondifferentiable argument; its backward rule "
        "gives cotangents for the other arguments alone. Make the value such an argument, and let "
        "bwd give its cotangent; or apply lax.stop_gradient to it"
    )


def refuse_forward(name: str) -> NoReturn:
    """Raise the error for forward mode, for which there is no rule."""
    raise TypeError(
        f"custom_vjp({name}): forward mode (jvp, jacfwd, linearize, hessian's outer half) needs a "
        f"rule for tangents, at {user_location()}, and {name} has one for cotangents only; use "
        "custom_jvp, whose rule serves both modes, or reverse mode (grad, vjp, jacrev)"
    )


custom_vjp: Primitive = with_rules(
    "custom_vjp",
    _differentiate,
    apart=True,
    doc="the results of a program whose cotangents a rule gives; func.call",
)


# ---- its derivative -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kept:
    """What the forward rule leaves for the backward besides arrays."""

    value: Any

    def __str__(self) -> str:
        return "kept"


def _linear_types(*xs: ArrayType, types: tuple, **_: Any) -> tuple:
    return tuple(t for t in types if dtypes.is_inexact(t.dtype))


def _forward_only(*_: Any, rule: VjpRule, **__: Any) -> NoReturn:
    refuse_forward(rule.name)


def _linear_transpose(
    cts: tuple, *operands: Any, rule: VjpRule, kept: Kept, nonzero: Nonzero, known: int,
    types: tuple,
) -> list:  # fmt: skip
    given = iter(cts)
    every = [next(given) if dtypes.is_inexact(t.dtype) else ZERO for t in types]
    found = rule.backward(nonzero, kept.value, [*operands[:known], *every])
    asked = [ct for ct, n in zip(found, nonzero, strict=True) if n]
    wanted = [isinstance(x, Linear) for x in operands[known:]]
    return [None] * known + [ct if w else None for ct, w in zip(asked, wanted, strict=True)]


linear: Callable = Primitive(
    "custom_vjp_linear",
    _linear_types,
    lambda b, *xs, rule, **params: refuse_forward(rule.name),
    linearize=lambda active, *xs, rule, **params: refuse_forward(rule.name),
    transpose=_linear_transpose,
    batch=lambda axis, values, dims, rule, **params: refuse_forward(rule.name),
    run=_forward_only,
    by_user=True,
    multi=True,
    doc="the linear half of a function with a rule for cotangents; only to be transposed",
)
