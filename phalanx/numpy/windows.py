"""Windows of signals: weights that fall to the ends."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.lengths import Length
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.index_arrays import indices
from phalanx.numpy.promotion import ArrayLike, as_array, convert, literal
from phalanx.primitives.bessel import bessel_i0e


def _points(m: Any) -> Any:
    """How many points a window has: what ``m`` is without its fraction, if it is no integer."""
    return m if isinstance(m, Length) else int(m)


def _window(m: Any, *weights: float) -> Any:
    """Σ weights[k] cos(2πk i / (m - 1)) for i below m; of one element, 1."""
    count = _points(m)
    real = dtypes.default_float()
    if count <= 1:
        return ops.full((builtins.max(count, 0),), 1, real)
    step = ops.iota(dtype=real, shape=(count,), dim=0)
    angle = ops.mul(step, literal(step, 2 * np.pi / (count - 1)))
    out = ops.full((count,), weights[0], real)
    for k, weight in enumerate(weights[1:], 1):
        wave = ops.cos(ops.mul(angle, literal(angle, k)))
        out = ops.add(out, ops.mul(wave, literal(wave, weight)))
    return out


@one_program
def hanning(M: float) -> Array:
    """The Hann window of M points: 0.5 - 0.5 cos.

    Args:
        M: the number of points; a fraction does not count.

    Returns:
        float32 [M].

    >>> print(jnp.hanning(3).round(3))
    [0. 1. 0.]
    """
    return _window(M, 0.5, -0.5)


@one_program
def hamming(M: float) -> Array:
    """The Hamming window of M points: 0.54 - 0.46 cos.

    Args:
        M: the number of points; a fraction does not count.

    Returns:
        float32 [M].

    >>> [round(w, 2) for w in jnp.hamming(3).tolist()]
    [0.08, 1.0, 0.08]
    """
    return _window(M, 0.54, -0.46)


@one_program
def blackman(M: float) -> Array:
    """The Blackman window of M points, from two cosines.

    Args:
        M: the number of points; a fraction does not count.

    Returns:
        float32 [M].

    >>> print(abs(jnp.blackman(3)).round(3))
    [0. 1. 0.]
    """
    return _window(M, 0.42, -0.5, 0.08)


@one_program
def bartlett(M: float) -> Array:
    """The triangular window of M points, zero at both ends.

    Args:
        M: the number of points; a fraction does not count.

    Returns:
        float32 [M].

    >>> print(jnp.bartlett(5))
    [0.  0.5 1.  0.5 0. ]
    """
    count = _points(M)
    if count <= 1:
        return _window(M)
    return 1 - abs(2 * indices((count,), dtypes.default_float())[0] / (count - 1) - 1)


@one_program
def kaiser(M: float, beta: ArrayLike) -> Array:
    """The Kaiser window of M points: I0(beta sqrt(1 - x^2)) / I0(beta) for x from -1 to 1.

    Args:
        M: the number of points; a fraction does not count.
        beta: how narrow the window is; 0 for a rectangle.

    Returns:
        float32 [M].

    >>> print(jnp.kaiser(3, 5.0).round(4))
    [0.0367 1.     0.0367]
    """
    count = _points(M)
    if count <= 1:
        return _window(M)
    x = 2 * indices((count,), dtypes.default_float())[0] / (count - 1) - 1
    width = convert(as_array("kaiser", beta), x.aval.dtype)
    inside = width * ops.sqrt(1 - x * x)
    return bessel_i0e(inside) / bessel_i0e(width) * ops.exp(inside - width)
