"""SciPy for programs that are transformed, compiled and mapped over devices."""

# ruff: noqa: F401  (what stands here is what the package offers)

from typing import TYPE_CHECKING

from phalanx.base.lazily import later as _later

if TYPE_CHECKING:
    from phalanx.scipy import (
        fft,
        integrate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        special,
        stats,
    )
else:
    __getattr__, __dir__ = _later(
        __name__,
        "fft",
        "integrate",
        "linalg",
        "ndimage",
        "optimize",
        "signal",
        "sparse",
        "special",
        "stats",
    )
