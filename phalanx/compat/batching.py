"""``jax.interpreters.batching``: rules for lanes of primitives that others declare."""

from __future__ import annotations

import functools
from typing import Any

from phalanx import numpy as jnp
from phalanx.compat.primitives import AXIS_BATCHERS, BATCHERS, FANCY_BATCHERS, ForeignPrimitive

primitive_batchers = BATCHERS
axis_primitive_batchers = AXIS_BATCHERS
fancy_primitive_batchers = FANCY_BATCHERS
not_mapped = None


def defvectorized(prim: ForeignPrimitive) -> None:
    """``prim`` of one operand treats every element alike."""
    BATCHERS[prim] = lambda values, dims, **params: (prim.bind(*values, **params), dims[0])


def defbroadcasting(prim: ForeignPrimitive) -> None:
    """``prim`` of several operands treats every element alike."""
    BATCHERS[prim] = functools.partial(_on_rows, prim)


def _on_rows(prim: ForeignPrimitive, values: Any, dims: Any, **params: Any) -> Any:
    size = next(x.shape[d] for x, d in zip(values, dims, strict=True) if d is not None)
    rows = [bdim_at_front(x, d, size) for x, d in zip(values, dims, strict=True)]
    return prim.bind(*rows, **params), 0


def defreducer(prim: ForeignPrimitive, *_: Any) -> None:
    """``prim`` of one operand reduces its dimensions ``axes``."""
    BATCHERS[prim] = functools.partial(_reduced_in_lanes, prim)


def _reduced_in_lanes(
    prim: ForeignPrimitive, values: Any, dims: Any, *, axes: Any, **params: Any
) -> Any:
    x = jnp.moveaxis(values[0], dims[0], 0)
    return prim.bind(x, axes=tuple([a + 1 for a in axes]), **params), 0


def broadcast(x: Any, sz: int, axis: int, *_: Any) -> Any:
    """``x`` for each of ``sz`` lanes, along a new dimension ``axis``."""
    return jnp.repeat(jnp.expand_dims(x, axis), sz, axis)


def moveaxis(x: Any, src: int, dst: int) -> Any:
    """``x`` with its dimension ``src`` at ``dst``."""
    return jnp.moveaxis(x, src, dst)


def bdim_at_front(x: Any, bdim: int | None, size: int, *_: Any) -> Any:
    """``x`` with its lanes in front; where it has none, for each of ``size``."""
    return broadcast(x, size, 0) if bdim is None else jnp.moveaxis(x, bdim, 0)
