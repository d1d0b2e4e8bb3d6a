"""What the CUDA plugin needs besides its library: a driver, and libraries of NVIDIA.

Its own package does the same when it is imported, and needs the package jax for it.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from phalanx.base.errors import DeviceError
from phalanx.base.source import warn_user
from phalanx.xla.gpu_calls import extension
from phalanx.xla.plugins import Plugin

_DRIVERS: Final = {12: 525, 13: 580}  # the oldest for each version of CUDA that has a plugin
_CAPABILITIES: Final = {12: 50, 13: 75}  # the least of GPUs, as NVIDIA counts: 75 is 7.5

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

_OF_COMPILERS: Final = {12: ("cuda_nvcc",), 13: ("cu13",)}  # the packages that bring them

# as the plugin calls a library: as NVIDIA does, and what its version is divided by to be read
_NAMES: Final = {
    "cuda_runtime": ("CUDA", 1000, 10),
    "cudnn": ("cuDNN", 10000, 100),
    "cublas": ("cuBLAS", 10000, 100),
    "cusparse": ("cuSPARSE", 1000, 100),
    "cufft": ("cuFFT", 1000, 100),
    "cupti": ("CUPTI", 1, 1),
}
# of a library: the oldest version that will do, or by how much of its number it may be older than
# that for which the plugin was built
_OLDEST: Final = {"cuda_runtime": 12010, "cupti": 18, "cublas": 120100, "cusparse": 12100}
_PATCHES: Final = {"cudnn": 100, "cufft": 100}
_UNCHECKED: Final = "JAX_SKIP_CUDA_CONSTRAINTS_CHECK"

# what helps where the driver does not start, by the number of its error
_REMEDIES: Final = {
    802: "where an NVSwitch joins the GPUs, nvidia-fabricmanager has to run",
    803: "the driver was renewed while it ran, so restart the machine; or a container has the "
    "library of another driver",
    804: "an image brings a library of the driver (cuda-compat) that this GPU does not take: take "
    "its folder out of LD_LIBRARY_PATH",
    999: "its modules may not be loaded: nvidia-modprobe -u -c 0, or restart the machine",
}


def fitting(plugins: Sequence[Plugin]) -> Plugin:
    """The newest of ``plugins``, for several versions of CUDA, that the driver and a GPU run.

    Raises:
        DeviceError: there is none; the message says what to install.
    """
    if len(plugins) == 1 and not plugins[0].version:
        return plugins[0]
    driver = driver_version()
    fit = [p for p in plugins if p.version <= driver // 1000]
    if not fit:
        raise _too_new(plugins, driver)
    best = max(capabilities(), default=0)
    run = [p for p in fit if _CAPABILITIES.get(p.version, 0) <= best]
    if not run:
        version = fit[0].version
        older = next((v for v, least in _CAPABILITIES.items() if least <= best), None)
        remedy = f": pip install 'phalanx[cuda{older}]'" if older else ""
        raise DeviceError(
            f"CUDA {version}, for which the plugin is, needs a GPU of compute capability "
            f"{_CAPABILITIES[version] / 10} or more, and the newest here has {best / 10}{remedy}"
        )
    return max(run, key=lambda p: p.version)


def _too_new(plugins: Sequence[Plugin], driver: int) -> DeviceError:
    """The exception for plugins that the driver does not run."""
    built = " and ".join(str(p.version) for p in plugins)
    major = driver // 1000
    other = f"pip install 'phalanx[cuda{major}]', or " if major in _DRIVERS else ""
    needed = f", from {_DRIVERS[first]} up" if (first := plugins[0].version) in _DRIVERS else ""
    return DeviceError(
        f"the driver of the GPU runs CUDA up to {shown('cuda_runtime', driver)}, and the plugin "
        f"that is installed is for CUDA {built}: {other}install a newer driver{needed}"
    )


def driver_version() -> int:
    """The newest version of CUDA that the driver runs: 12080 is 12.8.

    Raises:
        DeviceError: there is no driver, or it does not answer.
    """
    driver, version = _driver(), ctypes.c_int()
    status = driver.cuDriverGetVersion(ctypes.byref(version))
    if status:
        raise DeviceError(f"the driver of the GPU does not tell its version: error {status}")
    return version.value


def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as e:
        raise DeviceError(
            f"the driver's library cannot be loaded ({e}); install the driver of the GPU, or start "
            "the container with access to it (docker run --gpus all)"
        ) from None


def capabilities() -> list[int]:
    """The compute capability of each GPU that the driver lets this process use, 90 for 9.0.

    Raises:
        DeviceError: the driver does not start, or has none; the message says why.
    """
    driver, count = _driver(), ctypes.c_int()
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status:
        raise _does_not_start(driver, status)
    return [
        _attribute(driver, _MAJOR, n) * 10 + _attribute(driver, _MINOR, n)
        for n in range(count.value)
    ]


_MAJOR, _MINOR = 75, 76  # attributes of devices, as CUDA numbers them


def _attribute(driver: Any, attribute: int, number: int) -> int:
    value, device = ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), number)
    driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
    return value.value


def _does_not_start(driver: Any, status: int) -> DeviceError:
    words = [ctypes.c_char_p(), ctypes.c_char_p()]
    for tell, word in zip((driver.cuGetErrorName, driver.cuGetErrorString), words, strict=True):
        tell(status, ctypes.byref(word))
    reason = ", ".join((word.value or b"?").decode() for word in words)
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    advice = f"CUDA_VISIBLE_DEVICES={seen} names none that is here" if seen else "see nvidia-smi"
    return DeviceError(
        f"the driver of the GPU does not start: error {status}, {reason}: "
        f"{_REMEDIES.get(status, advice)}"
    )


def shown(library: str, version: int) -> str:
    """A version as NVIDIA writes it.

    >>> shown("cuda_runtime", 12090), shown("cudnn", 91002), shown("cusparse", 12510)
    ('12.9', '9.10.2', '12.5.10')
    """
    _, major, minor = _NAMES[library]
    parts = [version // major]
    parts += [version % major // minor] if major > 1 else []
    parts += [version % minor] if minor == 100 else []
    return ".".join(map(str, parts))


def prepare(plugin: Plugin, gpus: Sequence[int]) -> str:
    """Load what the plugin needs of NVIDIA's, and tell what of it there is.

    Args:
        plugin: the plugin, which is not loaded yet.
        gpus: those that the process is to use; all if there are none.

    Raises:
        DeviceError: it is older than needed, or is not there; or one of ``gpus`` is not.
    """
    there = capabilities()
    count = len(there)
    absent = [gpu for gpu in gpus if gpu >= count]
    if absent:
        raise DeviceError(
            f"this process is to use GPU {', '.join(map(str, absent))}, and CUDA shows it {count}, "
            "numbered from 0. Of GPUs that are divided (MIG) it shows one part: give each process "
            "its own in CUDA_VISIBLE_DEVICES"
        )
    _preload(plugin)
    driver = f"a driver for CUDA {shown('cuda_runtime', driver_version())}"
    versions = extension(plugin, "_versions")
    if versions is None:
        return driver
    used = [there[gpu] for gpu in gpus] or there
    return ", ".join([driver, *_of_libraries(versions, plugin.version, used)])


def _preload(plugin: Plugin) -> None:
    """Load NVIDIA's libraries from their packages, wherever these lie: the plugin looks beside it
    alone, and not for all. What has no package is left to the system.
    """
    for package, pattern in _LIBRARIES:
        for name in (f"cu{plugin.version}", package):
            path = next((p for f in _of_nvidia(name) for p in f.glob(f"lib/{pattern}")), None)
            if path is not None:
                with suppress(OSError):  # what is missing for it is told where it is needed
                    ctypes.CDLL(str(path))
                break


def _of_nvidia(package: str) -> Iterator[Path]:
    for place in sys.path:
        folder = os.path.join(place, "nvidia", package)
        if os.path.isdir(folder):
            yield Path(folder)


def are_here() -> bool:
    """Whether NVIDIA's libraries are installed as packages, and not its assembler alone."""
    return any(_of_nvidia("cudnn"))


