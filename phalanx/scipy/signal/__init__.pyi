"""The names of ``phalanx.scipy.signal``, each with the module that has it."""

from phalanx.scipy.signal.convolution import (
    convolve as convolve,
    convolve2d as convolve2d,
    correlate as correlate,
    correlate2d as correlate2d,
    fftconvolve as fftconvolve,
)
from phalanx.scipy.signal.spectra import (
    csd as csd,
    detrend as detrend,
    istft as istft,
    stft as stft,
    welch as welch,
)
