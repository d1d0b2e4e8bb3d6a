"""What is passed to compiled functions: what stands for it in keys, and its way to devices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from phalanx.api.arguments import LeafNames, check_leaf
from phalanx.base import dtypes
from phalanx.core.program import plain
from phalanx.core.trace import Tracer, refuse_escaped
from phalanx.core.types import SCALARS, typeof
from phalanx.run.array import DeviceArray, default_sharding, from_host, from_scalar, place
from phalanx.run.eager import as_array
from phalanx.spmd.sharding import Sharding

Take = Callable[[Sequence[Any]], list[DeviceArray]]
_NUMBERS = frozenset(SCALARS)


def signature(x: Any) -> Hashable:
    """What stands for the type of ``x`` in a key, and for where it lies; None if nothing does.

    Python's numbers of one type, and NumPy's arrays of one dtype and shape, have the same.
    """
    kind = type(x)
    if kind is DeviceArray:
        return x._sig
    if kind is np.ndarray:
        return (x.dtype, x.shape) if x.dtype.kind not in "OSUMm" else None
    if kind in _NUMBERS:
        return kind
    if isinstance(x, np.generic):
        return (x.dtype, ()) if x.dtype.kind not in "OSUMm" else None
    return None


def known(leaves: Sequence[Any], names: LeafNames, who: str) -> Sequence[Any]:
    """``leaves``, of which those that have no signature became arrays that hold data.

    Raises:
        TypeError: a leaf is no array and no number.
        EscapedTracer: a leaf belongs to a transformation that has ended.
    """
    signs = [signature(x) for x in leaves]
    if None not in signs:
        return leaves
    return [
        _converted(x, names, i, who) if s is None else x
        for i, (x, s) in enumerate(zip(leaves, signs, strict=True))
    ]


def _converted(x: Any, names: LeafNames, i: int, who: str) -> DeviceArray:
    if isinstance(x, Tracer):
        refuse_escaped(x)
    check_leaf(x, names[i], who)
    return as_array(x)


def taking(
    leaves: Sequence[Any], homes: Sequence[Sharding | None], donated: Sequence[bool]
) -> Take | None:
    """What puts such leaves on devices, into ``homes`` if they come from the host and have one.

    None where all of them are arrays on devices. What is donated is not shared with others.
    """
    host = [(i, homes[i], donated[i]) for i, x in enumerate(leaves) if type(x) is not DeviceArray]
    if not host:
        return None

    def take(leaves: Sequence[Any]) -> list[DeviceArray]:
        arrays = list(leaves)
        for i, home, alone in host:
            arrays[i] = on_devices(leaves[i], home, alone)
        return arrays

    return take


def on_devices(x: Any, home: Sharding | None = None, alone: bool = False) -> DeviceArray:
    """``x``, an array or number of the host, on devices; ``alone``: where nobody else has it."""
    if isinstance(x, np.ndarray):
        return from_host(x, sharding=home)
    kind = plain(typeof(x))
    value = dtypes.scalar(x, kind.dtype)
    sharding = default_sharding() if home is None else home
    if alone:
        return place(np.asarray(value), kind, sharding)
    return from_scalar(value, sharding, kind)


def taken(run: Callable[[Sequence[Any]], Any], take: Take | None) -> Callable[[Sequence[Any]], Any]:
    """``run`` on what ``take`` makes of the leaves of a call."""
    return run if take is None else lambda leaves: run(take(leaves))
