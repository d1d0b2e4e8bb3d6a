"""Random matrices, and vectors that are made with them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx import lax
from phalanx import numpy as jnp
from phalanx.base import dtypes
from phalanx.base.errors import ArgumentError
from phalanx.control.one_program import staged
from phalanx.core.types import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike, typeof
from phalanx.lax.layout import takes_out_sharding
from phalanx.primitives.basis import check_lengths
from phalanx.primitives.shape import broadcast_to
from phalanx.random.arguments import (
    Lengths,
    as_parameter,
    as_shape,
    but_last_axis,
    float_dtype,
    shape_of_draws,
)
from phalanx.random.continuous import draw_exponential, draw_generalized_normal
from phalanx.random.discrete import draw_binomial
from phalanx.random.gammas import draw_gamma
from phalanx.random.generators import source, sources
from phalanx.random.keys import single
from phalanx.random.normals import draw_standard_normal

# ---- orthogonal matrices --------------------------------------------------------------------


@takes_out_sharding
def orthogonal(
    key: KeyLike,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Random orthogonal matrices: orthonormal columns, or rows if there are fewer; Haar measure.

    By the QR decomposition of normal numbers, with positive numbers on the diagonal of R
    (Mezzadri, How to generate random matrices from the classical compact groups, 2007).

    Args:
        key: a single key.
        n: the number of rows.
        shape: of the matrices.
        dtype: a floating-point or complex dtype; float32 by default, or float64 under
            ``enable_x64``. Complex matrices are unitary.
        m: the number of columns; by default ``n``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array ``[*shape, n, m]``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> q = random.orthogonal(random.key(0), 3)
    >>> bool(abs(q.T @ q - np.eye(3)).max() < 1e-5)
    True
    """
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    check_lengths("orthogonal", (rows, columns))
    chosen = _inexact_dtype("orthogonal", dtype)
    lengths = (*as_shape("orthogonal", shape), rows, columns)
    return _orthogonal(single("orthogonal", key), shape=lengths, dtype=chosen)


def _inexact_dtype(who: str, dtype: Any) -> np.dtype:
    chosen = dtypes.default_float() if dtype is None else dtypes.requested(dtype)
    return chosen if dtypes.is_complex(chosen) else float_dtype(who, chosen)


