"""Small libraries for examples: optimizers, and layers of neural networks."""

from phalanx.base.lazily import later as _later

_later(__name__)
