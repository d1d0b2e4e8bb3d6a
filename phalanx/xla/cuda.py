"""What the CUDA plugin needs besides its library: a driver, and libraries of NVIDIA.

Its own package does the same when it is imported, and needs the package jax for it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from phalanx.base.errors import DeviceError
from phalanx.xla.gpu_calls import extension
from phalanx.xla.plugins import Plugin

_VERSIONS: Final = (12, 13)  # of CUDA, for which there are plugins

# the libraries in the order in which they need each other; a wheel for each of CUDA 12, one of 13
_LIBRARIES: Final = (
    ("cuda_runtime", "libcudart.so.*"),
    ("cuda_nvrtc", "libnvrtc.so.*"),
    ("cublas", "libcublas.so.*"),
    ("cublas", "libcublasLt.so.*"),
    ("nccl", "libnccl.so.*"),
    ("cuda_cupti", "libcupti.so.*"),
    ("nvjitlink", "libnvJitLink.so.*"),
    ("cusparse", "libcusparse.so.*"),
    ("cusolver", "libcusolver.so.*"),
    ("cufft", "libcufft.so.*"),
    ("nvshmem", "libnvshmem_host.so.*"),
    ("cudnn", "libcudnn.so.*"),
)

# of a library: the oldest version that will do, or by how much of its number it may be older than
# that for which the plugin was built
_OLDEST: Final = {"cuda_runtime": 12010, "cupti": 18, "cublas": 120100, "cusparse": 12100}
_PATCHES: Final = {"cudnn": 100, "cufft": 100}


def fitting(plugins: Sequence[Plugin]) -> Plugin:
    """Of plugins for several versions of CUDA the newest that the driver runs.

    Raises:
        DeviceError: there is none; the message says what to install.
    """
    if len(plugins) == 1 and not plugins[0].version:
        return plugins[0]
    driver = driver_version()
    fit = [p for p in plugins if p.version <= driver // 1000]
    if not fit:
        built = " and ".join(str(p.version) for p in plugins)
        major = driver // 1000
        other = f"pip install 'phalanx[cuda{major}]', or " if major in _VERSIONS else ""
        raise DeviceError(
            f"the driver of the GPU runs CUDA up to {_shown(driver)}, and the plugin that is "
            f"installed is for CUDA {built}: {other}install a newer driver"
        )
    return max(fit, key=lambda p: p.version)


def driver_version() -> int:
    """The newest version of CUDA that the driver runs: 12080 is 12.8.

    Raises:
        DeviceError: there is no driver, or it does not answer.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as e:
        raise DeviceError(
            f"the driver's library cannot be loaded ({e}); install the driver of the GPU, or start "
            "the container with access to it (docker run --gpus all)"
        ) from None
    version = ctypes.c_int()
    status = driver.cuDriverGetVersion(ctypes.byref(version))
    if status:
        raise DeviceError(f"the driver of the GPU does not tell its version: error {status}")
    return version.value


def _shown(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def prepare(plugin: Plugin) -> None:
    """Load what the plugin needs of NVIDIA's.

    Raises:
        DeviceError: it is older than needed, or cannot be loaded.
    """
    _preload(plugin)
    versions = extension(plugin, "_versions")
    if versions is not None:
        check_versions(versions)


def _preload(plugin: Plugin) -> None:
    """Load NVIDIA's libraries from their packages, wherever these lie: the plugin looks beside it
    alone, and not for all. What has no package is left to the system.
    """
    for package, pattern in _LIBRARIES:
        for name in (f"cu{plugin.version}", package):
            path = next((p for f in _of_nvidia(name) for p in f.glob(f"lib/{pattern}")), None)
            if path is not None:
                ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
                break


def _of_nvidia(package: str) -> Iterator[Path]:
    for place in sys.path:
        folder = Path(place or ".") / "nvidia" / package
        if folder.is_dir():
            yield folder


@functools.cache
def data_directory() -> str | None:
    """Where the compiler finds NVIDIA's assembler and its library of functions, if it is told."""
    named = os.environ.get("CUDA_ROOT")
    if named:
        return named
    folders = [*_of_nvidia("cu13"), *_of_nvidia("cuda_nvcc")]
    return next((str(f) for f in folders if (f / "bin" / "ptxas").exists()), None)


def check_versions(versions: Any) -> None:
    """Refuse libraries of NVIDIA that are older than what the plugin needs.

    Args:
        versions: the plugin's module that tells them.

    Raises:
        DeviceError: one is too old, or does not load.
    """
    wrong: list[str] = []
    for name in (*_OLDEST, *_PATCHES):
        needed = getattr(versions, f"{name}_build_version")()
        needed = _OLDEST.get(name, needed - needed % _PATCHES.get(name, 1))
        try:
            there = getattr(versions, f"{name}_get_version")()
        except Exception as e:  # whatever the loader says
            wrong.append(f"{name} cannot be loaded ({e})")
        else:
            if there < needed:
                wrong.append(f"{name} is of version {there}, and at least {needed} is needed")
    if wrong:
        raise DeviceError(
            f"libraries of NVIDIA do not fit: {'; '.join(wrong)}. An LD_LIBRARY_PATH that names "
            "other ones comes first: unset it; pip install -U 'phalanx[cuda12]' or [cuda13]"
        )
