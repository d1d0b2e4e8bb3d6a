"""Cosine transforms, with SciPy's names: of type 2, and their inverses.

``norm`` is None, for sums as they are, or "ortho", for an orthonormal matrix.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.fft import irfft, resized, rfft
from phalanx.numpy.manipulation import flip, moveaxis
from phalanx.numpy.promotion import ArrayLike, convert, dims, inexact

__all__ = ["dct", "dctn", "idct", "idctn"]


def _real(who: str, type: Any, norm: Any, x: Any) -> Array:
    """``x`` as an array of float32 or float64, after a look at the options."""
    if type != 2:
        raise ValueError(f"{who}: type must be 2, got {type!r}")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"{who}: norm must be None, 'backward' or 'ortho', got {norm!r}")
    array = inexact(who, x)
    if dtypes.is_complex(array.dtype):
        raise TypeError(f"{who}: a real array is needed, got {array.aval}; take .real and .imag")
    return array if array.dtype.itemsize >= 4 else convert(array, np.dtype("float32"))


def _phases(n: int, dtype: np.dtype) -> np.ndarray:
    """exp(-πi k / 2n), for the frequencies k that ``rfft`` gives."""
    phases = np.exp(-0.5j * np.pi * np.arange(n // 2 + 1) / n)
    return phases.astype(dtypes.to_complex(dtype))


def _scales(n: int, dtype: np.dtype) -> np.ndarray:
    """What makes the rows of the cosine matrix orthonormal."""
    scales = np.full(n, 1 / math.sqrt(2 * n))
    scales[0] = 1 / math.sqrt(4 * n)
    return scales.astype(dtype)


def _dct(x: Array, norm: str | None) -> Array:
    """Along the last dimension; Makhoul 1980: even elements, then odd ones backwards, are given
    to a Fourier transform of the same length."""
    n = x.shape[-1]
    ordered = ops.concatenate(x[..., ::2], flip(x[..., 1::2], -1), dim=x.ndim - 1)
    turned = 2 * rfft(ordered) * _phases(n, x.dtype)
    back = flip(-ops.imag(turned)[..., 1 : (n + 1) // 2], -1)
    out = ops.concatenate(ops.real(turned), back, dim=x.ndim - 1)
    return out * _scales(n, x.dtype) if norm == "ortho" else out


def _idct(x: Array, norm: str | None) -> Array:
    """The same backwards."""
    n = x.shape[-1]
    if norm == "ortho":
        x = x / _scales(n, x.dtype)
    last = x.ndim - 1
    real = x[..., : n // 2 + 1]
    ends = ops.concatenate(ops.zeros_like(x[..., :1]), flip(x, -1)[..., : n // 2], dim=last)
    ordered = irfft(ops.complex(real, -ends) * _phases(n, x.dtype).conj() / 2, n=n)
    half = (n + 1) // 2
    evens, odds = ordered[..., :half], flip(ordered[..., half:], -1)
    if n % 2:
        odds = ops.pad(odds, dtypes.scalar(0, x.dtype), config=((0, 0, 0),) * last + ((0, 1, 0),))
    pairs = ops.stack([evens, odds], last + 1)
    return ops.reshape(pairs, shape=(*x.shape[:-1], 2 * half))[..., :n]


def _along(who: str, one: Any, x: Array, s: Sequence[int] | None, axes: Any, norm: Any) -> Array:
    """``one`` along each of the axes, after they were cut or filled with zeros to ``s``."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    over = dims(who, tuple(axes), x)
    lengths = [x.shape[d] for d in over] if s is None else [operator.index(n) for n in s]
    if len(lengths) != len(over) or min(lengths, default=1) < 1:
        raise ValueError(
            f"{who}: a length of at least 1 is needed for each axis, got {lengths} for {over} of "
            f"{x.aval}"
        )
    for d, n in zip(over, lengths, strict=True):
        x = moveaxis(one(moveaxis(resized(x, d, n), d, -1), norm), -1, d)
    return x


@one_program
def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The discrete cosine transform, 2 Σ x[j] cos(π k (2j + 1) / 2n) over j, along ``axis``.

    Args:
        x: a real array.
        type: which of the transforms; only 2, the usual one, is there.
        n: the length along the axis, to which x is cut or filled with zeros.
        axis: the dimension along which it is transformed; negative ones count from the last.
        norm: None, or "ortho" for orthonormal rows.

    Returns:
        Real numbers, of length ``n`` along ``axis``.

    Raises:
        ValueError: the type is another one, or there is no such norm.

    >>> print(scipy.fft.dct(jnp.array([1.0, 1.0])))
    [4. 0.]
    """
    x = _real("dct", type, norm, x)
    return _along("dct", _dct, x, None if n is None else (n,), (axis,), norm)


@one_program
def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The inverse discrete cosine transform: the ``x`` of which ``dct`` gave these coefficients.

    Args:
        x: the coefficients, a real array.
        type: must be 2.
        n: the length along the axis, to which x is cut or filled with zeros.
        axis: the dimension along which it is transformed; negative ones count from the last.
        norm: None, or "ortho" for orthonormal rows.

    Returns:
        Real numbers, of length ``n`` along ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``x`` is complex.

    >>> print(scipy.fft.idct(jnp.array([4.0, 0.0])))
    [1. 1.]
    """
    x = _real("idct", type, norm, x)
    return _along("idct", _idct, x, None if n is None else (n,), (axis,), norm)


@one_program
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """``dct`` along several axes, by default all of them.

    Args:
        x: a real array.
        type: must be 2.
        s: the lengths of the transform, for each of the axes; None for those that they have.
        axes: the axes that are transformed; None for all.
        norm: None, or "ortho" for orthonormal rows.

    Returns:
        Real numbers, of lengths ``s`` along ``axes``.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.fft.dctn(jnp.ones((2, 2))))
    [[16.  0.]
     [ 0.  0.]]
    """
    return _along("dctn", _dct, _real("dctn", type, norm, x), s, axes, norm)


@one_program
def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of ``dctn``.

    Args:
        x: a real array.
        type: must be 2.
        s: the lengths of the transform, for each of the axes; None for those that they have.
        axes: the axes that are transformed; None for all.
        norm: None, or "ortho" for orthonormal rows.

    Returns:
        Real numbers, of lengths ``s`` along ``axes``.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.fft.idctn(jnp.array([[16.0, 0.0], [0.0, 0.0]])))
    [[1. 1.]
     [1. 1.]]
    """
    return _along("idctn", _idct, _real("idctn", type, norm, x), s, axes, norm)


bound(sys.modules[__name__])
