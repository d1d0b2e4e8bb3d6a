"""The distribution of the sum of df squares of standard normal numbers."""

from __future__ import annotations

from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import divide, multiply
from phalanx.numpy.promotion import ArrayLike
from phalanx.scipy.stats import gamma

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@one_program
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``pdf``.

    Args:
        x: where: an array, or a number.
        df: the degrees of freedom.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpdf(0.5, 3.0):.4f}"
    '-1.5155'
    """
    return gamma.logpdf(x, *_of_gamma(df, loc, scale))


@one_program
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """x^(df/2 - 1) e^(-x/2) / (2^(df/2) Γ(df/2)) for x ≥ 0.

    Args:
        x: where: an array, or a number.
        df: the degrees of freedom.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(0.5, 3.0):.4f}"
    '0.2197'
    """
    return gamma.pdf(x, *_of_gamma(df, loc, scale))


@one_program
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is not greater than x.

    Args:
        x: where: an array, or a number.
        df: the degrees of freedom.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{cdf(0.5, 3.0):.4f}"
    '0.0811'
    """
    return gamma.cdf(x, *_of_gamma(df, loc, scale))


@one_program
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``.

    Args:
        x: where: an array, or a number.
        df: the degrees of freedom.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logcdf(0.5, 3.0):.4f}"
    '-2.5120'
    """
    return gamma.logcdf(x, *_of_gamma(df, loc, scale))


@one_program
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than x.

    Args:
        x: where: an array, or a number.
        df: the degrees of freedom.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{sf(0.5, 3.0):.4f}"
    '0.9189'
    """
    return gamma.sf(x, *_of_gamma(df, loc, scale))


@one_program
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``.

    Args:
        x: where: an array, or a number.
        df: the degrees of freedom.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logsf(0.5, 3.0):.4f}"
    '-0.0846'
    """
    return gamma.logsf(x, *_of_gamma(df, loc, scale))


def _of_gamma(df: ArrayLike, loc: ArrayLike, scale: ArrayLike) -> tuple[ArrayLike, ...]:
    """The parameters of the gamma distribution that it is."""
    return divide(df, 2), loc, multiply(scale, 2)
