"""Staging: run a function once on tracers and record what it does as a program."""

# Tracers are private to users, not to the traces that make them.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes, tree
from phalanx.base.config import settings
from phalanx.base.errors import RefError, ShardingTypeError, coded
from phalanx.base.lengths import Length
from phalanx.base.source import user_location
from phalanx.core.check import check
from phalanx.core.interpret import interpret
from phalanx.core.leaks import leaving_nothing
from phalanx.core.primitive import Primitive
from phalanx.core.program import (
    LARGEST_LITERAL,
    Atom,
    Equation,
    Literal,
    Program,
    Var,
    operand_types,
)
from phalanx.core.refs import Ref, load
from phalanx.core.trace import Trace, Tracer, check_alive, current, running
from phalanx.core.types import NOWHERE, SCALARS, Array, ArrayType, typeof
from phalanx.transforms.closures import resolve


class StagedTracer(Tracer):
    """A variable of the program under construction."""

    __slots__ = ("_var",)

    def __init__(self, trace: Stage, var: Var, location: Any) -> None:
        self._trace = trace
        self.aval = var.type
        self._location = location
        self._var = var

    def _sources(self) -> list[str]:
        return self._trace.sources(self)


class _Touched(Struct):
    """A reference that a program captured: the input for its first value, the atom of its present
    value, and the user's line that wrote this, if any did."""

    var: Var
    value: Any
    written: Any = None


class Staged(NamedTuple):
    """The result of tracing.

    Attributes:
        program: its first inputs are what was captured, its first outputs the last values of the
            references that were written.
        captured: traced values from outside, and references, for which it takes their values.
        written: the references that it writes, each with the user's line that does.
    """

    program: Program
    captured: list[Any]
    written: dict[Ref, Any]


