"""Polynomials as vectors of coefficients, from that of the highest power on."""

from __future__ import annotations

import builtins
import math
from typing import Any, Literal, overload

import numpy as np

import phalanx.numpy as jnp
from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.broadcasting import common_shape
from phalanx.base.errors import ArgumentError, ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy import linalg
from phalanx.numpy.arithmetic import add, multiply
from phalanx.numpy.convolution import convolve
from phalanx.numpy.inserting import trim_zeros
from phalanx.numpy.manipulation import atleast_1d
from phalanx.numpy.promotion import (
    ArrayLike,
    as_array,
    inexact,
    literal,
    promote_arrays,
    promote_inexact,
    value_of,
)


def _coefficients(who: str, p: Any) -> Any:
    x = jnp.atleast_1d(as_array(who, p))
    if x.ndim != 1:
        raise ShapeError(f"{who}: coefficients are a vector, got {x.aval}")
    return x


@one_program
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Args:
        a1: coefficients, that of the highest power first.
        a2: those of the polynomial that is subtracted.

    Returns:
        An array of the dtype to which both are promoted.

    >>> print(jnp.polysub(jnp.array([1, 2]), jnp.array([1, 0, 0])))
    [-1  1  2]
    """
    x, y = promote_arrays("polysub", [a1, a2])  # before the sign of an unsigned one changes
    return jnp.polyadd(x, jnp.negative(y))


@one_program
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with these roots; of a matrix, the characteristic one.

    Args:
        seq_of_zeros: a vector of zeros, or a square matrix, whose eigenvalues are meant.

    Returns:
        A vector of coefficients, the highest power first.

    Raises:
        ShapeError: the roots are no vector, nor a square matrix.

    >>> print(jnp.poly(jnp.array([1.0, 2.0])))
    [ 1. -3.  2.]
    """
    x = jnp.atleast_1d(inexact("poly", seq_of_zeros))
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.size:
        x = linalg.eigvals(x)
    if x.ndim != 1:
        raise ShapeError(f"poly: roots are a vector, or a matrix is square, got {x.aval}")
    out = jnp.ones(1, x.dtype)
    for i in range(x.size):
        shifted = jnp.concatenate([out, jnp.zeros(1, x.dtype)])
        out = shifted.at[1:].subtract(x[i] * out)
    return out if x.size else out[0]


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial: the eigenvalues of its companion matrix, complex.

    Args:
        p: its coefficients.
        strip_zeros: whether zeros at both ends are left out first; inside ``jit`` it must be
            false. Where it is, there is a nan for each zero at the front.

    Returns:
        Complex numbers, one per root.

    >>> jnp.sort(jnp.roots(jnp.array([1.0, -3.0, 2.0])).real).tolist()
    [1.0, 2.0]
    """
    x = inexact("roots", _coefficients("roots", p))
    if not strip_zeros:
        return _roots(x)
    known = value_of("roots", x, "pass strip_zeros=False")
    there = np.flatnonzero(known)
    if not there.size:
        return jnp.zeros(0, dtypes.to_complex(x.dtype))
    zeros = known.size - 1 - int(there[-1])
    found = _roots(x[int(there[0]) : int(there[-1]) + 1])
    return jnp.concatenate([found, jnp.zeros(zeros, found.dtype)])


@one_program
def _roots(p: ArrayLike) -> Array:
    x = as_array("roots", p)
    if x.size < 2:
        return jnp.zeros(0, dtypes.to_complex(x.dtype))
    n = x.size - 1
    leading = jnp.cumprod(x == 0).sum()  # at the end they are roots that are zero
    rolled = jnp.roll(jnp.where(leading > n, 1, x), -leading)
    companion = jnp.eye(n, k=-1, dtype=x.dtype).at[0].set(-rolled[1:] / rolled[0])
    found = linalg.eigvals(companion)
    zeros_last = jnp.argsort(found == 0)
    return jnp.where(jnp.arange(n) < n - leading, found[zeros_last], complex(math.nan, math.nan))


# ---- derivatives and integrals ----------------------------------------------------------------


def _order(who: str, m: Any) -> int:
    order = int(m)
    if order < 0:
        raise ArgumentError(f"{who}: m must not be negative, got {order}")
    return order


def _falling(powers: np.ndarray, count: int) -> np.ndarray:
    """power (power - 1) ... for each of ``powers``, of ``count`` factors."""
    return np.array([math.perm(int(p), count) for p in powers], float)


@one_program
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The coefficients of derivative number ``m``.

    Args:
        p: coefficients, that of the highest power first.
        m: how many times to differentiate.

    Returns:
        A vector of coefficients, the highest power first.

    >>> print(jnp.polyder(jnp.array([1, 0, 2])))
    [2. 0.]
    """
    order = _order("polyder", m)
    x = inexact("polyder", _coefficients("polyder", p))
    if order >= x.size:
        return x[:0]
    powers = np.arange(x.size - 1, order - 1, -1)
    return x[: x.size - order] * jnp.asarray(_falling(powers, order), x.dtype)


