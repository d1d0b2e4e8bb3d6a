"""Communication between the lanes of a named axis.

Each primitive has one batching rule, and it serves ``vmap(axis_name=)`` wherever the lanes of
the axis lie in an array dimension. To keep the rules short, the primitives have a canonical
form: ``all_gather`` makes, ``psum_scatter`` and ``all_to_all`` take the axis as the leading
dimension; ``phalanx.lax`` moves dimensions to where the user wants them.

``axes`` names the axes, ``sizes`` their sizes, row-major; ``groups`` partitions the positions
of a single axis. In the formulas, x_l is the value in lane l.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.core.axes import Axis, without
from phalanx.core.primitive import ZERO, Example, NoRule, Primitive, Rule, ZeroDerivative
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import (
    I32,
    Domain,
    broadcast_lanes,
    check_domain,
    convert,
    f32,
    move,
    mul,
    number,
    reduce_sum,
    reshape,
    transpose,
    zeros,
)
from phalanx.ops.compare import eq, ordered
from phalanx.ops.elementwise import div
from phalanx.ops.index import GatherNumbers, gather
from phalanx.ops.reduce import reduce_max, reduce_min
from phalanx.ops.shape import concatenate, iota

Groups = tuple[tuple[int, ...], ...] | None


def _axes_of(params: dict[str, Any]) -> frozenset:
    return frozenset(params["axes"])


def lanes_at(x: Any, positions: Sequence[int]) -> Any:
    """out[i] = x[positions[i]] along the leading dimension; the positions are constants."""
    shape = typeof(x).shape
    if list(positions) == list(range(shape[0])):
        return x
    numbers = GatherNumbers(
        offset_dims=tuple(range(1, len(shape))),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
    )
    indices = np.asarray(positions, np.int32).reshape(-1, 1)
    return gather(x, indices, numbers=numbers, slice_sizes=(1, *shape[1:]), mode="promise")


def _leading(x: Any, dim: int | None, size: int) -> Any:
    """``x`` with its lanes leading, repeated if it has none."""
    return broadcast_lanes(x, 0, size) if dim is None else move(x, dim, 0)


def _position_table(groups: tuple[tuple[int, ...], ...]) -> dict[int, tuple[tuple[int, ...], int]]:
    """Of each lane: its group and its position in it."""
    return {lane: (group, i) for group in groups for i, lane in enumerate(group)}


# ---- reductions -----------------------------------------------------------------------------


def _reduce_groups(x: Any, groups: tuple, local: Callable) -> Any:
    """Reduce the leading lanes of ``x`` within each group; every member gets the result."""
    parts = []
    for group in groups:
        total = local(lanes_at(x, group))
        parts.append(broadcast_lanes(total, 0, len(group)))
    order = [lane for group in groups for lane in group]
    back = sorted(range(len(order)), key=order.__getitem__)
    joined = concatenate(*parts, dim=0) if len(parts) > 1 else parts[0]
    return lanes_at(joined, back)


def _lower_reduction(b: Any, xs: Sequence, partitions: tuple, combine: Callable) -> list:
    """One variadic operation for the operands of each dtype."""
    out: list[Any] = [None] * len(xs)
    for dtype in dict.fromkeys(t.dtype for t in b.outs):
        here = [i for i, t in enumerate(b.outs) if t.dtype == dtype]
        found = b.all_reduce(
            [xs[i] for i in here], partitions, lambda b, x, y: [combine(b, x, y)]
        )
        for i, value in zip(here, found, strict=True):
            out[i] = value
    return out


def _reduction_varies(*operands: frozenset, axes: tuple, groups: Groups) -> tuple:
    if groups is not None:
        return tuple(v | set(axes) for v in operands)
    return tuple(v - set(axes) for v in operands)


def _reduction(
    name: str,
    combine: Callable,
    local: Callable,
    repeated: Callable,
    *,
    on: Domain,
    doc: str,
    linearize: Rule,
    transpose: Rule | NoRule,
) -> Primitive:
    """Declare an all-reduce of several operands at once.

    ``combine(b, x, y)`` lowers the reduction of two elements, ``local(x)`` reduces the
    leading lanes, ``repeated(x, n)`` reduces n copies of x.
    """

    def batch_one(axis: Axis, x: Any, dim: int | None, groups: Groups) -> tuple:
        if groups is not None:
            return _reduce_groups(_leading(x, dim, axis.size), groups, local), 0
        if dim is None:
            return repeated(x, axis.size), None
        return local(move(x, dim, 0)), None

    def batch(
        axis: Axis, xs: Sequence, dims: Sequence, *, axes: tuple, groups: Groups
    ) -> tuple[Any, Any]:
        if axis.name not in axes:
            return prim(*xs, axes=axes, groups=groups), dims
        pairs = [batch_one(axis, x, d, groups) for x, d in zip(xs, dims, strict=True)]
        values, out = [v for v, _ in pairs], tuple(d for _, d in pairs)
        rest = without(axes, axis.name) + axis.rest
        return (prim(*values, axes=rest, groups=None) if rest else values), out

    def type_rule(*types: ArrayType, axes: tuple, groups: Groups) -> tuple:
        for t in types:
            check_domain(name, t, on)
        return tuple(t.update(weak=False) for t in types)

    prim = Primitive(
        name,
        type_rule,
        lambda b, *xs, axes, groups: _lower_reduction(
            b, xs, b.replica_groups(axes, groups), combine
        ),
        linearize=linearize,
        transpose=transpose,
        batch=batch,
        vary=_reduction_varies,
        axes=_axes_of,
        multi=True,
        doc=doc,
        examples=[
            Example((f32(3), f32(2, 3)), {"axes": ("i",), "groups": None}, axes=(("i", 4),)),
            Example((f32(3),), {"axes": ("i",), "groups": ((0, 2), (1, 3))}, axes=(("i", 4),)),
        ],
    )
    return prim


def _nonzero(bind: Callable, ts: Sequence) -> tuple:
    """Apply the multi-operand ``bind`` to the tangents or cotangents that are not ZERO."""
    found = iter(bind(*(t for t in ts if t is not ZERO)))
    return tuple(t if t is ZERO else next(found) for t in ts)


def _psum_linearize(*xs: Any, **params: Any) -> tuple:
    return psum(*xs, **params), lambda *ts: _nonzero(lambda *nz: psum(*nz, **params), ts)


def _extremum_linearize(prim: Callable[[], Primitive]) -> Rule:
    """The tangent at the extremum: the mean over the lanes that attain it."""

    def rule(*xs: Any, **params: Any) -> tuple:
        outs = prim()(*xs, **params)
        masks = [
            convert(eq(x, m), dtype=typeof(x).dtype, weak=False)
            for x, m in zip(xs, outs, strict=True)
        ]
        counts = psum(*masks, **params)
        factors = [div(m, c) for m, c in zip(masks, counts, strict=True)]

        def linear(*ts: Any) -> tuple:
            scaled = [
                t if t is ZERO else mul(t, f) for t, f in zip(ts, factors, strict=True)
            ]
            return _nonzero(lambda *nz: psum(*nz, **params), scaled)

        return outs, linear

    return rule


psum = _reduction(
    "psum",
    lambda b, x, y: b.add(x, y),
    lambda x: reduce_sum(x, dims=(0,)),
    lambda x, n: mul(x, n),
    on=number,
    linearize=_psum_linearize,
    transpose=lambda cts, *xs, **params: _nonzero(lambda *nz: psum(*nz, **params), cts),
    doc="sum_l x_l in every lane; stablehlo.all_reduce with add",
)

pmax = _reduction(
    "pmax",
    lambda b, x, y: b.maximum(x, y),
    lambda x: reduce_max(x, dims=(0,)),
    lambda x, n: x,
    on=ordered,
    linearize=_extremum_linearize(lambda: pmax),
    transpose=NoRule("a maximum is not linear"),
    doc="max_l x_l in every lane; stablehlo.all_reduce with maximum",
)

pmin = _reduction(
    "pmin",
    lambda b, x, y: b.minimum(x, y),
    lambda x: reduce_min(x, dims=(0,)),
    lambda x, n: x,
    on=ordered,
    linearize=_extremum_linearize(lambda: pmin),
    transpose=NoRule("a minimum is not linear"),
    doc="min_l x_l in every lane; stablehlo.all_reduce with minimum",
)


# ---- exchanges: one operand, linear, the axis as the leading dimension ------------------------


def group_size(sizes: tuple[int, ...], groups: Groups) -> int:
    """How many lanes exchange values with each other."""
    return len(groups[0]) if groups is not None else math.prod(sizes)


def _exchange(
    name: str,
    type: Rule,
    lower: Rule,
    *,
    transpose: Callable,
    batch: Callable,
    batch_groups: Callable,
    vary: Callable,
    takes_axis: bool,
    doc: str,
) -> Primitive:
    """Declare an exchange.

    ``batch(x, k, sizes, again)`` treats lanes (leading in x) of axis k of ``sizes``;
    ``again(y)`` exchanges over the other axes, if there are any. ``batch_groups(x, groups)``
    treats lanes that exchange within groups. Each returns a value and its lane dimension.
    """

    def batch_rule(
        axis: Axis, xs: Sequence, dims: Sequence, *, axes: tuple, sizes: tuple, groups: Groups
    ) -> tuple:
        (x,), (dim,) = xs, dims
        if axis.name not in axes:
            return _bystander(x, dim, axes, sizes, groups)
        x = _leading(x, dim, axis.size)
        if groups is not None:
            return batch_groups(x, groups)
        k = axes.index(axis.name)
        rest, rest_sizes = axes[:k] + axes[k + 1 :], sizes[:k] + sizes[k + 1 :]

        def again(y: Any) -> Any:
            return prim(y, axes=rest, sizes=rest_sizes, groups=None) if rest else None

        return batch(x, k, sizes, again)

    def _bystander(x: Any, dim: int, axes: tuple, sizes: tuple, groups: Groups) -> tuple:
        """Another axis is being vectorized: its lanes ride along, behind the exchanged one."""
        at = 1 if takes_axis else 0
        out = prim(move(x, dim, at), axes=axes, sizes=sizes, groups=groups)
        return out, {"all_gather": 1, "psum_scatter": 0, "all_to_all": 1}[name]

    def transpose_rule(ct: Any, x: Any, **params: Any) -> list:
        return [transpose(ct, **params)]

    def linearize(x: Any, **params: Any) -> tuple:
        return prim(x, **params), lambda t: prim(t, **params)

    operand = f32(4, 3) if takes_axis else f32(3)
    half = f32(2, 3) if takes_axis else f32(3)
    params = {"axes": ("i",), "sizes": (4,)}
    prim = Primitive(
        name,
        type,
        lower,
        linearize=linearize,
        transpose=transpose_rule,
        batch=batch_rule,
        vary=vary,
        axes=_axes_of,
        doc=doc,
        examples=[
            Example((operand,), {**params, "groups": None}, axes=(("i", 4),)),
            Example((half,), {**params, "groups": ((0, 3), (2, 1))}, axes=(("i", 4),)),
        ],
    )
    return prim


def _check_leading(name: str, x: ArrayType, sizes: tuple, groups: Groups) -> None:
    n = group_size(sizes, groups)
    if x.ndim == 0 or x.shape[0] != n:
        raise ValueError(
            f"{name}: the dimension that is split over the axis must have its size {n}, "
            f"got an array {x}"
        )


def _all_gather_lower(b: Any, x: Any, axes: tuple, sizes: tuple, groups: Groups) -> Any:
    one = b.reshape(x, (1, *b.ins[0].shape))
    return b.all_gather(one, 0, b.replica_groups(axes, groups), b.outs[0].shape)


def _all_gather_batch(x: Any, k: int, sizes: tuple, again: Callable) -> tuple:
    gathered = again(x)
    if gathered is None:
        return x, None
    shape = typeof(x).shape
    others = sizes[:k] + sizes[k + 1 :]
    apart = reshape(gathered, shape=(*others, *shape))
    joined = move(apart, len(others), k)
    return reshape(joined, shape=(math.prod(sizes), *shape[1:])), None


def _all_gather_groups(x: Any, groups: tuple) -> tuple:
    table = _position_table(groups)
    lanes = typeof(x).shape[0]
    wanted = [source for lane in range(lanes) for source in table[lane][0]]
    shape = (lanes, len(groups[0]), *typeof(x).shape[1:])
    return reshape(lanes_at(x, wanted), shape=shape), 0


all_gather = _exchange(
    "all_gather",
    lambda x, axes, sizes, groups: ArrayType((group_size(sizes, groups), *x.shape), x.dtype),
    _all_gather_lower,
    transpose=lambda ct, **params: psum_scatter(ct, **params),
    batch=_all_gather_batch,
    batch_groups=_all_gather_groups,
    vary=lambda v, axes, sizes, groups: v - set(axes) if groups is None else v | set(axes),
    takes_axis=False,
    doc="out[l] = x_l in every lane; stablehlo.all_gather",
)


def _psum_scatter_type(x: ArrayType, axes: tuple, sizes: tuple, groups: Groups) -> ArrayType:
    _check_leading("psum_scatter", x, sizes, groups)
    return ArrayType(x.shape[1:], x.dtype)


def _psum_scatter_lower(b: Any, x: Any, axes: tuple, sizes: tuple, groups: Groups) -> Any:
    shape = b.outs[0].shape
    out = b.reduce_scatter(
        x,
        0,
        b.replica_groups(axes, groups),
        lambda b, x, y: [b.add(x, y)],
        (1, *shape),
    )
    return b.reshape(out, shape)


def _psum_scatter_batch(x: Any, k: int, sizes: tuple, again: Callable) -> tuple:
    total = reduce_sum(x, dims=(0,))
    shape = typeof(total).shape[1:]
    apart = move(reshape(total, shape=(*sizes, *shape)), k, len(sizes) - 1)
    others = math.prod(sizes) // sizes[k]
    mine = reshape(apart, shape=(others, sizes[k], *shape))
    scattered = again(mine)
    return (reshape(mine, shape=(sizes[k], *shape)) if scattered is None else scattered), 0


def _psum_scatter_groups(x: Any, groups: tuple) -> tuple:
    exchanged, _ = _all_to_all_groups(x, groups)
    return reduce_sum(exchanged, dims=(1,)), 0


psum_scatter = _exchange(
    "psum_scatter",
    _psum_scatter_type,
    _psum_scatter_lower,
    transpose=lambda ct, **params: all_gather(ct, **params),
    batch=_psum_scatter_batch,
    batch_groups=_psum_scatter_groups,
    vary=lambda v, axes, sizes, groups: v | set(axes),
    takes_axis=True,
    doc="out_l = sum_m x_m[l]; stablehlo.reduce_scatter with add",
)


def _all_to_all_type(x: ArrayType, axes: tuple, sizes: tuple, groups: Groups) -> ArrayType:
    _check_leading("all_to_all", x, sizes, groups)
    return ArrayType(x.shape, x.dtype)


def _all_to_all_lower(b: Any, x: Any, axes: tuple, sizes: tuple, groups: Groups) -> Any:
    return b.all_to_all(x, 0, 0, b.replica_groups(axes, groups), b.outs[0].shape)


def _all_to_all_batch(x: Any, k: int, sizes: tuple, again: Callable) -> tuple:
    n, shape = sizes[k], typeof(x).shape[2:]
    others = sizes[:k] + sizes[k + 1 :]
    apart = reshape(x, shape=(n, *sizes, *shape))
    perm = [k + 1, 0, *(i for i in range(1, len(sizes) + 1) if i != k + 1)]
    perm += range(len(sizes) + 1, len(sizes) + 1 + len(shape))
    swapped = transpose(apart, perm=tuple(perm))  # my lane, sender's lane, the other axes
    if others:
        flat = reshape(swapped, shape=(n, n, math.prod(others), *shape))
        sent = again(move(flat, 2, 0))
        swapped = reshape(move(sent, 0, 2), shape=(n, n, *others, *shape))
    joined = move(swapped, 1, k + 1)
    return reshape(joined, shape=(n, math.prod(sizes), *shape)), 0


def _all_to_all_groups(x: Any, groups: tuple) -> tuple:
    table = _position_table(groups)
    lanes, members, *shape = typeof(x).shape
    wanted = [
        source * members + table[lane][1] for lane in range(lanes) for source in table[lane][0]
    ]
    flat = reshape(x, shape=(lanes * members, *shape))
    return reshape(lanes_at(flat, wanted), shape=(lanes, members, *shape)), 0


all_to_all = _exchange(
    "all_to_all",
    _all_to_all_type,
    _all_to_all_lower,
    transpose=lambda ct, **params: all_to_all(ct, **params),
    batch=_all_to_all_batch,
    batch_groups=_all_to_all_groups,
    vary=lambda v, axes, sizes, groups: v | set(axes),
    takes_axis=True,
    doc="out_l[m] = x_m[l]; stablehlo.all_to_all",
)


# ---- permutation and position -----------------------------------------------------------------


def _ppermute_batch(
    axis: Axis, xs: Sequence, dims: Sequence, *, axes: tuple, size: int, perm: tuple
) -> tuple:
    (x,), (dim,) = xs, dims
    if axis.name not in axes:
        return ppermute(x, axes=axes, size=size, perm=perm), dim
    x = _leading(x, dim, axis.size)
    nothing = zeros(typeof(x).update(shape=(1, *typeof(x).shape[1:])))
    sources = {target: source for source, target in perm}
    padded = concatenate(x, nothing, dim=0)
    return lanes_at(padded, [sources.get(i, size) for i in range(size)]), 0


def _ppermute_linearize(x: Any, **params: Any) -> tuple:
    return ppermute(x, **params), lambda t: ppermute(t, **params)


ppermute = Primitive(
    "ppermute",
    lambda x, axes, size, perm: ArrayType(x.shape, x.dtype),
    lambda b, x, axes, size, perm: b.collective_permute(x, b.partition_pairs(axes, perm)),
    linearize=_ppermute_linearize,
    transpose=lambda ct, x, axes, size, perm: [
        ppermute(ct, axes=axes, size=size, perm=tuple((t, s) for s, t in perm))
    ],
    batch=_ppermute_batch,
    vary=lambda v, axes, size, perm: v | set(axes),
    axes=_axes_of,
    doc="out_t = x_s for (s, t) in perm, zeros elsewhere; stablehlo.collective_permute",
    examples=[
        Example(
            (f32(3),),
            {"axes": ("i",), "size": 4, "perm": ((0, 2), (3, 1))},
            axes=(("i", 4),),
        )
    ],
)


def _axis_index_batch(axis: Axis, xs: Sequence, dims: Sequence, *, axes: tuple) -> tuple:
    return iota(dtype=I32, shape=(axis.size,), dim=0), 0


axis_index = Primitive(
    "axis_index",
    lambda axes: ArrayType((), I32),
    lambda b, axes: b.axis_index(axes[0]),
    linearize=ZeroDerivative("a position is an integer"),
    transpose=NoRule("it has no operand"),
    batch=_axis_index_batch,
    vary=lambda axes: frozenset(axes),
    axes=_axes_of,
    doc="the position l of this lane along the axis; stablehlo.partition_id",
    examples=[Example((), {"axes": ("i",)}, axes=(("i", 4),))],
)
