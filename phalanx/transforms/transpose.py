"""Reverse derivatives: run a linear program backwards, from cotangents out to cotangents in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NoReturn

from phalanx.base import dtypes
from phalanx.base.errors import ShardingTypeError
from phalanx.base.source import replaying
from phalanx.core.interpret import interpret
from phalanx.core.manual import typed
from phalanx.core.mesh_spec import both
from phalanx.core.primitive import OPEN, SUMMED, ZERO, Linear, Primitive
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.roles import CHOICE, Role
from phalanx.core.trace import current
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add, instantiate
from phalanx.primitives.collective import psum
from phalanx.primitives.resharding import resharded, without_spec
from phalanx.primitives.vary import as_parts, fitted, pvary, sorted_axes, varying_along
from phalanx.transforms.sums import leaving_sums

Rule = Callable[[Equation, tuple[Any, ...], tuple[Any, ...]], Sequence[Any]]
_Along = tuple[frozenset[Any], frozenset[Any]]
_NO_PARTS: dict[_Along, Any] = {}


class _Cotangents:
    """The cotangents that were added up so far, for each variable.

    The type of a cotangent is that of its variable, with unreduced and reduced axes swapped. Inside
    ``shard_map``, for y = x * w with x varying along "i" and w the same everywhere, the rule gives
    ct * x for w, which varies: each position has a *part*, and the cotangent of w is the sum of the
    parts over "i". ``parts`` holds them apart from ``wholes``; they are summed up when the
    cotangent is taken. Until then the compiler decides how it is cut along Explicit axes, so that
    sums over these need not be taken before, either.
    """

    __slots__ = ("parts", "wholes")

    def __init__(self) -> None:
        self.wholes: dict[Any, Any] = {}
        self.parts: dict[Var, dict[_Along, Any]] = {}

    def add(self, var: Any, ct: Any) -> None:
        """Add ``ct`` to the cotangent of ``var``."""
        if ct is ZERO:
            return
        sums, key = self.wholes, var
        if var.type.of_mesh or typeof(ct).of_mesh:
            ct = _by_itself(ct, var.type.cotangent)
            extra = _beyond(typeof(ct), var.type.cotangent)
            if any(extra):
                sums, key = self.parts.setdefault(var, {}), extra
        sums[key] = add(sums[key], ct) if key in sums else ct

    def take(self, var: Var) -> Any:
        """Remove and return the cotangent of ``var``, with all its parts summed up; ``ZERO`` if
        nothing was added."""
        whole = self.wholes.pop(var, ZERO)
        for (along, left), part in self.parts.pop(var, _NO_PARTS).items():
            total = resharded(part, var.type.cotangent.spec) if left else part
            if along:
                (total,) = psum(total, axes=sorted_axes(along), groups=None)
            whole = total if whole is ZERO else add(whole, total)
        if whole is ZERO or not (var.type.of_mesh or typeof(whole).of_mesh):
            return whole
        return fitted(whole, var.type.cotangent)

    def take_part(self, var: Var) -> Any:
        """The same, but if there are only parts, they are returned as they are.

        A linear operation may be applied before the sum or after it; its result may be smaller.
        """
        parts = self.parts.get(var, _NO_PARTS)
        if len(parts) != 1 or var in self.wholes or any([left for _, left in parts]):
            return self.take(var)
        (part,) = self.parts.pop(var).values()
        return varying_along(part, var.type.varying)

    def take_to_sum(self, var: Var) -> Any:
        """The same for an operation that sums the cotangent over dimensions: in the sharding that
        it has, so that it is not gathered before."""
        kind, whole = var.type.cotangent, self.wholes.get(var, ZERO)
        if whole is ZERO or var in self.parts or kind.spec is None or kind.spec.has_sums:
            return self.take_part(var)
        del self.wholes[var]
        return varying_along(whole, kind.varying)


def _by_itself(ct: Any, target: ArrayType) -> Any:
    """``ct`` as a summand of a cotangent of the type ``target``: unreduced along the same axes, and
    varying along Manual axes along which ``ct`` alone is unreduced."""
    kind = typeof(ct)
    if not any([t.spec is not None and t.spec.has_sums for t in (kind, target)]):
        return ct
    if target.spec is not None and target.spec.has_sums:
        ct = resharded(ct, target.spec)
        kind = typeof(ct)
    over = typed(target.unreduced) - kind.unreduced
    if over:
        ct = fitted(ct, kind.update(varying=kind.varying - over, spec=both(kind.spec, target.spec)))
    return as_parts(ct, typed(kind.unreduced) - target.unreduced)


def _beyond(kind: ArrayType, target: ArrayType) -> _Along:
    """The axes along which ``kind`` varies and ``target`` does not, and those along which it is
    unreduced and ``target`` is not."""
    return kind.varying - target.varying, kind.unreduced - target.unreduced


def backward(program: Program, operands: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """The cotangents of the inputs given as ``Linear``, from those of the outputs.

    ``operands`` has one entry per input of the program: a value, or ``Linear`` for an input
    in which the program is linear. ``cts`` has one per output; entries in and out may be
    ``ZERO``.
    """
    process = current().process
    pending: list[tuple[Equation, tuple[Any, ...]]] = []

    def forward(e: Equation, operands: tuple[Any, ...]) -> Any:
        """Run what does not depend on the linear inputs; what does waits."""
        if not any([type(x) is Linear for x in operands]):
            return process(e.prim, operands, e.params)
        pending.append((e, operands))
        results = tuple([Linear(v.type) for v in e.outputs])
        return results if e.prim.multi else results[0]

    results = interpret(program, operands, forward)
    cotangents = _Cotangents()
    for atom, result, ct in zip(program.outputs, results, cts, strict=True):
        if type(result) is Linear:
            cotangents.add(atom, ct)
    used: set[Atom] = {*cotangents.wholes, *cotangents.parts}
    by_rule = _over_mesh if _has_mesh(program) else _by_rule
    with replaying() as at:
        for equation, values in reversed(pending):
            if not used.isdisjoint(equation.outputs):
                used.update(equation.inputs)
                at(equation.location)
                _transpose_equation(equation, values, cotangents, used, by_rule)
    pairs = zip(program.inputs, operands, strict=True)
    return [cotangents.take(v) for v, x in pairs if type(x) is Linear]


def _has_mesh(program: Program) -> bool:
    """Whether types in ``program`` say how values lie."""
    results = [v for e in program.equations for v in e.outputs]
    return any([v.type.of_mesh for v in (*program.inputs, *results)])


def _transpose_equation(
    e: Equation, operands: tuple[Any, ...], cotangents: _Cotangents, used: set[Atom], by_rule: Rule
) -> None:
    cts = tuple(map(_taking(e.prim, cotangents), e.outputs))
    if any([ct is ZERO for ct in cts]) and _answers_zeros(e):
        if any(e.programs):  # which see no use of a result but by its cotangent
            pairs = zip(cts, e.outputs, strict=True)
            cts = tuple([instantiate(ct, v.type.cotangent) if v in used else ct for ct, v in pairs])
    elif all([ct is ZERO for ct in cts]):
        return
    if any(map(_must_be_known, operands, e.frame.ins if e.frame else repeat(None))):
        _refuse_nonlinear(e, "an integer or boolean operand depends on the")
    for atom, x, ct in zip(e.inputs, operands, by_rule(e, cts, operands), strict=True):
        if type(x) is Linear:
            if ct is None:
                _refuse_nonlinear(e, "its operands depend on the same")
            cotangents.add(atom, ct)


def _taking(prim: Primitive, cotangents: _Cotangents) -> Callable[[Var], Any]:
    """The method by which the rule of ``prim`` gets cotangents of its results."""
    if prim.cotangent == SUMMED:
        return cotangents.take_to_sum
    axes = prim.named_axes
    simple = not prim.multi and (axes is None or not axes.communicates)
    return cotangents.take_part if simple else cotangents.take


def _by_rule(e: Equation, cts: tuple[Any, ...], operands: tuple[Any, ...]) -> Sequence[Any]:
    if e.prim is pvary and len(typed(e.params["axes"])) == len(e.params["axes"]):
        return cts  # a part of that of the operand, and summed when that is taken
    return e.prim.rule("transpose")(cts if e.prim.multi else cts[0], *operands, **e.params)


def _over_mesh(e: Equation, cts: tuple[Any, ...], operands: tuple[Any, ...]) -> Sequence[Any]:
    """Cotangents where types say how values lie."""
    if _follows_types(e.prim, cts):
        return _by_rule(e, cts, operands)
    return _in_parts(e, cts, operands) or _by_rule(
        e, tuple(map(without_spec, cts)), tuple(map(_open, operands))
    )


def _in_parts(e: Equation, cts: tuple[Any, ...], operands: tuple[Any, ...]) -> Sequence[Any] | None:
    """Cotangents of operands that are reduced along axes, over which sums are left to be taken.

    None where there is no such operand, or types do not tell how the cotangents lie.
    """
    shardings = [x.type.spec for x in operands if type(x) is Linear]
    axes = frozenset[str]().union(*[spec.reduced for spec in shardings if spec is not None])
    if not axes:
        return None
    try:
        with leaving_sums(axes):
            return _by_rule(e, cts, operands)
    except ShardingTypeError:
        return None


def _open(operand: Any) -> Any:
    """``operand`` with a type that has no spec along Explicit axes."""
    if type(operand) is not Linear:
        return without_spec(operand)
    spec = operand.type.spec
    return operand if spec is None else Linear(operand.type.update(spec=spec.manual))


def _follows_types(prim: Primitive, cts: Sequence[Any]) -> bool:
    """Whether the rule of ``prim`` gives cotangents with the specs of their types: elementwise
    operations do, those that move elements, and programs. For an unreduced cotangent, a linear
    operation is needed.
    """
    if prim.subprograms is not None or prim.user_rules is not None:
        return True
    if not prim.linear and any([ct is not ZERO and typeof(ct).unreduced for ct in cts]):
        return False
    return prim.elements.fused if prim.cotangent is None else prim.cotangent != OPEN


def _answers_zeros(e: Equation) -> bool:
    """Whether there may be a cotangent of an operand although there is none of a result."""
    inside = frozenset({e.prim}).union(*[p.primitives for p in e.programs])
    return any(p.user_rules is not None and p.user_rules.answers_zeros for p in inside)


def _must_be_known(x: Any, role: Role | None) -> bool:
    """Whether ``x`` is a linear operand of integers, such as an index, in which nothing is linear.

    Integers to which a program gives a ``role`` may only pass through it.
    """
    if type(x) is not Linear:
        return False
    return not dtypes.is_inexact(x.type.dtype) if role is None else role is CHOICE


def _refuse_nonlinear(e: Equation, reason: str) -> NoReturn:
    raise TypeError(
        f"{e.prim.name}: at {e.location} {reason} tangents or inputs, so the function is not "
        "linear in them and cannot be transposed. Give linear_transpose a linear function; let the "
        "tangents that a rule of custom_jvp gives be linear in those that it is given"
    )
