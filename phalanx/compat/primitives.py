"""Operations under the field's names: views of ours, and those that others declare by tables.

A ``ForeignPrimitive`` collects its rules in the tables of ``jax.interpreters``, at any time. When
it is first bound it becomes a declaration of ours, whose rules look into these tables; from then on
it is an operation like any other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from phalanx.base.errors import MissingRule
from phalanx.base.source import user_location
from phalanx.compat.names import TYPES, Said, in_order, ours, said_of
from phalanx.compat.zeros import UndefinedPrimal, ZeroTangent
from phalanx.control.call import lower_call
from phalanx.control.custom import RuleOperands
from phalanx.core import primitive as core
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.platforms import names_of
from phalanx.core.primitive import ZERO, Execution, Linear, UserRules
from phalanx.core.trace import Trace, entering
from phalanx.core.types import NOWHERE, ArrayType, typeof
from phalanx.lax.layout import in_place
from phalanx.transforms.linearize import Dual
from phalanx.transforms.rules import RuleTrace
from phalanx.transforms.stage import stage

# what the field's modules call primitive_jvps, primitive_transposes, ...: rules by primitive
JVPS: dict[ForeignPrimitive, Callable[..., Any]] = {}
TRANSPOSES: dict[ForeignPrimitive, Callable[..., Any]] = {}
BATCHERS: dict[ForeignPrimitive, Callable[..., Any]] = {}  # (values, dims, **params)
AXIS_BATCHERS: dict[
    ForeignPrimitive, Callable[..., Any]
] = {}  # (size, name, None, values, dims, **params)
FANCY_BATCHERS: dict[ForeignPrimitive, Callable[..., Any]] = {}  # (axis, values, dims, **params)
# by platform, None for any other: functions of its name and of arrays
LOWERINGS: dict[ForeignPrimitive, dict[str | None, Callable[..., Any]]] = {}


class ForeignPrimitive:
    """An operation of another library: a name, and rules that tables have.

    >>> from phalanx.compat.ad import deflinear
    >>> from phalanx.compat.mlir import lower_fun, register_lowering
    >>> twice = ForeignPrimitive("twice")
    >>> twice.def_impl(lambda x: 2 * x) and twice.def_abstract_eval(lambda x: x) and None
    >>> register_lowering(twice, lower_fun(lambda x: 2 * x, False)) and None
    >>> deflinear(twice, lambda ct: [2 * ct])
    >>> import phalanx
    >>> print(phalanx.grad(phalanx.jit(lambda x: twice.bind(x) * x))(3.0))
    12.0
    """

    multiple_results = False
    call_primitive = False
    map_primitive = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.impl: Callable[..., Any] | None = None
        self.abstract_eval: Callable[..., Any] | None = None
        self._declaration: core.Primitive | None = None

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """What it computes, of arrays."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Of the types of operands the type of the result, or a list of them."""
        self.abstract_eval = rule
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """The same in a pair with effects, of which none is offered."""
        self.abstract_eval = lambda *types, **params: rule(*types, **params)[0]
        return rule

    def result_types(self, /, *operands: ArrayType, **params: Any) -> list[ArrayType]:
        """The types of the results."""
        if self.abstract_eval is None:
            raise MissingRule(f"{self.name}: no def_abstract_eval, needed at {user_location()}")
        out = self.abstract_eval(*operands, **params)
        return [_as_type(t) for t in (out if self.multiple_results else [out])]

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """The result, or the list of results, for ``args``."""
        out = self.declaration(*args, **self.own_params(params, map(typeof, args)))
        return list(out) if self.multiple_results else out

    def bind_with_trace(
        self, trace: Trace, args: Iterable[Any], avals: Any, params: dict[str, Any]
    ) -> Any:
        """The same as ``trace`` interprets it."""
        with entering(trace):
            return self.bind(*args, **params)

    def own_params(
        self, params: Mapping[str, Any], operands: Iterable[ArrayType]
    ) -> dict[str, Any]:
        """The parameters of the declaration."""
        return {**params, TYPES: tuple([t.update(varying=NOWHERE) for t in operands])}

    def get_bind_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters to bind, of those of an equation: the same."""
        return dict(params)

    @property
    def declaration(self) -> core.Primitive:
        """What it is here."""
        if self._declaration is None:
            self._declaration = _declared(self)
            _views[self._declaration, said_of(self._declaration).name] = self
        return self._declaration

    def __repr__(self) -> str:
        return self.name


_views: dict[tuple[core.Primitive, str], ForeignPrimitive] = {}  # with their names


def view(prim: core.Primitive, said: Said | None = None) -> ForeignPrimitive:
    """What the field would call ``prim``, of which this is ``said``; always the same object."""
    said = said or said_of(prim)
    known = _views.get((prim, said.name))
    if known is None:
        known = _views[prim, said.name] = Operation(prim, said)
    return known


class Operation(ForeignPrimitive):
    """One of our operations."""

    def __init__(self, prim: core.Primitive, said: Said) -> None:
        super().__init__(said.name)
        self._said = said
        self._declaration = prim
        self.multiple_results = prim.multi

    def bind(self, /, *args: Any, out_sharding: Any = None, **params: Any) -> Any:
        operands = in_order(self.declaration, args)
        if out_sharding is None:
            return super().bind(*operands, **params)
        return in_place(out_sharding, super().bind, tuple(operands), params)

    def own_params(
        self, params: Mapping[str, Any], operands: Iterable[ArrayType]
    ) -> dict[str, Any]:
        told = {k: v for k, v in params.items() if k != "out_sharding"}  # types of results say it
        return ours(self.declaration, self._said, told, _program_in)


def _program_in(x: Any) -> Any:
    return getattr(x, "program", x)


# ---- a declaration whose rules are looked up in the tables --------------------------------------


def _declared(prim: ForeignPrimitive) -> core.Primitive:
    rules = _Rules(prim)
    return core.Primitive(
        f"user.{prim.name}",
        rules.type,
        rules.lower,
        transpose=rules.transpose,
        batch=rules.batch,
        multi=prim.multiple_results,
        user_rules=UserRules(rules.differentiate),
        execution=Execution(run=rules.run) if prim.impl else Execution(),
        doc="an operation declared by tables",
    )


class _Rules:
    """Those of ``prim``, in our terms.

    The lowering for a platform is a function, to be traced at the types of the operands.
    """

    def __init__(self, prim: ForeignPrimitive) -> None:
        self.prim = prim

    def _table(
        self, table: Mapping[ForeignPrimitive, Callable[..., Any]], what: str
    ) -> Callable[..., Any]:
        rule = table.get(self.prim)
        if rule is None:
            raise self._missing(what)
        return rule

    def _missing(self, what: str) -> MissingRule:
        return MissingRule(
            f"{self.prim.name}: no rule in {what}, needed at {user_location()}; it is added "
            "where the primitive is declared"
        )

    def _lowering(self, platform: str) -> Callable[..., Any]:
        """The function of arrays that is compiled for ``platform``."""
        rules = LOWERINGS.get(self.prim, {})
        for name in (*names_of(platform), None):
            if name in rules:
                return functools.partial(rules[name], platform)
        if self.prim.impl is None:
            raise self._missing(f"jax.interpreters.mlir.register_lowering for {platform}")
        return self.prim.impl

    def _several(self, out: Any) -> tuple[Any, ...]:
        return tuple(out) if self.prim.multiple_results else (out,)

    def _as_given(self, out: Sequence[Any]) -> Any:
        return tuple(out) if self.prim.multiple_results else out[0]

    def type(self, /, *operands: ArrayType, **params: Any) -> Any:
        return self._as_given(self.prim.result_types(*operands, **_given(params)))

    def run(self, /, *operands: Any, **params: Any) -> Any:
        assert self.prim.impl is not None
        return self._as_given(self._several(self.prim.impl(*operands, **_given(params))))

    def lower(self, b: Builder, /, *values: Value, **params: Any) -> Any:
        rule = self._lowering(b.target.platform)

        def function(*xs: Any) -> tuple[Any, ...]:
            return self._several(rule(*xs, **_given(params)))

        program, _ = stage(function, params[TYPES], self.prim.name)
        return self._as_given(lower_call(b, *values, program=program))

    def differentiate(self, dual: Dual, /, *args: Any, **params: Any) -> Any:
        rule = self._table(JVPS, "jax.interpreters.ad.primitive_jvps")
        operands = RuleOperands.of(dual, args, 0)
        moving = iter(operands.tangents)
        with entering(RuleTrace(dual)):
            tangents = [
                next(moving) if n else ZeroTangent(typeof(x))
                for x, n in zip(operands.seen, operands.nonzero, strict=True)
            ]
            out, tangent = rule(tuple(operands.seen), tuple(tangents), **_given(params))
            pairs = [dual.split(y) for y in self._several(out)]
            slopes = [_inner(dual, t) for t in self._several(tangent)]
        return self._as_given([y for y, _ in pairs]), self._as_given(slopes)

    def transpose(self, ct: Any, /, *operands: Any, **params: Any) -> Sequence[Any]:
        rule = self._table(TRANSPOSES, "jax.interpreters.ad.primitive_transposes")
        results = self._several(self.type(*params[TYPES], **params))
        cts = [
            ZeroTangent(t) if c is ZERO or c is None else c
            for c, t in zip(self._several(ct), results, strict=True)
        ]
        given = [UndefinedPrimal(x.type) if isinstance(x, Linear) else x for x in operands]
        back = rule(cts if self.prim.multiple_results else cts[0], *given, **_given(params))
        return [None if isinstance(c, ZeroTangent) else c for c in back]

    def batch(self, axis: Axis, values: Any, dims: Any, /, **params: Any) -> Any:
        params = _given(params)
        if self.prim in FANCY_BATCHERS:
            out, where = FANCY_BATCHERS[self.prim](axis, tuple(values), tuple(dims), **params)
        elif self.prim in AXIS_BATCHERS:
            rule = AXIS_BATCHERS[self.prim]
            out, where = rule(axis.size, axis.name, None, tuple(values), tuple(dims), **params)
        else:
            rule = self._table(BATCHERS, "jax.interpreters.batching.primitive_batchers")
            out, where = rule(tuple(values), tuple(dims), **params)
        return self._as_given(self._several(out)), self._as_given(self._several(where))


def _given(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters without that of ours."""
    return {name: value for name, value in params.items() if name != TYPES}


def _as_type(t: Any) -> ArrayType:
    return t if isinstance(t, ArrayType) else ArrayType(tuple(t.shape), t.dtype)


def _inner(dual: Dual, tangent: Any) -> Any:
    """A tangent that a rule gave, as the linear half has it."""
    if isinstance(tangent, ZeroTangent):
        return ZERO
    value, _ = dual.split(tangent)
    return value
