"""What to do about an operation that gives wrong numbers on several devices."""

from __future__ import annotations

from phalanx.core.program import Equation
from phalanx.core.runs import Lanes

__all__ = ["way_around"]

_BY_NAME = {
    "dot_general": "Shard each dimension of the product by one axis: take two steps with "
    "with_sharding_constraint, or use out_sharding= along Explicit axes.",
    "scan": "Do not shard the dimension that the loop runs over, with_sharding_constraint(xs, "
    "P(None, ...)), or do not constrain values in its body.",
    "reduce_max": "Use lax.pmax in shard_map, or look for a NaN with jnp.isnan(x).any().",
    "reduce_min": "Use lax.pmin in shard_map, or look for a NaN with jnp.isnan(x).any().",
}


def way_around(e: Equation, in_lanes: bool, over_mesh: bool = False) -> str:
    """The advice, for an operation that runs ``in_lanes``, as one of a ``shard_map`` if they are
    ``over_mesh``, or as the compiler divides it."""
    if e.prim.name in _BY_NAME:
        return _BY_NAME[e.prim.name]
    if e.prim.named_axes is not None:
        return "Take lax.all_gather, and combine what was gathered in each lane."
    if over_mesh:
        return "Compute it outside of the mapped function, or with other operations."
    if in_lanes or (e.frame is not None and isinstance(e.frame.runs, Lanes)):
        return "Run lanes one at a time: lanes_at_once=1."
    return "Replicate its operands before: x = lax.with_sharding_constraint(x, P())."
