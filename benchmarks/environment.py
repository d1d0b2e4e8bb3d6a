"""What the processes of a benchmark see."""

from __future__ import annotations

import os
import time


def environment(devices: int, theirs: int, cache: str = "") -> dict[str, str]:
    """CPU devices alone, ``devices`` of them for Phalanx and ``theirs`` for jax.

    ``cache`` is the directory for what Phalanx compiles, or nothing; jax has none by default. Both
    keep the bytecode of their modules, whatever is said here.
    """
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return inherited | {
        "PHALANX_PLATFORMS": "cpu",
        "PHALANX_NUM_CPU_DEVICES": str(devices),
        "PHALANX_CACHE_DIR": cache,
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": str(theirs),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "BENCHMARK_STARTED": str(time.time()),
    }
