"""The error function and its relatives: of the normal distribution, of Dawson and Fresnel."""

from __future__ import annotations

import math

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.ops.faddeeva import dawsn as _dawsn
from phalanx.ops.faddeeva import erfc_inv as _erfc_inv
from phalanx.ops.faddeeva import erfcx as _erfcx
from phalanx.ops.faddeeva import erfcx_above
from phalanx.ops.faddeeva import fresnel as _fresnel
from phalanx.ops.faddeeva import wofz as _wofz
from phalanx.ops.integrals import owens_t as _owens_t
from phalanx.scipy.special.operands import as_complex, inexact, is_complex

_SQRT_HALF = math.sqrt(0.5)


def erf(x: ArrayLike) -> Array:
    """2/√π times the integral of exp(-t²) from 0 to x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(erf(0.0))
    0.0
    """
    return ops.erf(*real("erf", x))


def erfc(x: ArrayLike) -> Array:
    """1 - erf x, exact for large x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(erfc(0.0))
    1.0
    """
    return ops.erfc(*real("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """The y with erf y = x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(erfinv(0.0))
    0.0
    """
    return ops.erf_inv(*real("erfinv", x))


def erfcinv(y: ArrayLike) -> Array:
    """The x with erfc x = y; NaN outside of [0, 2].

    Args:
        y: numbers from 0 to 2.

    Returns:
        An array of the shape and dtype of ``y``; integers give float32.

    >>> float(erfcinv(1.0))
    0.0
    """
    return _erfc_inv(*real("erfcinv", y))


def erfcx(x: ArrayLike) -> Array:
    """exp(x²) erfc x, of real or complex x (DLMF 7.2.2).

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> f"{float(erfcx(100.0)):.6f}"
    '0.005642'
    """
    (x,) = inexact("erfcx", x)
    return _wofz(1j * x) if is_complex(x) else _erfcx(x)


def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function exp(-z²) erfc(-iz), complex also of real z (DLMF 7.2.3).

    Args:
        z: complex or real numbers.

    Returns:
        Complex numbers of the shape of ``z``.

    >>> f"{wofz(1j).item():.4f}"
    '0.4276+0.0000j'
    """
    (z,) = inexact("wofz", z)
    return _wofz(as_complex(z))


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral, exp(-x²) times the integral of exp(t²) from 0 to x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> f"{float(dawsn(1.0)):.4f}"
    '0.5381'
    """
    return _dawsn(*real("dawsn", x))


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The integrals from 0 to x of sin(πt²/2) and of cos(πt²/2).

    Args:
        x: an array, or a number.

    Returns:
        Two arrays of the shape of ``x``; integers give float32.

    >>> [f"{float(y):.4f}" for y in fresnel(1.0)]
    ['0.4383', '0.7799']
    """
    (x,) = real("fresnel", x)
    return _fresnel(x, sine=True), _fresnel(x, sine=False)


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's function, 1/2π times the integral of exp(-h² (1 + t²) / 2) / (1 + t²) from 0 to a.

    Args:
        h: an array, or a number.
        a: an array, or a number.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(owens_t(0.0, 1.0)):.4f}"
    '0.1250'
    """
    return _owens_t(*real("owens_t", h, a))


@one_program
def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal distribution.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(ndtr(0.0))
    0.5
    """
    (x,) = real("ndtr", x)
    return 0.5 * ops.erfc(-_SQRT_HALF * x)


@one_program
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of ``ndtr``, exact where that is 0 or 1 to a float.

    Args:
        x: a real array.
        series_order: taken for the sake of other libraries; there is no series to cut.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> f"{float(log_ndtr(-100.0)):.3f}"
    '-5005.524'
    """
    (x,) = real("log_ndtr", x)
    return _log_ndtr(x)


def _log_ndtr(x: Array) -> Array:
    """log Φ(x): by erfc, and of the lower tail by erfcx (DLMF 7.2.2)."""
    low = x < -1
    z = where(low, x, -1)
    half = 0.5 * ops.erfc(_SQRT_HALF * ops.abs(where(low, 0, x)))
    upper = x > 0  # where half may be 0, and has no logarithm
    below = ops.log(where(low, 0.5 * erfcx_above(-_SQRT_HALF * z), where(upper, 1, half)))
    return where(upper, ops.log1p(-half), where(low, below - 0.5 * z * z, below))


@one_program
def ndtri(p: ArrayLike) -> Array:
    """The x with ndtr(x) = p; NaN outside of [0, 1].

    Args:
        p: probabilities, from 0 to 1.

    Returns:
        An array of the shape and dtype of ``p``; integers give float32.

    >>> float(ndtri(0.5)) == 0
    True
    """
    (p,) = real("ndtri", p)
    return -math.sqrt(2) * _erfc_inv(2 * p)
