"""Compiling and running through XLA: the only room that imports jaxlib.

It knows programs (`core`), layouts (`spmd`) and the backend protocol (`run`), and no
transformation. Everything that differs between versions of jaxlib is in here. What writes modules,
and the bindings of MLIR with it, is imported when the first one is written, and the runtime when
the first device is asked for.
"""

from phalanx.base.lazily import later as _later

_later(__name__)
