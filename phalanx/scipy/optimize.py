"""Minima of functions of several variables."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.core.primitive import Linear
from phalanx.core.types import typeof
from phalanx.primitives.basis import instantiate
from phalanx.transforms.linearize import linearize
from phalanx.transforms.transpose import backward

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """What a minimization found.

    Attributes:
        x: where the function is smallest.
        success: whether the gradient is small there.
        status: 0 if so; 1 if there were too many steps, 5 if a line search took too many.
        fun: the value there.
        jac: the gradient there.
        hess_inv: an approximation of the inverse of the Hessian.
        nfev: how often the function was computed.
        njev: how often the gradient was.
        nit: how many steps there were.

    >>> from phalanx.scipy import optimize
    >>> found = optimize.minimize(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(2), method="BFGS")
    >>> bool(found.success), found.x.round(3).tolist()
    (True, [1.0, 1.0])
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """The x near x0 for which fun(x, *args) is smallest, by the method of BFGS.

    Nocedal and Wright, Numerical Optimization, algorithm 6.1; steps satisfy the conditions of
    Wolfe, found by bisection (Lewis and Overton, Math. Program. 141 (2013)).

    Args:
        fun: from a vector to a real scalar.
        x0: a vector.
        args: further arguments of ``fun``.
        method: 'BFGS'.
        tol: the norm of the gradient at which to stop; 1e-5 if not given.
        options: ``gtol``, in place of tol; ``norm``, the order of the norm of the gradient;
            ``maxiter``, the most steps; ``line_search_maxiter``, the most in one search.

    Returns:
        An ``OptimizeResults``: the point ``x``, the value ``fun`` there, and how it went.

    Raises:
        TypeError: ``args`` is no tuple, or ``fun`` does not return a real scalar.
        ValueError: there is no such method or option, or x0 is no vector.

    >>> from phalanx.scipy.optimize import minimize
    >>> found = minimize(lambda x: jnp.sum((x - 2) ** 2), jnp.zeros(2), method="BFGS")
    >>> print(found.x.round(3), found.success)
    [2. 2.] True
    """
    if not isinstance(method, str) or method.lower() != "bfgs":
        raise ValueError(f"minimize: method must be 'BFGS', got {method!r}")
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple, got {args!r}")
    x = jnp.asarray(x0)
    if x.ndim != 1:
        raise ValueError(f"minimize: x0 must be a vector, got {typeof(x)}")
    x = x if dtypes.is_inexact(x.dtype) else x.astype(dtypes.to_inexact(x.dtype))
    known: dict[str, Any] = {
        "gtol": 1e-5 if tol is None else tol,
        "norm": jnp.inf,
        "maxiter": 200 * x.size,
        "line_search_maxiter": 30,
    }
    if unknown := {*(options or {})} - {*known}:
        raise ValueError(
            f"minimize: options must be among {', '.join(known)}, got {', '.join(sorted(unknown))}"
        )
    settings = known | {k: v for k, v in (options or {}).items() if v is not None}
    return _bfgs(lambda v: _value_and_slope(fun, v, args), x, **settings)


def _value_and_slope(fun: Callable[..., Any], x: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
    def flat(v: Any) -> list[Any]:
        out = jnp.asarray(fun(v, *args))
        if out.shape or not dtypes.is_floating(out.dtype):
            raise TypeError(f"minimize: fun must return a real scalar, got {typeof(out)}")
        return [out]

    (value,), linear = linearize(flat, [x], [True])
    ones = [jnp.ones((), value.dtype)] * sum(linear.nonzero)
    (slope,) = backward(linear.program, [*linear.residuals, Linear(typeof(x))], ones)
    return value, instantiate(slope, typeof(x))


class _State(NamedTuple):
    steps: Any
    calls: Any
    failed: Any
    x: Any
    value: Any
    slope: Any
    inverse: Any


def _bfgs(
    both: Callable[[Any], tuple[Any, Any]],
    x: Any,
    gtol: float,
    norm: Any,
    maxiter: int,
    line_search_maxiter: int,
) -> OptimizeResults:
    def small(slope: Any) -> Any:
        return jnp.linalg.norm(slope, norm) <= gtol if slope.size else jnp.asarray(True)

    def go_on(state: _State) -> Any:
        return (state.steps < maxiter) & ~state.failed & ~small(state.slope)

    def step(state: _State) -> _State:
        direction = -(state.inverse @ state.slope)
        length, calls, found = _line_search(both, state, direction, line_search_maxiter)
        x = state.x + length * direction
        value, slope = both(x)
        s, y = x - state.x, slope - state.slope
        sy = s @ y
        rho = jnp.where(sy > 0, 1 / jnp.where(sy > 0, sy, 1), 0)
        keep = jnp.eye(x.size, dtype=x.dtype) - rho * jnp.outer(s, y)
        inverse = keep @ state.inverse @ keep.T + rho * jnp.outer(s, s)
        return _State(
            state.steps + 1, state.calls + calls + 1, ~found, x, value, slope,
            jnp.where(sy > 0, inverse, state.inverse),
        )  # fmt: skip

    value, slope = both(x)
    inverse = jnp.eye(x.size, dtype=x.dtype)
    no = jnp.asarray(False)
    end = lax.while_loop(go_on, step, _State(0, 1, no, x, value, slope, inverse))
    success = small(end.slope)
    status = jnp.where(success, 0, jnp.where(end.failed, 5, 1))
    return OptimizeResults(
        end.x, success, status, end.value, end.slope, end.inverse, end.calls, end.calls, end.steps
    )


def _line_search(
    both: Callable[[Any], tuple[Any, Any]], start: _State, direction: Any, most: int
) -> tuple[Any, Any, Any]:
    """A length of a step along ``direction``, how often it was tried, and whether it was found.

    The value must fall by a part of what the slope promises, and the slope must rise.
    """
    promised = start.slope @ direction
    one = jnp.ones((), start.x.dtype)

    def go_on(state: tuple[Any, ...]) -> Any:
        tries, _, _, _, found = state
        return (tries < most) & ~found

    def bisect(state: tuple[Any, ...]) -> tuple[Any, ...]:
        tries, low, high, length, _ = state
        value, slope = both(start.x + length * direction)
        falls = value <= start.value + 1e-4 * length * promised  # not so, where it is NaN
        rises = slope @ direction >= 0.9 * promised
        low = jnp.where(falls & ~rises, length, low)
        high = jnp.where(falls, high, length)
        between = jnp.where(jnp.isinf(high), 2 * low, (low + high) / 2)
        found = falls & rises
        return tries + 1, low, high, jnp.where(found, length, between), found

    begin = (0, 0 * one, jnp.inf * one, one, jnp.asarray(False))
    tries, low, _, length, found = lax.while_loop(go_on, bisect, begin)
    return jnp.where(found, length, low), tries, found


bound(sys.modules[__name__])
