"""Calls to Python from devices that cannot: they send operands to the host, and receive results.

Each array has a channel of its own. The host calls when it has one of each operand, and what the
function gives is sent back; a device that receives waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _hlo
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.errors import RuntimeFailure
from phalanx.core.types import ArrayType

Channels = Sequence[int]
SENDING = {"tpu"}  # platforms whose devices cannot call
_SIGNAL = ArrayType((), np.dtype(np.int32))


def carried(type: ArrayType) -> ArrayType:
    """What is sent in place of an array: of elements that take whole bytes, as on the host."""
    dtype = type.dtype
    if dtypes.itemsize_bits(dtype) < 8 and dtype != np.bool_:
        dtype = np.dtype(np.float16 if dtypes.is_floating(dtype) else np.int8)
    return ArrayType(type.shape, dtype)


def crossing(types: Sequence[ArrayType]) -> list[ArrayType]:
    """What is sent in place of arrays of ``types``: one without elements is known on both sides.

    A call without operands is asked for by a number, and so is the end of one without results.
    """
    return [carried(t) for t in types if t.size] or [_SIGNAL]


class HostTransfers(Struct, frozen=True):
    """What the host knows of one call: the types of operands and results, and their channels."""

    ins: tuple[ArrayType, ...]
    outs: tuple[ArrayType, ...]
    sends: Channels
    receives: Channels

    def attached(self, client: Any, function: Callable[..., Sequence[np.ndarray]]) -> Any:
        """``function`` of operands, as an executable of ``client`` takes it."""

        def call(*sent: np.ndarray) -> tuple[np.ndarray, ...]:
            return self._sent(function(*self._operands(sent)))

        return client.make_python_callback_from_host_send_and_recv(
            call,
            [_shape(t) for t in crossing(self.ins)],
            [_shape(t) for t in crossing(self.outs)],
            self.sends,
            self.receives,
            _refuse_to_write,
        )

    def _operands(self, sent: Sequence[np.ndarray]) -> list[np.ndarray]:
        there = iter(sent)
        return [
            np.asarray(next(there)).astype(t.dtype, copy=False)
            if t.size
            else np.zeros(t.shape, t.dtype)
            for t in self.ins
        ]

    def _sent(self, results: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        there = [
            r.astype(carried(t).dtype, copy=False)
            for r, t in zip(results, self.outs, strict=True)
            if t.size
        ]
        return tuple(there) or (np.zeros(_SIGNAL.shape, _SIGNAL.dtype),)


def _shape(type: ArrayType) -> Any:
    return _hlo.Shape.array_shape(type.dtype, type.shape)


def _refuse_to_write(function: object) -> bytes:
    raise RuntimeFailure(
        f"callback: {function} is of this process, and does not leave it with an executable"
    )
