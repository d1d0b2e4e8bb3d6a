"""The names of ``phalanx.xla``, each with the module that has it."""

from phalanx.xla import (
    artifacts as artifacts,
    lower as lower,
    partitioning as partitioning,
    portable as portable,
    trial as trial,
)
from phalanx.xla.jaxlib_versions import VERSION as VERSION
from phalanx.xla.xla_backend import XlaBackend as XlaBackend
