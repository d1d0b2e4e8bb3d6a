"""The version of the package."""

from phalanx import __version__, __version_info__

__all__ = ["__version__", "__version_info__"]
