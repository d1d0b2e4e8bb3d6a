"""``jax.interpreters.batching``: rules for lanes of primitives that others declare."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from phalanx import numpy as jnp
from phalanx.api.lanes_by_class import CLASSES, LanesOfClass
from phalanx.compat.primitives import AXIS_BATCHERS, BATCHERS, FANCY_BATCHERS, ForeignPrimitive

primitive_batchers = BATCHERS
axis_primitive_batchers = AXIS_BATCHERS
fancy_primitive_batchers = FANCY_BATCHERS
not_mapped = None


def register_vmappable(
    data_type: type, spec_type: type, axis_size_type: type,
    to_elt: Callable[..., Any], from_elt: Callable[..., Any], make_iota: Any,
) -> None:  # fmt: skip
    """Let instances of ``data_type``, nodes of trees, say which of their leaves have lanes.

    Raises:
        NotImplementedError: their axes, or the size of them, are no integers.
    """
    del make_iota
    if (spec_type, axis_size_type) != (int, int):
        raise NotImplementedError(
            f"register_vmappable({data_type.__name__}): axes and sizes are integers here, got "
            f"{spec_type.__name__} and {axis_size_type.__name__}"
        )
    CLASSES[data_type] = LanesOfClass(to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Let all leaves of instances of ``data_type`` have lanes again."""
    del CLASSES[data_type]


def defvectorized(prim: ForeignPrimitive) -> None:
    """``prim`` of one operand treats every element alike."""

    def rule(values: Any, dims: Any, **params: Any) -> tuple[Any, Any]:
        return prim.bind(*values, **params), dims[0]

    BATCHERS[prim] = rule


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
