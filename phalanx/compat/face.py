"""What ``jax`` itself has and Phalanx calls otherwise, or not at all."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

import phalanx
from phalanx import print_environment_info as _ours
from phalanx.api.linear import DidntWant, DontWant, GradRef, GradValue
from phalanx.compat.experimental.hijax import typeof
from phalanx.compat.experimental.pallas.specs import ds
from phalanx.compat.jaxprs import make_jaxpr
from phalanx.compat.modules import VERSION
from phalanx.run.array import Shard
from phalanx.sharding import use_abstract_mesh

__all__ = [
    "CompilerEffortLevel",
    "Inline",
    "Shard",
    "__version__",
    "__version_info__",
    "ad",
    "copy_to_host_async",
    "ds",
    "fwd_and_bwd",
    "make_jaxpr",
    "print_environment_info",
    "typeof",
    "use_abstract_mesh",
]
__version__ = VERSION
__version_info__ = tuple(map(int, VERSION.split(".")))


ad: Final = SimpleNamespace(
    DidntWant=DidntWant, DontWant=DontWant, GradRef=GradRef, GradValue=GradValue
)


class CompilerEffortLevel(enum.Enum):
    """How much the compiler does, by whose names ``jax_optimization_level`` goes."""

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


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


def copy_to_host_async(x: Any) -> Any:
    """``x``, of whose arrays copies to the host have begun."""
    for leaf in phalanx.tree.leaves(x):
        begin = getattr(leaf, "copy_to_host_async", None)
        if begin is not None:
            begin()
    return x


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What gives the results of ``fun`` with residuals (and what ``has_aux`` says, last), and what
    makes of these and of cotangents those of the arguments ``argnums``; each is compiled once.

    >>> import phalanx
    >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, (0, 1))
    >>> product, residuals = fwd(2.0, 3.0)
    >>> print(*bwd(residuals, 1.0))
    3.0 2.0
    """
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def fwd(*args: Any) -> Any:
        def of_chosen(*moving: Any) -> Any:
            every = dict(enumerate(args)) | dict(zip(places, moving, strict=True))
            return fun(*every.values())

        places = [n % len(args) for n in chosen]
        out, back, *aux = phalanx.vjp(of_chosen, *[args[n] for n in places], has_aux=has_aux)
        return (out, back, *aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents[0] if isinstance(argnums, int) else cotangents

    return (phalanx.jit(fwd), phalanx.jit(bwd)) if jitted else (fwd, bwd)
