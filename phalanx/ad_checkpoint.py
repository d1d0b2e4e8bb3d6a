"""Rematerialization (gradient checkpointing): ``checkpoint``, policies, stored residuals."""

from phalanx.api.checkpoint import (
    checkpoint,
    checkpoint_name,
    print_saved_residuals,
    remat,
    saved_residuals,
)
from phalanx.control import policies as checkpoint_policies

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
