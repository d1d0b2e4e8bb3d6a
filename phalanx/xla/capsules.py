"""Arrays for other libraries and of them, by the DLPack protocol, in the memory of a device.

A GPU computes in streams, and an array may not be ready when it is handed over. Who takes one names
a stream, and who gives it lets that stream wait: nothing waits on the host.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from phalanx.core.platforms import platform_of
from phalanx.core.types import ArrayType
from phalanx.spmd.sharding import Sharding
from phalanx.xla.failures import translated
from phalanx.xla.flight import waited
from phalanx.xla.jaxlib_versions import VERSIONED_CAPSULES, without_jax, xc
from phalanx.xla.transfer import assemble

Raw = Any
_CPU, _CUDA, _ROCM = 1, 2, 10  # as the protocol numbers kinds of devices
_NOT_TO_WAIT: Final = -1  # a stream that needs not wait


def dlpack_device(device: Any) -> tuple[int, int] | None:
    """What the protocol calls ``device``; None: it has no name for it."""
    if device.platform == "cpu":
        return _CPU, 0
    if device.platform != "gpu":
        return None
    return _ROCM if platform_of(device) == "rocm" else _CUDA, device.local_hardware_id


def to_dlpack(
    raw: Raw,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    copied: bool = False,
) -> Any:
    """A capsule that shares the memory of a single-device array.

    It has a version, and says that it must not be written, where the consumer knows versions.
    """
    further = {"max_version": max_version, "copied": copied} if VERSIONED_CAPSULES else {}
    stream = None if stream == _NOT_TO_WAIT else stream
    export = functools.partial(xc.buffer_to_dlpack_managed_tensor, raw, stream, **further)
    try:
        return waited((raw,), export, "to_dlpack")
    except RuntimeError as e:
        raise translated(e, "to_dlpack") from None


def from_dlpack(external: Any, device: Any, copy: bool | None = None) -> tuple[Raw, ArrayType]:
    """An array on ``device``, where ``external`` lies, that shares its memory if it can.

    Raises:
        BufferError: the runtime has no such arrays; or it has to copy, and ``copy`` is False.
    """
    type = ArrayType(tuple(external.shape), _dtype_named(external.dtype))
    stream = device.get_stream_for_external_ready_events() if device.platform == "gpu" else None
    try:
        capsule = _capsule(external, stream)
        take = functools.partial(xc.dlpack_managed_tensor_to_buffer, capsule, device, stream, copy)
        raw = without_jax(take)
    except (RuntimeError, BufferError) as e:
        raise BufferError(f"from_dlpack: {e}") from None
    held = raw.on_device_size_in_bytes()
    if held != type.size * type.dtype.itemsize:
        raise BufferError(
            f"from_dlpack: an object that calls itself {type} hands over {held:,} bytes, where "
            f"such arrays take {type.size * type.dtype.itemsize:,}"
        )
    if not _is_row_major(raw, type):
        raise BufferError(
            f"from_dlpack: the elements of {type} lie in another order than row by row, which is "
            "how arrays lie here; hand over a contiguous copy"
        )
    return assemble([raw], type, Sharding((device,))), type


def _capsule(external: Any, stream: int | None) -> Any:
    """What ``external`` hands over, for ``stream``, of a version that the runtime knows."""
    further = {} if stream is None else {"stream": stream}
    export: Callable[..., Any] = external.__dlpack__
    if VERSIONED_CAPSULES:
        try:
            return export(**further, max_version=tuple(xc.dlpack_version))
        except TypeError:  # it was made before there were versions
            pass
    return export(**further)


def _is_row_major(raw: Raw, type: ArrayType) -> bool:
    """Whether the last dimension is the fastest: programs are compiled for that, unchecked."""
    fastest_first = str(raw._pjrt_layout).partition(":")[0].strip("{}").split(",")
    order = [int(d) for d in fastest_first if d]
    if len(order) != len(type.shape):
        return False
    order = [d for d in order if type.shape[d] != 1]
    return order == sorted(order, reverse=True)


def _dtype_named(dtype: Any) -> np.dtype:
    """NumPy's dtype for that of another library, by its name."""
    name = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
    return np.dtype(getattr(ml_dtypes, name, None) or name)
