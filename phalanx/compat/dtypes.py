"""Names of dtypes that others take from private modules."""

from __future__ import annotations

import numpy as np

from phalanx.base.extended import KeyType as ExtendedDType
from phalanx.lax.values import dtype

__all__ = ["DType", "ExtendedDType", "dtype"]
DType = np.dtype
