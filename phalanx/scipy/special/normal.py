"""The error function and its relatives: of the normal distribution, of Dawson and Fresnel."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.numpy.searching import where
from phalanx.primitives.faddeeva import dawsn as _dawsn
from phalanx.primitives.faddeeva import erfc_inv as _erfc_inv
from phalanx.primitives.faddeeva import erfcx as _erfcx
from phalanx.primitives.faddeeva import erfcx_above
from phalanx.primitives.faddeeva import fresnel as _fresnel
from phalanx.primitives.faddeeva import wofz as _wofz
from phalanx.primitives.integrals import owens_t as _owens_t
from phalanx.scipy.special.operands import as_complex, inexact, is_complex

_SQRT_HALF = math.sqrt(0.5)


def erf(x: ArrayLike) -> Array:
    """Error function: 2/√π times the integral of exp(-t²) from 0 to x.

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.erf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [-0.8427  0.      0.9953]
    """
    return ops.erf(*real("erf", x))


def erfc(x: ArrayLike) -> Array:
    """Complementary error function 1 - erf(x), accurate for large x.

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.erfc(jnp.array([0.0, 1.0, 5.0])))
    [1.0000000e+00 1.5729924e-01 1.5374597e-12]
    """
    return ops.erfc(*real("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """Inverse of the error function: the y with erf(y) = x.

    Args:
        x: numbers from -1 to 1, of any shape; NaN outside.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.erfinv(jnp.array([0.0, 0.5, 1.0])).round(4))
    [0.     0.4769    inf]
    """
    return ops.erf_inv(*real("erfinv", x))


def erfcinv(y: ArrayLike) -> Array:
    """Inverse of the complementary error function: the x with erfc(x) = y; NaN outside of [0, 2].

    Args:
        y: numbers from 0 to 2, of any shape.

    Returns:
        Floats of the shape of ``y``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``y`` is complex.

    >>> print(scipy.special.erfcinv(jnp.array([1e-10, 1.0, 2.0])).round(4))
    [4.5728 0.       -inf]
    """
    return _erfc_inv(*real("erfcinv", y))


def erfcx(x: ArrayLike) -> Array:
    """Scaled complementary error function exp(x²) erfc(x) (DLMF 7.2.2).

    Finite for large x, where exp(x²) overflows and erfc(x) is 0.

    Args:
        x: the argument, real or complex, of any shape.

    Returns:
        Numbers of the shape of ``x``: of its dtype, or float32 for integers.

    >>> print(scipy.special.erfcx(jnp.array([0.0, 1.0, 100.0])).round(6))
    [1.       0.427584 0.005642]
    """
    (x,) = inexact("erfcx", x)
    return _wofz(1j * x) if is_complex(x) else _erfcx(x)


def wofz(z: ArrayLike) -> Array:
    """Faddeeva function w(z) = exp(-z²) erfc(-iz) (DLMF 7.2.3).

    Its real part is the Voigt profile of spectroscopy, up to a factor.

    Args:
        z: the argument, complex or real, of any shape.

    Returns:
        Complex numbers of the shape of ``z``: complex64, or complex128 for arguments of 64 bits.

    >>> print(scipy.special.wofz(jnp.array([1j, 1.0])).round(4))
    [0.4276+0.j     0.3679+0.6072j]
    """
    (z,) = inexact("wofz", z)
    return _wofz(as_complex(z))


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral: exp(-x²) times the integral of exp(t²) from 0 to x.

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.dawsn(jnp.array([0.0, 1.0, 10.0])).round(4))
    [0.     0.5381 0.0503]
    """
    return _dawsn(*real("dawsn", x))


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel integrals S(x) and C(x): of sin(πt²/2) and of cos(πt²/2) from 0 to x.

    Args:
        x: the argument, real, of any shape.

    Returns:
        A tuple of two arrays of the shape of ``x``, S and C; of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> s, c = scipy.special.fresnel(jnp.array([0.0, 1.0, 10.0]))
    >>> print(s.round(4), c.round(4))
    [0.     0.4383 0.4682] [0.     0.7799 0.4999]
    """
    (x,) = real("fresnel", x)
    return _fresnel(x, sine=True), _fresnel(x, sine=False)


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function.

    It is the probability that X > h and 0 < Y < a X for independent standard normal X and Y: 1/2π
    times the integral of exp(-h² (1 + t²) / 2) / (1 + t²) from 0 to a.

    Args:
        h: the first argument, real, of any shape.
        a: the upper limit of the integral, likewise.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.owens_t(jnp.array([0.0, 1.0]), 1.0).round(4))
    [0.125  0.0667]
    """
    return _owens_t(*real("owens_t", h, a))


@one_program
def ndtr(x: ArrayLike) -> Array:
    """Cumulative distribution function of the standard normal distribution, Φ(x).

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.ndtr(jnp.array([-2.0, 0.0, 1.0])).round(4))
    [0.0228 0.5    0.8413]
    """
    (x,) = real("ndtr", x)
    return 0.5 * ops.erfc(-_SQRT_HALF * x)


@one_program
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Logarithm of ``ndtr``, accurate in both tails.

    Finite where ``ndtr`` is too small for a float, and not 0 where it rounds to 1.

    Args:
        x: the argument, real, of any shape.
        series_order: accepted, and ignored: the result is as accurate as the dtype.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.log_ndtr(jnp.array([-100.0, 0.0, 6.0])))
    [-5.0055244e+03 -6.9314718e-01 -9.8658959e-10]
    """
    (x,) = real("log_ndtr", x)
    return _log_ndtr(x)


def _log_ndtr(x: Array) -> Array:
    """log Φ(x): by erfc, and of the lower tail by erfcx (DLMF 7.2.2)."""
    low = x < -1
    z = where(low, x, -1)
    upper = x > 0  # where half may be 0, and has no logarithm
    half = 0.5 * ops.erfc(_SQRT_HALF * where(upper, x, where(low, 0, -x)))
    # Where z² is all that counts, erfcx may be 0.
    counts = z > -math.sqrt(dtypes.finfo(z.dtype).max)
    scaled = 0.5 * erfcx_above(-_SQRT_HALF * where(counts, z, -1))
    below = ops.log(where(low, scaled, where(upper, 1, half)))
    return where(upper, ops.log1p(-half), where(low, below - 0.5 * z * z, below))


@one_program
def ndtri(p: ArrayLike) -> Array:
    """Quantile function of the standard normal distribution, the inverse of ``ndtr``.

    Args:
        p: probabilities, from 0 to 1, of any shape; NaN outside.

    Returns:
        Floats of the shape of ``p``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.special.ndtri(jnp.array([0.025, 0.5, 0.975])).round(3))
    [-1.96 -0.    1.96]
    """
    (p,) = real("ndtri", p)
    return -math.sqrt(2) * _erfc_inv(2 * p)