@functools.cache
def data_directory(version: int = 0) -> str | None:
    """Where the compiler finds NVIDIA's assembler and its library of functions, if it is told.

    Args:
        version: of CUDA; 0: any.
    """
    named = os.environ.get("CUDA_ROOT")
    if named and os.path.isdir(named):
        return named
    if named:
        warn_user(f"CUDA_ROOT={named} is no folder, so it is not looked into", RuntimeWarning)
    packages = _OF_COMPILERS.get(version) or ("cu13", "cuda_nvcc")
    folders = [folder for package in packages for folder in _of_nvidia(package)]
    return next((str(f) for f in folders if (f / "bin" / "ptxas").exists()), None)


def _of_libraries(versions: Any, cuda: int, gpus: Sequence[int]) -> list[str]:
    """NVIDIA's libraries with their versions.

    Args:
        versions: the plugin's module that tells them.
        cuda: the version of CUDA for which the plugin was built.
        gpus: the compute capabilities of those that will be used.

    Raises:
        DeviceError: one is too old for the plugin, computes wrongly, or does not load.
    """
    there: dict[str, int] = {}
    missing: list[str] = []
    for library, (name, *_) in _NAMES.items():
        try:
            there[library] = getattr(versions, f"{library}_get_version")()
        except Exception:  # whatever the loader says: of which file it was, it does not
            missing.append(name)
    wrong = [f"{', '.join(missing)} cannot be loaded"] if missing else []
    built = {library: getattr(versions, f"{library}_build_version")() for library in there}
    wrong += [*_too_old(there, built), *_known_to_fail(there, built, len(gpus))]
    if wrong and not os.environ.get(_UNCHECKED):
        search_path = os.environ.get("LD_LIBRARY_PATH")
        path = f"; LD_LIBRARY_PATH={search_path} comes first, so unset it" if search_path else ""
        raise DeviceError(
            f"libraries of NVIDIA do not fit: {'; '.join(wrong)}. To have those that do: "
            f"pip install -U 'phalanx[cuda{cuda}]'{path}. To start nevertheless: {_UNCHECKED}=1"
        )
    _warn_of_races(there, gpus)
    return [f"{_NAMES[library][0]} {shown(library, v)}" for library, v in there.items()]


