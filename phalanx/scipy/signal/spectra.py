"""Fourier transforms of the segments of a signal, and back; spectral densities; trends.

The conventions are those of ``scipy.signal``: windows are periodic, and a short-time transform is
divided by the sum of its window.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx.base import dtypes
from phalanx.base.errors import ArgumentError, ShapeError
from phalanx.base.kinds import is_tuple
from phalanx.base.lengths import integer
from phalanx.core.types import Array
from phalanx.numpy import fft
from phalanx.numpy.promotion import ArrayLike, dim, inexact, promote_inexact

_WINDOWS = {
    "hann": jnp.hanning,
    "hanning": jnp.hanning,
    "hamming": jnp.hamming,
    "blackman": jnp.blackman,
    "bartlett": jnp.bartlett,
}


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The Fourier transforms of overlapping segments of a signal.

    Args:
        x: the signal, sampled at equal steps of time along ``axis``; other dimensions are a batch.
        fs: the sampling rate: samples per unit of time, of which frequencies are the inverse. With
            samples per second, frequencies are in Hz.
        window: "hann", "hamming", "blackman", "bartlett", "boxcar", a pair ("kaiser", beta), or
            the weights of a segment.
        nperseg: the length of a segment, in samples.
        noverlap: how many elements neighbours share; default half of them.
        nfft: the length of the transforms, with zeros behind a segment; default ``nperseg``.
        detrend: what is subtracted from each segment: "constant" (its mean), "linear" (the line
            that fits best), a function that does it, or False.
        return_onesided: whether negative frequencies of real signals are left out.
        boundary: what the signal is continued with at both ends: "zeros", "even", "odd",
            "constant", or None.
        padded: whether zeros at the end complete the last segment.
        axis: the dimension of time.

    Returns:
        The frequencies, the times, and the transforms, of which times are the last dimension; of
        a signal without elements, nothing.

    Raises:
        ValueError: an option is unknown, or lengths do not go together.

    >>> from phalanx.scipy import signal
    >>> frequencies, times, spectra = signal.stft(jnp.ones(64), nperseg=16)
    >>> spectra.shape
    (9, 9)
    """
    array = inexact("stft", x)
    if not array.size:
        nothing = jnp.zeros(array.shape, dtypes.to_real(array.dtype))
        return nothing, nothing, nothing.astype(dtypes.to_complex(array.dtype))
    return _transforms(
        "stft", array, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis,
        boundary, padded, "stft",
    )  # fmt: skip


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectral density of two signals by the method of Welch: the mean over segments.

    Args:
        x: the signal, sampled at equal steps of time along ``axis``; other dimensions are a batch.
        y: another one; the shorter one is continued with zeros. None: the same.
        fs: the sampling rate: samples per unit of time, of which frequencies are the inverse. With
            samples per second, frequencies are in Hz.
        window: the weights of a segment, as a vector of length ``nperseg`` or by name, such as
            "hann"; ``stft`` lists the names.
        nperseg: the length of a segment, in samples; by default 256, or that of a shorter signal.
        noverlap: how many samples neighbouring segments share; by default half of ``nperseg``.
        nfft: the length of each Fourier transform; shorter segments are padded with zeros. By
            default ``nperseg``.
        detrend: what is subtracted from each segment: "constant" (its mean), "linear" (the line
            that fits best), a function that does it, or False.
        return_onesided: whether negative frequencies, which mirror the positive ones in real
            signals, are left out.
        scaling: "density", a power per frequency (V²/Hz of a signal in V), or "spectrum", a power
            at each frequency (V²).
        axis: the dimension of time.
        average: how segments are averaged: "mean", or "median", corrected for its bias, which
            outliers move less.

    Returns:
        The frequencies, and the density at each; of signals without elements, nothing.

    Raises:
        AxisError: there is no dimension ``axis``.
        ArgumentError: there is no such scaling or average.

    >>> from phalanx.scipy import signal
    >>> frequencies, density = signal.csd(jnp.arange(64.0), jnp.arange(64.0) ** 2, nperseg=16)
    >>> density.shape
    (9,)
    """
    if scaling not in ("density", "spectrum"):
        raise ArgumentError(f"csd: scaling must be 'density' or 'spectrum', got {scaling!r}")
    if average not in ("mean", "median"):
        raise ArgumentError(f"csd: average must be 'mean' or 'median', got {average!r}")
    a = inexact("csd", x)
    b = None
    if y is not None:
        a, b = promote_inexact("csd", [x, y])
        length = max(a.shape[dim("csd", axis, a)], b.shape[dim("csd", axis, b)])
        a, b = _extended(a, axis, length), _extended(b, axis, length)
    if not a.size:
        nothing = jnp.zeros(a.shape, dtypes.to_real(a.dtype))
        return nothing, nothing if y is None else nothing.astype(dtypes.to_complex(a.dtype))
    frequencies, _, found = _transforms(
        "csd", a, b, fs, window, nperseg or 256, noverlap, nfft, detrend, return_onesided, axis,
        None, False, scaling,
    )  # fmt: skip
    if average == "mean":
        density = found.mean(-1)
    else:
        middle = jnp.median(found.real, -1) + 1j * jnp.median(found.imag, -1)
        density = middle / _bias_of_medians(found.shape[-1])
    return frequencies, density.real if y is None else density


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal by the method of Welch.

    The signal is cut into overlapping segments; the squared absolute values of their Fourier
    transforms are averaged. That is ``csd`` of the signal with itself.

    Args:
        x: the signal, sampled at equal steps of time along ``axis``; other dimensions are a batch.
        fs: the sampling rate: samples per unit of time, of which frequencies are the inverse. With
            samples per second, frequencies are in Hz.
        window: the weights of a segment, as a vector of length ``nperseg`` or by name, such as
            "hann"; ``stft`` lists the names.
        nperseg: the length of a segment, in samples; by default 256, or that of a shorter signal.
        noverlap: how many samples neighbouring segments share; by default half of ``nperseg``.
        nfft: the length of each Fourier transform; shorter segments are padded with zeros. By
            default ``nperseg``.
        detrend: what is subtracted from each segment: "constant" (its mean), "linear" (the line
            that fits best), a function that does it, or False.
        return_onesided: whether negative frequencies, which mirror the positive ones in real
            signals, are left out.
        scaling: "density", a power per frequency (V²/Hz of a signal in V), or "spectrum", a power
            at each frequency (V²).
        axis: the dimension of time.
        average: how segments are averaged: "mean", or "median", corrected for its bias, which
            outliers move less.

    Returns:
        The frequencies [k], and the spectral density at each: an array with k elements along
        ``axis``, real, in place of the samples.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> from phalanx.scipy import signal
    >>> frequencies, density = signal.welch(jnp.arange(64.0), nperseg=16)
    >>> density.dtype.name
    'float32'
    """
    return csd(
        x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
        average,
    )  # fmt: skip


