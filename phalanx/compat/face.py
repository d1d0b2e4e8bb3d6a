"""What ``jax`` itself has and Phalanx calls otherwise, or not at all."""

from __future__ import annotations

import enum

from phalanx import print_environment_info as _ours
from phalanx.compat.hijax import typeof
from phalanx.compat.jaxprs import make_jaxpr
from phalanx.compat.modules import VERSION
from phalanx.sharding import use_abstract_mesh

__all__ = [
    "Inline",
    "__version__",
    "__version_info__",
    "make_jaxpr",
    "print_environment_info",
    "typeof",
    "use_abstract_mesh",
]
__version__ = VERSION
__version_info__ = tuple(map(int, VERSION.split(".")))


class Inline(enum.Enum):
    """When a function that is compiled becomes part of the one that calls it: the compiler says."""

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def print_environment_info(return_string: bool = False) -> str | None:
    """That of Phalanx, which says that it is what runs."""
    text = f"jax:       {VERSION}, served by Phalanx\n{_ours(return_string=True)}"
    if return_string:
        return text
    print(text)
    return None
