"""Checks of derivatives, with the parameters that tests of others give them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from phalanx.api.transformed import P
from phalanx.base.boundary import bound
from phalanx.core.types import typeof
from phalanx.laws.derivatives import check_to, coarsest, inexact_part
from phalanx.laws.given import check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]


def check_grads(
    f: Callable[P, Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Derivatives against finite differences: ``phalanx.laws.check_grads``, less strict.

    What is computed in float64 need only be right to the precision of the dtype of the arguments:
    a solver whose stopping rule is made for float32 is no nearer.

    Args:
        f: a function of trees of arrays; integers among its arguments and results are held fixed
            and left out.
        args: the point at which to check, away from kinks.
        order: how many times to differentiate.
        modes: ``"fwd"`` for jvp, ``"rev"`` for vjp, or both.
        atol: the largest difference; default by dtype.
        rtol: the same, relative to the largest element; default by dtype.
        eps: the step h; default by the dtype that is computed in.

    >>> import phalanx.numpy as jnp
    >>> check_grads(jnp.sin, (1.0,), order=2)
    """
    _, xs = inexact_part(f, args)
    tolerance = coarsest([typeof(x) for x in xs]) if xs else 0.0
    check_to(tolerance, f, args, order, modes, eps, atol, rtol)


bound(sys.modules[__name__])
