"""Derivatives that are given, of whatever origin, against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes, tree
from phalanx.base.source import name_of
from phalanx.core.types import typeof
from phalanx.laws.compare import DerivativeError, require_same
from phalanx.laws.derivatives import coarsest, differences, direction, inexact_part, pairing


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """``f_jvp(args, tangents)`` gives f and its slope: (f(x + h t) - f(x - h t)) / 2h.

    Args:
        f: a function of trees of arrays.
        f_jvp: as ``functools.partial(phalanx.jvp, f)``; integers have tangents of float0.
        args: where to check, in one random direction.
        atol: the largest difference; default by dtype.
        rtol: the same, relative to the largest element; default by dtype.
        eps: the step h; default by dtype.
        err_msg: what to say in front of the error.

    Raises:
        DerivativeError: a value or a tangent is wrong.

    >>> import functools, phalanx, phalanx.numpy as jnp
    >>> check_jvp(jnp.sin, functools.partial(phalanx.jvp, jnp.sin), (1.0,))
    """
    claim = _Claim("check_jvp", f, args, atol, rtol, eps, err_msg)
    value, tangents = f_jvp(tuple(args), claim.directions)
    claim.holds("the value", value, f(*args))
    claim.holds("the tangents", _inexact(tangents), claim.slope)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """``f_vjp(*args)`` gives f and L^T with <L^T c, t> = <c, slope of f along t>.

    Args:
        f: a function of trees of arrays.
        f_vjp: as ``functools.partial(phalanx.vjp, f)``.
        args: where to check, in one random direction.
        atol: the largest difference; default by dtype.
        rtol: the same, relative to the largest element; default by dtype.
        eps: the step h; default by dtype.
        err_msg: what to say in front of the error.

    Raises:
        DerivativeError: a value or a cotangent is wrong.

    >>> import functools, phalanx, phalanx.numpy as jnp
    >>> check_vjp(jnp.sin, functools.partial(phalanx.vjp, jnp.sin), (1.0,))
    """
    claim = _Claim("check_vjp", f, args, atol, rtol, eps, err_msg)
    value, pull = f_vjp(*args)
    claim.holds("the value", value, f(*args))
    leaves, treedef = tree.flatten(value)
    cotangents = treedef.unflatten([_direction(y, 1) for y in leaves])
    pulled = _inexact(pull(cotangents))
    left = pairing(_inexact(cotangents), claim.slope)
    claim.holds("<L^T c, t>", pairing(pulled, _inexact(claim.directions)), left)


class _Claim:
    """What finite differences say of f at args, and how near others must come."""

    def __init__(
        self,
        who: str,
        f: Callable[..., Any],
        args: Sequence[Any],
        atol: float | None,
        rtol: float | None,
        eps: float | None,
        err_msg: str,
    ) -> None:
        inner, xs = inexact_part(f, args)
        self.who = f"{err_msg}: {who}" if err_msg else who
        self.name = name_of(f)
        self.directions = tree.map(lambda x: _direction(x, 0), tuple(args))
        precision = coarsest([typeof(x) for x in xs])
        self.atol, self.rtol = (precision**0.4 if tol is None else tol for tol in (atol, rtol))
        h = eps or precision ** (1 / 3)
        self.slope, at_twice_the_step = differences(inner, xs, _inexact(self.directions), h)
        self.holds("the difference with a step of 2h and that of h", at_twice_the_step, self.slope)

    def holds(self, what: str, actual: Any, expected: Any) -> None:
        require_same(
            DerivativeError,
            f"{self.who}: {what} of {self.name}",
            actual,
            expected,
            rtol=self.rtol,
            atol=self.atol,
        )


def _direction(x: Any, seed: int) -> np.ndarray:
    kind = typeof(x)
    inexact = dtypes.is_inexact(kind.dtype)
    return direction(x, seed) if inexact else np.zeros(kind.shape, dtypes.float0)


def _inexact(xs: Any) -> list[Any]:
    return [x for x in tree.leaves(xs) if dtypes.is_inexact(typeof(x).dtype)]
