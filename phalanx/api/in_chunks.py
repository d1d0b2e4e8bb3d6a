"""``vmap`` with a few examples at a time: the function is traced once, and kept for later calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

from phalanx.api.arguments import Flat
from phalanx.api.reproducible_lanes import inside_lanes, is_reproducible, refuse_other_orders
from phalanx.base.source import name_of, user_location
from phalanx.control.chunks import AtOnce
from phalanx.control.vectorized import vectorized
from phalanx.core.layouts import along
from phalanx.core.refs import Ref, refuse_aliases, refuse_differing, store_all
from phalanx.core.roles import FIXED, Roles, slices
from phalanx.core.trace import Tracer
from phalanx.core.types import typeof
from phalanx.lax.bodies import TracedBody, remembered
from phalanx.transforms.batch import Dims, lane_type
from phalanx.transforms.replication import varying_outputs
from phalanx.transforms.stage import is_value, loaded, stage_with_refs


def checked_at_once(at_once: Any, who: str) -> AtOnce:
    """How many lanes run together, as the user says; TypeError or ValueError if that is nothing."""
    if at_once is None or (isinstance(at_once, str) and at_once == "all"):
        return at_once
    problem = (
        f"{who}: lanes_at_once must be a positive integer, 'all', or None for what serves best"
    )
    if isinstance(at_once, bool) or not isinstance(at_once, SupportsIndex):
        raise TypeError(f"{problem}; got {at_once!r} at {user_location()}")
    count = operator.index(at_once)
    if count < 1:
        raise ValueError(f"{problem}; got {count} at {user_location()}")
    return count


def in_chunks(
    flat: Flat,
    axis: tuple[Any, int],
    leaves: Sequence[Any],
    dims: Dims,
    at_once: AtOnce,
    passed: Sequence[Ref],
    out_dims: Callable[[list[int]], Sequence[int | None]],
    keep_known: bool = False,
) -> tuple[list[Any], list[int | None]]:
    """What ``flat`` gives in the lanes of ``axis``, which lie in ``dims`` of ``leaves``.

    Results that differ between lanes have them first. References are not among the leaves, but what
    those hold that are ``passed`` as arguments; others from outside hold in the end what the lanes
    agree on. ``out_dims``: where the user asks for the lanes, of the ranks in one lane. Where
    ``keep_known``, what all lanes share and is known stays so.
    """
    traced_too = [not keep_known or d is not None or isinstance(x, Tracer)
                  for x, d in zip(leaves, dims, strict=True)]  # fmt: skip
    arrays = [i for i, x in enumerate(leaves) if traced_too[i] and is_value(x)]
    values, places = [leaves[i] for i in arrays], [dims[i] for i in arrays]
    types = [
        typeof(x) if d is None else lane_type(typeof(x), d)
        for x, d in zip(values, places, strict=True)
    ]

    def lane(*own: Any) -> list[Any]:
        in_lane = [*leaves]
        for i, x in zip(arrays, own, strict=True):
            in_lane[i] = x
        return flat(*in_lane)

    def trace() -> TracedBody:
        with inside_lanes(at_once, on_operands=True):
            program, captured, written = stage_with_refs(lane, types, name_of(flat.fun))
        if is_reproducible(at_once):
            refuse_other_orders(program, flat.who, on_devices=False)
        return TracedBody(program, captured, flat.out_tree, written, flat.stored)

    key = (flat.who, flat.in_tree, axis, at_once, *types, *places, *flat.refs)
    all_arrays = len(arrays) == len(leaves)  # whatever else there is may change
    traced = remembered((flat.fun,), key, trace) if all_arrays else trace()
    refuse_aliases(passed, traced.captured, flat.who)
    flat.out_tree, flat.stored = traced.out_tree, traced.stored
    name, _ = axis
    ins: Roles = (*[FIXED] * len(traced.captured), *[slices(along(d, name)) for d in places])
    varying = varying_outputs(traced.program, [r.axes for r in ins])
    lanes = [0 if name in over else None for over in varying]
    if is_reproducible(at_once):
        # Each lane gives what all share, like those of pmap: so its cotangents are added in order.
        count = len(traced.written)
        requested = out_dims([t.ndim for t in traced.program.output_types[count:]])
        lanes[count:] = [
            dim if to is None else 0 for dim, to in zip(lanes[count:], requested, strict=True)
        ]
    for (ref, where), dim in zip(traced.written.items(), lanes, strict=False):
        if dim is not None:
            refuse_differing(ref, where, flat.who)
    out = vectorized(
        *loaded(traced.captured), *values, program=traced.program, axes=(axis,), ins=ins,
        outs=tuple([slices(along(d, name)) for d in lanes]), at_once=at_once,
    )  # fmt: skip
    return [*store_all(traced.written, (), out)], lanes[len(traced.written) :]
