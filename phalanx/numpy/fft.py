"""Discrete Fourier transforms, with NumPy's names.

``norm`` says where the factor 1 / n stands: "backward", which None means, at the inverse; "forward"
at the transform itself; "ortho" half of it, as a root, at both.
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
from phalanx.base.errors import DtypeError, InconclusiveDimensionOperation
from phalanx.base.lengths import Length, symbolic
from phalanx.base.source import user_location
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.complex_numbers import conj
from phalanx.numpy.creation import on_device
from phalanx.numpy.manipulation import moveaxis, roll
from phalanx.numpy.promotion import ArrayLike, as_array, convert, dims, inexact, shape_entries
from phalanx.numpy.ranges import arange
from phalanx.primitives.fft import MOST

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Lengths = Sequence[int | None] | None

# ---- all transforms -------------------------------------------------------------------------


def _transform(who: str, kind: str, a: Any, s: Lengths, axes: Any, norm: str | None) -> Array:
    """The transform over ``axes``, cut or filled with zeros to the lengths ``s``."""
    x = _accepted(who, kind, a)
    s = None if s is None else shape_entries(s)
    over = _axes(who, x, s, axes)
    if not over:
        return x
    lengths = _lengths(who, kind, x, s, over)
    last = tuple(range(-len(over), 0))
    x = moveaxis(x, over, last)
    for place, n in enumerate(lengths):
        half = kind == "IRFFT" and place == len(over) - 1
        x = resized(x, x.ndim - len(over) + place, n // 2 + 1 if half else n)
    out = _scaled(who, kind, _over_last(x, kind, lengths), norm, lengths)
    return moveaxis(out, last, over)


def _accepted(who: str, kind: str, a: Any) -> Array:
    x = inexact(who, a)
    if x.dtype.itemsize < 4:  # there are none of 16 bits or fewer
        x = convert(x, np.dtype("float32"))
    if kind != "RFFT":
        return x if dtypes.is_complex(x.dtype) else convert(x, dtypes.to_complex(x.dtype))
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"{who}: a real array is needed, got {x.aval}; take its .real, or use fft")
    return x


def _axes(who: str, x: Array, s: Lengths, axes: Any) -> tuple[int, ...]:
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    over = dims(who, tuple(axes), x)
    if s is not None and len(s) != len(over):
        raise ValueError(f"{who}: as many lengths as axes are needed, got {s} and {over}")
    return over


def _lengths(who: str, kind: str, x: Array, s: Lengths, over: tuple[int, ...]) -> tuple[int, ...]:
    own = [x.shape[d] for d in over]
    if kind == "IRFFT" and own[-1] != 0:
        own[-1] = 2 * (own[-1] - 1)
    requested = own if s is None else s
    if symbolic([n if g is None else g for n, g in zip(own, requested, strict=True)]):
        raise InconclusiveDimensionOperation(
            f"{who}: {x.aval} has a symbolic length along {over}, and transforms are written for "
            f"numbers: cut or fill it to one, {who}(x, n=1024) or s=(...), at {user_location()}"
        )
    lengths = tuple(
        n if g is None else operator.index(g) for n, g in zip(own, requested, strict=True)
    )
    asked = [n for n, g in zip(lengths, s or (), strict=False) if g is not None]
    if kind == "RFFT":  # even of nothing it has a frequency, of which nothing is known
        asked.append(lengths[-1])
    if any([n < 1 for n in asked]):
        raise ValueError(f"{who}: the lengths must be at least 1, got {lengths} of {x.aval}")
    return lengths


def resized(x: Array, dim: int, n: int) -> Array:
    """``x`` cut along ``dim`` to length ``n``, or filled up with zeros."""
    unknown = symbolic((x.shape[dim],))
    if not unknown and n <= x.shape[dim]:
        return ops.slice_dim(x, 0, n, dim)
    more = n if unknown else n - x.shape[dim]
    config = tuple((0, more if d == dim else 0, 0) for d in range(x.ndim))
    filled = ops.pad(x, dtypes.scalar(0, x.dtype), config=config)
    return ops.slice_dim(filled, 0, n, dim)


def _over_last(x: Array, kind: str, lengths: tuple[int, ...]) -> Array:
    """The transform over the last dimensions, by as many at once as there can be."""
    if len(lengths) <= MOST:
        return ops.fft(x, kind=kind, lengths=lengths)
    first, last = lengths[:-MOST], lengths[-MOST:]
    if kind != "IRFFT":
        x = ops.fft(x, kind=kind, lengths=last)
    inner = "IFFT" if kind in ("IFFT", "IRFFT") else "FFT"
    # the others come last for a moment
    at, end = tuple(range(x.ndim - len(lengths), x.ndim - MOST)), tuple(range(-len(first), 0))
    x = moveaxis(_over_last(moveaxis(x, at, end), inner, first), end, at)
    return ops.fft(x, kind=kind, lengths=last) if kind == "IRFFT" else x


def _scaled(who: str, kind: str, x: Array, norm: str | None, lengths: tuple[int, ...]) -> Array:
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"{who}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    if norm in (None, "backward") or 0 in lengths:
        return x
    factor = float(math.prod(lengths)) ** (0.5 if norm == "ortho" else 1.0)
    return x * (factor if kind in ("IFFT", "IRFFT") else 1 / factor)


def _swapped(norm: str | None) -> str | None:
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


# ---- over one axis --------------------------------------------------------------------------


@one_program
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along ``axis``: Σ a[j] exp(-2πi jk / n) over j.

    Args:
        a: an array, real or complex.
        n: its length along the axis, to which it is cut or filled with zeros.
        axis: the dimension along which it is transformed; negative ones count from the last.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Complex numbers, of length ``n`` along ``axis``.

    Raises:
        ValueError: n is less than 1, or there is no such norm.

    >>> print(jnp.fft.fft(jnp.array([1.0, 0.0, 0.0])))
    [1.+0.j 1.+0.j 1.+0.j]
    """
    return _transform("fft", "FFT", a, (n,), (axis,), norm)