def _extended(x: Any, axis: int, length: int) -> Any:
    d = dim("csd", axis, x)
    widths = [(0, 0)] * x.ndim
    widths[d] = (0, length - x.shape[d])
    return jnp.pad(x, widths)


def _bias_of_medians(n: int) -> float:
    """The median of n exponential numbers over their mean; Allen et al. 2012, appendix B."""
    even = 2 * np.arange(1, (n - 1) // 2 + 1)
    return float(1 + np.sum(1 / (even + 1) - 1 / even))


def _weights(who: str, window: Any, length: int, dtype: np.dtype) -> Any:
    """The weights of a segment: a window is periodic, one longer and without its last element."""
    if is_tuple(window) and len(window) == 2 and window[0] == "kaiser":
        return jnp.kaiser(length + 1, window[1])[:-1].astype(dtype)
    if isinstance(window, str):
        if window in ("boxcar", "ones", "rectangular"):
            return jnp.ones(length, dtype)
        if window not in _WINDOWS:
            raise ArgumentError(
                f"{who}: window must be one of {[*_WINDOWS]}, 'boxcar', a pair ('kaiser', beta) or "
                f"an array of weights, got {window!r}"
            )
        periodic = jnp.ones(1) if length == 1 else _WINDOWS[window](length + 1)[:-1]
        return periodic.astype(dtype)
    weights = jnp.asarray(window)
    if weights.shape != (length,):
        raise ShapeError(f"{who}: a window of {length} weights is needed, got {weights.aval}")
    return weights.astype(dtype)


def _transforms(
    who: str, x: Any, y: Any, fs: Any, window: Any, nperseg: int, noverlap: int | None,
    nfft: int | None, remove: Any, onesided: bool, axis: int, boundary: str | None, padded: bool,
    scaling: str,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Frequencies, times, and of each segment the transform, or its product with that of y."""
    d = dim(who, axis, x)
    if not isinstance(window, (str, tuple)):
        nperseg = len(window)
    length = min(integer(who, "nperseg", nperseg), x.shape[d])
    shared = length // 2 if noverlap is None else integer(who, "noverlap", noverlap)
    size = length if nfft is None else integer(who, "nfft", nfft)
    if length < 1 or shared >= length or size < length:
        raise ShapeError(
            f"{who}: segments of {length} elements of {x.aval} cannot share {shared} and have "
            f"transforms of length {size}"
        )
    real = dtypes.to_real(x.dtype)
    weights = _weights(who, window, length, real)
    lines = [jnp.moveaxis(v, d, -1) for v in (x, y) if v is not None]
    lines = [_continued(who, v, length // 2, boundary) for v in lines]
    step = length - shared
    if padded:
        missing = -(lines[0].shape[-1] - length) % step % length
        lines = [jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, missing)]) for v in lines]
    onesided = onesided and not dtypes.is_complex(x.dtype)
    spectra = [_of_segments(who, v, weights, step, size, remove, onesided) for v in lines]
    density = scaling == "density"
    scale = 1 / (fs * (weights * weights).sum() if density else weights.sum() ** 2)
    if scaling == "stft":
        result = spectra[0] * jnp.sqrt(scale)
    else:
        result = jnp.conj(spectra[0]) * spectra[-1] * scale
        if onesided:
            inner = slice(1, -1 if size % 2 == 0 else None)
            result = result.at[..., inner].multiply(2)
    frequencies = (fft.rfftfreq if onesided else fft.fftfreq)(size) * fs
    first = 0 if boundary is not None else length / 2
    times = (jnp.arange(spectra[0].shape[-2]) * step + first) / fs
    place = d if axis >= 0 else axis - 1
    return frequencies.astype(real), times.astype(real), jnp.moveaxis(result, -1, place)


def _continued(who: str, x: Any, count: int, boundary: str | None) -> Any:
    """``x`` with ``count`` elements more at both ends of its last dimension."""
    modes = {"zeros": "constant", "constant": "edge", "even": "reflect", "odd": "reflect"}
    if boundary is None:
        return x
    if boundary not in modes:
        raise ArgumentError(f"{who}: boundary must be None or one of {[*modes]}, got {boundary!r}")
    widths = [(0, 0)] * (x.ndim - 1) + [(count, count)]
    options = {"reflect_type": "odd"} if boundary == "odd" else {}
    return jnp.pad(x, widths, mode=modes[boundary], **options)


def _of_segments(
    who: str, x: Any, weights: Any, step: int, size: int, remove: Any, onesided: bool
) -> Any:
    """[..., segment, frequency]"""
    length: int = weights.shape[0]
    last: int = x.shape[-1] - length
    starts = np.arange(0, last + 1, step)
    segments = x[..., starts[:, None] + np.arange(length)]
    if callable(remove):
        segments = remove(segments)
    elif remove:
        segments = detrend(segments, type=remove)
    weighted = segments * weights
    return fft.rfft(weighted, size) if onesided else fft.fft(weighted, size)


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal of which ``stft`` made these transforms; segments are added where they overlap.

    Args:
        Zxx: the transforms, complex, as ``stft`` returns them.
        fs: the sampling rate: samples per unit of time, of which frequencies are the inverse. With
            samples per second, frequencies are in Hz.
        window: as it was for ``stft``.
        nperseg: the length of a segment; default what the number of frequencies tells.
        noverlap: how many elements neighbours share; default half of them.
        nfft: the length of the transforms.
        input_onesided: whether there are no negative frequencies.
        boundary: whether the signal was continued at both ends.
        time_axis: the dimension of the segments.
        freq_axis: the dimension of the frequencies.

    Returns:
        The times, and the signal.

    Raises:
        ShapeError: there are fewer than 2 dimensions, or the lengths of segments, overlaps and
            transforms do not fit.

    >>> from phalanx.scipy import signal
    >>> _, _, spectra = signal.stft(jnp.arange(32.0), nperseg=8)
    >>> times, x = signal.istft(spectra, nperseg=8)
    >>> bool(jnp.allclose(x, jnp.arange(32.0), atol=1e-4))
    True
    """
    z = inexact("istft", Zxx)
    if z.ndim < 2:
        raise ShapeError(f"istft: segments and frequencies are needed, got {z.aval}")
    rows, columns = dim("istft", freq_axis, z), dim("istft", time_axis, z)
    if rows == columns:
        raise ShapeError("istft: time_axis and freq_axis must differ")
    usual = 2 * (z.shape[rows] - 1) if input_onesided else z.shape[rows]
    length = usual if nperseg is None else integer("istft", "nperseg", nperseg)
    if nfft is None:
        size = length if input_onesided and length == usual + 1 else usual
    else:
        size = integer("istft", "nfft", nfft)
    shared = length // 2 if noverlap is None else integer("istft", "noverlap", noverlap)
    if length < 1 or shared >= length or size < length:
        raise ShapeError(
            f"istft: segments of {length} elements cannot share {shared} and have transforms of "
            f"length {size}"
        )
    step = length - shared
    segments = jnp.moveaxis(z, (columns, rows), (-2, -1))
    parts = (fft.irfft if input_onesided else fft.ifft)(segments, size)[..., :length]
    weights = _weights("istft", window, length, dtypes.to_real(z.dtype))
    count = parts.shape[-2]
    places = np.arange(count)[:, None] * step + np.arange(length)
    total = length + (count - 1) * step
    x = jnp.zeros((*parts.shape[:-2], total), parts.dtype)
    x = x.at[..., places].add(parts * weights * weights.sum())
    norm = jnp.zeros(total, weights.dtype).at[places].add(weights * weights)
    x = x / jnp.where(norm > 1e-10, norm, 1)
    if boundary:
        x = x[..., length // 2 : total - length // 2]
    times = jnp.arange(x.shape[-1], dtype=weights.dtype) / fs
    return times, jnp.moveaxis(x, -1, columns - (rows < columns))


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """``data`` without its mean, or without the line that is nearest to it.

    Args:
        data: the signal, sampled along ``axis``; other dimensions are a batch.
        axis: the dimension of time.
        type: "linear" or "constant".
        bp: where one line ends and the next one begins.
        overwrite_data: must be None.

    Returns:
        An array of the shape of ``data``.

    Raises:
        AxisError: there is no dimension ``axis``.
        ArgumentError: there is no such type, a breakpoint is out of bounds, or ``overwrite_data``
            is given.

    >>> from phalanx.scipy import signal
    >>> print(signal.detrend(jnp.array([1.0, 2.0, 3.0]), type="constant"))
    [-1.  0.  1.]
    """
    if overwrite_data is not None:
        raise ArgumentError("detrend: arrays are immutable, so overwrite_data must be None")
    if type not in ("linear", "l", "constant", "c"):
        raise ArgumentError(f"detrend: type must be 'linear' or 'constant', got {type!r}")
    x = inexact("detrend", data)
    d = dim("detrend", axis, x)
    line = jnp.moveaxis(x, d, -1)
    n = line.shape[-1]
    if type[0] == "c":
        return jnp.moveaxis(line - line.mean(-1, keepdims=True), -1, d)
    ends = sorted({0, n, *(int(b) for b in np.atleast_1d(np.asarray(bp)))})
    if ends[0] < 0 or ends[-1] > n:
        raise ArgumentError(f"detrend: breakpoints must be from 0 to {n}, got {bp}")
    parts = [_straightened(line[..., a:b]) for a, b in itertools.pairwise(ends)]
    return jnp.moveaxis(jnp.concatenate(parts, -1) if parts else line, -1, d)


def _straightened(x: Any) -> Any:
    """``x`` without the line that is nearest to it along the last dimension."""
    n: int = x.shape[-1]
    along = np.arange(n) - (n - 1) / 2
    power = float(np.sum(along * along)) or 1.0
    t = jnp.asarray(along / math.sqrt(power), dtypes.to_real(x.dtype))
    slope = (x * t).sum(-1, keepdims=True)
    return x - x.mean(-1, keepdims=True) - slope * t