def _too_old(there: Mapping[str, int], built: Mapping[str, int]) -> Iterator[str]:
    for library, version in there.items():
        needed = built[library] - built[library] % _PATCHES.get(library, 1)
        needed = _OLDEST.get(library, needed)
        if version < needed:
            least = shown(library, needed)
            yield f"{_NAMES[library][0]} is {shown(library, version)}, at least {least} is needed"


def _known_to_fail(there: Mapping[str, int], built: Mapping[str, int], gpus: int) -> Iterator[str]:
    """Versions that compute wrongly, as NVIDIA's release notes say.

    See https://docs.nvidia.com/deeplearning/cudnn/backend/latest/release-notes.html, 9.10.0, 9.10.1
    """
    cudnn, cublas = there.get("cudnn", math.inf), there.get("cublas", 0)
    if cudnn == _RENUMBERED != built.get("cudnn"):
        yield "cuDNN 9.10.0 takes some dtypes for others, 9.10.1 does not"
    elif cudnn <= _RENUMBERED and cublas >= 120900 and gpus > 1:
        yield "matrix products on several GPUs are wrong with cuDNN before 9.10.1 and this cuBLAS"


_RENUMBERED: Final = 91000


def _warn_of_races(there: Mapping[str, int], capabilities: Sequence[int]) -> None:
    """Warn where products that run beside other kernels may overwrite what those hold.

    They do on GPUs with tensor memory, which NVIDIA lets go of twice: those of 10.x and 11.x.
    """
    version = there.get("cublas", 0)
    if 120800 <= version < 130200 and any(100 <= c < 120 for c in capabilities):
        warn_user(
            f"cuBLAS {shown('cublas', version)} can give wrong results on this kind of GPU while "
            "other kernels run on it; cuBLAS 13.2 does not: pip install -U 'phalanx[cuda13]'",
            RuntimeWarning,
        )
