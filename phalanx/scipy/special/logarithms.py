"""Logistic functions, powers on the way to logarithms, entropies, and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.nn.normalize import log_softmax as _log_softmax
from phalanx.nn.normalize import softmax as _softmax
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.numpy.searching import where
from phalanx.primitives.special import entr as _entr
from phalanx.primitives.special import kl_div as _kl_div
from phalanx.primitives.special import rel_entr as _rel_entr
from phalanx.scipy.special.operands import inexact, is_complex


def expit(x: ArrayLike) -> Array:
    """Logistic sigmoid 1 / (1 + e⁻ˣ), the inverse of ``logit``.

    Args:
        x: the argument, real or complex, of any shape.

    Returns:
        Numbers of the shape of ``x``: of its dtype, or float32 for integers.

    >>> print(scipy.special.expit(jnp.array([-2.0, 0.0, 2.0])).round(4))
    [0.1192 0.5    0.8808]
    """
    return ops.logistic(*inexact("expit", x))


@one_program
def logit(x: ArrayLike) -> Array:
    """Log-odds log(x / (1 - x)), the inverse of ``expit``.

    Args:
        x: probabilities, of any shape; outside of [0, 1] the result is NaN.

    Returns:
        Numbers of the shape of ``x``: of its dtype, or float32 for integers.

    >>> print(scipy.special.logit(jnp.array([0.0, 0.5, 0.9])).round(4))
    [  -inf 0.     2.1972]
    """
    (x,) = inexact("logit", x)
    return ops.log(x) - ops.log1p(-x)


@one_program
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Product x log y that is 0 where x is 0, unless y is NaN.

    Args:
        x: the factor, of any shape.
        y: what the logarithm is taken of, likewise.

    Returns:
        Numbers of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(scipy.special.xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 3.0])).round(4))
    [0.     2.1972]
    """
    x, y = inexact("xlogy", x, y)
    zero = (x == 0) & (y == y) & ~_has_log(y)
    return where(zero, 0, x * ops.log(where(zero, 1, y)))


def _has_log(y: Array) -> Array:
    """Where a finite logarithm is one number: there 0 log y is smooth."""
    return (ops.abs(y) < math.inf) & (y != 0 if is_complex(y) else y > 0)


@one_program
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Product x log(1 + y) that is 0 where x is 0, unless y is NaN; accurate for small y.

    Args:
        x: the factor, of any shape.
        y: what the logarithm is taken of, less 1, likewise.

    Returns:
        Numbers of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(scipy.special.xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 1e-6])))
    [0.000000e+00 1.999999e-06]
    """
    x, y = inexact("xlog1py", x, y)
    zero = (x == 0) & (y == y) & ~_has_log(1 + y)
    return where(zero, 0, x * ops.log1p(where(zero, 0, y)))


@one_program
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box-Cox transformation: (x^λ - 1) / λ, and log x where λ is 0; NaN of negative x.

    Args:
        x: positive numbers, of any shape.
        lmbda: the exponent λ.

    Returns:
        Numbers of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(scipy.special.boxcox(4.0, jnp.array([0.0, 0.5, 1.0])).round(4))
    [1.3863 2.     3.    ]
    """
    x, k = inexact("boxcox", x, lmbda)
    return _boxcox(ops.log(x), k)


@one_program
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box-Cox transformation of 1 + x: ((1 + x)^λ - 1) / λ, and log(1 + x) where λ is 0.

    Accurate for small x; NaN for x below -1.

    Args:
        x: numbers greater than -1, of any shape.
        lmbda: the exponent λ.

    Returns:
        Numbers of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(scipy.special.boxcox1p(3.0, jnp.array([0.0, 0.5, 1.0])).round(4))
    [1.3863 2.     3.    ]
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
    """Elementwise entropy -x log x; 0 at 0, and -inf of negative x.

    Args:
        x: probabilities, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.entr(jnp.array([0.25, 0.25, 0.5])).sum().round(4))
    1.0397
    """
    return _entr(*real("entr", x))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Elementwise relative entropy p log(p / q); 0 where p is 0 and q ≥ 0.

    Infinite where p or q is negative, or q is 0 and p is not. Summed over a distribution it is the
    Kullback-Leibler divergence.

    Args:
        p: probabilities, of any shape.
        q: probabilities, likewise.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.rel_entr(jnp.array([0.5, 0.5]), jnp.array([0.25, 0.75])).sum().round(4))
    0.1438
    """
    return _rel_entr(*real("rel_entr", p, q))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Elementwise Kullback-Leibler divergence p log(p / q) - p + q, which is never negative.

    Infinite where p or q is negative, or q is 0 and p is not. ``rel_entr`` is without the terms - p
    + q, which cancel in the sum over a distribution.

    Args:
        p: probabilities, of any shape.
        q: probabilities, likewise.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.kl_div(jnp.array([0.5, 0.5]), jnp.array([0.25, 0.75])).round(4))
    [0.0966 0.0473]
    """
    return _kl_div(*real("kl_div", p, q))


def softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """Softmax: exp(x) / Σ exp(x), which adds up to 1 over ``axis``.

    Large elements do not overflow. Without an axis it is over all elements, as in SciPy;
    ``phalanx.nn.softmax`` is over the last axis.

    Args:
        x: an array.
        axis: the axis or axes over which the probabilities add up to 1; None for all.

    Returns:
        Numbers of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(scipy.special.softmax(jnp.array([[0.0, 0.0], [1000.0, 0.0]]), axis=1))
    [[0.5 0.5]
     [1.  0. ]]
    """
    return _softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """Logarithm of ``softmax``, finite where that is too small for a float.

    Without an axis it is over all elements, as in SciPy; ``phalanx.nn.log_softmax`` is over the
    last axis.

    Args:
        x: an array.
        axis: the axis or axes over which the probabilities add up to 1; None for all.

    Returns:
        Numbers of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(scipy.special.log_softmax(jnp.array([1000.0, 0.0])))
    [    0. -1000.]
    """
    return _log_softmax(x, axis)
