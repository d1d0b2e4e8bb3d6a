"""Numbers of a byte or less: what XLA does wrongly with them is computed in wider ones.

On CPUs XLA sorts arrays of two bits into memory that nobody wrote, ends the process where it joins
or permutes them, and has no products of them. With them it is right element for element, so only
these operations are left to it. The results, cut to their lowest bits, are those of narrow
integers: it is the same ring, and the order is the same.

Functions of floats of a byte or less it makes of several steps, each of which it rounds: of sums,
differences and quotients there is little left, and a dtype without zero and signs cannot hold
them. These are done in float32, and rounded once.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from phalanx.base import dtypes
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
_FLOAT32 = np.dtype(np.float32)
_WITHOUT_ZERO = np.dtype(ml_dtypes.float8_e8m0fnu)  # powers of two, as scales are
_SHORT_FLOATS: dict[Any, Any] = {t: _FLOAT32 for t in dtypes.FLOATS if t.itemsize == 1}
_LESS_THAN_A_BYTE = _BYTES | {np.dtype(ml_dtypes.float4_e2m1fn): _FLOAT32}
_SHORT = frozenset([*_BYTES, *_SHORT_FLOATS])


def has_two_bits(dtype: Any) -> bool:
    """Whether it is one of integers of two bits: devices that exchange parts of them get others."""
    return dtype in _OF_TWO_BITS


def widened(equation: Equation) -> Equation | None:
    """``equation`` in wider dtypes where XLA does it wrongly; None: it does it rightly.

    What runs sub-programs or functions of the user's leaves it to these.
    """
    held = {a.type.dtype for a in (*equation.inputs, *equation.outputs)}
    wider = {} if held.isdisjoint(_SHORT) else _wider(equation, held)
    if not wider:
        return None
    return Equation(
        equation.prim,
        [Var(_wide(a.type, wider)) for a in equation.inputs],
        {name: _wide(value, wider) for name, value in equation.params.items()},
        tuple([Var(_wide(v.type, wider)) for v in equation.outputs]),
        equation.location,
    )


def _wider(equation: Equation, held: set[Any]) -> dict[Any, Any]:
    """The dtypes that are wrong there, and those that are right in their place."""
    prim, elements = equation.prim, equation.prim.elements
    if prim.subprograms or equation.effects or elements.short == "bits":
        return {}
    if elements.short == "places":
        return _LESS_THAN_A_BYTE
    floats = _SHORT_FLOATS if not elements.copied and _is_rounded_often(equation, held) else {}
    return floats if elements.fused else floats | _OF_TWO_BITS


def _is_rounded_often(equation: Equation, held: set[Any]) -> bool:
    elements = equation.prim.elements
    return elements.fused or elements.short == "running" or _WITHOUT_ZERO in held


def _wide(x: Any, wider: dict[Any, Any]) -> Any:
    """A dtype, a type or another parameter, with what is ``wider`` in the place of dtypes."""
    if isinstance(x, ArrayType):
        return x.update(dtype=_wide(x.dtype, wider))
    return wider.get(x, x) if isinstance(x, np.dtype) else x
