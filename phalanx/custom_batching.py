"""Rules of your own for what ``vmap`` makes of functions."""

import sys

from phalanx.api.custom_vmap import custom_vmap, sequential_vmap
from phalanx.base.boundary import bound

__all__ = ["custom_vmap", "sequential_vmap"]

bound(sys.modules[__name__])
