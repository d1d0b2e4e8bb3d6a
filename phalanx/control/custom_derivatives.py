"""Functions with derivative rules of the user's: what ``custom_jvp`` and ``custom_vjp`` share.

Such a function is bound as one operation, which carries the rules along until a derivative asks
for them. Where a program is being recorded it holds the function as a program, like a call;
otherwise as the Python function, which so sees values wherever values are known. The rules stay
Python functions: they run when, and as often as, a derivative needs them.

The first operands, ``num_consts`` in number, are traced values that function and rules close over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from phalanx.control.call import as_call, call, frame_of_one, lower_call
from phalanx.control.family import Rewrite, StateAndResults, with_subprograms
from phalanx.control.result_dims import ResultDims, program_on_lanes
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, DualRule, Execution, Primitive, Rule, UserRules
from phalanx.core.program import Frame, Program, Var
from phalanx.core.runs import Marks
from phalanx.core.trace import Trace, Tracer, carried, current, trace_of
from phalanx.core.types import ArrayType, is_scalar, typeof
from phalanx.primitives.basis import convert, full
from phalanx.primitives.vary import varying_along
from phalanx.transforms.batch import Dims, batch
from phalanx.transforms.closures import Closure, closed_over, resolve
from phalanx.transforms.linearize import Dual, DualTracer
from phalanx.transforms.stage import StagedTracer, stage

Flat = Callable[..., Sequence[Any]]


class _UserRule(Protocol):
    """The rules of one call, as functions of operands."""

    def lanes(self, axis: Axis, dims: Dims, places: ResultDims) -> _UserRule:
        """The rules on all lanes of ``axis``, which the operands carry in ``dims``."""
        ...

    def with_state(self) -> _UserRule:
        """The rules with an operand before the others, which is the first result as it is."""
        ...


class Applied:
    """A Python function of operands, in place of a program."""

    axes: frozenset[Any] = frozenset()

    def __init__(self, run: Callable[[Sequence[Any]], list[Any]]) -> None:
        self.run = run

    def lanes(self, axis: Axis, dims: Dims, places: ResultDims) -> Applied:
        """The function on all lanes of ``axis``."""

        def run(operands: Sequence[Any]) -> list[Any]:
            return places.put(*batch(lambda *xs: self.run(xs), axis, operands, dims))

        return Applied(run)


def run(*operands: Any, program: Program | Applied, **_: Any) -> tuple[Any, ...]:
    """The results of a function, without regard to its rules."""
    if isinstance(program, Program):
        return call(*operands, program=program)
    return tuple(program.run(operands))


# ---- binding ------------------------------------------------------------------------------------


def bind_with_rules(
    prim: Flat,
    function: Flat,
    operands: Sequence[Any],
    make_rule: Callable[[Closure], _UserRule],
    reach: Sequence[Any],
    name: str,
    check: Callable[[Sequence[Any]], Any] | None = None,
) -> Sequence[Any]:
    """The results of a flat ``function`` whose derivatives are those of a rule.

    Args:
        prim: what to bind.
        function: of ``operands``.
        operands: arrays.
        make_rule: makes the rule, from what function and rules close over.
        reach: function and rules as the user wrote them, to look for closed-over values in.
        name: what to call the program.
        check: looks at the results where no operand is differentiated and no rule is of use.
    """
    xs, pairs = _resolved(operands, reach)
    if _recording(current(), (*xs, *(v for _, v in pairs))):
        return _bind_program(prim, function, xs, make_rule, pairs, name)
    if all(differentiated(x) is None for x in xs):
        results = function(*xs)
        if check is not None:
            check(results)
        return results
    outer, values = _columns(pairs)
    closure = Closure.here(outer)
    program = Applied(lambda operands: closure.run(function, operands))
    return prim(*values, *xs, program=program, rule=make_rule(closure), num_consts=len(values))


def bind_program(
    prim: Flat,
    function: Flat,
    operands: Sequence[Any],
    make_rule: Callable[[Closure], Any],
    reach: Sequence[Any],
    name: str,
) -> Sequence[Any]:
    """The same, for rules that are of use not to derivatives alone: always with a program."""
    xs, pairs = _resolved(operands, reach)
    return _bind_program(prim, function, xs, make_rule, pairs, name)


def _resolved(
    operands: Sequence[Any], reach: Sequence[Any]
) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """The operands, and the values closed over with what stands for them, as seen from here."""
    trace = current()
    candidates = [(x, resolve(x, trace)) for x in closed_over(*reach)]
    # what does not live here was left in a container by something else, or needs no operand
    pairs = [(x, v) for x, v in candidates if _lives_in(trace, v)]
    return [resolve(x, trace) for x in operands], pairs


def _bind_program(
    prim: Flat,
    function: Flat,
    xs: Sequence[Any],
    make_rule: Callable[[Closure], Any],
    pairs: Sequence[tuple[Any, Any]],
    name: str,
) -> Sequence[Any]:
    """The same where a program is recorded, which then holds the function as a program."""
    program, captured = stage(function, [typeof(x) for x in xs], name)
    captured_ids = {id(x) for x in captured}
    only_rules, values = _columns([(x, v) for x, v in pairs if id(x) not in captured_ids])
    unused = [Var(typeof(v)) for v in values]
    count = len(captured)
    inputs = [*program.inputs[:count], *unused, *program.inputs[count:]]
    program = program.update(inputs=inputs)
    rule = make_rule(Closure.here((*captured, *only_rules)))
    consts = [*captured, *values]
    return prim(*consts, *xs, program=program, rule=rule, num_consts=len(consts))


def _columns(pairs: Sequence[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return tuple([x for x, _ in pairs]), tuple([v for _, v in pairs])


def _lives_in(trace: Trace | None, x: Any) -> bool:
    """Whether ``x`` belongs to ``trace`` or to one around it."""
    if not isinstance(x, Tracer):
        return True
    while trace is not None:
        if trace_of(x) is trace:
            return True
        trace = trace.parent
    return False


def _recording(trace: Trace | None, xs: Sequence[Any]) -> bool:
    """Whether what is done now becomes part of a program, or of another record."""
    while trace is not None:
        if trace.records:
            return True
        trace = trace.parent
    return any(isinstance(inner, StagedTracer) for x in xs for inner in _layers(x))


def differentiated(x: Any) -> DualTracer | None:
    """The layer of ``x`` that has a tangent, if any of the transformations that see it gave one."""
    return next((inner for inner in _layers(x) if isinstance(inner, DualTracer)), None)


def _layers(x: Any) -> Sequence[Tracer]:
    layers: list[Tracer] = []
    while isinstance(x, Tracer):
        layers.append(x)
        x = carried(x)
    return layers


class RuleOperands(Struct, frozen=True):
    """The operands of a function with rules, as ``dual`` takes its derivative.

    ``primals`` has all of them, ``tangents`` those of the operands that ``nonzero`` marks among
    those not closed over. ``seen`` is what the rule gets: what is closed over keeps its tangent.
    """

    primals: tuple[Any, ...]
    nonzero: Marks
    tangents: tuple[Any, ...]
    seen: tuple[Any, ...]

    @classmethod
    def of(cls, dual: Dual, args: Sequence[Any], num_consts: int) -> RuleOperands:
        """``args``; the first ``num_consts`` of them are closed over."""
        primals, tangents = _columns([dual.split(a) for a in args])
        nonzero = tuple([t is not ZERO for t in tangents[num_consts:]])
        dense = tuple([t for t in tangents[num_consts:] if t is not ZERO])
        return cls(primals, nonzero, dense, (*args[:num_consts], *primals[num_consts:]))


def fitted(results: Sequence[Any], program: Program | Applied) -> tuple[Any, ...]:
    """What a rule gives for results, as arrays of exactly the types that the function gives."""
    own = [typeof(y) for y in results]
    types = program.output_types if isinstance(program, Program) else own
    return tuple([as_type(y, t) for y, t in zip(results, types, strict=True)])


def as_type(x: Any, type: ArrayType) -> Any:
    """``x`` as an array of ``type``, which has its shape."""
    if is_scalar(x):
        x = full((), x, type.dtype)
    kind = typeof(x)
    if (kind.dtype, kind.weak) != (type.dtype, type.weak):
        x = convert(x, dtype=type.dtype, weak=type.weak)
    return varying_along(x, type.varying)


# ---- the primitives -----------------------------------------------------------------------------


def _frame(*, program: Program | Applied, rule: _UserRule, num_consts: int) -> Frame:
    if isinstance(program, Program):
        return frame_of_one(program=program)
    return Frame((), (), ())


def with_rules(
    name: str, differentiate: Rule, *, transpose: Rule | None = None, own_lanes: bool, doc: str
) -> Primitive:
    """Declare a function with derivative rules: a call, but for derivatives and lanes.

    ``differentiate`` is the primitive's rule for derivatives, and ``transpose`` the other, if not
    that of a call; ``own_lanes`` is that of ``ResultDims``.
    """

    def itself(*operands: Any, **params: Any) -> tuple[Any, ...]:
        return prim(*operands, **params)

    prim: Primitive = with_subprograms(
        name,
        lower_call,
        _frame,
        linearize=DualRule(differentiate),
        transpose=transpose or as_call(call.rule("transpose")),
        batch=_batch_rule(name, itself, own_lanes),
        carry_state=_carry_state(itself),
        user_rules=UserRules(),
        execution=Execution(run=run),
        doc=doc,
    )
    return prim


# ---- vectorization ------------------------------------------------------------------------------


def _batch_rule(kind: str, prim: Flat, own_lanes: bool) -> Rule:
    """The batching rule: function and rules are vectorized, and stay together."""

    def batch_rule(
        axis: Axis,
        values: Sequence[Any],
        dims: Dims,
        *,
        program: Program | Applied,
        rule: _UserRule,
        num_consts: int,
    ) -> tuple[Sequence[Any], Dims | None]:
        places = ResultDims(axis, f"{kind}({rule})", own_lanes)
        if isinstance(program, Program):
            vectorized = program_on_lanes(program, dims, places)
        else:
            vectorized = program.lanes(axis, dims, places)
        results = prim(
            *values, program=vectorized, rule=rule.lanes(axis, dims, places), num_consts=num_consts
        )
        return results, places.dims

    return batch_rule


# ---- effects ------------------------------------------------------------------------------------


def _carry_state(prim: Flat) -> Rule:
    """The rule for effects: the state goes through the function, past the rules."""

    def carry(
        rewrite: Rewrite, state: Any, *xs: Any, program: Program, rule: _UserRule, num_consts: int
    ) -> StateAndResults:
        after, *results = prim(
            state, *xs, program=rewrite(program), rule=rule.with_state(), num_consts=num_consts + 1
        )
        return after, results

    return carry
