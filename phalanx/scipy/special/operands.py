"""The operands of special functions: arrays of one inexact dtype and one shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.types import Array
from phalanx.numpy.promotion import arrays, convert


def inexact(who: str, *xs: Any) -> list[Array]:
    """``xs`` as arrays of one floating-point or complex dtype and one shape."""
    return arrays(who, *xs, to=dtypes.to_inexact)


def real(who: str, *xs: Any) -> list[Array]:
    """``xs`` as arrays of one floating-point dtype and one shape.

    Raises:
        TypeError: an operand is complex.
    """
    operands = inexact(who, *xs)
    if is_complex(operands[0]):
        raise TypeError(f"{who}: real operands are needed, got {operands[0].aval}")
    return operands


def is_complex(x: Array) -> bool:
    """Whether ``x`` is of a complex dtype."""
    return dtypes.is_complex(x.dtype)


def as_complex(x: Array) -> Array:
    """``x`` in a complex dtype, of 64 bits at least."""
    return x if is_complex(x) else convert(x, np.result_type(x.dtype, np.complex64))

