"""Ordinary differential equations, differentiated by their adjoint equations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx import lax
from phalanx.api.custom_vjp import closure_convert, custom_vjp
from phalanx.api.derivatives import vjp
from phalanx.api.vmap import vmap
from phalanx.base import dtypes, tree
from phalanx.base.boundary import bound
from phalanx.core.types import typeof
from phalanx.flatten_util import ravel_pytree

__all__ = ["odeint"]

# Dormand and Prince, J. Comput. Appl. Math. 6 (1980): the last row is the solution of order 5.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ORDER_4 = (5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)
_ERROR = tuple(a - b for a, b in zip((*_STAGES[-1], 0), _ORDER_4, strict=True))


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = jnp.inf,
    hmax: float = jnp.inf,
) -> Any:
    """The solution of an ordinary differential equation dy/dt = func(y, t, *args) at the times t,
    where y = y0 at t[0].

    By steps of the Runge-Kutta method of Dormand and Prince, as long as the tolerances allow; one
    ends at each of the times. In reverse mode the adjoint equation is solved, backwards in time
    (Chen et al., arXiv:1806.07366); there is no forward mode.

    Args:
        func: of y, a time and ``args``, to a tree like y. What it closes over is differentiated.
        y0: a tree of arrays.
        t: times, in any order.
        *args: trees of arrays.
        rtol: the error of a step that is allowed, relative to y.
        atol: the absolute error that is allowed; the two add up.
        mxstep: the most steps from one time to the next; there y is what was reached.
        hmax: the longest step.

    Returns:
        A tree like y0, whose arrays have the times as their first dimension.

    Raises:
        TypeError: ``func`` returns something else than y is, or an argument is no array.
        ValueError: t is no vector with elements.

    >>> from phalanx.experimental.ode import odeint
    >>> print(odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0]), rtol=1e-6).round(4))
    [1.     0.3679]
    """
    t = _inexact(t)
    if t.ndim != 1 or not t.size:
        raise ValueError(f"odeint: t must be a vector of times, got {typeof(t)}")
    y0 = tree.map(_inexact, y0)
    converted, consts = closure_convert(func, y0, t[0], *args)
    start, whole = ravel_pytree(y0)
    leaves, structure = tree.flatten((args, tuple(consts)))
    moving = [dtypes.is_inexact(typeof(x).dtype) for x in leaves]

    def slope(y: Any, time: Any, params: Sequence[Any]) -> Any:
        rest = iter(params)
        every = [next(rest) if m else x for x, m in zip(leaves, moving, strict=True)]
        new_args, new_consts = structure.unflatten(every)
        out = converted(whole(y), time, *new_args, *new_consts)
        types = [(t.shape, t.dtype) for t in map(typeof, tree.leaves(y0))]
        if tree.structure(out) != tree.structure(y0) or types != [
            (t.shape, dtypes.to_inexact(t.dtype)) for t in map(typeof, tree.leaves(out))
        ]:
            raise TypeError(
                f"odeint: func must return what y is, {tree.map(typeof, y0)}, got "
                f"{tree.map(typeof, out)}"
            )
        return ravel_pytree(out)[0].astype(start.dtype)

    limits = (rtol, atol, mxstep, hmax)
    parameters = [jnp.asarray(x) for x, m in zip(leaves, moving, strict=True) if m]

    @custom_vjp
    def solve(y: Any, t: Any, params: Any) -> Any:
        return _integrated(slope, y, t, params, limits)

    def forward(y: Any, t: Any, params: Any) -> Any:
        ys = _integrated(slope, y, t, params, limits)
        return ys, (ys, t, params)

    def backward(fixed: Any, cts: Any) -> Any:
        ys, t, params = fixed
        return _adjoint(slope, ys, t, params, cts, limits)

    solve.defvjp(forward, backward)
    return vmap(whole)(solve(start, t, parameters))


def _inexact(x: Any) -> Any:
    x = jnp.asarray(x)
    return x if dtypes.is_inexact(x.dtype) else x.astype(dtypes.to_inexact(x.dtype))


# ---- forward in time ------------------------------------------------------------------------

Slope = Callable[[Any, Any, Any], Any]


def _integrated(slope: Slope, y: Any, t: Any, args: Any, limits: tuple[float, ...]) -> Any:
    """y at all times."""
    rtol, atol, mxstep, hmax = limits

    def go_on(state: tuple[Any, ...]) -> Any:
        steps, target, now, length, *_ = state
        return (jnp.abs(target - now) > 0) & (steps < mxstep) & (length > 0)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        steps, target, now, length, y, f = state
        left = target - now
        last = length >= jnp.abs(left)
        h = jnp.where(last, left, jnp.copysign(length, left))
        new, g, error = _stages(slope, y, f, now, h, args)
        scale = atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(new))
        size = jnp.sqrt(jnp.mean(jnp.square(jnp.abs(error) / scale)))
        taken = size <= 1  # not so, where it is NaN
        grown = jnp.clip(0.9 * jnp.maximum(size, 1e-10) ** -0.2, 0.2, 10.0)
        factor = jnp.where(jnp.isnan(size), 0.2, jnp.where(taken, jnp.maximum(grown, 1.0), grown))
        # a step that only had to end here says little about how long the next may be
        next_length = jnp.abs(h) * factor
        longer = jnp.where(last & taken, jnp.maximum(length, next_length), next_length)
        later = jnp.where(last, target, now + h)
        return (
            steps + 1,
            target,
            jnp.where(taken, later, now),
            jnp.minimum(longer, hmax).astype(length.dtype),
            jnp.where(taken, new, y),
            jnp.where(taken, g, f),
        )

    def to_next(carry: tuple[Any, ...], target: Any) -> tuple[Any, Any]:
        *_, length, y, f = lax.while_loop(go_on, step, (0, target, *carry))
        return (target, length, y, f), y

    f = slope(y, t[0], args)
    way = jnp.where(t[-1] < t[0], -1, 1).astype(t.dtype)
    length = _first_step(slope, y, f, t[0], way, args, rtol, atol)
    first = (t[0], jnp.minimum(length, hmax).astype(t.dtype), y, f)
    _, rest = lax.scan(to_next, first, t[1:])
    return jnp.concatenate([y[None], rest])


def _stages(slope: Slope, y: Any, f: Any, now: Any, h: Any, args: Any) -> tuple[Any, Any, Any]:
    """y after a step of length h, its slope there, and the error."""
    slopes, new = [f], y
    for time, weights in zip(_TIMES, _STAGES, strict=True):
        pairs = zip(weights, slopes, strict=True)
        new = y + (h * sum(w * k for w, k in pairs)).astype(y.dtype)
        slopes.append(slope(new, now + time * h, args))
    error = h * sum(w * k for w, k in zip(_ERROR, slopes, strict=True))
    return new, slopes[-1], error


def _first_step(
    slope: Slope, y: Any, f: Any, now: Any, way: Any, args: Any, rtol: float, atol: float
) -> Any:
    """A length to begin with, forwards or backwards in time as ``way`` is 1 or -1.

    Hairer, Nørsett and Wanner, Solving ODEs I, section II.4.
    """
    scale = atol + rtol * jnp.abs(y)
    size, speed = _norm(y / scale), _norm(f / scale)
    small = (size < 1e-5) | (speed < 1e-5)
    h = jnp.where(small, 1e-6, 0.01 * size / jnp.where(small, 1, speed))
    ahead = slope(y + (way * h * f).astype(y.dtype), now + way * h, args)
    bend = jnp.maximum(_norm((ahead - f) / scale) / h, speed)
    flat = bend <= 1e-15
    other = jnp.where(flat, jnp.maximum(1e-6, h * 1e-3), (0.01 / jnp.where(flat, 1, bend)) ** 0.2)
    return jnp.minimum(100 * h, other)


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.sum(jnp.square(jnp.abs(x))))


# ---- the adjoint equation -------------------------------------------------------------------


def _adjoint(
    slope: Slope, ys: Any, t: Any, args: Any, cts: Any, limits: tuple[float, ...]
) -> tuple[Any, Any, Any]:
    """The cotangents of y0, of the times and of the arguments."""
    zeros = tree.map(jnp.zeros_like, args)
    first, whole = ravel_pytree((ys[0], cts[0], t[0], zeros))

    def backwards(state: Any, minus: Any, args: Any) -> Any:
        y, ct, _, _ = whole(state)
        f, pull = vjp(slope, y, -minus, args)
        by_y, by_time, by_args = pull(ct)
        return ravel_pytree((-f, by_y, by_time, by_args))[0].astype(first.dtype)

    def to_previous(carry: Any, row: Any) -> tuple[Any, Any]:
        ct, by_start, by_args = carry
        y, time, own_ct, before, ct_before = row
        by_end = jnp.real(jnp.sum(slope(y, time, args) * own_ct)).astype(t.dtype)
        state, _ = ravel_pytree((y, ct, by_start - by_end, by_args))
        times = jnp.stack([-time, -before])
        _, ct, by_start, by_args = whole(_integrated(backwards, state, times, args, limits)[-1])
        return (ct + ct_before, by_start, by_args), by_end

    rows = (ys[1:], t[1:], cts[1:], t[:-1], cts[:-1])
    start = (cts[-1], np.zeros((), t.dtype), zeros)
    (ct, by_start, by_args), by_times = lax.scan(to_previous, start, rows, reverse=True)
    return ct, jnp.concatenate([by_start[None], by_times]), by_args


bound(sys.modules[__name__])