class Stage(Trace):
    """Records equations.

    Arrays become constants of the program. Values of other traces become its first inputs, in the
    order in which they are first used; ``captured`` has them. As inputs they vary ``along`` axes,
    besides those along which they vary anyway. What references from outside hold is captured, too;
    what they hold at the end of those that are written becomes the first outputs.
    """

    __slots__ = ("along", "captured", "constants", "equations", "of_mesh", "origins", "refs")

    records = True

    def __init__(self, parent: Trace | None, name: str, along: frozenset[Any] = NOWHERE) -> None:
        super().__init__(parent, name)
        self.along = along
        self.of_mesh = False  # whether types here say anything of a mesh
        self.equations: list[Equation] = []
        self.captured: dict[int, tuple[Any, Var]] = {}
        self.constants: dict[int, Literal] = {}
        self.origins: dict[Var, str] = {}
        self.refs: dict[Ref, _Touched] = {}

    def input(self, type: ArrayType, origin: str = "") -> StagedTracer:
        """A new input of the program."""
        tracer = StagedTracer(self, Var(type), None)
        self.of_mesh |= type.of_mesh
        self.origins[tracer._var] = origin
        return tracer

    def atom(self, x: Any) -> Atom:
        """``x`` as an operand: its variable, a constant, or a captured input."""
        if type(x) is StagedTracer and x._trace is self:
            return x._var
        if isinstance(x, np.generic):
            return Literal(dtypes.scalar_held(cast(np.generic, x)))
        if isinstance(x, SCALARS):
            return Literal(dtypes.scalar(x, dtypes.weak_dtype(type(x))))
        if isinstance(x, Length):
            return self.atom(x.__jax_array__())
        value = resolve(x, self.parent)
        return self.capture(value) if isinstance(value, Tracer) else self.constant(value)

    def constant(self, value: Any) -> Atom:
        """An array that holds data; NumPy's may change later, so of those it is a copy."""
        literal = self.constants.get(id(value))
        if literal is None:
            if isinstance(value, np.ndarray):
                array = cast(np.ndarray, value)
                held = dtypes.as_held(array, dtypes.held_as(array))
                return Literal(np.array(held, copy=held is array))
            literal = Literal(value)  # it keeps ``value`` alive, and so its identity its own
            self.constants[id(value)] = literal
            self.of_mesh |= literal.type.of_mesh
        return literal

    def capture(self, value: Tracer) -> Var:
        """The input that stands for a value of another trace."""
        pair = self.captured.get(id(value))
        if pair is None:
            check_alive(value)
            pair = self.captured[id(value)] = (value, self._from_outside(value.aval))
        return pair[1]

    def _from_outside(self, type: ArrayType) -> Var:
        """An input for a value of ``type`` from outside."""
        if self.along:
            spec = type.spec and type.spec.without_axes(self.along & type.reduced)
            type = type.update(varying=type.varying | self.along, spec=spec)
        self.of_mesh |= type.of_mesh
        return Var(type)

    def load(self, ref: Ref) -> Any:
        return super().load(ref) if ref._owner is self else self._touched(ref).value

    def store(self, ref: Ref, value: Any, where: Any) -> None:
        if ref._owner is self:
            super().store(ref, value, where)
        else:
            touched = self._touched(ref)
            touched.value, touched.written = value, where

    def _touched(self, ref: Ref) -> _Touched:
        touched = self.refs.get(ref)
        if touched is None:
            outside = cast(Trace, self.parent).load(ref)  # the owner is further out
            var = self._from_outside(typeof(outside))
            touched = self.refs[ref] = _Touched(var, StagedTracer(self, var, None))
        return touched

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        inputs = [
            a._var if type(a) is StagedTracer and a._trace is self else self.atom(a) for a in args
        ]
        if self.of_mesh or prim.dims is None or prim.named_axes is not None:
            types = self._over_mesh(prim, inputs, params)
        else:
            types = prim.type(*operand_types(inputs), **params)
        location = user_location()
        if prim.multi:
            outputs = tuple([Var(t) for t in types])
            self.equations.append(Equation(prim, inputs, params, outputs, location))
            return tuple([StagedTracer(self, v, location) for v in outputs])
        out = Var(types)
        self.equations.append(Equation(prim, inputs, params, (out,), location))
        return StagedTracer(self, out, location)

    def _over_mesh(self, prim: Primitive, inputs: Sequence[Atom], params: dict[str, Any]) -> Any:
        """The types of results where types may say how values lie over a mesh."""
        if not settings().auto_pcast and prim.vary is None and prim.subprograms is None:
            self._refuse_mixed(prim, inputs)
        types = prim.result_type(operand_types(inputs), params)
        if not self.of_mesh:
            self.of_mesh = any([t.of_mesh for t in (types if prim.multi else (types,))])
        return types

    def _refuse_mixed(self, prim: Primitive, inputs: Sequence[Atom]) -> None:
        """Raise ShardingTypeError where an operand varies along fewer axes than another.

        What has no derivative may: integers, and what is computed from constants alone.
        """
        all_axes = NOWHERE.union(*[a.type.varying for a in inputs])
        for a in inputs:
            missing = all_axes - a.type.varying
            if missing and dtypes.is_inexact(a.type.dtype) and not self._is_constant(a):
                kinds = ", ".join([str(b.type) for b in inputs])
                axes = tuple(sorted(map(str, missing)))
                error = ShardingTypeError(
                    f"{prim.name}: operands vary along different axes, {kinds}, at "
                    f"{user_location()}, and the option auto_pcast is off; make them alike: "
                    f"phalanx.lax.pcast(x, {axes}, to='varying')",
                    prim.name,
                )
                raise coded(error, "operands vary", name=prim.name)

    def _is_constant(self, x: Atom) -> bool:
        results = {v for e in self.equations for v in e.outputs}
        return not isinstance(x, Var) or self._needed(x) <= results

    def write(self, equation: Equation) -> None:
        """Append an equation of another program as it is."""
        self.of_mesh |= any([v.type.of_mesh for v in equation.outputs])
        self.equations.append(equation)

    def sources(self, x: StagedTracer) -> list[str]:
        """The names of the arguments that ``x`` was computed from."""
        needed = self._needed(x._var)
        return [name for var, name in self.origins.items() if var in needed and name]

    def _needed(self, var: Var) -> set[Var]:
        """``var`` and all variables from which it is computed."""
        needed = {var}
        for equation in reversed(self.equations):
            if any(v in needed for v in equation.outputs):
                needed.update(a for a in equation.inputs if isinstance(a, Var))
        return needed

    def finish(self, inputs: Sequence[StagedTracer], outputs: Sequence[Any], name: str) -> Staged:
        """The program from ``inputs`` to ``outputs``, and what it captured."""
        written = {ref: t.written for ref, t in self.refs.items() if t.written is not None}
        results = [self.atom(self.refs[ref].value) for ref in written]
        results += [self.atom(o) for o in outputs]
        variables = [v for _, v in self.captured.values()]
        values = [x for x, _ in self.captured.values()]
        variables += [touched.var for touched in self.refs.values()]
        values += self.refs
        program = Program([*variables, *(i._var for i in inputs)], self.equations, results, name)
        if settings().enable_checks:
            check(program, "tracing")
        # Rules in a program may hold tracers, which hold this trace: it lets go of the program.
        self.equations, self.captured, self.constants, self.refs = [], {}, {}, {}
        return Staged(program, values, written)