@one_program
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The coefficients of integral number ``m``.

    Args:
        p: coefficients.
        m: how many times to integrate.
        k: the constants, one for each time, the first one first; one for all; default 0.

    Returns:
        A vector of coefficients, the highest power first.

    Raises:
        ShapeError: ``k`` has another length than 1 and ``m``.

    >>> print(jnp.polyint(jnp.array([2, 0]), k=7))
    [1. 0. 7.]
    """
    order = _order("polyint", m)
    x, constants = promote_arrays("polyint", [_coefficients("polyint", p), 0 if k is None else k])
    x = inexact("polyint", x)
    constants = jnp.atleast_1d(constants.astype(x.dtype))
    if constants.size not in (1, order):
        raise ShapeError(f"polyint: k must be one constant or {order}, got {constants.aval}")
    last = jnp.broadcast_to(constants, (order,))
    powers = np.arange(x.size + order - 1, -1, -1)
    left = np.concatenate([np.full(x.size, order), np.arange(order - 1, -1, -1)])
    divisors = [math.perm(int(n), int(times)) for n, times in zip(powers, left, strict=True)]
    return jnp.concatenate([x, last]) / jnp.asarray(np.array(divisors, float), x.dtype)


# ---- division and fitting ---------------------------------------------------------------------


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials.

    Args:
        u: the polynomial to divide.
        v: by which; its first coefficient must not be zero.
        trim_leading_zeros: whether zeros at the front of the remainder are left out; otherwise it
            is as long as ``u``. Inside ``jit`` it must be false.

    Returns:
        Two vectors of coefficients, the highest power first.

    Raises:
        ShapeError: ``v`` is no vector.

    >>> quotient, rest = jnp.polydiv(jnp.array([1.0, 5.0, 7.0]), jnp.array([1.0, 2.0]))
    >>> print(quotient, rest)
    [1. 3.] [0. 0. 1.]
    """
    quotient, rest = _divided(u, v)
    return quotient, jnp.trim_zeros(rest, "f") if trim_leading_zeros else rest


