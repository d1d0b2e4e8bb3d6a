"""``custom_vjp``: a function whose cotangents a pair of rules of the user's computes.

The first rule, forward, gives the results and what the second one, backward, needs of them. The
linear half of the derivative is one operation: it can be transposed, which is to run the backward
rule, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.errors import ClosureDifferentiated, coded
from phalanx.base.source import Location, user_location
from phalanx.control.custom_derivatives import Applied, Flat, RuleOperands, fitted, run, with_rules
from phalanx.control.result_dims import ResultDims
from phalanx.core.axes import Axis
from phalanx.core.primitive import (
    ZERO,
    Active,
    Derivative,
    Execution,
    LaneDims,
    Linear,
    Operands,
    Primitive,
    UserRules,
    selected,
    with_zeros,
)
from phalanx.core.program import Program
from phalanx.core.runs import Marks
from phalanx.core.trace import entering
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import mul, reduce_sum
from phalanx.transforms.batch import Dims, batch, place_lanes, with_lanes
from phalanx.transforms.closures import Closure
from phalanx.transforms.linearize import Dual


class ForwardResult(Struct, frozen=True):
    """What the forward rule gives: results, residuals, and a ``context`` for the backward rule."""

    results: Sequence[Any]
    residuals: Sequence[Any]
    context: Any


Forward = Callable[[Marks, Sequence[Any]], ForwardResult]
Backward = Callable[[Marks, Any, Sequence[Any]], Sequence[Any]]


class VjpRule:
    """``forward(nonzero, operands)`` and
    ``backward(nonzero, context, [*captured, *residuals, *cts])``.

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

        def explicit(nonzero: Marks, operands: Sequence[Any]) -> ForwardResult:
            return _flat(lambda xs: forward(nonzero, xs), lambda f: closure.run(f, operands))

        def explicit_back(nonzero: Marks, context: Any, operands: Sequence[Any]) -> list[Any]:
            return closure.run(lambda *xs: backward(nonzero, context, xs), operands)

        return cls(name, explicit, explicit_back)

    def lanes(self, axis: Axis, dims: Dims, places: ResultDims) -> VjpRule:
        """The rules on all lanes of ``axis``."""

        def forward(nonzero: Marks, operands: Sequence[Any]) -> ForwardResult:
            where: list[int | None] = []

            def vectorized(function: Flat) -> list[Any]:
                values, value_dims = batch(function, axis, operands, dims)
                where.extend(value_dims)
                return values

            out = _flat(lambda xs: self.forward(nonzero, xs), vectorized)
            count = len(out.results)
            results = places.put(out.results, where[:count])
            return ForwardResult(results, out.residuals, (out.context, tuple(where[count:])))

        def backward(nonzero: Marks, context: Any, operands: Sequence[Any]) -> list[Any]:
            inner, residuals = context
            moving = dims[len(dims) - len(nonzero) :]
            where = [*dims[: len(dims) - len(nonzero)], *residuals, *(places.dims or ())]
            lanes = [None if x is ZERO else d for x, d in zip(operands, where, strict=True)]
            cts = batch(lambda *xs: self.backward(nonzero, inner, xs), axis, operands, lanes)
            triples = zip(*cts, moving, strict=True)
            return [lanes_of_cotangent(ct, d, to, axis) for ct, d, to in triples]

        return VjpRule(self.name, forward, backward)

    def with_state(self) -> VjpRule:
        """The rules with an operand before the others, which is the first result as it is."""

        def forward(nonzero: Marks, operands: Sequence[Any]) -> ForwardResult:
            state, *others = operands
            out = self.forward(nonzero, others)
            context = out.context, len(out.results)
            return ForwardResult([state, *out.results], out.residuals, context)

        def backward(nonzero: Marks, context: Any, operands: Sequence[Any]) -> Sequence[Any]:
            inner, results = context
            cts = len(operands) - results
            return self.backward(nonzero, inner, [*operands[1 : cts - 1], *operands[cts:]])

        return VjpRule(self.name, forward, backward)

    def __str__(self) -> str:
        return self.name


def _flat(
    forward: Callable[[Sequence[Any]], ForwardResult], through: Callable[[Flat], list[Any]]
) -> ForwardResult:
    """``forward`` as a function of flat results, run by ``through``."""
    besides: list[tuple[int, Any]] = []  # no values, which do not outlive ``through``

    def function(*xs: Any) -> list[Any]:
        out = forward(xs)
        besides.append((len(out.results), out.context))
        return [*out.results, *out.residuals]

    values = through(function)
    ((count, context),) = besides
    return ForwardResult(values[:count], values[count:], context)


def lanes_of_cotangent(ct: Any, dim: int | None, to: int | None, axis: Axis) -> Any:
    """A cotangent where its operand has its lanes; the sum over lanes where it has none."""
    if ct is ZERO:
        return ct
    if to is not None:
        return place_lanes(ct, dim, to, axis.size)
    return mul(ct, axis.size) if dim is None else reduce_sum(ct, dims=(dim,))


# ---- the function -------------------------------------------------------------------------------


