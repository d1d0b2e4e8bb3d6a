"""The class of arrays with data, as ``jax._src.array`` has it, and where classes of arrays are.

Programs that serve several libraries choose by the package in which the class of an array is.
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.core.types import Array
from phalanx.run.array import DeviceArray

__all__ = ["ArrayImpl", "DeviceArray"]

ArrayImpl = DeviceArray


def belong() -> None:
    """Let the classes of arrays, with data or traced, be in ``jax._src.array``."""
    for kind in _below(Array):
        kind.__module__ = "jax._src.array"


def _below(kind: type) -> Iterator[type]:
    for below in kind.__subclasses__():
        yield below
        yield from _below(below)
