"""One program in many processes: initialize, and what processes tell each other."""

import sys as _sys

from phalanx.api.distributed import (
    initialize,
    is_initialized,
    key_value_delete,
    key_value_get,
    key_value_set,
    shutdown,
)
from phalanx.base.boundary import bound as _bound

__all__ = [
    "initialize",
    "is_initialized",
    "key_value_delete",
    "key_value_get",
    "key_value_set",
    "shutdown",
]

_bound(_sys.modules[__name__])
