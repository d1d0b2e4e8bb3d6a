"""``jax.ffi``: lowerings that call functions of other languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from phalanx.api.ffi_call import TYPED, ffi_call
from phalanx.base.kinds import is_sequence
from phalanx.compat.interpreters.mlir import LoweringRuleContext

__all__ = ["ffi_lowering"]


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    has_side_effect: bool = False,
    operand_output_aliases: Mapping[int, int] | None = None,
    api_version: int = TYPED,
) -> Callable[..., Sequence[Any]]:
    """The lowering of a primitive that calls what is registered as ``call_target_name``.

    The parameters of the primitive are attributes of the call, beside those of ``backend_config``,
    which is text for an older ``api_version``. Layouts that are tuples name the innermost dimension
    first.
    """
    opaque = backend_config if isinstance(backend_config, str) else None
    attributes: Mapping[str, Any] = {} if isinstance(backend_config, str) else backend_config or {}

    def rule(ctx: LoweringRuleContext, *operands: Any, **params: Any) -> Sequence[Any]:
        call = ffi_call(
            call_target_name,
            tuple(ctx.avals_out),
            has_side_effect=has_side_effect,
            input_layouts=_outermost_first(operand_layouts),
            output_layouts=_outermost_first(result_layouts),
            input_output_aliases=operand_output_aliases,
            custom_call_api_version=api_version,
            legacy_backend_config=opaque,
        )
        return list(call(*operands, **attributes, **params))

    return rule


def _outermost_first(layouts: Sequence[Any] | None) -> list[Any] | None:
    if layouts is None:
        return None
    return [tuple(reversed(order)) if is_sequence(order) else order for order in layouts]
