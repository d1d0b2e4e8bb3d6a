"""SciPy for programs that are transformed, compiled and mapped over devices."""

# ruff: noqa: F401  (what stands here is what the package offers)

from typing import TYPE_CHECKING

from phalanx.base.lazily import later as _later

if TYPE_CHECKING:
    from phalanx.scipy import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )
else:
    __getattr__, __dir__ = _later(
        __name__,
        "cluster",
        "fft",
        "integrate",
        "interpolate",
        "linalg",
        "ndimage",
        "optimize",
        "signal",
        "sparse",
        "spatial",
        "special",
        "stats",
    )
