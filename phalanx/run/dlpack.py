"""Arrays of other libraries, by the DLPack protocol, as arrays of ours."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from phalanx.base import dtypes
from phalanx.base.errors import DeviceError
from phalanx.base.source import user_location
from phalanx.primitives.basis import convert
from phalanx.run.array import DeviceArray, Signature, from_host
from phalanx.run.runtime import backend
from phalanx.spmd.sharding import SingleDeviceSharding

# the protocol's numbers for memory that the host reads: its own, and what GPUs read with it
_OF_THE_HOST: Final = (1, 3, 11, 13)

_OF_NUMPY = ("bool", *(f"{kind}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64)))
_FRACTIONS = ("float16", "float32", "float64", "complex64", "complex128")
DTYPES: Final = (*_OF_NUMPY, *_FRACTIONS, "bfloat16")


def import_dlpack(x: Any, shared: bool) -> DeviceArray:
    """``x``, of another library, where it lies; a copy, unless its memory is to be ``shared``.

    Raises:
        BufferError: its device or its dtype is not here, or what is shared cannot be.
    """
    device = _place(x)
    if device[0] not in _OF_THE_HOST:
        return _on_device(x, _device(device), shared)
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):  # for which the protocol does not ask
        x = np.from_dlpack(x)
    if shared or not hasattr(np, _dtype_of(x)):
        return _on_device(x, backend().local_devices("cpu")[0], shared)
    return from_host(np.from_dlpack(x))


def _place(x: Any) -> tuple[int, int]:
    """Where ``x`` lies, by the protocol's numbers of the kind of memory and of the device."""
    pair = x.__dlpack_device__()
    try:
        kind, number = pair
        return int(kind), int(number)
    except (TypeError, ValueError):
        raise TypeError(
            f"from_dlpack: __dlpack_device__ of a {type(x).__name__} must give two integers, not "
            f"{pair!r}"
        ) from None


def _on_device(x: Any, device: Any, shared: bool) -> DeviceArray:
    name = _dtype_of(x)
    if name not in DTYPES:
        raise BufferError(
            f"from_dlpack: arrays of {name} cannot be handed over, at {user_location()}; these can "
            f"be: {', '.join(DTYPES)}"
        )
    raw, type = backend().from_dlpack(x, device, False if shared else None)
    theirs = DeviceArray(raw, Signature.of(type, SingleDeviceSharding(device)))
    dtype = dtypes.canonical(type.dtype)
    if not shared:  # they may write when this returns
        return convert(theirs, dtype=dtype, weak=False).block_until_ready()
    if dtype is not type.dtype:
        raise BufferError(
            f"from_dlpack: an array of {type.dtype} is one of {dtype} here unless enable_x64 is "
            f"set, and so not in memory that is shared, at {user_location()}; leave copy=False out"
        )
    return theirs


def _dtype_of(x: Any) -> str:
    """The dtype of ``x`` as its library calls it, without the name of the library."""
    return str(getattr(x.dtype, "name", x.dtype)).rpartition(".")[2]


def _device(pair: tuple[int, ...]) -> Any:
    """The GPU that the protocol calls by ``pair``, the kind of memory and a number."""
    try:
        for device in backend().local_devices("gpu"):
            if backend().dlpack_device(device) == pair:
                return device
        why = f"the GPUs here are {list(backend().local_devices('gpu'))}"
    except DeviceError as e:
        why = str(e)
    raise BufferError(
        f"from_dlpack: the array lies on DLPack's device {pair}, at {user_location()}, which is "
        f"none of this process ({why}); bring it to the host first"
    )
