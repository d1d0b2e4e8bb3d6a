"""What ``phalanx.numpy`` tells of itself to programs for the array API standard."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.run.runtime import backend

__array_api_version__ = "2025.12"
"""The version of the standard that is followed; earlier ones ask for less."""

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", __array_api_version__)

_DTYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float32",
    "float64",
    "complex64",
    "complex128",
)


class ArrayNamespaceInfo:
    """The abilities, dtypes and devices of a module, under the names of the array API standard.

    >>> import phalanx.numpy as jnp
    >>> info = jnp.__array_namespace_info__()
    >>> info.default_dtypes()["real floating"]
    dtype('float32')
    >>> info.dtypes(kind="real floating")
    {'float32': dtype('float32')}
    """

    def capabilities(self) -> dict[str, Any]:
        """What may be asked of arrays in any transformation: shapes do not depend on values."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """The device of arrays that nobody placed: None, for they follow others."""

    def devices(self) -> list[Any]:
        """What ``device=`` may be: None, and every device of this process."""
        return [None, *backend().local_devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of Python's numbers, by kind, and that of indices, on any device."""
        return {
            "real floating": dtypes.default_float(),
            "complex floating": dtypes.default_complex(),
            "integral": dtypes.default_int(),
            "indexing": dtypes.default_int(),
        }

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """The dtypes of the standard that arrays have now, by name; of 64 bits with ``enable_x64``.

        Args:
            device: any; all devices have the same dtypes.
            kind: the kind that they are of, or a tuple of kinds, as in ``isdtype``; default any.

        Raises:
            ValueError: there is no such kind.
        """
        every = {name: dtypes.as_dtype(name) for name in _DTYPES}
        held = {name: dtype for name, dtype in every.items() if dtypes.canonical(dtype) == dtype}
        if kind is None:
            return held
        return {name: dtype for name, dtype in held.items() if dtypes.isdtype(dtype, kind)}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What this module can do, and its dtypes and devices: the array API standard's inspection.

    >>> import phalanx.numpy as jnp
    >>> jnp.__array_namespace_info__().capabilities()["max dimensions"]
    64
    """
    return ArrayNamespaceInfo()


def in_version(namespace: ModuleType, version: str | None) -> ModuleType:
    """``namespace``, for ``__array_namespace__(api_version=version)``.

    Raises:
        ValueError: there is no such version, or it is not followed.
    """
    if version is not None and version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__: api_version must be one of {', '.join(map(repr, VERSIONS))}, "
            f"got {version!r}"
        )
    return namespace
