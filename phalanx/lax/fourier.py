"""Fourier transforms over the last dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx import primitives as ops
from phalanx.base.choices import IntChoice
from phalanx.core.types import Array
from phalanx.lax.operands import accept, integers


class FftType(IntChoice):
    """Which Fourier transform: of complex numbers, its inverse, and both for real numbers.

    >>> lax.fft(jnp.ones(4), lax.FftType.RFFT, (4,)).shape
    (3,)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The Fourier transform Σ x[j] exp(-2πi jk / n) over the last dimensions, one per length.

    Args:
        x: an array; complex, and real for RFFT.
        fft_type: an ``FftType`` or its name. The inverse has a factor of 1 / n. RFFT gives
            n // 2 + 1 elements of the last dimension, since the others are their conjugates; IRFFT
            takes as many.
        fft_lengths: the lengths n, from one to three.

    Returns:
        Complex numbers; real ones of the inverse of a real transform.

    Raises:
        TypeError: the dtype does not fit the type of the transform.
        ValueError: there is no such type, or the lengths do not fit the shape.

    >>> print(lax.fft(np.ones(4, np.complex64), "fft", (4,)))
    [4.+0.j 0.+0.j 0.+0.j 0.+0.j]
    """
    name = fft_type.upper() if isinstance(fft_type, str) else getattr(fft_type, "name", None)
    if name not in FftType.__members__:
        raise ValueError(
            f"lax.fft: fft_type must be an FftType or one of their names, got {fft_type!r}"
        )
    lengths = integers("fft", "fft_lengths", fft_lengths)
    return ops.fft(accept("fft", x), kind=name, lengths=lengths)
