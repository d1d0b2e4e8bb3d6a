"""The names of ``phalanx.scipy``, each with the module that has it."""

from phalanx.scipy import (
    cluster as cluster,
    fft as fft,
    integrate as integrate,
    interpolate as interpolate,
    linalg as linalg,
    ndimage as ndimage,
    optimize as optimize,
    signal as signal,
    sparse as sparse,
    spatial as spatial,
    special as special,
    stats as stats,
)