@one_program
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``fft``: Σ a[k] exp(2πi jk / n) / n over k, along ``axis``.

    Args:
        a: an array, real or complex.
        n: its length along the axis, to which it is cut or filled with zeros.
        axis: the dimension along which it is transformed; negative ones count from the last.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Complex numbers, of length ``n`` along ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.fft.ifft(jnp.array([3.0, 0.0, 0.0])))
    [1.+0.j 1.+0.j 1.+0.j]
    """
    return _transform("ifft", "IFFT", a, (n,), (axis,), norm)


@one_program
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first n // 2 + 1 elements of ``fft`` of a real array; the others are their conjugates.

    Args:
        a: a real array.
        n: its length along the axis, to which it is cut or filled with zeros.
        axis: the dimension along which it is transformed; negative ones count from the last.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Complex numbers, of length n // 2 + 1 along ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.
        DtypeError: the array is complex.

    >>> print(jnp.fft.rfft(jnp.array([1.0, 0.0, 0.0])))
    [1.+0.j 1.+0.j]
    """
    return _transform("rfft", "RFFT", a, (n,), (axis,), norm)


@one_program
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``rfft``: real, of length ``n``, by default 2 (m - 1) for m elements.

    Args:
        a: an array, real or complex.
        n: the length of the result, which is taken from its first n // 2 + 1 elements; None: 2 (m -
            1) for m elements.
        axis: the dimension along which it is transformed; negative ones count from the last.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Real numbers, of length ``n`` along ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.fft.irfft(jnp.array([3.0, 0.0]), n=3))
    [1. 1. 1.]
    """
    return _transform("irfft", "IRFFT", a, (n,), (axis,), norm)


@one_program
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """``fft`` of what has a real result, given by its first n // 2 + 1 elements.

    Args:
        a: an array, real or complex.
        n: the length of the result, which is taken from its first n // 2 + 1 elements; None: 2 (m -
            1) for m elements.
        axis: the dimension along which it is transformed; negative ones count from the last.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Real numbers, of length ``n`` along ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.fft.hfft(jnp.array([1.0, 0.0]), n=3))
    [1. 1. 1.]
    """
    return _transform("hfft", "IRFFT", conj(a), (n,), (axis,), _swapped(norm))


@one_program
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``hfft``: the first n // 2 + 1 elements.

    Args:
        a: a real array.
        n: its length along the axis, to which it is cut or filled with zeros.
        axis: the dimension along which it is transformed; negative ones count from the last.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Complex numbers, of length n // 2 + 1 along ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.
        DtypeError: ``a`` is complex.

    >>> print(jnp.fft.ihfft(jnp.array([1.0, 1.0, 1.0])))
    [1.-0.j 0.-0.j]
    """
    return conj(_transform("ihfft", "RFFT", a, (n,), (axis,), _swapped(norm)))


