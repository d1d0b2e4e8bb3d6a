"""Formats: a sharding together with the order of dimensions in memory, which is the runtime's."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from phalanx.base.source import user_location

__all__ = ["Format", "Layout"]


class Layout(Struct, frozen=True):
    """The order of dimensions in memory, which is the runtime's: the last dimension is fastest.

    Attributes:
        major_to_minor: the dimensions, the slowest first.
        tiling: must be none.
        sub_byte_element_size_in_bits: must be 0.

    >>> Layout(major_to_minor=(0, 1)).major_to_minor
    (0, 1)
    """

    major_to_minor: tuple[int, ...] = ()
    tiling: Any = None
    sub_byte_element_size_in_bits: int = 0

    AUTO = "auto"


class Format(Struct, frozen=True):
    """How an array lies: its order in memory, and its sharding.

    Attributes:
        layout: a Layout of the order that the runtime has; None or ``Layout.AUTO``: that one.
        sharding: a sharding, a device, or None, as ``device_put`` takes it.

    >>> import phalanx
    >>> here = phalanx.sharding.SingleDeviceSharding(phalanx.devices()[0])
    >>> phalanx.device_put(1.0, Format(Layout.AUTO, here)).sharding == here
    True
    """

    layout: Layout | str | None = None
    sharding: Any = None


def format_of(sharding: Any, ndim: int) -> Format:
    """How an array of ``ndim`` dimensions lies: the last one fastest."""
    return Format(Layout(tuple(range(ndim))), sharding)


def as_sharding(target: Any, who: str) -> Any:
    """What a format says besides the order in memory; what is none, as it is.

    Raises:
        ValueError: it asks for an order that is not the one there is.
    """
    if not isinstance(target, Format):
        return target
    layout = target.layout
    if isinstance(layout, Layout):
        order, bits = layout.major_to_minor, layout.sub_byte_element_size_in_bits
        if order != tuple(range(len(order))) or layout.tiling or bits:
            raise ValueError(
                f"{who}: the order of dimensions in memory is the runtime's, the last one fastest, "
                f"and cannot be {layout}, at {user_location()}; transpose the array"
            )
    return target.sharding
