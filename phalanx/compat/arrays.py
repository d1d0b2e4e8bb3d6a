"""The class of arrays with data, under the name that it has in ``jax._src.array``."""

from phalanx.run.array import DeviceArray as ArrayImpl

__all__ = ["ArrayImpl"]
