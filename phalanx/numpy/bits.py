"""Operations on bits: and, or, xor, shifts, counts; bits in bytes, and out of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.errors import ArgumentError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array, typeof
from phalanx.numpy.arithmetic import number_pair
from phalanx.numpy.promotion import ArrayLike, as_array, convert, dim, no_out, pair
from phalanx.numpy.ufunc_methods import with_methods

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


@with_methods(-1)
@one_program
def bitwise_and(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits that are set in both of two integers, elementwise; of booleans, x and y.

    Args:
        x, y: integers or booleans, as arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.bitwise_and(jnp.arange(4), 2))
    [0 0 2 2]
    """
    no_out("bitwise_and", out, where)
    return ops.and_(*pair("bitwise_and", x, y))


@with_methods(0)
@one_program
def bitwise_or(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits that are set in either of two integers, elementwise; of booleans, x or y.

    Args:
        x, y: integers or booleans, as arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.bitwise_or(jnp.arange(4), 2))
    [2 3 2 3]
    """
    no_out("bitwise_or", out, where)
    return ops.or_(*pair("bitwise_or", x, y))


@with_methods(0)
@one_program
def bitwise_xor(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits that are set in exactly one of two integers, elementwise.

    Args:
        x, y: integers or booleans, as arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.bitwise_xor(jnp.arange(4), 2))
    [2 3 0 1]
    """
    no_out("bitwise_xor", out, where)
    return ops.xor(*pair("bitwise_xor", x, y))


@one_program
def bitwise_not(x: ArrayLike, /) -> Array:
    """An integer with all bits flipped, elementwise; of booleans, not x.

    Args:
        x: integers or booleans, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> print(jnp.bitwise_not(jnp.arange(3)))
    [-1 -2 -3]
    """
    return ops.not_(as_array("bitwise_not", x))


invert = bitwise_invert = bitwise_not


@one_program
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits that are set in |x|, elementwise, as uint8.

    Args:
        x: integers or booleans, as an array, or a number.

    Returns:
        uint8, of the shape of ``x``.

    >>> print(jnp.bitwise_count(jnp.array([0, 1, 7])))
    [0 1 3]
    """
    x = as_array("bitwise_count", x)
    if x.aval.dtype == np.bool_:
        return convert(x, np.dtype("uint8"))
    size = ops.abs(x) if dtypes.is_signed(x.aval.dtype) else x
    return convert(ops.population_count(size), np.dtype("uint8"))


@one_program
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of integers moved up by y places, elementwise: x 2^y.

    Args:
        x, y: integers or booleans, as arrays, or numbers, that broadcast.

    Returns:
        An array of the broadcast shape, of their promoted integer dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.left_shift(jnp.arange(3), 2))
    [0 4 8]
    """
    return ops.shift_left(*number_pair("left_shift", x, y))


bitwise_left_shift = left_shift


@one_program
def right_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of integers moved down by y places, elementwise: x / 2^y, rounded down.

    Args:
        x, y: integers or booleans, as arrays, or numbers, that broadcast.

    Returns:
        An array of the broadcast shape, of their promoted integer dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.right_shift(jnp.array([8, -8]), 2))
    [ 2 -2]
    """
    x, y = number_pair("right_shift", x, y)
    if dtypes.is_unsigned(typeof(x).dtype):
        return ops.shift_right_logical(x, y)
    return ops.shift_right_arithmetic(x, y)


bitwise_right_shift = right_shift
