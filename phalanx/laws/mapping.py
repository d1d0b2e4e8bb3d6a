"""Mapped functions against loops and each other, and compiled ones against the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from phalanx.api.derivatives import jvp, vjp
from phalanx.api.jit import jit
from phalanx.api.pmap import pmap
from phalanx.api.transformed import P
from phalanx.api.vmap import is_none, vmap
from phalanx.base import tree
from phalanx.base.kinds import is_list
from phalanx.base.source import name_of
from phalanx.core.types import typeof
from phalanx.laws.compare import (
    BatchError,
    JitError,
    LawBroken,
    PmapError,
    of_numpy,
    require_same,
    stacked,
    to_numpy,
)
from phalanx.laws.derivatives import MODES, direction, inexact_part
from phalanx.run.eager import as_array


def check_batch(
    f: Callable[..., Any],
    args: Sequence[Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Check that vmap(f)(x)[i] = f(x[i])

    Args:
        f: a function of trees of arrays, without collectives over the mapped axis.
        args: its arguments, with the mapped axis.
        in_axes: which axis of each argument is mapped, as in ``vmap``.
        out_axes: where the axis goes in each result.
        atol: the largest difference; default by dtype.
        rtol: the same, relative to the largest element; default by dtype.

    Raises:
        BatchError: vectorization and the loop disagree.

    >>> import phalanx.numpy as jnp
    >>> check_batch(jnp.dot, (jnp.ones((2, 3)), jnp.arange(3.0)), in_axes=(0, None))
    """
    who = f"check_batch({name_of(f)})"
    args = tree.map(as_array, tuple(args))
    actual = jit(vmap(f, in_axes=in_axes, out_axes=out_axes))(*args)
    leaves, treedef = tree.flatten(args)
    dims: list[Any] = tree.broadcast_prefix(_spec(in_axes), args, who, is_leaf=is_none)
    size = next(_length(x, d) for x, d in zip(leaves, dims, strict=True) if d is not None)
    lanes = [
        f(*treedef.unflatten([_lane(x, d, i) for x, d in zip(leaves, dims, strict=True)]))
        for i in range(size)
    ]
    flat = [tree.leaves(lane) for lane in lanes]
    places = tree.broadcast_prefix(_spec(out_axes), lanes[0], who, is_leaf=is_none)
    expected = tree.structure(lanes[0]).unflatten(
        [
            ys[0] if to is None else stacked(ys, to)
            for ys, to in zip(zip(*flat, strict=True), places, strict=True)
        ]
    )
    require_same(BatchError, f"{who}: vmap and loop", actual, expected, rtol=rtol, atol=atol)


def _length(x: Any, dim: int) -> int:
    return typeof(x).shape[dim]


def _spec(axes: Any) -> Any:
    return tuple(axes) if is_list(axes) else axes


def _lane(x: Any, dim: int | None, i: int) -> Any:
    if dim is None:
        return x
    kind = typeof(x)
    return as_array(of_numpy(np.take(to_numpy(x), i, axis=dim % kind.ndim), kind.dtype))


def _itself(h: Any) -> Any:
    return h


def check_jit(
    f: Callable[P, Any],
    args: Sequence[Any],
    order: int = 0,
    atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Check that jit(f) = f, and their derivatives to ``order``.

    Args:
        f: a function of trees of arrays.
        args: its arguments.
        order: how many times to differentiate.
        atol: the largest difference; default by dtype.
        rtol: the same, relative to the largest element; default by dtype.

    Raises:
        JitError: the compiled function gives something else.

    >>> import phalanx.numpy as jnp
    >>> check_jit(jnp.tanh, (jnp.arange(3.0),))
    """
    who = f"check_jit({name_of(f)}): jit(f) and f"
    tolerances = {"rtol": rtol, "atol": atol}
    _check_equal(JitError, who, jit(f), f, args, order, tolerances, _itself)


def check_pmap(
    f: Callable[P, Any],
    args: Sequence[Any],
    axis_name: Any = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    order: int = 1,
    atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Check the pmap law: pmap(f) = vmap(f), and their derivatives to ``order``.

    Args:
        f: a function of trees of arrays, of one lane.
        args: its arguments, with the mapped axis.
        axis_name: the name by which collectives in ``f`` refer to the axis.
        in_axes: which axis of each argument is mapped, as in ``pmap``.
        out_axes: where the axis goes in each result, as in ``pmap``.
        order: how many times to differentiate, forward and in reverse, from outside.
        atol: the largest difference; default by dtype.
        rtol: the same, relative to the largest element; default by dtype.

    Raises:
        PmapError: the two disagree.

    >>> import phalanx, phalanx.numpy as jnp
    >>> check_pmap(lambda x: x / phalanx.lax.psum(x, "i"), (jnp.ones((2, 3)),), "i")
    """
    who = f"check_pmap({name_of(f)}): pmap(f) and vmap(f)"
    mapped = pmap(f, axis_name, in_axes=in_axes, out_axes=out_axes)
    local = vmap(f, axis_name=axis_name, in_axes=in_axes, out_axes=out_axes)
    tolerances = {"rtol": rtol, "atol": atol}
    _check_equal(PmapError, who, mapped, jit(local), args, order, tolerances, jit)


def _check_equal(
    error: type[LawBroken],
    who: str,
    f: Callable[..., Any],
    g: Callable[..., Any],
    arguments: Sequence[Any],
    order: int,
    tolerances: dict[str, float | None],
    stage: Callable[..., Any],
) -> None:
    """Raise ``error`` unless f(x) = g(x), and their jvp and vjp, to ``order``.

    ``stage`` is applied to the functions that compute the derivatives.
    """
    args = tree.map(as_array, tuple(arguments))
    require_same(error, who, f(*args), g(*args), **tolerances)
    (flat_f, xs), (flat_g, _) = inexact_part(f, args), inexact_part(g, args)
    if order == 0 or not xs:
        return
    actual, expected = (
        stage(partial(all_derivatives, h, order=order))(xs) for h in (flat_f, flat_g)
    )
    for name in expected:
        require_same(error, f"{who}, {name}", actual[name], expected[name], **tolerances)


def all_derivatives(
    h: Callable[..., list[Any]],
    xs: list[Any],
    order: int,
    modes: Sequence[str] = MODES,
    of: str = "",
) -> dict[str, list[Any]]:
    """All derivatives of h at x to an order, along fixed directions, by name."""
    if order == 0:
        return {}
    ts = [direction(x, order) for x in xs]
    cts = [direction(y, order) for y in h(xs)]

    def forward(xs: list[Any]) -> list[Any]:
        return jvp(h, (xs,), (ts,))[1]

    def reverse(xs: list[Any]) -> list[Any]:
        return vjp(h, xs)[1](cts)[0]

    found: dict[str, list[Any]] = {}
    for mode, name, along in ((MODES[0], "jvp", forward), (MODES[1], "vjp", reverse)):
        if mode in modes:
            found[name + of] = along(xs)
            found |= all_derivatives(along, xs, order - 1, modes, f" of {name}{of}")
    return found
