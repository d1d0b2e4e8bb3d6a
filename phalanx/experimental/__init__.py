"""Names that other libraries of this kind keep in a place of this name."""

from phalanx.api.callbacks import io_callback
from phalanx.api.contexts import disable_x64, enable_x64

__all__ = ["disable_x64", "enable_x64", "io_callback"]
