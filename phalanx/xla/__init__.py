"""Compiling and running through XLA: the only room that imports jaxlib.

It knows programs (`core`), layouts (`spmd`) and the backend protocol (`run`), and no
transformation. Everything that differs between versions of jaxlib is in here.
"""

from phalanx.xla.backend import XlaBackend
from phalanx.xla.runtime import VERSION, Device

__all__ = ["VERSION", "Device", "XlaBackend"]
