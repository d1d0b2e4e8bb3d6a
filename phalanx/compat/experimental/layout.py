"""What ``jax.experimental.layout`` has besides."""

from __future__ import annotations

from typing import Any

from phalanx import tree
from phalanx.spmd.formats import Format, as_sharding

__all__ = ["with_layout_constraint"]


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """``x``, whose arrays must lie as they do.

    Raises:
        ValueError: another order of dimensions is asked for.
    """
    for layout in tree.leaves(layouts):
        as_sharding(Format(layout), "with_layout_constraint")
    return x