@staged
def _orthogonal(key: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    *batch, n, m = shape
    tall = (*batch, max(n, m), min(n, m))
    wide = dtype if dtype.itemsize >= 4 else np.dtype("float32")  # the narrowest of matrices
    q, r, *_ = lax.linalg.qr(draw_standard_normal(key, tall, wide), full_matrices=False)
    diagonal = jnp.diagonal(r, axis1=-2, axis2=-1)
    q = q * (diagonal / abs(diagonal))[..., None, :]
    return (q if n >= m else q.mT).astype(dtype)


# ---- normal vectors -------------------------------------------------------------------------


@takes_out_sharding
def multivariate_normal(
    key: KeyLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Array:
    """Multivariate normal vectors, of a mean and a covariance.

    Args:
        key: a single key.
        mean: [..., n].
        cov: [..., n, n], symmetric and positive definite; semidefinite but for "cholesky".
        shape: of the vectors; by default that to which ``mean`` and ``cov`` broadcast.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        method: how the covariance is factored, by "cholesky", "eigh" or "svd".
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array ``[*shape, n]``.

    Raises:
        ValueError: the shapes do not fit, or there is no such method.

    >>> from phalanx import random
    >>> random.multivariate_normal(random.key(0), np.zeros(2), np.eye(2), (5,)).shape
    (5, 2)
    """
    who = "multivariate_normal"
    if method not in _FACTORS:
        raise ValueError(f"{who}: method must be one of {list(_FACTORS)}, got {method!r}")
    chosen = float_dtype(who, dtype)
    mean, cov = as_parameter(mean, chosen), as_parameter(cov, chosen)
    mean_type, size = typeof(mean), typeof(cov)
    if not mean_type.shape or size.shape[-2:] != mean_type.shape[-1:] * 2:
        raise ArgumentError(
            f"{who}: mean must have shape [..., n] and cov [..., n, n], got {mean_type} and {size}"
        )
    batch = (mean_type.update(shape=mean_type.shape[:-1]), size.update(shape=size.shape[:-2]))
    lengths = shape_of_draws(who, shape, *batch)
    return _multivariate(single(who, key), mean, cov, shape=lengths, method=method)


@staged
def _multivariate(key: Any, mean: Any, cov: Any, *, shape: Lengths, method: str) -> Any:
    vectors, dtype = (*shape, typeof(mean).shape[-1]), typeof(mean).dtype
    white = draw_standard_normal(key, vectors, dtype)
    factored = lax.convert_element_type(cov, np.promote_types(dtype, np.float32))
    factor = lax.convert_element_type(_FACTORS[method](factored), dtype)
    return broadcast_to(mean, vectors) + jnp.einsum("...ij,...j->...i", factor, white)


def _by_eigenvectors(cov: Any) -> Any:
    vectors, values = lax.linalg.eigh(cov)
    return vectors * jnp.sqrt(values)[..., None, :]


def _by_singular_vectors(cov: Any) -> Any:
    u, values, _ = lax.linalg.svd(cov)
    return u * jnp.sqrt(values)[..., None, :]


_FACTORS: dict[str, Callable[[Any], Any]] = {
    "cholesky": lax.linalg.cholesky,
    "eigh": _by_eigenvectors,
    "svd": _by_singular_vectors,
}


@takes_out_sharding
def ball(
    key: KeyLike,
    d: int,
    p: ArrayLike = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Points of the unit ball of the p-norm in ``d`` dimensions, all equally likely.

    Args:
        key: a single key.
        d: the number of dimensions.
        p: of the norm, a positive number.
        shape: of the points.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array ``[*shape, d]``.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.ball(random.key(0), 3, shape=(2,)).round(3))
    [[ 0.917  0.393  0.012]
     [-0.861  0.317 -0.063]]
    """
    chosen = float_dtype("ball", dtype)
    lengths = (*as_shape("ball", shape), *as_shape("ball", operator.index(d)))
    return _ball(single("ball", key), as_parameter(p, chosen), shape=lengths, dtype=chosen)


@staged
def _ball(key: Any, p: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    x = draw_generalized_normal(first, p, shape, dtype)
    size = jnp.sum(jnp.abs(x) ** p, -1) + draw_exponential(second, shape[:-1], dtype)
    return x / (size ** (1 / p))[..., None]


@takes_out_sharding
def dirichlet(
    key: KeyLike,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Dirichlet vectors: positive numbers of sum 1 along the last axis, of density ∝ Π xᵢ^(αᵢ - 1).

    Args:
        key: a single key.
        alpha: positive numbers along the last axis.
        shape: of the result without its last axis; by default that of ``alpha``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of shape [*shape, n], n the length of ``alpha``.

    Raises:
        ValueError: ``alpha`` has no axis, or does not broadcast to ``shape``.

    >>> import numpy as np
    >>> from phalanx import random
    >>> print(random.dirichlet(random.key(0), np.ones(3), (2,)).round(3))
    [[0.365 0.428 0.207]
     [0.494 0.326 0.18 ]]
    """
    chosen = float_dtype("dirichlet", dtype)
    alpha = as_parameter(alpha, chosen)
    batch, count = but_last_axis("dirichlet", "alpha", alpha)
    lengths = shape_of_draws("dirichlet", shape, batch)
    return _dirichlet(single("dirichlet", key), alpha, shape=(*lengths, count))


@staged
def _dirichlet(key: Any, alpha: Any, *, shape: Lengths) -> Any:
    logs = draw_gamma(key, broadcast_to(alpha, shape), in_logs=True)
    greatest = lax.stop_gradient(jnp.max(logs, -1, keepdims=True, initial=-math.inf))
    shares = jnp.exp(logs - greatest)
    return shares / jnp.sum(shares, -1, keepdims=True)


# ---- counts ---------------------------------------------------------------------------------


def multinomial(
    key: KeyLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Multinomial counts: how many of n trials come out as i, which has probability p[..., i].

    Args:
        key: a single key.
        n: a number, or an array that broadcasts to ``shape``.
        p: probabilities along the last axis; they need not add up to 1.
        shape: of the result without its last axis; by default that to which ``n`` and the other
            axes of ``p`` broadcast.
        dtype: any dtype of numbers; float32 by default, or float64 under ``enable_x64``.
        unroll: how many ways to write out per iteration of the compiled loop.

    Returns:
        Counts, of the shape of ``p``; or ``[*shape, k]``, of k ways.

    Raises:
        ValueError: the parameters do not broadcast to ``shape``.

    >>> import numpy as np
    >>> from phalanx import random
    >>> float(random.multinomial(random.key(0), 10, np.array([0.2, 0.3, 0.5])).sum())
    10.0
    """
    asked = dtypes.default_float() if dtype is None else dtypes.requested(dtype)
    chosen = asked if dtypes.is_floating(asked) else dtypes.default_float()
    n, p = as_parameter(n, chosen), as_parameter(p, chosen)
    lengths = shape_of_draws("multinomial", shape, n, but_last_axis("multinomial", "p", p)[0])
    drawn = _multinomial(single("multinomial", key), n, p, shape=lengths, unroll=unroll)
    return drawn if asked == chosen else drawn.astype(asked)


@staged
def _multinomial(key: Any, n: Any, p: Any, *, shape: tuple[int, ...], unroll: int | bool) -> Any:
    """Way by way, from the trials that are left, with the share of what probability is left."""
    p = broadcast_to(p, (*shape, typeof(p).shape[-1]))
    left = jnp.flip(jnp.cumsum(jnp.flip(p, -1), -1), -1)
    shares = jnp.clip(p / jnp.where(left == 0, 1, left), 0, 1)
    count = typeof(p).shape[-1]
    generator = source(key)

    def draw(trials: Array, row: Any) -> tuple[Array, Array]:
        words, share = row
        k = draw_binomial(generator.of(words), trials, share)
        return trials - k, k

    rows = (generator.split((count,)).words, jnp.moveaxis(shares, -1, 0))
    drawn = lax.scan(draw, broadcast_to(n, shape), rows, unroll=unroll)[1]
    return jnp.moveaxis(drawn, 0, -1)
