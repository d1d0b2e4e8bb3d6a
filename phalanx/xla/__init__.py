"""Compiling and running through XLA: the only room that imports jaxlib.

It knows programs (`core`), layouts (`spmd`) and the backend protocol (`run`), and no
transformation. Everything that differs between versions of jaxlib is in here. What writes modules,
and the bindings of MLIR with it, is imported when the first one is written, and the runtime when
the first device is asked for.
"""

from typing import TYPE_CHECKING

from phalanx.base.lazily import later as _later

if TYPE_CHECKING:
    from phalanx.xla import artifacts as artifacts
    from phalanx.xla import lower as lower
    from phalanx.xla import partitioning as partitioning
    from phalanx.xla import portable as portable
    from phalanx.xla import trial as trial
    from phalanx.xla.jaxlib_versions import VERSION
    from phalanx.xla.xla_backend import XlaBackend

_later(
    __name__,
    "artifacts",
    "lower",
    "partitioning",
    "portable",
    "trial",
    xla_backend=["XlaBackend"],
    jaxlib_versions=["VERSION"],
)

__all__ = ["VERSION", "XlaBackend"]
