"""What others take from ``jax._src.sharding_impls`` besides."""

from __future__ import annotations

from typing import Any

from phalanx.sharding import NamedSharding, PartitionSpec, get_abstract_mesh


def canonicalize_sharding(sharding: Any, api_name: str, check_mesh_consistency: bool = True) -> Any:
    """A spec as a sharding over the mesh that is set; anything else as it is."""
    if isinstance(sharding, PartitionSpec):
        return NamedSharding(get_abstract_mesh(), sharding)
    return sharding
