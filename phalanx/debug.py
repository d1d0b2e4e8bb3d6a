"""Looking into running programs: printing, calling Python, stopping; and where arrays lie."""

from phalanx.api.debug import breakpoint, callback, log, print
from phalanx.api.visualize import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_mesh,
    visualize_sharding,
)

__all__ = [
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_mesh",
    "visualize_sharding",
]
