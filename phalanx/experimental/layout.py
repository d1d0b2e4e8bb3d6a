"""How arrays lie in memory: the order of dimensions, together with a sharding."""

import sys as _sys

from phalanx.base.boundary import bound as _bound
from phalanx.base.lazily import later as _later
from phalanx.spmd.formats import Format, Layout

__all__ = ["Format", "Layout"]

_later(
    __name__,
    refused={"*_layout*": "the order of dimensions in a program is the compiler's"},
)
_bound(_sys.modules[__name__])
