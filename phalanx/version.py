"""The version of the package."""

from phalanx import __version__, __version_info__
from phalanx.base.lazily import later as _later

__all__ = ["__version__", "__version_info__"]

_later(__name__)
