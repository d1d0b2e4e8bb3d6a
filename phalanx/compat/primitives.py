"""Operations under the field's names: views of ours, and those that others declare by tables.

A ``ForeignPrimitive`` collects its rules in the tables of ``jax.interpreters``, at any time. When
it is first bound it becomes a declaration of ours, whose rules look into these tables; from then on
it is an operation like any other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final, NoReturn

from msgspec.structs import force_setattr

from phalanx import tree
from phalanx.api.derivatives import linear_transpose
from phalanx.api.vmap import vmap
from phalanx.base.errors import MissingRule
from phalanx.base.kinds import is_list
from phalanx.base.source import user_location
from phalanx.compat.names import TYPES, Translation, in_order, ours, theirs, translation_of
from phalanx.compat.zeros import UndefinedPrimal, ZeroTangent, instantiate_zeros, is_zero
from phalanx.control.call import lower_call
from phalanx.control.custom_derivatives import RuleOperands
from phalanx.core import primitive as core
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.platforms import names_of
from phalanx.core.primitive import ZERO, DualRule, Execution, Linear, NoRule, UserRules
from phalanx.core.trace import Trace, entering
from phalanx.core.types import NOWHERE, ArrayType, typeof
from phalanx.lax.layout import in_place
from phalanx.spmd.named import unreduced_along
from phalanx.transforms.linearize import Dual, jvp
from phalanx.transforms.rules import RuleTrace
from phalanx.transforms.stage import stage


class ForeignPrimitive:
    """An operation of another library: a name, and rules that tables have.

    >>> from phalanx.compat.interpreters.ad import deflinear
    >>> from phalanx.compat.interpreters.mlir import lower_fun, register_lowering
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

    impl: Callable[..., Any] | None = None  # a class of others may have both as methods
    abstract_eval: Callable[..., Any] | None = None  # types of results, and effects
    _declaration: core.Primitive | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """What it computes, of arrays."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """The type of the result for the types of operands, or a list of them."""
        self.abstract_eval = lambda *types, **params: (rule(*types, **params), frozenset())
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """The same in a pair with effects, of which none is offered."""
        self.abstract_eval = rule
        return rule

    def result_types(self, /, *operands: ArrayType, **params: Any) -> list[ArrayType]:
        """The types of the results."""
        if self.abstract_eval is None:
            raise MissingRule(f"{self.name}: no def_abstract_eval, needed at {user_location()}")
        out, _ = self.abstract_eval(*operands, **params)
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
            _views[self._declaration, translation_of(self._declaration).name] = self
        return self._declaration

    def __repr__(self) -> str:
        return self.name


_views: dict[tuple[core.Primitive, str], ForeignPrimitive] = {}  # with their names


def view(prim: core.Primitive, translation: Translation | None = None) -> ForeignPrimitive:
    """``prim`` by its ``translation``, as the field would have it; always the same object."""
    translation = translation or translation_of(prim)
    known = _views.get((prim, translation.name))
    if known is None:
        known = _views[prim, translation.name] = Operation(prim, translation)
    return known


class Ours(ForeignPrimitive):
    """An operation of ours, whose rules can be read and not replaced."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._is_whole = True

    def __setattr__(self, name: str, value: Any) -> None:
        if "_is_whole" in vars(self) and hasattr(self, name):
            refuse_rule(self, f"{self.name}_p.{name}", _DECLARE)
        super().__setattr__(name, value)

    @property
    def declaration(self) -> core.Primitive:
        raise NotImplementedError(
            f"{self.name}_p: programs of Phalanx have no such operation, needed at "
            f"{user_location()}; call the function of jax.lax or jax.numpy that computes it"
        )

    def def_impl(self, impl: Callable[..., Any]) -> NoReturn:
        refuse_rule(self, f"{self.name}_p.def_impl", _DECLARE)

    def def_abstract_eval(self, rule: Callable[..., Any]) -> NoReturn:
        refuse_rule(self, f"{self.name}_p.def_abstract_eval", _DECLARE)

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> NoReturn:
        refuse_rule(self, f"{self.name}_p.def_effectful_abstract_eval", _DECLARE)


_DECLARE: Final = "declare an operation of yours, jax.extend.core.Primitive"


