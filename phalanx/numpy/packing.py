"""Bits in bytes, and out of them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.errors import ArgumentError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, as_array, dim

__all__ = ["packbits", "unpackbits"]

_BYTE = np.dtype("uint8")


def _places(who: str, bitorder: str) -> Any:
    """The number of places by which each of eight bits is shifted."""
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{who}: bitorder must be 'big' or 'little', got {bitorder!r}")
    places = np.arange(8, dtype=_BYTE)
    return places[::-1].copy() if bitorder == "big" else places


def _along(who: str, x: Any, axis: int | None) -> tuple[Any, int]:
    """``x`` with the axis at the end, and where it was; None flattens."""
    if axis is None:
        return x.reshape(-1), 0
    d = dim(who, axis, x)
    return jnp.moveaxis(x, d, -1), d


@one_program
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Whether elements are not zero, eight to a byte.

    Args:
        a: integers or bools.
        axis: along which; None flattens the array. Zeros fill the last byte.
        bitorder: "big" puts the first element into the highest bit, "little" into the lowest.

    Returns:
        uint8, with ``axis`` shorter by a factor of eight, rounded up; a vector if ``axis`` is None.

    Raises:
        TypeError: the elements are no integers or booleans.

    >>> print(jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1, 1])))
    [131 128]
    """
    x = as_array("packbits", a)
    if dtypes.is_inexact(x.dtype):
        raise TypeError(f"packbits: integers or bools are needed, got {x.aval}")
    bits, d = _along("packbits", jnp.not_equal(x, 0).astype(_BYTE), axis)
    bits = jnp.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, -bits.shape[-1] % 8)])
    eights = bits.reshape(*bits.shape[:-1], bits.shape[-1] // 8, 8)
    packed = jnp.sum(eights << _places("packbits", bitorder), -1, dtype=_BYTE)
    return jnp.moveaxis(packed, -1, d)


@one_program
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes, each as a byte 0 or 1.

    Args:
        a: of dtype uint8.
        axis: along which; None flattens the array.
        count: how many bits to give: zeros are added, or the last ones left out; a negative number
            is how many to leave out.
        bitorder: "big" if the first bit is the highest one of its byte, "little" if the lowest.

    Returns:
        uint8, with ``axis`` longer by a factor of eight, or of length ``count``; a vector if
        ``axis`` is None.

    Raises:
        TypeError: the dtype is not uint8.

    >>> print(jnp.unpackbits(jnp.array([5], dtype="uint8")))
    [0 0 0 0 0 1 0 1]
    """
    x = as_array("unpackbits", a)
    if x.dtype != _BYTE:
        raise TypeError(f"unpackbits: an array of dtype uint8 is needed, got {x.aval}")
    octets, d = _along("unpackbits", x, axis)
    bits = (octets[..., None] >> _places("unpackbits", bitorder)) & np.uint8(1)
    bits = bits.reshape(*octets.shape[:-1], 8 * octets.shape[-1])
    if count is not None:
        length = bits.shape[-1]
        wanted = max(length + count, 0) if count < 0 else count
        bits = jnp.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, max(wanted - length, 0))])
        bits = bits[..., :wanted]
    return jnp.moveaxis(bits, -1, d)


bound(sys.modules[__name__])
