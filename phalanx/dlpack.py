"""Arrays of other libraries, and for them, by the DLPack protocol."""

import sys
from typing import Any

from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.core.types import Array
from phalanx.numpy.creation import from_dlpack as of_another_library

__all__ = ["from_dlpack", "is_supported_dtype"]

_NAMES = ("bool", "bfloat16", *(f"{kind}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64)))
_SUPPORTED = frozenset(
    map(dtypes.as_dtype, (*_NAMES, "float16", "float32", "float64", "complex64", "complex128"))
)


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library, copied.

    Args:
        external_array: an array with the methods ``__dlpack__`` and ``__dlpack_device__``.
        device: where it is to lie; default the first device.
        copy: False asks for shared memory, which is refused: arrays here never change.

    Raises:
        TypeError: it does not speak the protocol.
        ValueError: ``copy`` is False.

    >>> import numpy as np
    >>> print(from_dlpack(np.arange(3)))
    [0 1 2]
    """
    return of_another_library(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of ``dtype`` can be handed over.

    >>> is_supported_dtype("float32"), is_supported_dtype("int4")
    (True, False)
    """
    return dtypes.as_dtype(dtype) in _SUPPORTED


bound(sys.modules[__name__])