def refuse_rule(prim: ForeignPrimitive, what: str, instead: str) -> NoReturn:
    """Raise that ``what`` cannot be said of ``prim``, which is ours."""
    raise NotImplementedError(
        f"{what}: {prim.name} is an operation of Phalanx, whose rules cannot be replaced, at "
        f"{user_location()}; {instead}, and call it in place of {prim.name}"
    )


class Operation(Ours):
    """One of our operations."""

    _translation: Translation
    _prim: core.Primitive

    def __init__(self, prim: core.Primitive, translation: Translation) -> None:
        vars(self).update(_translation=translation, _prim=prim, multiple_results=prim.multi)
        super().__init__(translation.name)

    @property
    def declaration(self) -> core.Primitive:
        return self._prim

    def bind(self, /, *args: Any, out_sharding: Any = None, **params: Any) -> Any:
        operands = in_order(self.declaration, args)
        if out_sharding is None:
            return super().bind(*operands, **params)
        return in_place(out_sharding, super().bind, tuple(operands), params)

    def own_params(
        self, params: Mapping[str, Any], operands: Iterable[ArrayType]
    ) -> dict[str, Any]:
        own = {k: v for k, v in params.items() if k != "out_sharding"}
        left = unreduced_along(params.get("out_sharding"))
        left = left.difference(*[t.unreduced for t in operands])
        if left and self.declaration.leaves_sums:
            own["unreduced"] = tuple(sorted(left))
        return ours(self.declaration, self._translation, own, _program_in)


def _program_in(x: Any) -> Any:
    return getattr(x, "program", x)


# ---- rules by operation, at any time ------------------------------------------------------------


class Rules(MutableMapping[ForeignPrimitive, Callable[..., Any]]):
    """Rules of others' operations, by operation; those of ours can be read and not replaced.

    Args:
        name: what the field's modules call the table.
        instead: what to do in place of replacing a rule of ours.
        of_ours: a rule of ours in the field's terms; None where there is none.
        added: lets one of others count for an operation of ours that has none, until what it
            returns is called; None: none can.
    """

    def __init__(
        self,
        name: str,
        instead: str,
        of_ours: Callable[[Operation], Callable[..., Any] | None] = lambda _: None,
        added: Callable[[Operation, Callable[..., Any]], Callable[[], None]] | None = None,
    ) -> None:
        self._name = name
        self._instead = instead
        self._of_ours = functools.cache(of_ours)
        self._added = added
        self._registered: dict[ForeignPrimitive, Callable[..., Any]] = {}
        self._undo: dict[ForeignPrimitive, Callable[[], None]] = {}

    def __getitem__(self, prim: ForeignPrimitive) -> Callable[..., Any]:
        rule = self._registered.get(prim)
        if rule is None and isinstance(prim, Operation):
            rule = self._of_ours(prim)
        if rule is None:
            raise KeyError(prim)
        return rule

    def __setitem__(self, prim: ForeignPrimitive, rule: Callable[..., Any]) -> None:
        if self._added and isinstance(prim, Operation) and self._of_ours(prim) is None:
            if prim in self._undo:
                del self[prim]
            self._undo[prim] = self._added(prim, rule)
        else:
            self._refuse_ours(prim)
        self._registered[prim] = rule

    def __delitem__(self, prim: ForeignPrimitive) -> None:
        if prim in self._undo:
            self._undo.pop(prim)()
        else:
            self._refuse_ours(prim)
        del self._registered[prim]

    def __iter__(self) -> Iterator[ForeignPrimitive]:
        yield from [*self._registered]
        every = map(view, [*core.REGISTRY.values()])
        others = [op for op in every if isinstance(op, Operation) and op not in self._registered]
        yield from [op for op in others if self._of_ours(op)]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<{self._name}: rules of {len(self)} operations>"

    def clear(self) -> None:
        """Forget the rules of others' operations."""
        self._registered.clear()

    def _refuse_ours(self, prim: ForeignPrimitive) -> None:
        if isinstance(prim, Ours):
            refuse_rule(prim, f"{self._name}[{prim.name}_p]", self._instead)


