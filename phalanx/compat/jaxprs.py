"""Programs as the field's interpreters read them: views with other names, and the way back.

A ``Jaxpr`` lists equations of views of operations (``primitives.py``). Constants are its first
variables, and a ``ClosedJaxpr`` has their values. The names of parameters are the field's where
interpreters look at them; what is a program among them is a ``ClosedJaxpr``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from phalanx.api.aot import struct
from phalanx.api.make_program import traced_program
from phalanx.base.kinds import is_sequence
from phalanx.compat.api_util import DebugInfo
from phalanx.compat.casts import with_casts
from phalanx.compat.extend.source_info_util import SourceInfo, scopes_of
from phalanx.compat.names import arranged, in_order, theirs, translation_of
from phalanx.compat.primitives import ForeignPrimitive, view
from phalanx.core.primitive import selected
from phalanx.core.program import Equation, Literal, Program, Var, operand_types
from phalanx.core.types import ArrayType
from phalanx.transforms.constants import lifted, used_inputs
from phalanx.transforms.dce import with_outputs
from phalanx.transforms.stage import evaluate

Atom = Var | Literal


class JaxprEqn(Struct, frozen=True, eq=False, weakref=True):
    """``outvars = primitive(*invars, **params)``."""

    invars: list[Atom]
    outvars: list[Var]
    primitive: ForeignPrimitive
    params: dict[str, Any]
    effects: frozenset[Any] = frozenset()
    source_info: SourceInfo | None = None
    ctx: Any = None

    @classmethod
    def of(cls, e: Equation, within: str = "") -> JaxprEqn:
        """The view of an equation; ``within`` are the named scopes of the program it is in."""
        inside = functools.partial(ClosedJaxpr.of, within=scopes_of(e.location))
        operands, order, own = arranged(e.prim, e.inputs, e.params)
        results = e.outputs if order is None else [e.outputs[i] for i in order]
        params = theirs(e.prim, own, inside)
        if "out_sharding" in params and params.pop("unreduced", ()):  # else that is said next
            params["out_sharding"] = e.outputs[0].type.sharding
        source = SourceInfo(e.location, within)
        return cls(
            operands,
            [*results],
            view(e.prim, translation_of(e.prim, own)),
            params,
            e.effects,
            source,
        )

    @property
    def equation(self) -> Equation:
        """What it is a view of."""
        prim = self.primitive.declaration
        params = self.primitive.own_params(self.params, operand_types(self.invars))
        source = self.source_info.location if self.source_info else None
        operands = in_order(prim, self.invars)
        return Equation(prim, operands, params, tuple(self.outvars), source)

    def replace(self, **changes: Any) -> JaxprEqn:
        """The same with other fields."""
        return replace(self, **changes)


class Jaxpr(Struct, frozen=True, eq=False, dict=True, weakref=True):
    """Variables and equations. The values of ``constvars`` are kept elsewhere."""

    constvars: list[Var]
    invars: list[Var]
    outvars: list[Atom]
    eqns: list[JaxprEqn] = field(default_factory=list[JaxprEqn])
    effects: frozenset[Any] = frozenset()
    debug_info: DebugInfo = field(default_factory=lambda: DebugInfo("jit", "main"))

    @classmethod
    def of(cls, program: Program, constants: int, within: str = "") -> Jaxpr:
        """The view of ``program``, whose first inputs are constants."""
        return cls(
            [*program.inputs[:constants]],
            [*program.inputs[constants:]],
            [*program.outputs],
            [JaxprEqn.of(e, within) for e in with_casts(program).equations],
            program.effects,
            DebugInfo("jit", program.name),
        )

    @functools.cached_property
    def program(self) -> Program:
        """The program of constants and variables that it is a view of."""
        equations = [e.equation for e in self.eqns]
        inputs = [*self.constvars, *self.invars]
        return Program(inputs, equations, self.outvars, self.debug_info.func_name)

    @property
    def in_avals(self) -> list[ArrayType]:
        return [v.type for v in self.invars]

    @property
    def out_avals(self) -> list[ArrayType]:
        return [a.type for a in self.outvars]

    @property
    def jaxpr(self) -> Jaxpr:
        return self

    def replace(self, **changes: Any) -> Jaxpr:
        """The same with other fields."""
        return replace(self, **changes)

    def pretty_print(self, **_: Any) -> str:
        """The program as text."""
        return str(self)

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:  # what a prompt shows
        return str(self)


class ClosedJaxpr(Struct, frozen=True, eq=False, weakref=True):
    """A ``Jaxpr`` with the values of its constants."""

    jaxpr: Jaxpr
    consts: Sequence[Any] = ()

    @classmethod
    def of(cls, program: Program, captured: Sequence[Any] = (), within: str = "") -> ClosedJaxpr:
        """The view of a program, whose first inputs are for ``captured``.

        Arrays that it holds become constants, too. Known or traced, they are in the order of their
        use: so constants of a function that is traced twice can take each other's places.
        """
        constants_lifted = lifted(program, all_arrays=True)
        whole, held = constants_lifted.program, [c.value for c in constants_lifted.constants]
        values = dict(zip(whole.inputs, [*held, *captured], strict=False))
        used = [v for v in used_inputs(whole) if v in values]
        order = [*dict.fromkeys([*used, *values])]
        inputs = [*order, *whole.inputs[len(values) :]]
        jaxpr = Jaxpr.of(whole.update(inputs=inputs), len(values), within)
        return cls(jaxpr, [values[v] for v in order])

    @property
    def program(self) -> Program:
        """The program of variables alone; constants are part of it."""
        jaxpr = self.jaxpr
        names = {v: Literal(x) for v, x in zip(jaxpr.constvars, self.consts, strict=True)}
        return jaxpr.program.update(inputs=jaxpr.invars).renamed(names)

    @property
    def eqns(self) -> list[JaxprEqn]:
        return self.jaxpr.eqns

    @property
    def constvars(self) -> list[Var]:
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        return self.jaxpr.outvars

    @property
    def debug_info(self) -> DebugInfo:
        return self.jaxpr.debug_info

    @property
    def num_consts(self) -> int:
        return len(self.consts)

    @property
    def literals(self) -> Sequence[Any]:
        return self.consts

    @property
    def in_avals(self) -> list[ArrayType]:
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ArrayType]:
        return self.jaxpr.out_avals

    @property
    def effects(self) -> frozenset[Any]:
        return self.jaxpr.effects

    def replace(self, **changes: Any) -> ClosedJaxpr:
        """The same with other fields."""
        return replace(self, **changes)

    def map_jaxpr(self, f: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """The same of ``f(jaxpr)``."""
        return replace(self, jaxpr=f(self.jaxpr))

    def pretty_print(self, **_: Any) -> str:
        """The program as text."""
        return str(self)

    def __str__(self) -> str:
        return str(self.jaxpr)

    def __repr__(self) -> str:  # what a prompt shows
        return str(self)


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    **_: Any,
) -> Callable[..., Any]:
    """x -> the ``ClosedJaxpr`` that ``fun`` is at the types of x."""

    def make(*args: Any, **kwargs: Any) -> Any:
        program, captured, results = traced_program(fun, args, kwargs, static_argnums, axis_env)
        closed = ClosedJaxpr.of(program, captured)
        shapes = map(struct, program.output_types)
        return (closed, results(shapes)) if return_shape else closed

    return make


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, **_: Any) -> list[Any]:
    """The results for these values of constants and variables."""
    return list(evaluate(jaxpr.program, [*consts, *args]))


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The function of variables that ``closed_jaxpr`` is."""
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """``jaxpr`` for some outputs alone, and which of the variables that takes."""
    keep = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    left = with_outputs(jaxpr.program, tuple(used_outputs))
    read = {a for e in left.equations for a in e.inputs} | set(left.outputs)
    used = [k or v in read for v, k in zip(jaxpr.invars, keep, strict=True)]
    inputs = [*jaxpr.constvars, *selected(jaxpr.invars, used)]
    return Jaxpr.of(left.update(inputs=inputs), len(jaxpr.constvars)), used


def subjaxprs(jaxpr: Jaxpr) -> Iterable[Jaxpr]:
    """The programs in the parameters of its equations."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def jaxprs_in_params(params: dict[str, Any]) -> Iterable[Jaxpr]:
    """The programs among parameters."""
    for value in params.values():
        for part in value if is_sequence(value) else (value,):
            if isinstance(part, (Jaxpr, ClosedJaxpr)):
                yield part.jaxpr


def gensym(*_: Any) -> Callable[[ArrayType], Var]:
    """What makes new variables of given types."""
    return Var


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: ForeignPrimitive,
    params: dict[str, Any],
    effects: frozenset[Any] = frozenset(),
    source_info: SourceInfo | None = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation."""
    return JaxprEqn([*invars], [*outvars], primitive, params, effects, source_info, ctx)
