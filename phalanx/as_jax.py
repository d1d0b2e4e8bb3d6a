"""Run programs written for JAX, and the libraries that they stand on, on Phalanx.

``python -m phalanx.as_jax script.py`` runs a script as ``python script.py`` does, but that ``jax``
and all below it are served by Phalanx; so do ``-m module`` and ``-c code``. In code it is
``install()``, before anything imports jax, and in a notebook ``%load_ext phalanx.as_jax``.
"""

from __future__ import annotations

import sys
from typing import Any

from phalanx.base.lazily import later
from phalanx.compat.running import install, main
from phalanx.compat.serving import is_installed

__all__ = ["install", "is_installed", "load_ipython_extension"]


def load_ipython_extension(ipython: Any) -> None:
    """What ``%load_ext phalanx.as_jax`` runs."""
    install()


if __name__ == "__main__":
    main(sys.argv[1:])
else:
    later(__name__)
