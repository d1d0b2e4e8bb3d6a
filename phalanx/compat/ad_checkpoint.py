"""What policies of one's own return under the field's names: ``jax.ad_checkpoint`` has them."""

from __future__ import annotations

from typing import Any, Final

from phalanx.control.policies import elsewhere

__all__ = ["Offloadable", "Recompute", "Saveable"]

Saveable: Final = True
Recompute: Final = False


def Offloadable(src: str, dst: str) -> Any:
    """What a policy returns for values that wait in the memory ``dst``."""
    return elsewhere("Offloadable", src, dst)
