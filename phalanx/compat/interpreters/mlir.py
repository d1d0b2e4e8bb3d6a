"""``jax.interpreters.mlir``: lowerings of others' primitives, run on arrays.

A rule is given arrays where it expects values of the compiler's. What it does with them through
``lower_fun`` and ``emit_python_callback`` is traced; operations of the compiler, written by hand,
take no arrays, and such a rule is refused where it is needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from phalanx.api.callbacks import io_callback, pure_callback
from phalanx.base.source import name_of
from phalanx.compat.primitives import ForeignPrimitive, add_lowering
from phalanx.core.types import ArrayType, typeof

__all__ = [
    "LoweringRuleContext",
    "ModuleContext",
    "emit_python_callback",
    "lower_fun",
    "register_lowering",
]


class ModuleContext(Struct, frozen=True):
    """What is asked of the module that is written: for which platforms."""

    platforms: tuple[str, ...]

    def add_keepalive(self, x: Any) -> None:
        """Nothing: a program holds what it calls."""


class LoweringRuleContext(Struct, frozen=True):
    """What a rule is told beside its operands."""

    primitive: ForeignPrimitive
    avals_in: Sequence[ArrayType]
    avals_out: Sequence[ArrayType]
    module_context: ModuleContext


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """The lowering of what computes what ``fun`` does."""

    def rule(ctx: LoweringRuleContext, *args: Any, **params: Any) -> Sequence[Any]:
        out = fun(*args, **params)
        return list(out) if multiple_results else [out]

    rule.traced = True  # type: ignore[attr-defined]
    return rule


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[ArrayType],
    result_avals: Sequence[ArrayType],
    *,
    has_side_effect: bool,
    **_: Any,
) -> tuple[Sequence[Any], Any, None]:
    """A call of ``callback`` on the host: its results, the token, and nothing to keep alive."""
    call = io_callback if has_side_effect else pure_callback
    return list(call(callback, tuple(result_avals), *operands)), token, None


def register_lowering(
    prim: ForeignPrimitive, rule: Callable[..., Any], platform: str | None = None, **_: Any
) -> Callable[..., Any]:
    """Let ``rule`` be the lowering of ``prim`` for a platform, or for all that have no other."""
    add_lowering(prim, platform, functools.partial(_on_arrays, prim, rule))
    return rule


def _on_arrays(
    prim: ForeignPrimitive, rule: Callable[..., Any], platform: str, /, *values: Any, **params: Any
) -> Any:
    types = [typeof(v) for v in values]
    results = prim.result_types(*types, **params)
    ctx = LoweringRuleContext(prim, types, results, ModuleContext((platform,)))
    if getattr(rule, "traced", False):
        out = rule(ctx, *values, **params)
    else:
        try:
            out = rule(ctx, *values, **params)
        except (AttributeError, TypeError, RuntimeError) as e:
            raise NotImplementedError(
                f"{prim}: its lowering, {name_of(rule)}, writes operations of the compiler by "
                f"hand ({e}); what is offered are lowerings made by mlir.lower_fun of a function "
                "of arrays"
            ) from e
    return tuple(out) if prim.multiple_results else next(iter(out))
