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


def is_complex(x: Array) -> bool:
    """Whether ``x`` is of a complex dtype."""
    return dtypes.is_complex(x.dtype)


def as_complex(x: Array) -> Array:
    """``x`` in a complex dtype, of 64 bits at least."""
    return x if is_complex(x) else convert(x, np.result_type(x.dtype, np.complex64))
