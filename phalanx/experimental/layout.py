"""How arrays lie in memory: the order of dimensions, together with a sharding."""

from phalanx.base.lazily import later as _later
from phalanx.spmd.formats import Format, Layout

__all__ = ["Format", "Layout"]

_later(
    __name__,
    refused={"*_layout*": "the order of dimensions in a program is the compiler's"},
)