def _jvp_of(prim: Operation) -> Callable[..., Any] | None:
    """What takes primals and tangents, as ``ad.primitive_jvps`` has it."""
    declared = prim.declaration
    if declared.linearize is None or isinstance(declared.linearize, NoRule):
        return None

    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        known = [ZERO if isinstance(t, ZeroTangent) else t for t in tangents]
        outs, slopes = jvp(lambda *xs: _several(prim.bind(*xs, **params)), primals, known)
        back = [
            ZeroTangent.from_primal_value(y) if t is ZERO else t
            for y, t in zip(outs, slopes, strict=True)
        ]
        return (outs, back) if prim.multiple_results else (outs[0], back[0])

    return rule


def _transpose_of(prim: Operation) -> Callable[..., Any] | None:
    """What takes cotangents and operands, as ``ad.primitive_transposes`` has it."""
    if not callable(prim.declaration.transpose):
        return None

    def rule(ct: Any, *operands: Any, **params: Any) -> list[Any]:
        wanted = [i for i, x in enumerate(operands) if isinstance(x, UndefinedPrimal)]

        def function(*linear: Any) -> Any:
            every = dict(enumerate(operands)) | dict(zip(wanted, linear, strict=True))
            return prim.bind(*every.values(), **params)

        back = linear_transpose(function, *[operands[i].aval for i in wanted])
        cts = dict(zip(wanted, back(tree.map(instantiate_zeros, ct, is_leaf=is_zero)), strict=True))
        return [cts.get(i) for i in range(len(operands))]

    return rule


def _add_transpose(prim: Operation, rule: Callable[..., Any]) -> Callable[[], None]:
    """Let ``rule`` be the transpose of ``prim``, which has none, until the result is called."""
    declared = prim.declaration

    def transpose(ct: Any, /, *operands: Any, **params: Any) -> Sequence[Any]:
        arguments = [UndefinedPrimal(x.type) if isinstance(x, Linear) else x for x in operands]
        back = rule(ct, *in_order(declared, arguments), **theirs(declared, params, _program_in))
        cts = [None if isinstance(c, ZeroTangent) else c for c in back]
        return in_order(declared, cts)

    without = declared.transpose
    force_setattr(declared, "transpose", transpose)
    return lambda: force_setattr(declared, "transpose", without)


