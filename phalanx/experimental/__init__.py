"""Names that other libraries of this kind keep in a place of this name."""

from phalanx.api.callbacks import io_callback

__all__ = ["io_callback"]
