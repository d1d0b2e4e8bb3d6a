"""Exponential, sine and cosine integrals, and the dilogarithm."""

from __future__ import annotations

from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.numpy.searching import where
from phalanx.primitives.integrals import expi as _expi
from phalanx.primitives.integrals import expn as _expn
from phalanx.primitives.integrals import sici as _sici
from phalanx.primitives.integrals import spence as _spence


def expi(x: ArrayLike) -> Array:
    """Exponential integral Ei(x): of e^t / t from -∞ to x, as a principal value (DLMF 6.2.5).

    Args:
        x: the argument, real, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.expi(jnp.array([-1.0, 0.0, 1.0])).round(4))
    [-0.2194    -inf  1.8951]
    """
    return _expi(*real("expi", x))


def exp1(x: ArrayLike) -> Array:
    """Exponential integral E₁(x): of e^-t / t from x to ∞ (DLMF 6.2.1); NaN of negative x.

    Args:
        x: the argument, real, not negative, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.exp1(jnp.array([0.0, 1.0, 5.0])).round(4))
    [   inf 0.2194 0.0011]
    """
    return _expn(*real("exp1", 1, x))


@one_program
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Generalized exponential integral E_n(x): of e^-xt / tⁿ from 1 to ∞ (DLMF 8.19.3).

    Args:
        n: the order, an integer from 0 on; other numbers are rounded down, and negative ones give
            NaN.
        x: the argument, real, not negative, of any shape.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(scipy.special.expn(jnp.array([0, 1, 2]), 1.0).round(4))
    [0.3679 0.2194 0.1485]
    """
    n, x = real("expn", n, x)
    below = n < 0
    return where(below, float("nan"), _expn(where(below, 1, n), x))


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Sine integral Si(x) and cosine integral Ci(x) (DLMF 6.2.9, 6.2.11).

    Si is the integral of sin t / t from 0 to x, Ci that of cos t / t from ∞ to x.

    Args:
        x: the argument, real, of any shape.

    Returns:
        A tuple of two arrays of the shape of ``x``, Si and Ci; of its dtype, or float32 for
        integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> si, ci = scipy.special.sici(jnp.array([1.0, 10.0]))
    >>> print(si.round(4), ci.round(4))
    [0.9461 1.6583] [ 0.3374 -0.0455]
    """
    (x,) = real("sici", x)
    return _sici(x, sine=True), _sici(x, sine=False)


def spence(x: ArrayLike) -> Array:
    """Spence's function: the dilogarithm of 1 - x, the integral of log t / (1 - t) from 1 to x.

    This is SciPy's convention; in many books it is of the opposite sign or of x. NaN of negative x.

    Args:
        x: the argument, real, not negative, of any shape.

    Returns:
        Floats of the shape of ``x``: of its dtype, or float32 for integers.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.special.spence(jnp.array([0.0, 1.0, 2.0])).round(4))
    [ 1.6449 -0.     -0.8225]
    """
    return _spence(*real("spence", x))
