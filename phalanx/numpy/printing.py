"""Arrays as text."""

from __future__ import annotations

import sys

import numpy as np

from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.numpy.promotion import ArrayLike

__all__ = ["array_repr", "array_str"]


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text in which Python shows an array; the parameters are those of NumPy's function.

    Args:
        arr: an array.
        max_line_width: after how many characters lines break; None for NumPy's option.
        precision: how many digits stand behind the point; None for NumPy's option.
        suppress_small: whether numbers close to 0 are written as 0; None for NumPy's option.

    >>> jnp.array_repr(jnp.array([1.5, 2.25]), precision=1)
    'array([1.5, 2.2], dtype=float32)'
    """
    dtypes.refuse_masked(arr)
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The elements as text; the parameters are those of NumPy's function.

    Args:
        a: an array, or a number.
        max_line_width: after how many characters lines break; None for NumPy's option.
        precision: how many digits stand behind the point; None for NumPy's option.
        suppress_small: whether numbers close to 0 are written as 0; None for NumPy's option.

    >>> jnp.array_str(jnp.arange(3))
    '[0 1 2]'
    """
    dtypes.refuse_masked(a)
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


bound(sys.modules[__name__])
