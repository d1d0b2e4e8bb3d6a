"""How many lanes of a device run together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from phalanx.core.program import Program

AtOnce = int | Literal["all"] | None


@dataclass(frozen=True, slots=True)
class Chunks:
    """What the user ``asked`` for; None: whatever serves best."""

    asked: AtOnce

    def __call__(self, segment: Program, size: int) -> int:
        """How many of ``size`` lanes run ``segment`` together."""
        if isinstance(self.asked, int):
            return min(self.asked, size)
        return size
