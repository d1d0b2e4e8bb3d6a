"""Operands in one dtype, and in one rank, as others take them from ``jax._src.numpy.util``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx.base import dtypes
from phalanx.numpy.promotion import operand, promote

_WHO = "promote_dtypes"


def check_arraylike(fun_name: str, *args: Any) -> None:
    """Make sure that all are arrays or numbers.

    Raises:
        TypeError: one is not.
    """
    for x in args:
        operand(fun_name, x)


def promote_shapes(fun_name: str, *args: Any) -> list[Any]:
    """Operands of one rank: dimensions of length 1 are put in front."""
    rank = max(map(jnp.ndim, args), default=0)
    return [jnp.expand_dims(x, range(rank - jnp.ndim(x))) for x in args]


def promote_dtypes(*args: Any) -> list[Any]:
    """Operands in the dtype that they promote to, each in its shape."""
    return _promoted(_WHO, args)


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """The same; integers become floating-point numbers."""
    return _promoted(_WHO, args, dtypes.to_inexact)


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """The same; real numbers become complex ones of their precision."""
    return _promoted(_WHO, args, dtypes.to_complex)


def promote_args(fun_name: str, *args: Any) -> list[Any]:
    """Operands in one dtype and one rank, for an operation by elements."""
    return promote_shapes(fun_name, *_promoted(fun_name, args))


def promote_args_inexact(fun_name: str, *args: Any) -> list[Any]:
    """The same; integers become floating-point numbers."""
    return promote_shapes(fun_name, *_promoted(fun_name, args, dtypes.to_inexact))


def _promoted(
    who: str, args: tuple[Any, ...], to: Callable[[np.dtype], np.dtype] | None = None
) -> list[Any]:
    return [jnp.asarray(x) for x in promote(who, *args, to=to)]
