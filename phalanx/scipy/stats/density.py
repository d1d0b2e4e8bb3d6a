"""The density of a sample: a normal distribution around each point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from phalanx import random
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.registry import register_pytree_node_class
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.linalg import cholesky, triangular_solve
from phalanx.nn.normalize import logsumexp
from phalanx.numpy.arithmetic import sqrt
from phalanx.numpy.creation import full, zeros
from phalanx.numpy.exponents import exp, log
from phalanx.numpy.linalg import inv
from phalanx.numpy.manipulation import atleast_1d, atleast_2d, moveaxis
from phalanx.numpy.promotion import ArrayLike, as_shape, number_array, promote, real
from phalanx.numpy.statistics import cov
from phalanx.scipy.special import ndtr

Bandwidth = str | ArrayLike | Callable[[Any], Any] | None


@register_pytree_node_class
class gaussian_kde:
    """Kernel density estimate of a sample, with Gaussian kernels.

    The density is Σ wᵢ N(x; xᵢ, Σ) for points xᵢ with weights wᵢ. The covariance Σ of the kernels
    is that of the sample times the square of the bandwidth factor.

    It is a pytree, so functions under ``jit``, ``vmap`` or ``grad`` may take and return it. Unlike
    SciPy's, it is immutable: there is no ``set_bandwidth``, and ``resample`` takes a random key.

    Args:
        dataset: the points [d, n], one per column; or [n] for numbers.
        bw_method: the bandwidth factor: a number, a function from the object to one, or the name of
            a rule. "scott", the default, is n^(-1/(d + 4)) (Scott, Multivariate Density Estimation,
            1992), "silverman" (n (d + 2) / 4)^(-1/(d + 4)) (Silverman, Density Estimation, 1986),
            where n is ``neff``.
        weights: of the points, [n]; they are normalized. By default all are equal.

    Attributes:
        dataset: the points, [d, n].
        weights: of the points, [n], which add up to 1.
        covariance: of the kernels, [d, d].
        inv_cov: the inverse of ``covariance``.
        neff: the effective number of points, 1 / Σ wᵢ².

    Raises:
        TypeError: the points are complex.
        ValueError: there is one number alone, the shapes do not fit, or there is no such rule.

    >>> kde = scipy.stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0]))
    >>> print(kde.pdf(jnp.array([0.0, 2.0, 10.0])).round(4))
    [0.107  0.2149 0.    ]
    >>> print(kde.integrate_box_1d(-jnp.inf, 2.0).round(4))
    0.448
    """

    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array
    neff: Array

    def __init__(
        self, dataset: ArrayLike, bw_method: Bandwidth = None, weights: ArrayLike | None = None
    ) -> None:
        (points,) = real("gaussian_kde", dataset)
        points = atleast_2d(points)
        if points.ndim != 2 or points.size <= 1:
            raise ValueError(
                f"gaussian_kde: several points [d, n] or numbers [n] are needed, got {points.aval}"
            )
        self.dataset = points
        self.weights = _normalized(weights, points)
        self.neff = 1 / (self.weights * self.weights).sum()
        factor = self._factor(bw_method)
        spread = atleast_2d(cov(points, aweights=self.weights))
        self.covariance = spread * factor**2
        self.inv_cov = inv(spread) / factor**2

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points of the sample."""
        return self.dataset.shape[1]

    def _factor(self, rule: Bandwidth) -> Any:
        if rule is None or rule == "scott":
            return self.neff ** (-1 / (self.d + 4))
        if isinstance(rule, str) and rule == "silverman":
            return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))
        if callable(rule):
            return rule(self)
        if not isinstance(rule, str):
            return rule
        raise ValueError(
            "gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function, got "
            f"{rule!r}"
        )

    def __repr__(self) -> str:
        return f"gaussian_kde(<{self.n} points of {self.d} dimensions>)"

    # ---- densities ----

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at ``points``.

        Args:
            points: [d, m], or one point [d], or numbers [m] where d is 1.

        Returns:
            An array [m].

        Raises:
            ValueError: the points have another number of dimensions.
        """
        return self._density(self.covariance, self._points("evaluate", points))

    __call__ = evaluate

    def pdf(self, x: ArrayLike) -> Array:
        """The density at the points ``x``, as ``evaluate``.

        Args:
            x: points [d, m]; a vector, where d is 1.
        """
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at the points ``x``, finite where the density is too small
        for a float.

        Args:
            x: points [d, m]; a vector, where d is 1.
        """
        points = self._points("logpdf", x)
        return _log_mixture(self.dataset, self.weights, self.covariance, points)

    def _points(self, who: str, x: ArrayLike) -> Array:
        points = atleast_2d(number_array(f"gaussian_kde.{who}", x))
        if points.shape == (1, self.d):
            points = points.T
        if points.ndim != 2 or points.shape[0] != self.d:
            raise ValueError(
                f"gaussian_kde: points [{self.d}, m] are needed, as the dataset is "
                f"{self.dataset.aval}, got {points.aval}"
            )
        return points

    def _density(self, covariance: Array, points: Array) -> Array:
        return _mixture(self.dataset, self.weights, covariance, points)

    # ---- integrals ----

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times that of a normal distribution.

        Args:
            mean: of the normal distribution, [d], or a number where d is 1.
            cov: its covariance, [d, d], or a number where d is 1.

        Raises:
            ValueError: they have another number of dimensions.
        """
        _, center, spread = promote(
            "gaussian_kde.integrate_gaussian", self.dataset, mean, cov, to=dtypes.to_inexact
        )
        center, spread = atleast_1d(center), atleast_2d(spread)
        if center.shape != (self.d,) or spread.shape != (self.d, self.d):
            raise ValueError(
                f"gaussian_kde.integrate_gaussian: mean must have shape ({self.d},) and cov "
                f"({self.d}, {self.d}), got {center.aval} and {spread.aval}"
            )
        return self._density(self.covariance + spread, center[:, None])[0]

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability of numbers between ``low`` and ``high``.

        Args:
            low: the lower bound.
            high: the upper bound.

        Raises:
            ValueError: the points have more than one dimension.
        """
        if self.d != 1:
            raise ValueError(
                f"gaussian_kde.integrate_box_1d: d must be 1, the dataset is {self.dataset.aval}"
            )
        low, high = real("gaussian_kde.integrate_box_1d", low, high)
        width = sqrt(self.covariance[0, 0])
        upto_high, upto_low = (ndtr((end - self.dataset[0]) / width) for end in (high, low))
        return (self.weights * (upto_high - upto_low)).sum()

    def integrate_box(
        self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int | None = None
    ) -> NoReturn:
        """Refused: over a box of several dimensions the integral has no closed form.

        Args:
            low_bounds: the lower corner of the box.
            high_bounds: the upper one.
            maxpts: accepted for the sake of SciPy's signature.
        """
        raise NotImplementedError(
            "gaussian_kde.integrate_box: there is no such integral; for numbers use "
            "integrate_box_1d, for vectors take the mean over kde.resample(key, shape)"
        )

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two densities.

        Args:
            other: another ``gaussian_kde`` of points of the same dimension.

        Raises:
            ValueError: they have different numbers of dimensions.
        """
        if other.d != self.d:
            raise ValueError(
                f"gaussian_kde.integrate_kde: both must have as many dimensions, got {self.d} and "
                f"{other.d}"
            )
        at_points = self._density(self.covariance + other.covariance, other.dataset)
        return (other.weights * at_points).sum()

    # ---- others ----

    def resample(self, key: Any, shape: Any = ()) -> Array:
        """Random points of the density, [d, *shape].

        Args:
            key: a single key.
            shape: of the points.
        """
        chosen, moved = random.split(key)
        centers = random.choice(chosen, self.n, shape, p=self.weights)
        dtype = self.dataset.dtype
        steps = random.multivariate_normal(
            moved, zeros(self.d, dtype), self.covariance, as_shape("resample", shape), dtype
        )
        return self.dataset[:, centers] + moveaxis(steps, -1, 0)

    def set_bandwidth(self, bw_method: Bandwidth = None) -> NoReturn:
        """Refused: the object is immutable; make another one with ``bw_method``.

        Args:
            bw_method: what to give to the new object.
        """
        raise NotImplementedError(
            "gaussian_kde.set_bandwidth: an object does not change; make another one with "
            "gaussian_kde(dataset, bw_method, weights)"
        )

    def tree_flatten(self) -> tuple[list[Array], None]:
        """The arrays of the object, and no further data: what makes it a pytree."""
        return [self.neff, self.dataset, self.weights, self.covariance, self.inv_cov], None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Sequence[Any]) -> gaussian_kde:
        """The object that is made of these arrays.

        Args:
            aux_data: nothing.
            children: the arrays, as ``tree_flatten`` gives them.
        """
        kde = cls.__new__(cls)
        kde.neff, kde.dataset, kde.weights, kde.covariance, kde.inv_cov = children
        return kde


def _normalized(weights: ArrayLike | None, points: Array) -> Array:
    n = points.shape[1]
    if weights is None:
        return full(n, 1 / n, points.dtype)
    weights_in = number_array("gaussian_kde", weights)
    if weights_in.shape != (n,):
        raise ValueError(
            f"gaussian_kde: weights must have shape ({n},), one for each point of {points.aval}, "
            f"got {weights_in.aval}"
        )
    weights_in = weights_in.astype(points.dtype)
    return weights_in / weights_in.sum()


@one_program
def _mixture(c: ArrayLike, w: ArrayLike, covariance: ArrayLike, x: ArrayLike) -> Array:
    """Σ wᵢ N(x; cᵢ, Σ) of points x [d, m]."""
    weights, logs = _weighted(c, w, covariance, x)
    return (weights * exp(logs)).sum(1)


@one_program
def _log_mixture(c: ArrayLike, w: ArrayLike, covariance: ArrayLike, x: ArrayLike) -> Array:
    """log Σ wᵢ N(x; cᵢ, Σ) of points x [d, m]."""
    weights, logs = _weighted(c, w, covariance, x)
    return logsumexp(logs, 1, b=weights)


def _weighted(*arguments: ArrayLike) -> tuple[Array, Array]:
    """The weights, and log N(x; cᵢ, Σ) [m, n], by the Cholesky factor of the covariance."""
    c, w, spread, x = promote("gaussian_kde", *arguments, to=dtypes.to_inexact)
    factor = cholesky(spread)
    c, x = (triangular_solve(factor, v, left_side=True, lower=True) for v in (c, x))
    gaps = x[:, :, None] - c[:, None, :]
    size = log(factor.diagonal()).sum() + 0.5 * factor.shape[0] * math.log(2 * math.pi)
    return w, -0.5 * (gaps * gaps).sum(0) - size


bound(gaussian_kde)
