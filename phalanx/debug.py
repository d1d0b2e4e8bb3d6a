"""Looking into running programs: printing, calling Python, stopping; and where arrays lie."""

from phalanx.api.debug import breakpoint, callback, print
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
    "print",
    "visualize_array_sharding",
    "visualize_mesh",
    "visualize_sharding",
]
