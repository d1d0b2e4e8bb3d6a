"""Incomplete gamma and beta functions, polygamma and zeta, Bessel functions."""

from __future__ import annotations

import math

import numpy as np

from phalanx import primitives as ops
from phalanx.base.dtypes import is_floating
from phalanx.control.one_program import staged
from phalanx.core.types import Array, ArrayLike, typeof
from phalanx.lax.operands import alike, elementwise, one
from phalanx.primitives.bessel import bessel_i0e as _bessel_i0e
from phalanx.primitives.bessel import bessel_i1e as _bessel_i1e
from phalanx.primitives.domains import check_domain
from phalanx.primitives.incomplete import betainc as _betainc
from phalanx.primitives.incomplete import gamma_density as _gamma_density
from phalanx.primitives.incomplete import igamma as _igamma
from phalanx.primitives.zeta import zeta as _zeta

# ---- incomplete functions -------------------------------------------------------------------


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, I_x(a, b) = ∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b).

    Args:
        a: floating-point numbers, of the shape of ``x``.
        b: floating-point numbers, of the shape of ``x``.
        x: floating-point numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> a, b = np.float32([1.0, 2.0]), np.float32([1.0, 1.0])
    >>> [f"{y:.4f}" for y in lax.betainc(a, b, np.float32([0.25, 0.5]))]
    ['0.2500', '0.2500']
    """
    return _betainc(*elementwise("betainc", a, b, x))


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function, P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a).

    Args:
        a: floating-point numbers, of the shape of ``x``.
        x: floating-point numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> [f"{y:.4f}" for y in lax.igamma(np.float32([1.0, 2.0]), np.float32([1.0, 1.0]))]
    ['0.6321', '0.2642']
    """
    return _igamma(*elementwise("igamma", a, x), upper=False)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function, Q(a, x) = 1 - P(a, x).

    Args:
        a: floating-point numbers, of the shape of ``x``.
        x: floating-point numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> [f"{y:.4f}" for y in lax.igammac(np.float32([1.0, 2.0]), np.float32([1.0, 1.0]))]
    ['0.3679', '0.7358']
    """
    return _igamma(*elementwise("igammac", a, x), upper=True)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of P(a, x) by a.

    Args:
        a: floating-point numbers, of the shape of ``x``.
        x: floating-point numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> [f"{y:.4f}" for y in lax.igamma_grad_a(np.float32([1.0, 2.0]), np.float32([1.0, 1.0]))]
    ['-0.4317', '-0.2762']
    """
    return _igamma(*elementwise("igamma_grad_a", a, x), upper=False, by=(0,))


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative by a of a random number x of the gamma distribution, at a fixed P(a, x).

    Args:
        a: floating-point numbers, of the shape of ``x``.
        x: floating-point numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> [f"{y:.4f}" for y in lax.random_gamma_grad(np.float32([1.0, 2.0]), np.float32([1.0, 1.0]))]
    ['1.1736', '0.7508']
    """
    return gamma_slope(*alike("random_gamma_grad", a, x))


@staged
def gamma_slope(a: ArrayLike, x: ArrayLike) -> Array:
    """-(dP/da) / (dP/dx), and 0 at x = 0."""
    absent = ops.le(x, 0)
    x = ops.select(absent, 1, x)
    slope = ops.div(_igamma(a, x, upper=False, by=(0,)), _gamma_density(a, x))
    return ops.select(absent, 0, ops.neg(slope))


# ---- polygamma and zeta ---------------------------------------------------------------------


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order m, a whole number, of ``digamma`` at x.

    Args:
        m: which derivative, a number that is an integer.
        x: floating-point numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> [f"{y:.4f}" for y in lax.polygamma(np.float32([0.0, 1.0]), np.float32([1.0, 1.0]))]
    ['-0.5772', '1.6449']
    """
    operands = alike("polygamma", m, x)
    check_domain("polygamma", typeof(operands[1]), is_floating)
    return nth_polygamma(m, *operands)


def nth_polygamma(order: ArrayLike, m: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order m; ``order`` is what was given as m, perhaps a number of Python."""
    kind = typeof(x)
    if kind.dtype.itemsize < 4:  # m! needs the range and the digits of single precision
        wide = [ops.convert(v, dtype=np.dtype(np.float32), weak=False) for v in (m, x)]
        return ops.convert(nth_polygamma(order, *wide), dtype=kind.dtype, weak=kind.weak)
    if type(order) is not int or not 0 <= order <= _MOST:
        return _polygamma_of_each(m, x)
    if order == 0:
        return ops.digamma(x)
    return ops.mul(_zeta(float(order + 1), x), float((-1) ** (order + 1) * math.factorial(order)))


_MOST = 34  # for which m! is a number of single precision


@staged
def _polygamma_of_each(m: ArrayLike, x: ArrayLike) -> Array:
    """(-1)ᵐ⁺¹ m! ζ(m + 1, x), for m ≥ 1 (DLMF 5.15.2, 25.11.12)."""
    zero = ops.eq(m, 0)  # each takes a number that the other one's derivative is finite at
    at, order = ops.select(zero, x, 1), ops.add(ops.select(zero, 1, m), 1)
    x = ops.select(zero, 1, x)
    size = ops.mul(ops.exp(ops.lgamma(order)), _zeta(order, x))
    even = ops.eq(ops.rem(m, 2), 0)
    whole = ops.and_(ops.eq(ops.floor(m), m), ops.ge(m, 0))
    out = ops.select(even, ops.neg(size), size)
    return ops.select(zero, ops.digamma(at), ops.select(whole, out, float("nan")))


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function, Σ (q + k)⁻ˣ over k = 0, 1, ..., for x > 1.

    Args:
        x: floating-point numbers.
        q: floating-point numbers, of the shape of ``x``.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> [f"{y:.4f}" for y in lax.zeta(np.float32([2.0, 2.0]), np.float32([1.0, 2.0]))]
    ['1.6449', '0.6449']
    """
    return _zeta(*elementwise("zeta", x, q))


# ---- Bessel functions -----------------------------------------------------------------------


def bessel_i0e(x: ArrayLike) -> Array:
    """The scaled modified Bessel function of the first kind of order 0, e^-|x| I₀(x).

    Args:
        x: floating-point numbers.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> [f"{y:.4f}" for y in lax.bessel_i0e(np.float32([0.0, 1.0]))]
    ['1.0000', '0.4658']
    """
    return _bessel_i0e(one("bessel_i0e", x))


def bessel_i1e(x: ArrayLike) -> Array:
    """The scaled modified Bessel function of the first kind of order 1, e^-|x| I₁(x).

    Args:
        x: floating-point numbers.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> [f"{y:.4f}" for y in lax.bessel_i1e(np.float32([0.0, 1.0]))]
    ['0.0000', '0.2079']
    """
    return _bessel_i1e(one("bessel_i1e", x))
