"""``jax.experimental.layout``: the order of dimensions in memory, which is always the runtime's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Layout:
    """The order of dimensions in memory, the slowest first."""

    major_to_minor: tuple[int, ...] = ()
    tiling: Any = None

    AUTO = "auto"


@dataclass(frozen=True)
class Format:
    """How an array lies: its order in memory, and its sharding."""

    layout: Layout | str | None = None
    sharding: Any = None
