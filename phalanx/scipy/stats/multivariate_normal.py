"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.broadcasting import common_shape
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.linalg import cholesky, triangular_solve
from phalanx.numpy.promotion import promote
from phalanx.primitives.shape import broadcast_to
from phalanx.scipy.stats.family import ArrayLike

__all__ = ["logpdf", "pdf"]


@one_program
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """Logarithm of the probability density function of the multivariate normal distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points [..., n]; numbers where ``mean`` is a number.
        mean: the mean [..., n], or a number.
        cov: the covariance [..., n, n], positive definite; or the variance, a number that all
            elements have.
        allow_singular: must be None: a distribution of singular covariance has no density.

    Returns:
        Numbers [...]: of the shape of ``x`` without the last dimension, or of ``x``
        where ``mean`` is a number. NaN where ``cov`` is not positive definite.

    Raises:
        NotImplementedError: ``allow_singular`` is given.
        ValueError: the shapes do not fit.

    >>> x = jnp.array([[0.5, 1.0], [0.0, 0.0]])
    >>> print(scipy.stats.multivariate_normal.logpdf(x, jnp.zeros(2), jnp.eye(2)).round(4))
    [-2.4629 -1.8379]
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal: vectors of a singular covariance have no density; leave out "
            f"allow_singular, got {allow_singular!r}"
        )
    who = "multivariate_normal"
    x, mean, cov = promote(who, x, mean, cov, to=dtypes.to_inexact)
    if not mean.ndim:
        return -0.5 * ((x - mean) ** 2 / cov + ops.log(2 * math.pi * cov))
    (n,) = mean.shape[-1:]
    if not cov.ndim:
        y = x - mean
        return -0.5 * ((y * y / cov).sum(-1) + n * ops.log(2 * math.pi * cov))
    if cov.shape[-2:] != (n, n):
        raise ValueError(
            f"{who}: cov must be a number or have shape [..., {n}, {n}] for mean {mean.aval}, "
            f"got {cov.aval}"
        )
    return _by_factors(who, x - mean, cov)


def _by_factors(who: str, y: Any, cov: Any) -> Array:
    """By the Cholesky factor L of the covariance: yᵀ cov⁻¹ y = |L⁻¹ y|²."""
    n = cov.shape[-1]
    batch = common_shape(who, y.shape[:-1], cov.shape[:-2])
    factor, y = cholesky(cov), broadcast_to(y, (*batch, y.shape[-1]))
    logs = ops.log(factor.diagonal(axis1=-2, axis2=-1)).sum(-1)
    if cov.ndim > 2:
        factor, rows = broadcast_to(factor, (*batch, n, n)), y[..., None, :]
    else:
        rows = y.reshape(-1, n)  # of all points, for the one factor
    white = triangular_solve(factor, rows, lower=True, transpose_a=True).reshape(y.shape)
    return -0.5 * ((white * white).sum(-1) + n * math.log(2 * math.pi)) - logs


@one_program
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Probability density function of the multivariate normal distribution.

    It is exp(-(x - μ)ᵀ Σ⁻¹ (x - μ) / 2) / √det(2π Σ), with the mean μ and the covariance Σ.

    Args:
        x: the points [..., n]; numbers where ``mean`` is a number.
        mean: the mean [..., n], or a number.
        cov: the covariance [..., n, n], positive definite; or the variance, a number that all
            elements have.

    Returns:
        Numbers [...]: of the shape of ``x`` without the last dimension, or of ``x``
        where ``mean`` is a number. NaN where ``cov`` is not positive definite.

    Raises:
        ValueError: the shapes do not fit.

    >>> x = jnp.array([[0.5, 1.0], [0.0, 0.0]])
    >>> print(scipy.stats.multivariate_normal.pdf(x, jnp.zeros(2), jnp.eye(2)).round(4))
    [0.0852 0.1592]
    """
    return ops.exp(logpdf(x, mean, cov))
