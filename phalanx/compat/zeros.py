"""What stands in place of arrays in rules: tangents that are zero, operands that are linear.

They are nodes of trees without leaves, so they pass through ``vmap`` and ``jit`` that a rule calls.
"""

from __future__ import annotations

from typing import Any

from phalanx.base import registry
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import zeros


class ZeroTangent:
    """The tangent or cotangent that is zero everywhere, of type ``aval``."""

    __slots__ = ("aval",)

    def __init__(self, aval: ArrayType) -> None:
        self.aval = aval

    @classmethod
    def from_primal_value(cls, x: Any) -> ZeroTangent:
        """That of ``x``."""
        return cls(typeof(x).tangent)

    def instantiate(self) -> Any:
        """The zeros themselves."""
        return zeros(self.aval)

    def __repr__(self) -> str:
        return f"ZeroTangent({self.aval})"


class UndefinedPrimal:
    """In a transpose: the operand being differentiated, of type ``aval``."""

    __slots__ = ("aval",)

    def __init__(self, aval: ArrayType) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


for _kind in (ZeroTangent, UndefinedPrimal):
    registry.register_pytree_node(
        _kind, lambda x: ((), x.aval), lambda aval, _, kind=_kind: kind(aval)
    )


def is_undefined_primal(x: Any) -> bool:
    """Whether ``x`` stands for the operand being differentiated."""
    return isinstance(x, UndefinedPrimal)


def is_zero(x: Any) -> bool:
    """Whether ``x`` stands for zeros."""
    return isinstance(x, ZeroTangent)


def instantiate_zeros(tangent: Any) -> Any:
    """``tangent``, or the zeros that it stands for."""
    return tangent.instantiate() if isinstance(tangent, ZeroTangent) else tangent
