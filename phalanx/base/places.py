"""Where files of the user belong on this platform."""

from __future__ import annotations

import os
import sys


def user_cache() -> str | None:
    """The directory for what can be made again, or None where the user has no home.

    ``XDG_CACHE_HOME`` says where caches lie on every platform; without it they lie where the
    platform has them.
    """
    configured = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(configured):
        return os.path.join(configured, "phalanx")
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return os.path.join(local, "phalanx", "cache") if os.path.isabs(local) else None
    caches = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    folder = os.path.expanduser(caches)
    return os.path.join(folder, "phalanx") if os.path.isabs(folder) else None
