"""Small libraries for examples: optimizers, and layers of neural networks."""

from typing import TYPE_CHECKING

from phalanx.base.lazily import later as _later

if TYPE_CHECKING:
    from phalanx.example_libraries import optimizers as optimizers
    from phalanx.example_libraries import stax as stax

_later(__name__, "optimizers", "stax")

__all__ = [
    "optimizers",
    "stax",
]
