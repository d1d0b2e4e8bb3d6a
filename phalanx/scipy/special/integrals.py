"""Exponential, sine and cosine integrals, and the dilogarithm."""

from __future__ import annotations

from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.ops.integrals import expi as _expi
from phalanx.ops.integrals import expn as _expn
from phalanx.ops.integrals import sici as _sici
from phalanx.ops.integrals import spence as _spence


def expi(x: ArrayLike) -> Array:
    """Ei(x), the integral of e^t / t from -∞ to x, as a principal value (DLMF 6.2.5).

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> f"{float(expi(1.0)):.4f}"
    '1.8951'
    """
    return _expi(*real("expi", x))


def exp1(x: ArrayLike) -> Array:
    """E₁(x), the integral of e^-t / t from x to ∞; NaN of negative x (DLMF 6.2.1).

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> f"{float(exp1(1.0)):.4f}"
    '0.2194'
    """
    return _expn(*real("exp1", 1, x))


@one_program
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """E_n(x), the integral of e^-xt / tⁿ from 1 to ∞, for n ≥ 0 and x ≥ 0 (DLMF 8.19.3).

    Args:
        n: orders; what is no whole number is rounded down.
        x: a real array.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    >>> f"{float(expn(2, 1.0)):.4f}"
    '0.1485'
    """
    n, x = real("expn", n, x)
    below = n < 0
    return where(below, float("nan"), _expn(where(below, 1, n), x))


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine integral ∫₀ˣ sin t / t dt, and the cosine integral (DLMF 6.2.9, 6.2.11).

    Args:
        x: an array, or a number.

    Returns:
        Two arrays of the shape of ``x``; integers give float32.

    >>> [f"{float(y):.4f}" for y in sici(1.0)]
    ['0.9461', '0.3374']
    """
    (x,) = real("sici", x)
    return _sici(x, sine=True), _sici(x, sine=False)


def spence(x: ArrayLike) -> Array:
    """The integral of log t / (1 - t) from 1 to x, the dilogarithm of 1 - x; NaN of negative x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> f"{float(spence(0.0)):.4f}"
    '1.6449'
    """
    return _spence(*real("spence", x))
