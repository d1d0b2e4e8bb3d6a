"""Integers of less than a byte: what XLA does wrongly with them is computed in bytes.

On CPUs XLA sorts arrays of two bits into memory that nobody wrote, ends the process where it joins
or permutes them, and has no products of them. With them it is right element for element, so only
these operations are left to it. The results, cut to their lowest bits, are those of narrow
integers: it is the same ring, and the order is the same.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from phalanx.core.program import Equation, Var
from phalanx.core.types import ArrayType

_OF_TWO_BITS = {
    np.dtype(ml_dtypes.int2): np.dtype(np.int8),
    np.dtype(ml_dtypes.uint2): np.dtype(np.uint8),
}
_OF_FOUR_BITS = {
    np.dtype(ml_dtypes.int4): np.dtype(np.int8),
    np.dtype(ml_dtypes.uint4): np.dtype(np.uint8),
}
_BYTES: dict[Any, Any] = _OF_TWO_BITS | _OF_FOUR_BITS
_WRONG_OF_FOUR_BITS = ("top_k", "approx_top_k")  # XLA takes the positions for such integers, too
_OF_BITS = "bitcast"  # which asks how many bits there are


def has_two_bits(dtype: Any) -> bool:
    """Whether it is one of integers of two bits: devices that exchange parts of them get others."""
    return dtype in _OF_TWO_BITS


def in_bytes(equation: Equation) -> Equation | None:
    """``equation`` of bytes in place of integers that XLA does wrongly; None: it does it rightly.

    What runs sub-programs or functions of the user's leaves it to these.
    """
    held = {a.type.dtype for a in (*equation.inputs, *equation.outputs)}
    if held.isdisjoint(_BYTES) or not _is_done_wrongly(equation, held):
        return None
    return Equation(
        equation.prim,
        [Var(_wide(a.type)) for a in equation.inputs],
        {name: _wide(value) for name, value in equation.params.items()},
        tuple([Var(_wide(v.type)) for v in equation.outputs]),
        equation.location,
    )


def _is_done_wrongly(equation: Equation, held: set[Any]) -> bool:
    prim = equation.prim
    if prim.elements.fused or prim.subprograms or equation.effects or prim.name == _OF_BITS:
        return False
    return not held.isdisjoint(_OF_TWO_BITS) or prim.name in _WRONG_OF_FOUR_BITS


def _wide(x: Any) -> Any:
    """A dtype, a type or another parameter, of bytes in place of what is narrower."""
    if isinstance(x, ArrayType):
        return x.update(dtype=_wide(x.dtype))
    return _BYTES.get(x, x) if isinstance(x, np.dtype) else x
