"""Sums over devices that are left to be taken, by what sums up in a block of code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from phalanx.base.errors import ShardingTypeError
from phalanx.core.primitive import Primitive
from phalanx.core.trace import InnerTrace, Trace, current, entering, running
from phalanx.core.types import operand_type


class _LeavingSums(InnerTrace):
    """Tells operations to leave sums over ``axes``, where how results lie depends on that."""

    __slots__ = ("_leaving",)

    def __init__(self, axes: Iterable[str]) -> None:
        super().__init__(current(), "out_sharding")
        self._leaving = {"unreduced": tuple(sorted(axes))}

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if prim.leaves_sums and self._depends(prim, args, params):
            params = {**params, **self._leaving}
        with entering(self.parent):
            return self.parent.process(prim, args, params)

    def _depends(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> bool:
        types = [operand_type(x) for x in args]
        if "unreduced" in params or all([t.spec is None for t in types]):
            return False
        try:
            taken = prim.result_type(types, params)
        except ShardingTypeError:  # unless it is told
            return True
        return taken != prim.result_type(types, {**params, **self._leaving})

    def owner_of(self, value: Any) -> Trace:
        return self.parent.owner_of(value)


def leaving_sums(axes: Iterable[str]) -> running:
    """Let operations in a block leave sums over ``axes`` to be taken, where they sum up what these
    cut. Sums over what other axes cut are taken there."""
    return running(_LeavingSums(axes))