# ---- over several axes ----------------------------------------------------------------------


@one_program
def fftn(a: ArrayLike, s: Lengths = None, axes: Any = None, norm: str | None = None) -> Array:
    """``fft`` along several axes, by default all of them.

    Args:
        a: an array.
        s: its lengths along the axes, to which it is cut or filled with zeros.
        axes: the axes; with ``s`` alone the last ones.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Complex numbers, of lengths ``s`` along ``axes``.

    >>> print(jnp.fft.fftn(jnp.ones((2, 2))).real)
    [[4. 0.]
     [0. 0.]]
    """
    return _transform("fftn", "FFT", a, s, axes, norm)


@one_program
def ifftn(a: ArrayLike, s: Lengths = None, axes: Any = None, norm: str | None = None) -> Array:
    """The inverse of ``fftn``.

    Args:
        a: an array.
        s: its lengths along the axes, to which it is cut or filled with zeros.
        axes: the axes; with ``s`` alone the last ones.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Complex numbers, of lengths ``s`` along ``axes``.

    >>> print(jnp.fft.ifftn(jnp.ones((2, 2))).real)
    [[1. 0.]
     [0. 0.]]
    """
    return _transform("ifftn", "IFFT", a, s, axes, norm)


@one_program
def rfftn(a: ArrayLike, s: Lengths = None, axes: Any = None, norm: str | None = None) -> Array:
    """``rfft`` along the last of several axes, ``fft`` along the others.

    Args:
        a: a real array.
        s: the lengths of the transform, for each of the axes; None for those that they have.
        axes: the axes that are transformed; None for all, or the last ones if ``s`` is given.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Complex numbers, of lengths ``s`` along ``axes``, but s // 2 + 1 along the last.

    Raises:
        DtypeError: ``a`` is complex.

    >>> print(jnp.fft.rfftn(jnp.ones((2, 3))).real)
    [[6. 0.]
     [0. 0.]]
    """
    return _transform("rfftn", "RFFT", a, s, axes, norm)


@one_program
def irfftn(a: ArrayLike, s: Lengths = None, axes: Any = None, norm: str | None = None) -> Array:
    """The inverse of ``rfftn``; ``s`` are the lengths of the result.

    Args:
        a: an array, real or complex.
        s: the lengths of the result along axes; None: those of ``a``, of the last axis 2 (m - 1).
        axes: the axes that are transformed; None for all, or the last ones if ``s`` is given.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Real numbers, of lengths ``s`` along ``axes``.

    >>> print(jnp.fft.irfftn(jnp.array([[6.0, 0.0], [0.0, 0.0]]), s=(2, 3)))
    [[1. 1. 1.]
     [1. 1. 1.]]
    """
    return _transform("irfftn", "IRFFT", a, s, axes, norm)


