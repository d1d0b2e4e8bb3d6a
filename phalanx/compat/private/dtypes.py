"""Names of dtypes that others take from private modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base.extended import KeyType as ExtendedDType
from phalanx.lax.values import dtype
from phalanx.numpy import promote_types

__all__ = ["DType", "ExtendedDType", "dtype", "to_complex_dtype"]
DType = np.dtype


def to_complex_dtype(dtype: Any) -> Any:
    """The complex dtype whose parts hold numbers of ``dtype``."""
    return promote_types(dtype, np.complex64)
