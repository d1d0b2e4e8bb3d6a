"""Arrays of other libraries, and for them, by the DLPack protocol."""

import sys
from typing import Any

from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.core.types import Array
from phalanx.numpy.existing_data import from_dlpack as of_another_library
from phalanx.run.dlpack import DTYPES

__all__ = ["from_dlpack", "is_supported_dtype"]

_SUPPORTED = frozenset(map(dtypes.as_dtype, DTYPES))


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library, copied, on its GPU if it lies on one.

    Args:
        external_array: an array with the methods ``__dlpack__`` and ``__dlpack_device__``.
        device: where it is to lie; default where it lies, or for an array of the host's memory the
            first device.
        copy: False asks for its memory itself, which nobody may write from then on.

    Returns:
        An array.

    Raises:
        TypeError: it does not speak the protocol.
        BufferError: its device or its dtype is not here, or its memory cannot be shared.

    >>> import numpy as np
    >>> print(from_dlpack(np.arange(3)))
    [0 1 2]
    """
    return of_another_library(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of ``dtype`` can be handed over.

    Args:
        dtype: a dtype, or what names one.

    Returns:
        A bool of Python.

    >>> is_supported_dtype("float32"), is_supported_dtype("int4")
    (True, False)
    """
    return dtypes.as_dtype(dtype) in _SUPPORTED


bound(sys.modules[__name__])