@one_program
def _divided(u: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    x, y = (_coefficients("polydiv", a) for a in promote_inexact("polydiv", [u, v]))
    count = max(x.size - y.size + 1, 1)
    if x.size < y.size:
        return jnp.zeros(1, x.dtype), x
    quotient = jnp.zeros(count, x.dtype)
    for i in range(count):
        factor = x[i] / y[0]
        quotient = quotient.at[i].set(factor)
        x = x.at[i : i + y.size].subtract(factor * y)
    return quotient, x


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any: ...
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of degree ``deg`` that is nearest to points: least squares.

    Args:
        x: [n], where.
        y: [n] or [n, k], the values; each column has a polynomial of its own.
        deg: the degree.
        rcond: singular values up to ``rcond`` times the largest count as zero; default n times the
            rounding error.
        full: whether to return what ``linalg.lstsq`` found, too: squared residuals, rank, singular
            values, and ``rcond``.
        w: [n], factors of the residuals.
        cov: whether to return the covariance of the coefficients; "unscaled" for that of residuals
            of variance 1.

    Returns:
        Coefficients [deg + 1], the highest power first, of several columns ``y`` in columns; with
        ``full`` also the residuals, the rank, the singular values and ``rcond``; with ``cov`` the
        covariances of the coefficients.

    Raises:
        ShapeError: the points are not vectors of one length, or ``deg`` is negative.
        ArgumentError: there are too few points for covariances.

    >>> print(jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(4))
    [2. 1.]
    """
    points, values = promote_inexact("polyfit", [x, y])
    degree = int(deg)
    if degree < 0 or points.ndim != 1 or not points.size or values.ndim not in (1, 2):
        raise ShapeError(
            "polyfit: a degree from 0 up, places [n] and values [n] or [n, k] are needed, got "
            f"degree {degree}, {points.aval} and {values.aval}"
        )
    if values.shape[0] != points.size:
        raise ShapeError(f"polyfit: places {points.aval} and values {values.aval} differ in length")
    limit = points.size * float(dtypes.finfo(points.dtype).eps) if rcond is None else rcond
    solution, residuals, rank, s, inverse = _fitted(points, values, w, degree, limit)
    if full:
        return solution, residuals, rank, s, limit
    if not cov:
        return solution
    if cov != "unscaled":
        free = points.size - (degree + 1)
        if free <= 0:
            raise ArgumentError(
                f"polyfit: {points.size} points are too few for the covariance of {degree + 1} "
                "coefficients; pass cov='unscaled'"
            )
        inverse = inverse * (residuals / free if values.ndim == 2 else residuals[0] / free)
    return solution, inverse


@one_program
def _fitted(
    x: ArrayLike, y: ArrayLike, w: ArrayLike | None, degree: int, limit: float
) -> tuple[Any, ...]:
    points, values = as_array("polyfit", x), as_array("polyfit", y)
    lhs = jnp.vander(points, degree + 1)
    if w is not None:
        weights = as_array("polyfit", w).astype(lhs.dtype)
        if weights.shape != points.shape:
            raise ShapeError(f"polyfit: w {weights.aval} and x {points.aval} differ in length")
        lhs = lhs * weights[:, None]
        values = (values.T * weights).T
    scale = jnp.sqrt((abs(lhs) ** 2).sum(0))
    solution, residuals, rank, s = linalg.lstsq(lhs / scale, values, limit)
    inverse = linalg.inv(jnp.conj(lhs / scale).T @ (lhs / scale)) / jnp.outer(scale, scale)
    inverse = inverse[:, :, None] if values.ndim == 2 else inverse
    return (solution.T / scale).T, residuals, rank, s, inverse


# ---- values, sums and products ----------------------------------------------------------------


@one_program
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """The value of a polynomial, p[0] x^(n-1) + ... + p[n-1], elementwise, by Horner's rule.

    ``unroll`` has no meaning: there is no loop.

    Args:
        p: coefficients, that of the highest power first.
        x: the points.
        unroll: has no meaning: there is no loop.

    Returns:
        An array of the shape of ``x``.

    Raises:
        ValueError: ``p`` has no dimension.

    >>> print(jnp.polyval(jnp.array([1, 0, 2]), 3))
    11
    """
    coefficients, x = promote_arrays("polyval", [p, x])
    if not coefficients.ndim:
        raise ValueError(f"polyval: coefficients must be a vector or more, got {coefficients.aval}")
    shape = common_shape("polyval", coefficients.shape[1:], x.shape)
    out: Any = ops.full(shape, 0, x.aval.dtype)
    for i in range(coefficients.shape[0]):
        c = ops.squeeze(ops.slice_dim(coefficients, i, i + 1, 0), (0,))
        out = add(multiply(out, x), c)
    return out


@one_program
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials, as coefficients from the highest power on.

    Args:
        a1: coefficients, that of the highest power first.
        a2: those of the other.

    Returns:
        A vector of coefficients, the highest power first.

    >>> print(jnp.polyadd(jnp.array([1, 2]), jnp.array([1, 0, 0])))
    [1 1 2]
    """
    x, y = map(atleast_1d, promote_arrays("polyadd", [a1, a2]))
    n = builtins.max(x.shape[0], y.shape[0])
    x, y = (ops.pad(v, literal(v, 0), config=((n - v.shape[0], 0, 0),)) for v in (x, y))
    return ops.add(x, y)


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials, as coefficients from the highest power on.

    With ``trim_leading_zeros`` the coefficients must be known: zeros before others are dropped.

    Args:
        a1: coefficients, that of the highest power first.
        a2: those of the other.
        trim_leading_zeros: whether zeros in front are dropped.

    Returns:
        A vector of coefficients, the highest power first.

    Raises:
        ValueError: an argument is no vector.

    >>> print(jnp.polymul(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0])))
    [1. 5. 6.]
    """
    if trim_leading_zeros:
        a1, a2 = (trim_zeros(a, "f") for a in (a1, a2))
    x, y = map(_polynomial, promote_arrays("polymul", [a1, a2]))
    return convolve(x, y)


def _polynomial(x: Any) -> Any:
    """The coefficients ``x``, at least one: without any it is the polynomial 0."""
    return atleast_1d(x) if x.size else ops.full((1,), 0, x.aval.dtype)