def _batcher_of(prim: Operation) -> Callable[..., Any] | None:
    """What takes values and the dimensions of their lanes, as ``batching`` has it."""
    if not callable(prim.declaration.batch):
        return None

    def rule(values: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        out = vmap(lambda *xs: prim.bind(*xs, **params), in_axes=tuple(dims))(*values)
        return out, [0] * len(out) if prim.multiple_results else 0

    return rule


def _fancy_batcher_of(prim: Operation) -> Callable[..., Any] | None:
    plain = _batcher_of(prim)
    if plain is None:
        return None

    def rule(axis: Any, values: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        return plain(values, dims, **params)

    return rule


def _several(out: Any) -> list[Any]:
    return [*out] if is_list(out) else [out]


_CUSTOM: Final = "give a function of yours the rule, jax.custom_jvp or jax.custom_vjp"
_CUSTOM_LANES: Final = "give a function of yours the rule, jax.custom_batching.custom_vmap"

JVPS = Rules("ad.primitive_jvps", _CUSTOM, _jvp_of)
TRANSPOSES = Rules("ad.primitive_transposes", _CUSTOM, _transpose_of, _add_transpose)
# (values, dims, **params)
BATCHERS = Rules("batching.primitive_batchers", _CUSTOM_LANES, _batcher_of)
# (size, name, None, values, dims, **params)
AXIS_BATCHERS = Rules("batching.axis_primitive_batchers", _CUSTOM_LANES)
# (axis, values, dims, **params)
FANCY_BATCHERS = Rules("batching.fancy_primitive_batchers", _CUSTOM_LANES, _fancy_batcher_of)
# by platform, None for any other: functions of its name and of arrays
LOWERINGS: dict[ForeignPrimitive, dict[str | None, Callable[..., Any]]] = {}


def add_lowering(prim: ForeignPrimitive, platform: str | None, rule: Callable[..., Any]) -> None:
    """Let ``rule``, of the name of a platform and of arrays, be the lowering for ``platform``.

    Raises:
        NotImplementedError: ``prim`` is ours.
    """
    if isinstance(prim, Ours):
        refuse_rule(prim, f"mlir.register_lowering({prim.name}_p)", _DECLARE)
    LOWERINGS.setdefault(prim, {})[platform] = rule


# ---- a declaration whose rules are looked up in the tables --------------------------------------


def _declared(prim: ForeignPrimitive) -> core.Primitive:
    rules = _Rules(prim)
    return core.Primitive(
        f"user.{prim.name}",
        rules.type,
        rules.lower,
        linearize=DualRule(rules.differentiate),
        transpose=rules.transpose,
        batch=rules.batch,
        multi=prim.multiple_results,
        user_rules=UserRules(),
        execution=Execution(run=rules.run) if prim.impl else Execution(),
        doc="an operation declared by tables",
    )


class _Rules:
    """Those of ``prim``, in our terms.

    The lowering for a platform is a function, to be traced at the types of the operands.
    """

    def __init__(self, prim: ForeignPrimitive) -> None:
        self.prim = prim

    def _table(self, table: Rules, what: str) -> Callable[..., Any]:
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

    def _results(self, out: Sequence[Any]) -> Any:
        return tuple(out) if self.prim.multiple_results else out[0]

    def type(self, /, *operands: ArrayType, **params: Any) -> Any:
        return self._results(self.prim.result_types(*operands, **_of_the_user(params)))

    def run(self, /, *operands: Any, **params: Any) -> Any:
        assert self.prim.impl is not None
        return self._results(self._several(self.prim.impl(*operands, **_of_the_user(params))))

    def lower(self, b: Builder, /, *values: Value, **params: Any) -> Any:
        rule = self._lowering(b.target.platform)

        def function(*xs: Any) -> tuple[Any, ...]:
            return self._several(rule(*xs, **_of_the_user(params)))

        program, _ = stage(function, params[TYPES], self.prim.name)
        return self._results(lower_call(b, *values, program=program))

    def differentiate(self, dual: Dual, /, *args: Any, **params: Any) -> Any:
        rule = self._table(JVPS, "jax.interpreters.ad.primitive_jvps")
        operands = RuleOperands.of(dual, args, 0)
        moving = iter(operands.tangents)
        with entering(RuleTrace(dual)):
            tangents = [
                next(moving) if n else ZeroTangent(typeof(x))
                for x, n in zip(operands.seen, operands.nonzero, strict=True)
            ]
            out, tangent = rule(tuple(operands.seen), tuple(tangents), **_of_the_user(params))
            pairs = [dual.split(y) for y in self._several(out)]
            slopes = [_inner(dual, t) for t in self._several(tangent)]
        return self._results([y for y, _ in pairs]), self._results(slopes)

    def transpose(self, ct: Any, /, *operands: Any, **params: Any) -> Sequence[Any]:
        rule = self._table(TRANSPOSES, "jax.interpreters.ad.primitive_transposes")
        results = self._several(self.type(*params[TYPES], **params))
        cts = [
            ZeroTangent(t) if c is ZERO or c is None else c
            for c, t in zip(self._several(ct), results, strict=True)
        ]
        arguments = [UndefinedPrimal(x.type) if isinstance(x, Linear) else x for x in operands]
        back = rule(
            cts if self.prim.multiple_results else cts[0], *arguments, **_of_the_user(params)
        )
        return [None if isinstance(c, ZeroTangent) else c for c in back]

    def batch(self, axis: Axis, values: Any, dims: Any, /, **params: Any) -> Any:
        params = _of_the_user(params)
        if self.prim in FANCY_BATCHERS:
            out, where = FANCY_BATCHERS[self.prim](axis, tuple(values), tuple(dims), **params)
        elif self.prim in AXIS_BATCHERS:
            rule = AXIS_BATCHERS[self.prim]
            out, where = rule(axis.size, axis.name, None, tuple(values), tuple(dims), **params)
        else:
            rule = self._table(BATCHERS, "jax.interpreters.batching.primitive_batchers")
            out, where = rule(tuple(values), tuple(dims), **params)
        return self._results(self._several(out)), self._results(self._several(where))


def _of_the_user(params: Mapping[str, Any]) -> dict[str, Any]:
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
