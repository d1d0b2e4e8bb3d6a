"""Questions about values that may be anything, NumPy's included."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

# Classes for ``isinstance`` that leave a value as it was, known or not: for what is asked often.
NDARRAY: type = np.ndarray
GENERIC: type = np.generic


def is_ndarray(x: object) -> TypeGuard[np.ndarray[Any, Any]]:
    """Whether ``x`` is an array of NumPy."""
    return isinstance(x, np.ndarray)


def is_generic(x: object) -> TypeGuard[np.generic]:
    """Whether ``x`` is a number, or another scalar, of NumPy."""
    return isinstance(x, np.generic)


def is_dtype(x: object) -> TypeGuard[np.dtype[Any]]:
    """Whether ``x`` is a dtype of NumPy."""
    return isinstance(x, np.dtype)
