"""Checks of derivatives, with the parameters that tests of others give them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from phalanx import laws
from phalanx.api.transformed import P
from phalanx.base.boundary import bound
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
    """Derivatives against finite differences: ``phalanx.laws.check_grads``.

    Args:
        f: a function of trees of arrays; integers among its arguments and results are held fixed
            and left out.
        args: the point at which to check, away from kinks.
        order: how many times to differentiate.
        modes: ``"fwd"`` for jvp, ``"rev"`` for vjp, or both.
        atol: the largest difference; default by dtype.
        rtol: the same, relative to the largest element; default by dtype.
        eps: the step h; default by dtype.

    >>> import phalanx.numpy as jnp
    >>> check_grads(jnp.sin, (1.0,), order=2)
    """
    laws.check_grads(f, args, order, modes, eps, atol, rtol)


bound(sys.modules[__name__])
