"""Names of dtypes that others take from private modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base.extended import KeyType as ExtendedDType
from phalanx.dtypes import result_type

__all__ = ["DType", "ExtendedDType", "dtype"]
DType = np.dtype


def dtype(x: Any) -> np.dtype | ExtendedDType:
    """The dtype of an array or a number, or the one that is meant."""
    return result_type(x)
