"""Forward derivatives: the value now, and the linear function of tangents as a program.

``jvp`` is the same interpretation with the linear half run at once instead of recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.core.primitive import ZERO, Primitive, ZeroDerivative
from phalanx.core.program import Program, plain
from phalanx.core.trace import Trace, Tracer, current, entering, running
from phalanx.core.types import typeof
from phalanx.ops.basis import zeros
from phalanx.transforms.lean import lean
from phalanx.transforms.simplify import prune
from phalanx.transforms.stage import Stage, StagedTracer, evaluate


class DualTracer(Tracer):
    """A primal value together with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: Dual, primal: Any, tangent: Any) -> None:
        self.trace = trace
        self._type = plain(typeof(primal))
        self.location = None
        self.primal = primal
        self.tangent = tangent

    def carried(self) -> Any:
        return self.primal

    def concrete(self) -> Any:
        return self.primal.concrete() if isinstance(self.primal, Tracer) else self.primal


class Dual(Trace):
    """Carries tangents along. ``tangents`` is the trace in which the linear half runs."""

    __slots__ = ("tangents",)

    def __init__(self, parent: Trace, tangents: Trace, name: str) -> None:
        super().__init__(parent, name)
        self.tangents = tangents

    def split(self, x: Any) -> tuple[Any, Any]:
        """The primal and the tangent of ``x``, as this trace sees it."""
        if type(x) is DualTracer and x.trace is self:
            return x.primal, x.tangent
        return x, ZERO

    def process(self, prim: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        pairs = [self.split(a) for a in args]
        primals = tuple([p for p, _ in pairs])
        tangents = [t for _, t in pairs]
        active = tuple([t is not ZERO for t in tangents])
        if True not in active or type(prim.linearize) is ZeroDerivative:
            return self.parent.process(prim, primals, params)  # type: ignore[union-attr]
        if prim.differentiate is not None:
            out, tangent = prim.differentiate(self, *args, **params)
        elif prim.jvp is not None and self.tangents is self.parent and not self._within_rule():
            with entering(self.tangents):
                out, tangent = prim.jvp(primals, tangents, **params)
        else:
            with entering(self.parent):  # type: ignore[arg-type]
                out, linear = prim.rule("linearize")(active, *primals, **params)
            with entering(self.tangents):
                tangent = linear(*tangents)
        if not prim.multi:
            return out if tangent is ZERO else DualTracer(self, out, tangent)
        return tuple(
            [
                o if t is ZERO else DualTracer(self, o, t)
                for o, t in zip(out, tangent, strict=True)
            ]
        )

    def _within_rule(self) -> bool:
        """Whether the halves of what this trace does may belong to those of an outer one."""
        trace: Trace | None = self.parent
        while trace is not None and type(trace) is not Partial:
            trace = trace.parent
        return trace is not None

    def depends(self, x: Any) -> bool:
        """Whether ``x`` is computed from tangents, where these are recorded for themselves."""
        return type(x) is StagedTracer and x.trace is self.tangents is not self.parent


class Partial(Trace):
    """Runs a function of primals and tangents at once: its halves go to those of a ``Dual``.

    What depends on tangents joins the linear half; all else is done now. An operation with
    results of both kinds is in both halves.
    """

    __slots__ = ("dual",)

    def __init__(self, dual: Dual) -> None:
        super().__init__(dual, dual.name)
        self.dual = dual

    def process(self, prim: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        dual = self.dual
        if not any(dual.depends(a) for a in args):
            return dual.process(prim, args, params)
        primals = tuple([dual.split(a)[0] for a in args])
        linear = dual.tangents.process(prim, primals, params)
        if not prim.multi:
            return linear
        mark = frozenset({"a tangent"})
        found = prim.result_varies([mark if dual.depends(a) else frozenset() for a in args], params)
        depending = [found] * len(linear) if isinstance(found, frozenset) else found
        if all(mark <= d for d in depending):
            return linear
        zeroed = tuple([zeros(typeof(a)) if dual.depends(a) else a for a in args])
        now = dual.process(prim, zeroed, params)
        pairs = zip(linear, now, depending, strict=True)
        return tuple([x if mark <= d else y for x, y, d in pairs])


def jvp(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """f(x) and f'(x) t, for a flat ``function``; a tangent in or out may be ``ZERO``."""
    outer = current()
    trace = Dual(outer, outer, getattr(function, "who", "a derivative"))
    inputs = [
        p if t is ZERO else DualTracer(trace, _variable(p), t)
        for p, t in zip(primals, tangents, strict=True)
    ]
    with running(trace):
        pairs = [trace.split(y) for y in function(*inputs)]
    return [p for p, _ in pairs], [t for _, t in pairs]


def _variable(x: Any) -> Any:
    """``x``, but a NumPy scalar as an array: to rules, scalars are constants."""
    return np.asarray(x) if isinstance(x, np.generic) else x


@dataclass(frozen=True, slots=True)
class Pushed:
    """A program and its derivative in one: ``program`` takes ``constants``, primals, tangents.

    It gives the results, then the tangents of those that ``nonzero`` marks.
    """

    program: Program
    constants: list[Any]
    nonzero: tuple[bool, ...]


def jvp_program(program: Program, given: tuple[bool, ...]) -> Pushed:
    """``program`` together with its derivative, where ``given`` inputs have a tangent."""
    key = ("jvp", given)
    if key not in program.derived:
        program.derived[key] = _jvp_program(program, given)
    return program.derived[key]


def _jvp_program(program: Program, given: tuple[bool, ...]) -> Pushed:
    stage = Stage(None, program.name)
    inputs = [stage.input(v.type) for v in program.inputs]
    tangents = [stage.input(v.type) for v, g in zip(program.inputs, given, strict=True) if g]
    rest = iter(tangents)
    with running(stage):
        outputs, found = jvp(
            lambda *xs: evaluate(program, xs), inputs, [next(rest) if g else ZERO for g in given]
        )
    nonzero = tuple(t is not ZERO for t in found)
    kept = [t for t in found if t is not ZERO]
    made, constants = stage.finish([*inputs, *tangents], [*outputs, *kept], program.name)
    return Pushed(made, constants, nonzero)


@dataclass(frozen=True, slots=True)
class LinearMap:
    """A linear function: ``program`` from captured residuals and tangents to tangents.

    ``nonzero`` says which outputs depend on the tangents at all; the program has only those.
    """

    program: Program
    residuals: list[Any]
    nonzero: tuple[bool, ...]

    def __call__(self, tangents: Sequence[Any]) -> list[Any]:
        """The tangents out, ``ZERO`` where nothing depends on the tangents in."""
        found = iter(evaluate(self.program, [*self.residuals, *tangents]))
        return [next(found) if n else ZERO for n in self.nonzero]


def linearize(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], wanted: Sequence[bool]
) -> tuple[list[Any], LinearMap]:
    """f(x), and f'(x) as a linear map of the tangents of the ``wanted`` arguments."""
    outer = current()
    name = getattr(function, "who", "a derivative")
    tangents = Stage(outer, name)
    trace = Dual(outer, tangents, name)
    inputs: list[Any] = []
    variables: list[StagedTracer] = []
    for primal, want in zip(primals, wanted, strict=True):
        if want:
            variables.append(tangents.input(plain(typeof(primal))))
            inputs.append(DualTracer(trace, _variable(primal), variables[-1]))
        else:
            inputs.append(primal)
    with running(trace), running_aside(tangents):
        pairs = [trace.split(y) for y in function(*inputs)]
    nonzero = tuple(t is not ZERO for _, t in pairs)
    found = [t for _, t in pairs if t is not ZERO]
    program, residuals = tangents.finish(variables, found, "linear")
    program, kept = prune(program, fixed=len(variables))
    return [p for p, _ in pairs], LinearMap(program, [residuals[i] for i in kept], nonzero)


class running_aside:
    """End ``trace`` with the block, without making it the current one."""

    __slots__ = ("trace",)

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self.trace.alive = False


@dataclass(frozen=True, slots=True)
class Linearized:
    """A program split in two: ``primal`` gives results and residuals, ``linear`` tangents.

    ``primal`` takes ``constants`` before the original inputs; its outputs are the original
    ones, then the residuals. ``linear`` takes the residuals, then the tangents of the inputs
    that have one, and gives the tangents of the outputs marked in ``nonzero``.
    ``forwarded`` lists residuals that are inputs of the original program, by position, and
    ``echoes`` those of the others that are results of it.
    """

    primal: Program
    constants: list[Any]
    linear: Program
    nonzero: tuple[bool, ...]
    forwarded: tuple[int | None, ...]
    echoes: tuple[int | None, ...]

    def residuals(self, inputs: Sequence[Any], computed: Sequence[Any]) -> list[Any]:
        """All residuals in order: forwarded ones from ``inputs``, the others ``computed``."""
        rest = iter(computed)
        return [next(rest) if i is None else inputs[i] for i in self.forwarded]

    def divide(self, results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """``results`` of ``primal``: the original ones, and the residuals, none of them twice."""
        count = len(results) - len(self.echoes)
        pairs = zip(results[count:], self.echoes, strict=True)
        return list(results[:count]), [r if e is None else results[e] for r, e in pairs]


def linearize_program(program: Program, wanted: tuple[bool, ...]) -> Linearized:
    """Split ``program`` into primal and linear halves; once per program and ``wanted``."""
    key = ("linearize", wanted)
    if key not in program.derived:
        program.derived[key] = _linearize_program(program, wanted)
    return program.derived[key]


def _linearize_program(program: Program, wanted: tuple[bool, ...]) -> Linearized:
    stage = Stage(None, program.name)
    inputs = [stage.input(v.type) for v in program.inputs]
    with running(stage):
        outputs, linear = linearize(lambda *xs: evaluate(program, xs), inputs, wanted)
    whole, constants = stage.finish(inputs, [*outputs, *linear.residuals], program.name)
    count = len(outputs)
    stored, half = lean(whole, list(whole.outputs[count:]), linear.program)
    position = {v: i for i, v in enumerate(whole.inputs[len(constants) :])}
    forwarded = tuple(position.get(r) for r in stored)  # type: ignore[arg-type]
    computed = [r for r, i in zip(stored, forwarded, strict=True) if i is None]
    results = list(whole.outputs[:count])
    echoes = tuple(results.index(r) if r in results else None for r in computed)
    primal = Program(whole.inputs, whole.equations, [*results, *computed], whole.name)
    return Linearized(primal, constants, half, linear.nonzero, forwarded, echoes)
