"""Messages name what to use as the program that reads them does: by the names of ``jax``.

Where such programs look for what JAX says, they tell that, too.
"""

from __future__ import annotations

import re

from phalanx.base.on_demand import OnDemand
from phalanx.compat.phrases import phrased
from phalanx.compat.refused import NotOffered

_jax = OnDemand("jax", "it is served, by what imports this file")
_NAMED = re.compile(r"\bphalanx((?:\.[A-Za-z_]\w*)+)")


def as_served(error: BaseException, text: str) -> str:
    """``text`` of ``error``, in which names of ours that are served as ``jax``'s are called so."""
    served = _NAMED.sub(lambda found: f"jax{found[1]}" if _is_served(found[1]) else found[0], text)
    return phrased(error, served)


def _is_served(path: str) -> bool:
    found = _jax
    for name in path.split(".")[1:]:
        found = getattr(found, name, None)
    return found is not None and not isinstance(found, NotOffered)
