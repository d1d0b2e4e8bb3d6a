"""Complex numbers, their parts, and conjugation: linear over the reals.

Cotangents pair with tangents as ``Re(ct t)``, without a conjugate. So the gradient of a real
function of z = x + i y is ∂f/∂x - i ∂f/∂y.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.primitive import ZERO, Active, Cotangents, Derivative, Example, Linear
from phalanx.core.types import ArrayType
from phalanx.primitives.basis import neg, pointwise
from phalanx.primitives.domains import f32, part_of_complex
from phalanx.primitives.sums import zero_beside

C64 = np.dtype("complex64")


def c64(*shape: int) -> ArrayType:
    """The type of a complex64 array: shorthand for examples."""
    return ArrayType(shape, C64)


def _complex_linearize(active: Active, x: Any, y: Any) -> Derivative:
    def linear(tx: Any, ty: Any) -> Any:
        return complex(0.0 if tx is ZERO else tx, 0.0 if ty is ZERO else ty)

    return complex(x, y), linear


def _complex_transpose(ct: Any, x: Any, y: Any) -> Cotangents:
    return [
        real(ct) if isinstance(x, Linear) else None,
        neg(imag(ct)) if isinstance(y, Linear) else None,
    ]


complex = pointwise(
    "complex",
    lambda b, x, y: b.complex(x, y),
    on=part_of_complex,
    result=dtypes.to_complex,
    linearize=_complex_linearize,
    transpose=_complex_transpose,
    copied=True,
    doc="x + i y; stablehlo.complex",
    examples=[Example((f32(2, 3), f32(2, 3)))],
)

real = pointwise(
    "real",
    lambda b, z: b.real(z),
    on=dtypes.is_complex,
    result=dtypes.to_real,
    linearize=lambda active, z: (real(z), real),
    transpose=lambda ct, z: [complex(ct, zero_beside(0.0, ct))],
    copied=True,
    doc="Re z; stablehlo.real",
    examples=[Example((c64(2, 3),))],
)

imag = pointwise(
    "imag",
    lambda b, z: b.imag(z),
    on=dtypes.is_complex,
    result=dtypes.to_real,
    linearize=lambda active, z: (imag(z), imag),
    transpose=lambda ct, z: [complex(zero_beside(0.0, ct), neg(ct))],
    copied=True,
    doc="Im z; stablehlo.imag",
    examples=[Example((c64(2, 3),))],
)

conj = pointwise(
    "conj",
    lambda b, z: b.conj(z),
    on=dtypes.is_complex,
    linearize=lambda active, z: (conj(z), conj),
    transpose=lambda ct, z: [conj(ct)],
    linear=(),  # XLA takes it apart, and says nothing of how the parts lie
    copied=True,
    operations=4,
    doc="Re z - i Im z; chlo.conj",
    examples=[Example((c64(2, 3),))],
)