def _differentiate(
    dual: Dual, *args: Any, program: Program | Applied, rule: VjpRule, num_consts: int
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    operands = RuleOperands.of(dual, args, num_consts)
    if not operands.tangents:
        with entering(dual):
            _check_closed(dual, run(*operands.seen, program=program), rule)
        with entering(dual.parent):
            out = custom_vjp(*operands.primals, program=program, rule=rule, num_consts=num_consts)
        return out, (ZERO,) * len(out)
    with entering(dual):
        forward = rule.forward(operands.nonzero, operands.seen)
    _check_closed(dual, forward.results, rule)
    with entering(dual.parent):
        out = fitted([dual.split(y)[0] for y in forward.results], program)
    types = tuple(typeof(y) for y in out)
    residuals = [*operands.primals[:num_consts], *(dual.split(x)[0] for x in forward.residuals)]
    with entering(dual.tangents):
        tangents = linear(
            *residuals, *operands.tangents, rule=rule, context=_Context(forward.context),
            nonzero=operands.nonzero, known=len(residuals), types=types,
            forward=_ForwardMode(rule.name, user_location()),
        )  # fmt: skip
    return out, with_zeros(tangents, [dtypes.is_inexact(t.dtype) for t in types])


def _check_closed(dual: Dual, results: Sequence[Any], rule: VjpRule) -> None:
    """Raise an error if ``results`` depend on what is differentiated besides by the operands."""
    for y in results:
        if dual.split(y)[1] is not ZERO:
            refuse_closed(rule.name, dual.name)


def refuse_closed(name: str, by: str) -> NoReturn:
    """Raise the error for a function that closes over what is differentiated."""
    raise ClosureDifferentiated(
        f"custom_vjp({name}): {by} differentiates, at {user_location()}, by a value that {name} or "
        "its forward rule closes over, or takes as a nondifferentiable argument; its backward rule "
        "gives cotangents for the other arguments alone. Make the value such an argument, and let "
        "bwd give its cotangent; or apply lax.stop_gradient to it"
    )


custom_vjp: Primitive = with_rules(
    "custom_vjp",
    _differentiate,
    own_lanes=True,
    doc="the results of a program whose cotangents a rule gives; func.call",
)


# ---- its derivative -----------------------------------------------------------------------------


class _Context(Struct, frozen=True):
    """What the forward rule leaves for the backward besides arrays."""

    value: Any

    def __str__(self) -> str:
        return "context"


class _ForwardMode(Struct, frozen=True, eq=False):
    """The error for tangents of function ``name``, differentiated at ``where``, that are used.

    It is raised late, as tangents may turn out to be of no use: a loop of unknown length computes
    all of them together, also for a gradient that only passes by.
    """

    name: str
    where: Location | None

    def refuse(self) -> NoReturn:
        """Raise the error for forward mode, for which there is no rule."""
        error = TypeError(
            f"custom_vjp({self.name}): forward mode (jvp, jacfwd, linearize, hessian's outer half) "
            f"needs a rule for tangents, at {self.where}, and {self.name} has one for cotangents "
            "only; use custom_jvp, whose rule serves both modes, or reverse mode (grad, vjp, "
            "jacrev)"
        )
        raise coded(error, "no rule for tangents")

    def __str__(self) -> str:
        return self.name


def _linear_types(
    *_: ArrayType, rule: VjpRule, context: _Context, nonzero: Marks, known: int, types: Types,
    forward: _ForwardMode,
) -> Types:  # fmt: skip
    return _tangent_types(types)


def _unknown_types(*_: ArrayType, forward: _ForwardMode, types: Types) -> Types:
    return _tangent_types(types)


def _tangent_types(types: Types) -> Types:
    return tuple(t for t in types if dtypes.is_inexact(t.dtype))


Types = tuple[ArrayType, ...]


def _refuse(*_: Any, forward: _ForwardMode, **__: Any) -> NoReturn:
    forward.refuse()


def _linear_linearize(
    active: Active, *operands: Any, forward: _ForwardMode, types: Types, **_: Any
) -> Derivative:
    def linear(*tangents: Any) -> tuple[Any, ...]:
        return unknown(*[t for t in tangents if t is not ZERO], forward=forward, types=types)

    return unknown(*operands, forward=forward, types=types), linear


def _linear_batch(
    axis: Axis, values: Operands, dims: LaneDims, *, forward: _ForwardMode, types: Types, **_: Any
) -> tuple[tuple[Any, ...], Dims]:
    lanes = tuple([with_lanes(t, 0, axis) for t in types])
    results = unknown(*values, forward=forward, types=lanes)
    return results, (0,) * len(results)


def _linear_transpose(
    cts: tuple[Any, ...], *operands: Any, rule: VjpRule, context: _Context, nonzero: Marks,
    known: int, types: Types, **_: Any,
) -> list[Any]:  # fmt: skip
    cotangents = with_zeros(cts, [dtypes.is_inexact(t.dtype) for t in types])
    backward = rule.backward(nonzero, context.value, [*operands[:known], *cotangents])
    sent = selected(backward, nonzero)
    linear = [isinstance(x, Linear) for x in operands[known:]]
    return [None] * known + [ct if w else None for ct, w in zip(sent, linear, strict=True)]


linear = Primitive(
    "custom_vjp_linear",
    _linear_types,
    _refuse,
    linearize=_linear_linearize,
    transpose=_linear_transpose,
    batch=_linear_batch,
    user_rules=UserRules(answers_zeros=True),
    execution=Execution(run=_refuse),
    multi=True,
    doc="the linear half of a function with a rule for cotangents; only to be transposed",
)


unknown = Primitive(
    "custom_vjp_unknown",
    _unknown_types,
    _refuse,
    linearize=_linear_linearize,
    transpose=_refuse,
    batch=_linear_batch,
    execution=Execution(run=_refuse),
    multi=True,
    doc="tangents in forward mode, of which nothing is known but that they are not used",
)
