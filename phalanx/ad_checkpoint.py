"""Rematerialization (gradient checkpointing): ``checkpoint``, policies, stored residuals."""

from phalanx.api.checkpoint import (
    checkpoint,
    checkpoint_name,
    print_saved_residuals,
    remat,
    saved_residuals,
)
from phalanx.base.set_module import set_module as _set_module
from phalanx.control import policies as checkpoint_policies

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]

for _name in checkpoint_policies.__all__:
    _set_module("phalanx", f"checkpoint_policies.{_name}", getattr(checkpoint_policies, _name))