@one_program
def fft2(a: ArrayLike, s: Lengths = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """``fftn`` along two axes.

    Args:
        a: an array.
        s: its lengths along the axes, to which it is cut or filled with zeros.
        axes: the axes; with ``s`` alone the last ones.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Complex numbers, of lengths ``s`` along ``axes``.

    >>> print(jnp.fft.fft2(jnp.ones((2, 2))).real)
    [[4. 0.]
     [0. 0.]]
    """
    return _transform("fft2", "FFT", a, s, axes, norm)


@one_program
def ifft2(a: ArrayLike, s: Lengths = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """``ifftn`` along two axes.

    Args:
        a: an array.
        s: its lengths along the axes, to which it is cut or filled with zeros.
        axes: the axes; with ``s`` alone the last ones.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Complex numbers, of lengths ``s`` along ``axes``.

    >>> print(jnp.fft.ifft2(jnp.ones((2, 2))).real)
    [[1. 0.]
     [0. 0.]]
    """
    return _transform("ifft2", "IFFT", a, s, axes, norm)


@one_program
def rfft2(a: ArrayLike, s: Lengths = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """``rfftn`` along two axes.

    Args:
        a: a real array.
        s: the lengths of the transform, for each of the axes; None for those that they have.
        axes: the axes that are transformed; None for all, or the last ones if ``s`` is given.
        norm: where the factor 1 / n stands, see ``phalanx.numpy.fft``.

    Returns:
        Complex numbers, of lengths ``s`` along ``axes``, but s // 2 + 1 along the last.

    Raises:
        DtypeError: ``a`` is complex.

    >>> print(jnp.fft.rfft2(jnp.ones((2, 3))).real)
    [[6. 0.]
     [0. 0.]]
    """
    return _transform("rfft2", "RFFT", a, s, axes, norm)


@one_program
def irfft2(a: ArrayLike, s: Lengths = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """``irfftn`` along two axes.

    Args:
        a: an array; its axes that are not transformed are a batch.
        s: the lengths of the result along axes; None: those of ``a``, of the last axis 2 (m - 1).
        axes: the axes that are transformed; None for all, or the last ones if ``s`` is given.
        norm: where the factor 1/n stands: "backward", in the inverse; "forward"; or "ortho", as
            1/√n in both.

    Returns:
        Real numbers, of lengths ``s`` along ``axes``.

    >>> print(jnp.fft.irfft2(jnp.array([[4.0, 0.0], [0.0, 0.0]])))
    [[1. 1.]
     [1. 1.]]
    """
    return _transform("irfft2", "IRFFT", a, s, axes, norm)


# ---- frequencies ----------------------------------------------------------------------------


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of the elements of ``fft``, in cycles per unit: k / (n d), those from n / 2
    on as negative ones.

    Args:
        n: the length.
        d: the distance between samples.
        dtype: of the result; to integers they are rounded towards 0.
        device: where the result is to lie.

    Returns:
        float32 [n], unless another dtype is given.

    >>> print(jnp.fft.fftfreq(4))
    [ 0.    0.25 -0.5  -0.25]
    """
    counts = _counts(n, n)
    counts = counts - n * (counts >= (n + 1) // 2)
    return _frequencies("fftfreq", counts, n, d, dtype, device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of the elements of ``rfft``, in cycles per unit: k / (n d).

    Args:
        n: the number of samples.
        d: the distance of two samples.
        dtype: the dtype of the result; None for float32, or float64 under ``enable_x64``.
        device: a device or a sharding: where the result lies; None for the default device.

    Returns:
        float32 [n // 2 + 1], unless another dtype is given.

    >>> print(jnp.fft.rfftfreq(4))
    [0.   0.25 0.5 ]
    """
    return _frequencies("rfftfreq", _counts(n, n // 2 + 1), n, d, dtype, device)


def _counts(n: int, of: int) -> Any:
    """The first ``of`` numbers from 0 up, for a transform of length ``n``."""
    return arange(of) if isinstance(n, Length) else np.arange(operator.index(of))


def _frequencies(who: str, counts: Any, n: int, d: Any, dtype: Any, device: Any) -> Array:
    kind = dtypes.default_float() if dtype is None else dtypes.requested(dtype)
    exact = kind if dtypes.is_inexact(kind) else dtypes.default_float()
    found = as_array(who, counts.astype(exact)) / (n * d)
    return on_device(found.astype(kind), device)


@one_program
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """``x`` rolled by half of its length along ``axes``, all by default: frequency 0 is in the
    middle.

    Args:
        x: an array, or a number.
        axes: the axes that are shifted; None for all.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> print(jnp.fft.fftshift(jnp.arange(4)))
    [2 3 0 1]
    """
    return _rolled("fftshift", x, axes, 1)


@one_program
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of ``fftshift``.

    Args:
        x: an array, or a number.
        axes: the axes that are shifted; None for all.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> print(jnp.fft.ifftshift(jnp.arange(5)))
    [2 3 4 0 1]
    """
    return _rolled("ifftshift", x, axes, -1)


def _rolled(who: str, x: Any, axes: Any, sign: int) -> Array:
    x = as_array(who, x)
    over = dims(who, axes, x)
    return roll(x, tuple(sign * (x.shape[d] // 2) for d in over), over)


bound(sys.modules[__name__])
