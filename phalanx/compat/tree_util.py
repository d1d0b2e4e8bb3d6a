"""What others take of trees from private modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phalanx.base import tree
from phalanx.base.errors import TreeError
from phalanx.base.registry import ENTRIES

_registry = ENTRIES


def prefix_errors(
    prefix: Any, full: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], TreeError]]:
    """Where ``prefix`` is none of ``full``: of what a message calls it to the error, or nothing.

    Only the first place is told.
    """
    try:
        tree.broadcast_prefix(prefix, full, "{name}", is_leaf)
    except TreeError as e:
        message = str(e)
        return [lambda name: TreeError(message.replace("{name}", name))]
    return []
