"""What the ROCm plugin needs besides its library: AMD's libraries, and those of its compiler.

Its own package looks for them when it is imported, and needs the package jax for it.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from phalanx.xla.plugins import folders

_SYSTEM: Final = Path("/opt/rocm")  # where the plugin looks by itself
# in the order in which they need each other
_LIBRARIES: Final = (
    "amdhip64", "rocblas", "hipblaslt", "hipblas", "rocsolver", "hipsolver", "rocsparse",
    "hipsparse", "rocfft", "hipfft", "MIOpen", "rccl",
)  # fmt: skip
_OF_FUNCTIONS, _LINKER = "ocml.bc", "ld.lld"
_BELOW: Final = ("amdgcn/bitcode", "llvm/bin", "lib/llvm/bin", "lib/llvm/amdgcn/bitcode")
# what the plugin reads, and which file's folder that is
_OPTIONS: Final = {
    "JAX_ROCM_PLUGIN_INTERNAL_BITCODE_PATH": _OF_FUNCTIONS,
    "HIP_DEVICE_LIB_PATH": _OF_FUNCTIONS,
    "JAX_ROCM_PLUGIN_INTERNAL_LLD_PATH": _LINKER,
}


def prepare() -> None:
    """Load what the plugin needs of AMD's, and tell it where the rest is.

    What the environment says already stands.
    """
    for variable, name in _OPTIONS.items():
        folder = _folder_of(name)
        if folder is not None and variable not in os.environ:
            os.putenv(variable, folder)
    root = next(_roots(), _SYSTEM)
    if root == _SYSTEM:
        return
    for name in _LIBRARIES:
        for path in sorted((root / "lib").glob(f"lib{name}.so*"))[-1:]:
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)


@functools.cache
def data_directory() -> str | None:
    """Where the compiler finds AMD's library of functions of devices, if it is told."""
    return os.environ.get("HIP_DEVICE_LIB_PATH") or _folder_of(_OF_FUNCTIONS)


def _folder_of(name: str) -> str | None:
    candidates = (root / below for root in _roots() for below in _BELOW)
    folder = next((f for f in candidates if (f / name).exists()), None)
    if folder is None:  # versions of LLVM keep it in folders of their own
        found = (f.parent for root in _roots() for f in root.glob(f"lib/llvm/lib/**/{name}"))
        folder = next(found, None)
    return None if folder is None else str(folder)


def _roots() -> Iterator[Path]:
    """Where ROCm may be: as the user says, in its package, where the system has it."""
    named = os.environ.get("ROCM_PATH")
    candidates = [Path(named)] if named else [*folders("rocm"), _SYSTEM]
    return (root for root in candidates if (root / "lib").is_dir())
