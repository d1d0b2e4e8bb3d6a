"""Bessel functions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from phalanx import lax
from phalanx import primitives as ops
from phalanx.base.source import user_location
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.joining import concatenate
from phalanx.numpy.promotion import ArrayLike, convert, real
from phalanx.numpy.searching import where
from phalanx.primitives.bessel import bessel_i, bessel_j0, bessel_j1


def i0e(x: ArrayLike) -> Array:
    """Exponentially scaled modified Bessel function of the first kind of order 0, e^-|x| I₀(x).

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.i0e(jnp.array([0.0, 1.0, 1000.0])).round(4))
    [1.     0.4658 0.0126]
    """
    return lax.bessel_i0e(*real("i0e", x))


def i1e(x: ArrayLike) -> Array:
    """Exponentially scaled modified Bessel function of the first kind of order 1, e^-|x| I₁(x).

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.i1e(jnp.array([0.0, 1.0, 1000.0])).round(4))
    [0.     0.2079 0.0126]
    """
    return lax.bessel_i1e(*real("i1e", x))


@one_program
def i1(x: ArrayLike) -> Array:
    """Modified Bessel function of the first kind of order 1, I₁(x).

    It overflows beyond x = 91 in float32; ``i1e`` does not.

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.i1(jnp.array([-1.0, 0.0, 1.0])).round(4))
    [-0.5652  0.      0.5652]
    """
    (x,) = real("i1", x)
    return bessel_i(x, order=1)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind of the orders 0 to v, J₀(z), ..., J_v(z).

    Args:
        z: the argument, real, of any shape.
        v: the largest order: an integer, not traced.
        n_iter: accepted, and ignored: as many terms are used as the dtype needs.

    Returns:
        An array [v + 1, ...]: the orders in a new first dimension, before those of ``z``.

    Raises:
        TypeError: ``v`` is not an integer.
        ValueError: ``v`` is negative.

    >>> print(scipy.special.bessel_jn(jnp.array([0.0, 1.0]), v=2).round(4))
    [[1.     0.7652]
     [0.     0.4401]
     [0.     0.1149]]
    """
    last = operator.index(v)
    if last < 0:
        raise ValueError(f"bessel_jn: v must not be negative, got {v} at {user_location()}")
    return _bessel_jn(z, last)


@one_program
def _bessel_jn(z: ArrayLike, last: int) -> Array:
    """Upward by the recurrence for orders below |z|, beyond by ratios (DLMF 10.6.1, 10.10.1)."""
    (z,) = real("bessel_jn", z)
    dtype = z.dtype
    z = convert(z, np.result_type(dtype, np.float32))
    start = last + 12 + int(8 * last ** (1 / 3))  # from where on a ratio of 0 does for the last
    orders = np.arange(1, start, dtype=z.dtype)

    def ratio(above: Array, n: Array) -> tuple[Array, Array]:
        found = z / (2 * n - z * above)
        return found, found

    _, ratios = lax.scan(ratio, 0 * z, orders, reverse=True)
    size = ops.abs(z)
    inverse = 1 / where(size > 1, z, 1)  # below no order is

    def rise(two: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[Any, Array]:
        before, now = two
        n, found = row
        after = where(n < size, 2 * n * inverse * now - before, found * now)
        return (now, after), after

    first = bessel_j0(z)
    second = where(size > 0, bessel_j1(z), ratios[0] * first)
    rows = (orders[: max(last - 1, 0)], ratios[1 : max(last, 1)])
    _, others = lax.scan(rise, (first, second), rows)
    table = concatenate([first[None], second[None], others])
    return convert(table[: last + 1], dtype)
