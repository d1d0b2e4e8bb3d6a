"""Signals: convolution, correlation, spectra, trends."""

import sys

from phalanx.base.boundary import bound
from phalanx.scipy.signal.convolution import (
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    fftconvolve,
)
from phalanx.scipy.signal.spectra import csd, detrend, istft, stft, welch

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "istft",
    "stft",
    "welch",
]

bound(sys.modules[__name__])
