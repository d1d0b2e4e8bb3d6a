"""Numbers of choices and orders: factorials, binomial coefficients, Bernoulli's numbers."""

from __future__ import annotations

import math

import numpy as np

from phalanx.base import dtypes
from phalanx.base.lengths import integer
from phalanx.base.source import user_location
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.creation import asarray
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.numpy.searching import where
from phalanx.primitives.gamma import gamma as _gamma
from phalanx.primitives.incomplete import binomial as _binomial


@one_program
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Factorial n! = Γ(n + 1), of real n; 0 of negative n.

    Args:
        n: real numbers, of any shape.
        exact: must be False: the result is a floating-point number. ``math.factorial`` gives exact
            integers.

    Returns:
        Floats of the shape of ``n``: of its dtype, or float32 for integers. Infinite beyond 34! in
        float32.

    Raises:
        ValueError: ``exact`` is true.

    >>> print(scipy.special.factorial(jnp.array([0, 3, 5])))
    [  1.   6. 120.]
    """
    if exact:
        raise ValueError(
            "factorial: there are no integers of any length here, so exact must be False; "
            "math.factorial gives those"
        )
    (n,) = real("factorial", n)
    below = n < 0
    return where(below, 0, _gamma(where(below, 0, n) + 1))


@one_program
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Binomial coefficient: the number of ways to choose k of N things, in any order.

    With ``repetition`` a thing may be chosen more than once. 0 unless N ≥ k ≥ 0.

    Args:
        N: the number of things.
        k: how many are chosen.
        repetition: whether a thing may be taken more than once.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.comb(5, jnp.array([0, 2, 6])))
    [ 1. 10.  0.]
    >>> print(scipy.special.comb(5, 2, repetition=True))
    15.0
    """
    n, k = real("comb", N, k)
    if repetition:
        n = where((n == 0) & (k == 0), 0, n + k - 1)
    inside = (n >= k) & (k >= 0)
    return where(inside, _binomial(where(inside, n, 1), where(inside, k, 1)), 0)


def bernoulli(n: int) -> Array:
    """Bernoulli numbers B₀, ..., B_n, with B₁ = -1/2 (DLMF 24.2.1).

    Args:
        n: the index of the last one: an integer, not traced.

    Returns:
        float32 [n + 1].

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``n`` is negative.

    >>> print(scipy.special.bernoulli(4).round(4))
    [ 1.     -0.5     0.1667  0.     -0.0333]
    """
    last = integer("bernoulli", "n", n)
    if last < 0:
        raise ValueError(f"bernoulli: n must not be negative, got {n} at {user_location()}")
    numbers = np.zeros(last + 1)
    numbers[:2] = [1.0, -0.5][: last + 1]
    even = _even_bernoulli(min(last, _LAST_FINITE) // 2)
    numbers[2 : 2 * len(even) + 1 : 2] = even
    beyond = range(2 * len(even) + 2, last + 1, 2)
    numbers[2 * len(even) + 2 :: 2] = [math.copysign(math.inf, i % 4 - 1) for i in beyond]
    with np.errstate(over="ignore"):
        return asarray(numbers.astype(dtypes.default_float()))


_LAST_FINITE = 258  # in float64


def _even_bernoulli(count: int) -> list[float]:
    """B₂, B₄, ... from the tangent numbers, which are whole (DLMF 24.15.4)."""
    tangent = [math.factorial(k) for k in range(count)]
    for i in range(1, count):
        for j in range(i, count):
            tangent[j] = (j - i) * tangent[j - 1] + (j - i + 2) * tangent[j]
    return [
        (-1) ** k * (2 * k + 2) * t / ((1 << (2 * k + 2)) * ((1 << (2 * k + 2)) - 1))
        for k, t in enumerate(tangent)
    ]
