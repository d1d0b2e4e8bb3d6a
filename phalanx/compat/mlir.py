"""``jax.interpreters.mlir``: lowerings of others' primitives, as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phalanx.base.source import name_of
from phalanx.compat.primitives import LOWERINGS, ForeignPrimitive


class _Lowering:
    """A lowering that is a function of arrays: it is traced where it is needed."""

    def __init__(self, fun: Callable, multiple_results: bool) -> None:
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.fun(*args, **params)


def lower_fun(fun: Callable, multiple_results: bool = True) -> Callable:
    """The lowering of what computes what ``fun`` does."""
    return _Lowering(fun, multiple_results)


def register_lowering(
    prim: ForeignPrimitive, rule: Callable, platform: str | None = None, **_: Any
) -> Callable:
    """Let ``rule`` be the lowering of ``prim``.

    One that writes operations of the compiler by hand is refused where it is needed.
    """
    if isinstance(rule, _Lowering):
        LOWERINGS[prim] = rule
        return rule

    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"{prim}: its lowering, {name_of(rule)}, writes operations of the compiler by hand; "
            "what is offered are lowerings made by mlir.lower_fun of a function of arrays"
        )

    LOWERINGS.setdefault(prim, refuse)
    return rule
