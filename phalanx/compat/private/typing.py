"""What others take from ``jax._src.typing`` besides."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from phalanx.core.types import Array

__all__ = ["Array", "DType", "SupportsDType"]
DType = np.dtype


@runtime_checkable
class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> DType: ...
