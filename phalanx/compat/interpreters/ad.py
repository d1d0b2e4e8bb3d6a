"""``jax.interpreters.ad``: rules for derivatives of primitives that others declare."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from phalanx.base.errors import ClosureDifferentiated
from phalanx.compat.primitives import JVPS, TRANSPOSES, ForeignPrimitive
from phalanx.compat.zeros import (
    UndefinedPrimal,
    ZeroTangent,
    instantiate_zeros,
    is_undefined_primal,
)
from phalanx.core.types import ArrayType
from phalanx.primitives.basis import zeros
from phalanx.primitives.elementwise import add
from phalanx.transforms.linearize import Dual, DualTracer

__all__ = [
    "CustomVJPException",
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "p2tz",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]

Zero = ZeroTangent
p2tz = ZeroTangent.from_primal_value
CustomVJPException = ClosureDifferentiated
primitive_jvps = JVPS
primitive_transposes = TRANSPOSES
JVPTrace, JVPTracer = Dual, DualTracer


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, of which each may be a ``ZeroTangent``."""
    if isinstance(x, ZeroTangent):
        return y
    return x if isinstance(y, ZeroTangent) else add(x, y)


add_jaxvals = add_tangents


def zeros_like_aval(aval: ArrayType) -> Any:
    """Zeros of a type."""
    return zeros(aval)


def defjvp(primitive: ForeignPrimitive, *jvprules: Callable[..., Any] | None) -> None:
    """For each operand ``(tangent, *primals, **params)`` to a term of the tangent, or None."""
    terms = [rule and functools.partial(_without_result, rule) for rule in jvprules]
    JVPS[primitive] = functools.partial(_sum_of_terms, primitive, terms)


def _without_result(rule: Callable[..., Any], t: Any, out: Any, *xs: Any, **params: Any) -> Any:
    del out
    return rule(t, *xs, **params)


def defjvp2(primitive: ForeignPrimitive, *jvprules: Callable[..., Any] | None) -> None:
    """The same with the result after the tangent."""
    JVPS[primitive] = functools.partial(_sum_of_terms, primitive, jvprules)


def _sum_of_terms(
    prim: ForeignPrimitive, rules: Any, primals: Any, tangents: Any, **params: Any
) -> Any:
    out = prim.bind(*primals, **params)
    terms = [
        rule(t, out, *primals, **params)
        for rule, t in zip(rules, tangents, strict=True)
        if rule is not None and not isinstance(t, ZeroTangent)
    ]
    return out, functools.reduce(add_tangents, terms, ZeroTangent.from_primal_value(out))


def deflinear(primitive: ForeignPrimitive, transpose_rule: Callable[..., Any]) -> None:
    """``primitive`` is linear; ``(cotangent, **params)`` to the cotangents of its operands."""

    def of_cotangent(ct: Any, *_: Any, **params: Any) -> Any:
        return transpose_rule(ct, **params)

    deflinear2(primitive, of_cotangent)


def deflinear2(primitive: ForeignPrimitive, transpose_rule: Callable[..., Any]) -> None:
    """The same of ``(cotangent, *operands, **params)``."""
    JVPS[primitive] = functools.partial(_linear, primitive)

    def rule(ct: Any, *operands: Any, **params: Any) -> list[Any]:
        if isinstance(ct, ZeroTangent):
            return [ZeroTangent(x.aval) if is_undefined_primal(x) else None for x in operands]
        return transpose_rule(ct, *operands, **params)

    TRANSPOSES[primitive] = rule


def _linear(prim: ForeignPrimitive, primals: Any, tangents: Any, **params: Any) -> Any:
    out = prim.bind(*primals, **params)
    if all(isinstance(t, ZeroTangent) for t in tangents):
        if not prim.multiple_results:
            return out, ZeroTangent.from_primal_value(out)
        return out, list(map(ZeroTangent.from_primal_value, out))
    return out, prim.bind(*map(instantiate_zeros, tangents), **params)


def defbilinear(
    prim: ForeignPrimitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]
) -> None:
    """``prim`` of two operands is linear in each.

    ``lhs_rule`` and ``rhs_rule`` are ``(cotangent, x, y, **params)`` to the cotangent of one.
    """

    def of_first(t: Any, x: Any, y: Any, **params: Any) -> Any:
        return prim.bind(t, y, **params)

    def of_second(t: Any, x: Any, y: Any, **params: Any) -> Any:
        return prim.bind(x, t, **params)

    defjvp(prim, of_first, of_second)

    def rule(ct: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    TRANSPOSES[prim] = rule


def get_primitive_transpose(p: ForeignPrimitive) -> Callable[..., Any]:
    """The transpose rule of ``p``.

    Raises:
        NotImplementedError: it has none.
    """
    if p not in TRANSPOSES:
        raise NotImplementedError(f"{p}: no transpose rule has been given")
    return TRANSPOSES[p]
