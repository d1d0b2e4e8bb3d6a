"""Logistic functions, powers on the way to logarithms, entropies, and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.nn.normalize import log_softmax as _log_softmax
from phalanx.nn.normalize import softmax as _softmax
from phalanx.numpy.choice import where
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.ops.special import entr as _entr
from phalanx.ops.special import kl_div as _kl_div
from phalanx.ops.special import rel_entr as _rel_entr
from phalanx.scipy.special.operands import inexact, is_complex


def expit(x: ArrayLike) -> Array:
    """1 / (1 + e⁻ˣ).

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(expit(0.0))
    0.5
    """
    return ops.logistic(*inexact("expit", x))


@one_program
def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)).

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(logit(0.5))
    0.0
    """
    (x,) = inexact("logit", x)
    return ops.log(x) - ops.log1p(-x)


@one_program
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log y, and 0 where x is 0.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> float(xlogy(0.0, 0.0))
    0.0
    """
    x, y = inexact("xlogy", x, y)
    zero = (x == 0) & (y == y) & ~_has_log(y)
    return where(zero, 0, x * ops.log(where(zero, 1, y)))


def _has_log(y: Array) -> Array:
    """Where a finite logarithm is one number: there 0 log y is smooth."""
    return (ops.abs(y) < math.inf) & (y != 0 if is_complex(y) else y > 0)


@one_program
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), and 0 where x is 0.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> float(xlog1py(0.0, -1.0))
    0.0
    """
    x, y = inexact("xlog1py", x, y)
    zero = (x == 0) & (y == y) & ~_has_log(1 + y)
    return where(zero, 0, x * ops.log1p(where(zero, 0, y)))


@one_program
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """(xᵏ - 1) / k with k = ``lmbda``, and log x where that is 0; NaN of negative x.

    Args:
        x: an array, or a number.
        lmbda: the power; 0 for the logarithm.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> float(boxcox(4.0, 0.5)), float(boxcox(1.0, 0.0))
    (2.0, 0.0)
    """
    x, k = inexact("boxcox", x, lmbda)
    return _boxcox(ops.log(x), k)


@one_program
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """((1 + x)ᵏ - 1) / k with k = ``lmbda``, and log(1 + x) where that is 0; NaN below -1.

    Args:
        x: an array, or a number.
        lmbda: the power; 0 for the logarithm.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> float(boxcox1p(3.0, 0.5)), float(boxcox1p(0.0, 0.0))
    (2.0, 0.0)
    """
    x, k = inexact("boxcox1p", x, lmbda)
    return _boxcox(ops.log1p(x), k)


def _boxcox(log_x: Array, k: Array) -> Array:
    """(exp(k log x) - 1) / k; in powers of k log x where that is small, also for derivatives."""
    t = k * where((k == 0) & (ops.abs(log_x) == math.inf), 0, log_x)
    near = ops.abs(t) < 0.5
    u = where(near, t, 0)
    total = u * 0
    for n in range(16, 0, -1):
        total = (total + 1) * u / (n + 1)
    power = ops.expm1(where(near, 0, t)) / where(near, 1, k)
    return where(near, where(near, log_x, 0) * (total + 1), power)


def entr(x: ArrayLike) -> Array:
    """-x log x; 0 at 0, and -inf below.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(entr(1.0)) == 0
    True
    """
    return _entr(*real("entr", x))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q); 0 where p is 0, and inf where either is negative.

    Args:
        p: an array, or a number; the two broadcast.
        q: an array, or a number; the two broadcast.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> float(rel_entr(2.0, 2.0))
    0.0
    """
    return _rel_entr(*real("rel_entr", p, q))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q) - p + q; inf where either is negative.

    Args:
        p: an array, or a number; the two broadcast.
        q: an array, or a number; the two broadcast.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> float(kl_div(2.0, 2.0))
    0.0
    """
    return _kl_div(*real("kl_div", p, q))


def softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """exp(x) / Σ exp(x), the sum over ``axis``, or over all elements.

    Args:
        x: an array, or a number.
        axis: the axis or axes over which the probabilities add up to 1; None for all.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> softmax(jnp.zeros(2)).tolist()
    [0.5, 0.5]
    """
    return _softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """The logarithm of ``softmax``, exact where that is 0 to a float.

    Args:
        x: an array, or a number.
        axis: the axis or axes over which the probabilities add up to 1; None for all.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> log_softmax(jnp.array([1000.0, 0.0])).tolist()
    [0.0, -1000.0]
    """
    return _log_softmax(x, axis)
