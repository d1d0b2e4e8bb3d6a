"""Checkpoints: trees of arrays in a directory, written in parallel, complete or not there.

What makes them is an extra: ``pip install 'phalanx[checkpoint]'``.
"""

import sys

from phalanx.base.boundary import bound
from phalanx.experimental.checkpoint.manager import Manager, latest, steps
from phalanx.experimental.checkpoint.restoring import restore
from phalanx.experimental.checkpoint.saving import save

__all__ = ["Manager", "latest", "restore", "save", "steps"]

bound(sys.modules[__name__], Manager)