class Residuals(Stage):
    """Records the linear half of a derivative; all values that it captures are residuals."""

    __slots__ = ()

    def constant(self, value: Any) -> Atom:
        array: Any = value
        if isinstance(value, np.ndarray) and array.size <= LARGEST_LITERAL:
            return super().constant(array)
        known = self.captured.get(id(array))
        if known is None:
            known = self.captured[id(array)] = (array, Var(typeof(array)))
            self.of_mesh |= known[1].type.of_mesh
        return known[1]


def stage(
    function: Callable[..., Sequence[Any]],
    types: Sequence[ArrayType],
    name: str,
    origins: Sequence[str] = (),
    along: frozenset[Any] = NOWHERE,
) -> tuple[Program, list[Any]]:
    """Trace ``function``, from flat arguments to flat results, at ``types``.

    Traced values that it captures are inputs that may vary ``along`` axes.

    Returns:
        The program, whose first inputs are the traced values that it captured, and those.

    Raises:
        RefError: it writes a reference from outside: ``stage_with_refs`` is for those who can.
    """
    program, captured, written = stage_with_refs(function, types, name, origins, along)
    refuse_written(written, getattr(function, "who", name))
    return program, loaded(captured)


@leaving_nothing
def stage_with_refs(
    function: Callable[..., Sequence[Any]],
    types: Sequence[ArrayType],
    name: str,
    origins: Sequence[str] = (),
    along: frozenset[Any] = NOWHERE,
) -> Staged:
    """The same for functions that write references from outside."""
    trace = Stage(current(), getattr(function, "who", name), along)
    names = origins or [""] * len(types)
    inputs = [trace.input(t, n) for t, n in zip(types, names, strict=True)]
    with running(trace):
        outputs = function(*inputs)
    return trace.finish(inputs, outputs, name)


def loaded(values: Sequence[Any]) -> list[Any]:
    """``values``, with references replaced by what they hold now."""
    if Ref not in map(type, values):
        return [*values]
    return [load(x) if type(x) is Ref else x for x in values]


def refuse_written(written: Mapping[Ref, Any], who: str) -> None:
    """Raise RefError if there is one: a reference that the function of ``who`` writes."""
    for ref, where in written.items():
        raise RefError(
            f"{who}: {ref._describe()} is written inside, at {where}, and can only be read there; "
            "return the value, and write it outside"
        )


def stage_tree(
    function: Callable[..., Any], types: Sequence[ArrayType], name: str
) -> tuple[Program, list[Any], tree.PyTreeDef]:
    """``stage`` of a function that returns a tree; also the structure of that."""
    structures: list[tree.PyTreeDef] = []

    def flat(*leaves: Any) -> list[Any]:
        results, structure = tree.flatten(function(*leaves))
        structures.append(structure)
        return results

    program, captured = stage(flat, types, name)
    return program, captured, structures[0]


def evaluate(program: Program, args: Sequence[Any]) -> list[Any]:
    """Bind the equations of ``program`` one by one to the current trace."""
    trace = current()
    return interpret(program, args, lambda e, operands: trace.process(e.prim, operands, e.params))


def is_value(x: Any) -> bool:
    """Whether ``x`` may be an operand: an array, a tracer, a NumPy array or a scalar."""
    return isinstance(x, (Array, np.ndarray, np.generic, *SCALARS, Length))
