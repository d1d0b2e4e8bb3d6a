"""The release of the peer that is here, beside the one whose public names are ours.

Tests that compare what is public run on that release and on newer ones, which so are noticed. An
older release, the last one for an older Python, is an oracle of values all the same.
"""

import jax

from phalanx.compat.modules import VERSION


def release(version):
    """The first two numbers of a version: ``(0, 12)``."""
    return tuple(map(int, version.split(".")[:2]))


OLDER = release(jax.__version__) < release(VERSION)
