"""Forward derivatives: the value now, and the linear function of tangents as a program.

``jvp`` is the same interpretation with the linear half run at once instead of recorded.
"""

# Tracers are private to users, not to the traces that make them.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from msgspec import Struct

from phalanx.base.source import on_one_line
from phalanx.core.leaks import leaving_nothing
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import (
    ZERO,
    DualRule,
    LinearizeRule,
    Primitive,
    ZeroDerivative,
    selected,
    with_zeros,
)
from phalanx.core.program import Atom, Program
from phalanx.core.trace import (
    InnerTrace,
    Trace,
    Tracer,
    current,
    entering,
    known_value,
    running,
    trace_of,
)
from phalanx.core.types import operand_type, typeof
from phalanx.primitives.resharding import resharded, without_spec
from phalanx.primitives.vary import varying_along
from phalanx.transforms.cheap_residuals import without_cheap
from phalanx.transforms.dce import prune
from phalanx.transforms.derive import Derived, derive, trace_closed
from phalanx.transforms.stage import Residuals, StagedTracer, evaluate


class DualTracer(Tracer):
    """A primal value together with its tangent."""

    __slots__ = ("_primal", "_tangent")

    def __init__(self, trace: Dual, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.aval = typeof(primal)
        self._location = None
        self._primal = primal
        self._tangent = tangent

    def _carried(self) -> Any:
        return self._primal

    def _concrete(self) -> Any:
        return known_value(self._primal)

    def _reason(self) -> str:
        if self._concrete() is None:
            return super()._reason()
        return "its derivative would be lost: numbers and arrays of NumPy and Python have none"

    def _ways_out(self, ways: str) -> str:
        if self._concrete() is None:
            return super()._ways_out(ways)
        return (
            "the functions of phalanx.numpy and the methods of arrays, which have derivatives; or "
            "lax.stop_gradient(x), whose result can be looked at, where none is needed"
        )

    def __repr__(self) -> str:
        return f"{super().__repr__()}: {self._primal!r}"


class Dual(InnerTrace):
    """Carries tangents along. ``tangents`` is the trace in which the linear half runs."""

    __slots__ = ("tangents",)

    def __init__(self, parent: Trace, tangents: Trace, name: str) -> None:
        super().__init__(parent, name)
        self.tangents = tangents

    def split(self, x: Any) -> tuple[Any, Any]:
        """The primal and the tangent of ``x``, as this trace sees it."""
        if type(x) is DualTracer and x._trace is self:
            return x._primal, x._tangent
        return x, ZERO

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        pairs = [self.split(a) for a in args]
        primals = tuple([p for p, _ in pairs])
        tangents = [t for _, t in pairs]
        if all([t is ZERO for t in tangents]) or type(prim.linearize) is ZeroDerivative:
            return self.parent.process(prim, primals, params)
        if isinstance(prim.linearize, DualRule):
            out, tangent = prim.linearize.rule(self, *args, **params)
        else:
            rule = _rule(prim, primals, params)
            out, tangent = self.in_halves(rule, primals, tangents, params)
        if not prim.multi:
            return self.with_tangent(out, tangent)
        return tuple([self.with_tangent(o, t) for o, t in zip(out, tangent, strict=True)])

    def in_halves(
        self,
        rule: LinearizeRule,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        params: dict[str, Any],
    ) -> tuple[Any, Any]:
        """The results and their tangents by ``rule``, each half in its trace."""
        active = tuple([t is not ZERO for t in tangents])
        with on_one_line(), entering(self.parent):
            out, linear = rule(active, *primals, **params)
            with entering(self.tangents):
                return out, linear(*tangents)

    def with_tangent(self, out: Any, tangent: Any) -> Any:
        """``out`` and its ``tangent``, which varies as ``out`` does.

        The rule may have made it of tangents alone that do not: then its cotangents, which differ
        from position to position, would be taken for one that all positions have.
        """
        if tangent is ZERO:
            return out
        varying = typeof(out).varying
        if varying:
            with entering(self.tangents):
                tangent = varying_along(tangent, varying)
        return DualTracer(self, out, tangent)

    def depends(self, x: Any) -> bool:
        """Whether ``x`` is computed from tangents, where these are recorded for themselves."""
        return type(x) is StagedTracer and trace_of(x) is self.tangents is not self.parent


def _rule(prim: Primitive, primals: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """The rule of ``prim`` for tangents.

    One that is not the operation itself, or made of elementwise ones, need not follow what types
    say of how operands lie: then its results do.
    """
    rule = prim.rule("linearize")
    if prim.elements.fused or callable(prim.transpose) or prim.subprograms is not None:
        return rule
    types = [operand_type(x) for x in primals]
    if not any([t.spec is not None for t in types]):
        return rule
    result = prim.result_type(types, params)

    def typed(results: Any) -> Any:
        """``results``, some of which may be ``ZERO`` with the shardings of those of ``prim``."""
        if not prim.multi:
            return resharded(results, result.spec)
        pairs = zip(results, result, strict=True)
        return tuple([x if x is ZERO else resharded(x, t.spec) for x, t in pairs])

    def in_place(active: tuple[bool, ...], *operands: Any, **params: Any) -> Any:
        out, linear = rule(active, *map(without_spec, operands), **params)

        def linear_in_place(*tangents: Any) -> Any:
            return typed(linear(*map(without_spec, tangents)))

        return typed(out), linear_in_place

    return in_place


def _jvp(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """f(x) and f'(x) t, for a flat ``function``; a tangent in or out may be ``ZERO``."""
    outer = current()
    trace = Dual(outer, outer, getattr(function, "who", "a derivative"))
    inputs = [
        p if t is ZERO else trace.with_tangent(varying_along(_variable(p), typeof(t).varying), t)
        for p, t in zip(primals, tangents, strict=True)
    ]
    with running(trace):
        pairs = [trace.split(y) for y in function(*inputs)]
    return [p for p, _ in pairs], [t for _, t in pairs]


jvp = leaving_nothing(_jvp)


def _variable(x: Any) -> Any:
    """``x``, but a NumPy scalar as an array: to rules, scalars are constants."""
    return np.asarray(cast(np.generic, x)) if isinstance(x, np.generic) else x


def jvp_program(program: Program, active: tuple[bool, ...]) -> Derived[tuple[bool, ...]]:
    """``program`` together with its derivative, where ``active`` inputs have a tangent.

    It takes the inputs, then the tangents of those that are active; it gives the results, then
    the tangents of those that have one.

    Returns:
        The program, and which results have a tangent.
    """

    def both(*inputs: Any) -> tuple[list[Any], tuple[bool, ...]]:
        primals, rest = inputs[: len(active)], inputs[len(active) :]
        tangents = with_zeros(rest, active)
        outputs, slopes = _jvp(lambda *xs: evaluate(program, xs), primals, tangents)
        nonzero = tuple([t is not ZERO for t in slopes])
        return [*outputs, *(t for t in slopes if t is not ZERO)], nonzero

    types = list(program.input_types)
    types += selected(types, active)
    return derive(program, ("jvp", active), both, types)


class LinearMap(Struct, frozen=True):
    """A linear function: ``program`` from captured residuals and tangents to tangents.

    ``nonzero`` says which outputs depend on the tangents at all; the program has only those.
    """

    program: Program
    residuals: list[Any]
    nonzero: tuple[bool, ...]

    def __call__(self, tangents: Sequence[Any]) -> tuple[Any, ...]:
        """The tangents out, ``ZERO`` where nothing depends on the tangents in."""
        return with_zeros(evaluate(self.program, [*self.residuals, *tangents]), self.nonzero)


def _linearize(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], active: Sequence[bool]
) -> tuple[list[Any], LinearMap]:
    """f(x), and f'(x) as a linear map of the tangents of the ``active`` arguments."""
    outer = current()
    name = getattr(function, "who", "a derivative")
    tangents = Residuals(outer, name)
    trace = Dual(outer, tangents, name)
    inputs: list[Any] = []
    variables: list[StagedTracer] = []
    for primal, want in zip(primals, active, strict=True):
        if want:
            variables.append(tangents.input(typeof(primal)))
            inputs.append(DualTracer(trace, _variable(primal), variables[-1]))
        else:
            inputs.append(primal)
    with running(trace), _lifetime(tangents):
        pairs = [trace.split(y) for y in function(*inputs)]
    nonzero = tuple(t is not ZERO for _, t in pairs)
    outputs = [t for _, t in pairs if t is not ZERO]
    program, residuals, _ = tangents.finish(variables, outputs, "linear")
    program, positions = prune(program, fixed=len(variables))
    return [p for p, _ in pairs], LinearMap(program, [residuals[i] for i in positions], nonzero)


linearize = leaving_nothing(_linearize)


class _lifetime:
    """End ``trace`` with the block, without making it the current one."""

    __slots__ = ("trace",)

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self.trace.alive = False


class Linearized(Struct, frozen=True):
    """A program split in two: ``primal`` gives results and residuals, ``linear`` tangents.

    The outputs of ``primal`` are the original ones, then the residuals that have to be computed.
    ``linear`` takes the residuals, then the tangents of the inputs that have one, and gives the
    tangents of the outputs marked in ``nonzero``. ``forwarded`` lists residuals that are inputs of
    the original program, by position, and ``repeated`` those of the others that are results of it.
    """

    primal: Program
    linear: Program
    nonzero: tuple[bool, ...]
    forwarded: tuple[int | None, ...]
    repeated: tuple[int | None, ...]

    def residuals(self, inputs: Sequence[Any], computed: Sequence[Any]) -> list[Any]:
        """All residuals in order: forwarded ones from ``inputs``, the others ``computed``."""
        rest = iter(computed)
        return [next(rest) if i is None else inputs[i] for i in self.forwarded]


def linearize_program(program: Program, active: tuple[bool, ...]) -> Linearized:
    """Split ``program`` into primal and linear halves; once per program and ``active``."""
    return memoize_on(program, ("linearize", active), lambda: _linearize_program(program, active))


def _linearize_program(program: Program, active: tuple[bool, ...]) -> Linearized:
    def halves(*inputs: Any) -> tuple[list[Any], LinearMap]:
        outputs, linear = _linearize(lambda *xs: evaluate(program, xs), inputs, active)
        return [*outputs, *linear.residuals], linear

    traced = trace_closed(halves, program.input_types, program.name)
    both, linear = traced.program, traced.about
    count = len(program.outputs)
    results = list(both.outputs[:count])
    stored, half = without_cheap(both, list(both.outputs[count:]), linear.program)
    position: dict[Atom, int] = {v: i for i, v in enumerate(both.inputs)}
    forwarded = tuple([position.get(r) for r in stored])
    computed = [r for r, i in zip(stored, forwarded, strict=True) if i is None]
    repeated = tuple([results.index(r) if r in results else None for r in computed])
    primal = both.update(outputs=[*results, *computed])
    return Linearized(primal, half, linear.nonzero, forwarded, repeated)
