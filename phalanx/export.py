"""Functions as portable modules, which later versions, other processes and other tools run."""

import sys as _sys

from phalanx.api.exporting import (
    DisabledSafetyCheck,
    Exported,
    default_export_platform,
    deserialize,
    export,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from phalanx.api.portable_bytes import (
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from phalanx.api.symbolic import (
    SymbolicScope,
    is_symbolic_dim,
    symbolic_args_specs,
    symbolic_dim_bounds,
    symbolic_shape,
)
from phalanx.base.boundary import bound as _bound

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_dim_bounds",
    "symbolic_shape",
]

_bound(_sys.modules[__name__])
