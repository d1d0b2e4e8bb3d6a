"""Parts of complex numbers."""

from __future__ import annotations

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES, INEXACT
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, as_array, convert, literal, number_array


def real(x: ArrayLike, /) -> Array:
    """The real part, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        Real numbers of the shape of ``x``: float32 of complex64.

    >>> print(jnp.real(jnp.array([1 + 2j, 3])))
    [1. 3.]
    """
    x = number_array("real", x)
    return ops.real(x) if x.aval.dtype in COMPLEXES else x


@one_program
def imag(x: ArrayLike, /) -> Array:
    """The imaginary part, elementwise; of real numbers 0.

    Args:
        x: an array, or a number.

    Returns:
        Real numbers of the shape of ``x``: float32 of complex64.

    >>> print(jnp.imag(jnp.array([1 + 2j, 3])))
    [2. 0.]
    """
    x = number_array("imag", x)
    if x.aval.dtype in COMPLEXES:
        return ops.imag(x)
    return convert(ops.zeros_like(x), x.aval.dtype, x.aval.weak)


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> print(jnp.conjugate(jnp.array([1 + 2j])))
    [1.-2.j]
    """
    x = number_array("conjugate", x)
    return ops.conj(x) if x.aval.dtype in COMPLEXES else x


conj = conjugate


@one_program
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex numbers in the plane, elementwise, in radians or degrees.

    Args:
        z: complex or real numbers.
        deg: whether the angle is in degrees, not in radians.

    Returns:
        Real numbers of the shape of ``z``.

    >>> float(jnp.angle(1j, deg=True))
    90.0
    """
    z = as_array("angle", z)
    if z.aval.dtype not in INEXACT:
        z = convert(z, dtypes.default_float())
    out = ops.atan2(imag(z), real(z))
    return ops.mul(out, literal(out, 180 / np.pi)) if deg else out
