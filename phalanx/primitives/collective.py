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
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.core.axes import Axis, Names, without
from phalanx.core.builder import Body, Builder, Combine, Pairs, Value, Values
from phalanx.core.correspond import ALL, Dims, Whole, alike, propagate_shardings
from phalanx.core.manual import typed
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    Fold,
    LaneDims,
    Linear,
    LinearizeRule,
    LowerRule,
    NamedAxes,
    NoRule,
    Of,
    Operands,
    Primitive,
    TransposeRule,
)
from phalanx.core.types import ArrayType, Ints, typeof
from phalanx.primitives.barrier import optimization_barrier
from phalanx.primitives.basis import (
    add,
    broadcast,
    convert,
    full,
    linear_in_first,
    move,
    mul,
    reduce_sum,
    reshape,
    zeros,
)
from phalanx.primitives.compare import eq, ordered, select
from phalanx.primitives.compare import max as maximum
from phalanx.primitives.compare import min as minimum
from phalanx.primitives.domains import I32, Domain, check_domain, f32, number
from phalanx.primitives.elementwise import div
from phalanx.primitives.in_order import Exchanges, totals_in_order, tree_of_lanes
from phalanx.primitives.lanes import (
    axis_index,
    folded,
    from_blocks,
    index_of,
    into_blocks,
    lanes_at,
    leading,
    named_by_axes,
    of_block,
    of_lanes,
    of_places,
    rows_at,
    without_padding,
)
from phalanx.primitives.ordering import as_integers, from_integers
from phalanx.primitives.reduce import highest, lowest, reduce_max, reduce_min
from phalanx.primitives.shape import concatenate, expand_dims, iota, merge_dims, split_dim

Partition = tuple[tuple[int, ...], ...]
Groups = Partition | None
Exchange = Callable[[Any], Any] | None


def _position_table(groups: Partition) -> dict[int, tuple[tuple[int, ...], int]]:
    """The group of each lane, and the position in it."""
    return {lane: (group, i) for group in groups for i, lane in enumerate(group)}


# ---- reductions -----------------------------------------------------------------------------


def _reduce_groups(axis: Axis, x: Any, groups: Partition, prim: Primitive) -> Any:
    """Reduce the leading lanes of ``x`` within each group; every member gets the result.

    Each block reduces its members of each group; then the blocks exchange one row per group.
    """
    fold = prim.fold
    assert fold is not None
    x = without_padding(axis, x, fold.identity(typeof(x).dtype))
    group_of = np.zeros(axis.total, np.int32)
    for g, members in enumerate(groups):
        group_of[list(members)] = g
    mine = of_lanes(axis, group_of)
    shape, dtype = typeof(x).shape, typeof(x).dtype
    wide = (shape[0], len(groups), *shape[1:])
    number = broadcast(iota(dtype=I32, shape=(len(groups),), dim=0), shape=wide[:2], dims=(1,))
    member = eq(broadcast(mine, shape=wide[:2], dims=(0,)), number)
    per_group = select(
        broadcast(member, shape=wide, dims=(0, 1)),
        broadcast(x, shape=wide, dims=(0, *range(2, len(wide)))),
        full(wide, fold.identity(dtype), dtype),
    )
    totals = fold.local(per_group)
    if axis.outside:
        (totals,) = prim(totals, axes=axis.outside, groups=None)
    return rows_at(totals, mine)


def _in_order(axis: Axis, fold: Fold, xs: Sequence[Any]) -> list[Any]:
    add = psum if fold.combine is _sum_of_two else None
    return totals_in_order(axis, fold, xs, Exchanges(all_gather, all_to_all, add))


def _groups_in_order(axis: Axis, x: Any, groups: Partition, prim: Primitive) -> Any:
    """``_reduce_groups`` of the lanes of each group in their order, whoever has them."""
    fold = prim.fold
    assert fold is not None
    gathered = _every_lane(axis, x)
    group_of = np.zeros(axis.total, np.int32)
    for g, members in enumerate(groups):
        group_of[list(members)] = g
    totals = [tree_of_lanes(fold, lanes_at(gathered, members)) for members in groups]
    rows = [expand_dims(total, (0,)) for total in totals]
    return rows_at(concatenate(*rows, dim=0), of_lanes(axis, group_of))


def _lower_reduction(
    b: Builder, xs: Values, partitions: Sequence[Sequence[int]], combine: Combine
) -> list[Value]:
    """One variadic operation for the operands of each dtype."""
    out: list[Any] = [None] * len(xs)
    kinds = [b.type(x).dtype for x in xs]
    left = [i if t.unreduced else None for i, t in enumerate(b.ins)]  # a sum is by itself
    for dtype, alone in dict.fromkeys(zip(kinds, left, strict=True)):
        indices = [i for i, kind in enumerate(kinds) if (kind, left[i]) == (dtype, alone)]
        operands = [xs[i] for i in indices]
        reduced = b.all_reduce(operands, partitions, lambda b, x, y: [combine(b, x, y)])
        for i, value in zip(indices, reduced, strict=True):
            out[i] = value
    return out


def _with_nan(lower: LowerRule, nan_is_largest: bool) -> LowerRule:
    """``lower`` for extrema on CPUs, whose exchange would lose a NaN: of integers in order."""

    def rule(b: Builder, *xs: Value, **params: Any) -> list[Value]:
        kinds = [b.type(x).dtype for x in xs]
        keys = [
            as_integers(b, x, nan_is_largest) if dtypes.is_floating(kind) else x
            for x, kind in zip(xs, kinds, strict=True)
        ]
        outs = zip(lower(b, *keys, **params), kinds, strict=True)
        return [from_integers(b, y, kind) if dtypes.is_floating(kind) else y for y, kind in outs]

    return rule


def _reduction_varies(*operands: frozenset[Any], axes: Names, groups: Groups) -> tuple[Any, ...]:
    if groups is not None:
        return tuple(v | set(axes) for v in operands)
    return tuple(v - set(axes) for v in operands)


class _Reduction(Struct, frozen=True):
    """What an all-reduce does to the lanes in an array: the leading ones of it, or n copies."""

    prim: Callable[[], Primitive]
    repeated: Callable[[Any, int], Any]

    def batch(
        self, axis: Axis, xs: Operands, dims: LaneDims, *, axes: Names, groups: Groups
    ) -> tuple[Any, Any]:
        """The batching rule."""
        fold = self.prim().fold
        assert fold is not None
        if axis.name not in axes:
            return self.prim()(*xs, axes=axes, groups=groups), dims
        pairs = list(zip(xs, dims, strict=True))
        if groups is not None:
            lanes = [leading(x, d, axis.size) for x, d in pairs]
            reduce = _groups_in_order if axis.in_order else _reduce_groups
            outs = tuple([reduce(axis, x, groups, self.prim()) for x in lanes])
            return outs, (0,) * len(xs)
        if axis.in_order:
            totals = [self.repeated(x, axis.total) if d is None else x for x, d in pairs]
            varying = [i for i, d in enumerate(dims) if d is not None]
            lanes = [leading(xs[i], dims[i], axis.size) for i in varying]
            for i, total in zip(varying, _in_order(axis, fold, lanes), strict=True):
                totals[i] = total
            others = without(axes, axis.name)
            outs = self.prim()(*totals, axes=others, groups=None) if others else tuple(totals)
            return outs, (None,) * len(xs)
        totals = [x if d is None else folded(axis, fold, x, d) for x, d in pairs]
        return self.finalize(axis, totals, dims, axes=axes, groups=None)

    def finalize(
        self, axis: Axis, totals: Sequence[Any], dims: LaneDims, *, axes: Names, groups: None
    ) -> tuple[Any, Any]:
        """What all lanes get, from ``totals`` of those that lie here, or what all share."""
        others = without(axes, axis.name)
        shared = [i for i, d in enumerate(dims) if d is None]
        varying = [i for i, d in enumerate(dims) if d is not None]
        out = list(totals)
        self._over(others, out, shared, [self.repeated(totals[i], axis.total) for i in shared])
        self._over(others + axis.outside, out, varying, [totals[i] for i in varying])
        return tuple(out), (None,) * len(out)

    def _over(self, axes: Names, out: list[Any], places: Sequence[int], values: list[Any]) -> None:
        """Put ``values``, reduced over ``axes``, in their ``places``."""
        results = self.prim()(*values, axes=axes, groups=None) if axes and values else values
        for i, value in zip(places, results, strict=True):
            out[i] = value


def _reduction(
    name: str,
    combine: Combine,
    local: Callable[[Any], Any],
    pair: Callable[[Any, Any], Any],
    repeated: Callable[[Any, int], Any],
    identity: Callable[[np.dtype], Any],
    *,
    on: Domain,
    nan_is_largest: bool | None = None,
    doc: str,
    linearize: LinearizeRule,
    transpose: TransposeRule | NoRule,
) -> Primitive:
    """Declare an all-reduce of several operands at once.

    ``combine(b, x, y)`` lowers the reduction of two elements, whose identity is
    ``identity(dtype)``; ``local(x)`` reduces the leading lanes, ``pair(x, y)`` two values,
    ``repeated(x, n)`` n copies. Of an extremum ``nan_is_largest`` says which one it is.
    """

    def type_rule(*types: ArrayType, axes: Names, groups: Groups) -> tuple[Any, ...]:
        for t in types:
            check_domain(name, t, on)
            if t.unreduced and nan_is_largest is not None:
                propagate_shardings(name, alike(t), [t], [t])
        return tuple(t.update(weak=False) for t in types)

    def lower(b: Builder, *xs: Value, axes: Names, groups: Groups) -> list[Value]:
        return _lower_reduction(b, xs, b.replica_groups(axes, groups), combine)

    lanes = _Reduction(lambda: prim, repeated)
    on_cpu = None if nan_is_largest is None else _with_nan(lower, nan_is_largest)
    prim = Primitive(
        name,
        type_rule,
        lower,
        lower_on={"cpu": on_cpu} if on_cpu else {},
        linearize=linearize,
        transpose=transpose,
        batch=lanes.batch,
        vary=_reduction_varies,
        named_axes=NamedAxes(named_by_axes, fold=Fold(local, pair, identity, lanes.finalize)),
        multi=True,
        elements=Elements(copied=nan_is_largest is not None),
        doc=doc,
        examples=[
            Example((f32(3), f32(2, 3)), {"axes": ("i",), "groups": None}, axes=(("i", 4),)),
            Example((f32(3),), {"axes": ("i",), "groups": ((0, 2), (1, 3))}, axes=(("i", 4),)),
        ],
    )
    return prim


def _psum_nonzero(ts: Sequence[Any], **params: Any) -> Operands:
    """``psum`` of the tangents or cotangents that are not ZERO."""
    totals = iter(psum(*(t for t in ts if t is not ZERO), **params))
    return tuple(t if t is ZERO else next(totals) for t in ts)


def _psum_linearize(active: Active, *xs: Any, **params: Any) -> Derivative:
    def linear(*ts: Any) -> Operands:
        return _psum_nonzero(ts, **params)

    return psum(*xs, **params), linear


def _psum_transpose(cts: Operands, *xs: Any, axes: Names, groups: Groups) -> Cotangents:
    """Every lane adds to the sums of all lanes, so it gets the cotangents of all.

    Where the type says that an operand varies along an axis, it says that the sum does not: then
    the cotangent of the sum is that of all lanes already.
    """
    out: list[Any] = list(cts)
    summed = [_not_varying(x, axes) if groups is None else axes for x in xs]
    for over in dict.fromkeys(s for s in summed if s):
        mine = [ct if s == over else ZERO for ct, s in zip(cts, summed, strict=True)]
        for i, total in enumerate(_psum_nonzero(mine, axes=over, groups=groups)):
            out[i] = out[i] if total is ZERO else total
    return out


def _not_varying(x: Any, axes: Names) -> Names:
    """Those of ``axes`` along which the type of ``x`` does not say that it varies."""
    along = x.type.varying if isinstance(x, Linear) else typeof(x).varying
    return tuple([a for a in axes if a not in along])


def _extremum_linearize(prim: Callable[[], Primitive]) -> LinearizeRule:
    """The tangent at the extremum: the mean over the lanes that attain it."""

    def rule(active: Active, *xs: Any, **params: Any) -> Derivative:
        # what is compared is what was communicated: made again for the comparison, it might be
        # rounded differently, and then no lane would attain the extremum
        xs = optimization_barrier(*xs)
        outs = prim()(*xs, **params)
        masks = [
            convert(eq(x, m), dtype=typeof(x).dtype, weak=False) if a else ZERO
            for a, x, m in zip(active, xs, outs, strict=True)
        ]
        counts = _psum_nonzero(masks, **params)
        factors = [m if m is ZERO else div(m, c) for m, c in zip(masks, counts, strict=True)]

        def linear(*ts: Any) -> Operands:
            scaled = [t if t is ZERO else mul(t, f) for t, f in zip(ts, factors, strict=True)]
            return _psum_nonzero(scaled, **params)

        return outs, linear

    return rule


def _sum_of_lanes(x: Any) -> Any:
    return reduce_sum(x, dims=(0,))


def _sum_of_two(x: Any, y: Any) -> Any:
    return add(x, y)


psum = _reduction(
    "psum",
    lambda b, x, y: b.add(x, y),
    _sum_of_lanes,
    _sum_of_two,
    lambda x, n: mul(x, n),
    lambda dtype: 0,
    on=number,
    linearize=_psum_linearize,
    transpose=_psum_transpose,
    doc="sum_l x_l in every lane; stablehlo.all_reduce with add",
)

pmax = _reduction(
    "pmax",
    lambda b, x, y: b.maximum(x, y),
    lambda x: reduce_max(x, dims=(0,)),
    lambda x, y: maximum(x, y),
    lambda x, n: x,
    lowest,
    on=ordered,
    nan_is_largest=True,
    linearize=_extremum_linearize(lambda: pmax),
    transpose=NoRule("a maximum is not linear"),
    doc="max_l x_l in every lane; stablehlo.all_reduce with maximum",
)

pmin = _reduction(
    "pmin",
    lambda b, x, y: b.minimum(x, y),
    lambda x: reduce_min(x, dims=(0,)),
    lambda x, y: minimum(x, y),
    lambda x, n: x,
    highest,
    on=ordered,
    nan_is_largest=False,
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
    type: Of[ArrayType],
    lower: Body,
    *,
    transpose: Callable[[], Callable[..., Any]],
    batch: Callable[[Axis, Any, int, Ints, Exchange], Batched],
    batch_groups: Callable[[Axis, Any, Partition], Batched],
    vary: Of[frozenset[Any]],
    takes_axis: bool,
    gives_axis: bool,
    fold: Fold | None = None,
    copied: bool = True,
    doc: str,
) -> Primitive:
    """Declare an exchange.

    ``batch(axis, x, k, sizes, exchange)`` treats lanes (leading in x) of axis k of ``sizes``;
    ``exchange(y)`` exchanges over the other axes and the blocks of this one, if there are any.
    ``batch_groups(axis, x, groups)`` treats lanes that exchange within groups. Each returns a
    value and its lane dimension.
    """

    def batch_rule(
        axis: Axis, xs: Operands, dims: LaneDims, *, axes: Names, sizes: Ints, groups: Groups
    ) -> Batched:
        (x,), (dim,) = xs, dims
        if axis.name not in axes:
            return _bystander(x, dim, axes, sizes, groups)
        x = leading(x, dim, axis.size)
        if groups is not None:
            return batch_groups(axis, x, groups)
        return batch(axis, x, *_beyond(prim, axis, axes, sizes))

    def _bystander(x: Any, dim: int, axes: Names, sizes: Ints, groups: Groups) -> tuple[Any, ...]:
        """Another axis is being vectorized: its lanes ride along, behind the exchanged one."""
        at = 1 if takes_axis else 0
        out = prim(move(x, dim, at), axes=axes, sizes=sizes, groups=groups)
        return out, 0 if name == "psum_scatter" else 1

    def transpose_rule(ct: Any, x: Any, **params: Any) -> Cotangents:
        return [transpose()(ct, **params)]

    def dims(x: ArrayType, **_: Any) -> Dims:
        own = list(range(takes_axis, x.ndim))
        exchanged = [Whole("its rows are exchanged")] if takes_axis else []
        return Dims(((*exchanged, *own),), ((*[None] * gives_axis, *own),))

    operand = f32(4, 3) if takes_axis else f32(3)
    half = f32(2, 3) if takes_axis else f32(3)
    params = {"axes": ("i",), "sizes": (4,)}
    prim = Primitive(
        name,
        type,
        lower,
        linearize=linear_in_first(lambda: prim),
        transpose=transpose_rule,
        batch=batch_rule,
        dims=dims,
        linear=ALL,
        vary=vary,
        named_axes=NamedAxes(named_by_axes, fold=fold),
        elements=Elements(copied=copied),
        doc=doc,
        examples=[
            Example((operand,), {**params, "groups": None}, axes=(("i", 4),)),
            Example((half,), {**params, "groups": ((0, 3), (2, 1))}, axes=(("i", 4),)),
        ],
    )
    return prim


def _beyond(prim: Primitive, axis: Axis, axes: Names, sizes: Ints) -> tuple[int, Ints, Exchange]:
    """Which of ``axes`` is ``axis``, their sizes, and the exchange beyond the lanes here."""
    k = axes.index(axis.name)
    done = prim.fold is not None and axis.in_order  # what the other blocks have is taken in, too
    blocks, counts_of_blocks = ((), ()) if done else (axis.outside, axis.sizes_outside)
    outside = axes[:k] + blocks + axes[k + 1 :]
    counts = sizes[:k] + counts_of_blocks + sizes[k + 1 :]

    def exchange(y: Any) -> Any:
        return prim(y, axes=outside, sizes=counts, groups=None)

    return k, sizes, exchange if outside else None


def _check_leading(name: str, x: ArrayType, sizes: Ints, groups: Groups) -> None:
    n = group_size(sizes, groups)
    if x.ndim == 0 or x.shape[0] != n:
        raise ValueError(
            f"{name}: the dimension that is split over the axis must have its size {n}, "
            f"got an array {x}"
        )


def _gathered_type(x: ArrayType, axes: Names, sizes: Ints, groups: Groups) -> ArrayType:
    return ArrayType((group_size(sizes, groups), *x.shape), x.dtype)


def _as_row(type: ArrayType) -> ArrayType:
    """The type of a single row of ``type``."""
    return type.update(shape=(1, *type.shape), spec=type.spec and type.spec.with_dim(0))


def _all_gather_lower(b: Builder, x: Any, axes: Names, sizes: Ints, groups: Groups) -> Any:
    row = _as_row(b.ins[0])
    one = b.summed_as(row, b.reshape(x, row.shape))
    return b.all_gather(one, 0, b.replica_groups(axes, groups), b.outs[0].shape)


def _all_gather_batch(axis: Axis, x: Any, k: int, sizes: Ints, exchange: Exchange) -> Batched:
    shape = typeof(x).shape[1:]
    gathered = x if exchange is None else exchange(x)
    before, after = sizes[:k], sizes[k + 1 :]
    blocks = reshape(gathered, shape=(*before, axis.devices, *after, axis.size, *shape))
    joined = from_blocks(axis, move(blocks, len(sizes), k + 1), k)
    return reshape(joined, shape=(math.prod(sizes), *shape)), None


def _every_lane(axis: Axis, x: Any) -> Any:
    """The leading lanes of ``x`` together with those of all other blocks."""
    if not axis.outside:
        return x
    params = {"axes": axis.outside, "sizes": axis.sizes_outside, "groups": None}
    return from_blocks(axis, all_gather(x, **params), 0)


def _all_gather_groups(axis: Axis, x: Any, groups: Partition) -> Batched:
    table = _position_table(groups)
    members = np.array([table[lane][0] for lane in range(axis.total)], np.int32)
    return _members(axis, _every_lane(axis, x), members), 0


def _members(axis: Axis, rows: Any, members: np.ndarray) -> Any:
    """The rows that ``members`` lists for each lane."""
    mine = of_lanes(axis, members)
    count = members.shape[1]
    gathered = rows_at(rows, reshape(mine, shape=(axis.size * count,)))
    return split_dim(gathered, 0, (axis.size, count))


def _gathered_varies(v: frozenset[Any], axes: Names, sizes: Ints, groups: Groups) -> frozenset[Any]:
    """All lanes get the same. Types do not say so: each lane may use it differently, and then the
    sum of the cotangents is best made where it is scattered again."""
    return v | set(axes) if groups is not None else (v - set(axes)) | typed(axes)


all_gather = _exchange(
    "all_gather",
    _gathered_type,
    _all_gather_lower,
    transpose=lambda: psum_scatter,
    batch=_all_gather_batch,
    batch_groups=_all_gather_groups,
    vary=_gathered_varies,
    takes_axis=False,
    gives_axis=True,
    doc="out[l] = x_l in every lane; stablehlo.all_gather",
)


def _own_part(ct: Any, axes: Names, sizes: Ints, groups: Groups) -> Any:
    """What was gathered from this position of a cotangent that is the same at all positions."""
    if not typed(axes):
        return psum_scatter(ct, axes=axes, sizes=sizes, groups=groups)
    index = full((1,), 0, I32)
    for axis, size in zip(axes, sizes, strict=True):
        position = broadcast(axis_index(axes=(axis,)), shape=(1,), dims=())
        index = add(mul(index, np.int32(size)), position)
    part = rows_at(ct, index)
    return reshape(part, shape=typeof(part).shape[1:])


all_gather_alike = _exchange(
    "all_gather_alike",
    _gathered_type,
    _all_gather_lower,
    transpose=lambda: _own_part,
    batch=_all_gather_batch,
    batch_groups=_all_gather_groups,
    vary=lambda v, axes, sizes, groups: v - set(axes) if groups is None else v | set(axes),
    takes_axis=False,
    gives_axis=True,
    doc="the same, of which types say that all lanes have it; stablehlo.all_gather",
)


def _psum_scatter_type(x: ArrayType, axes: Names, sizes: Ints, groups: Groups) -> ArrayType:
    check_domain("psum_scatter", x, number)
    _check_leading("psum_scatter", x, sizes, groups)
    return ArrayType(x.shape[1:], x.dtype)


def _psum_scatter_lower(b: Builder, x: Any, axes: Names, sizes: Ints, groups: Groups) -> Any:
    shape = b.outs[0].shape
    out = b.reduce_scatter(
        x,
        0,
        b.replica_groups(axes, groups),
        lambda b, x, y: [b.add(x, y)],
        (1, *shape),
    )
    return b.reshape(b.summed_as(_as_row(b.outs[0]), out), shape)


def _scattered(axis: Axis, total: Any, k: int, sizes: Ints, exchange: Exchange) -> Batched:
    """Each lane's own part of the sum over all lanes; ``total`` is that over the lanes here."""
    shape = typeof(total).shape[1:]
    blocks = into_blocks(axis, reshape(total, shape=(*sizes, *shape)), k)
    mine = move(blocks, k + 1, len(sizes))
    others = math.prod(sizes) // sizes[k] * axis.devices
    mine = reshape(mine, shape=(others, axis.size, *shape))
    if exchange is None:
        return reshape(mine, shape=(axis.size, *shape)), 0
    return exchange(mine), 0


def _psum_scatter_finalize(
    axis: Axis, totals: Sequence[Any], dims: LaneDims, *, axes: Names, sizes: Ints, groups: None
) -> Batched:
    (total,) = totals
    return _scattered(axis, total, *_beyond(psum_scatter, axis, axes, sizes))


_SCATTERED = Fold(_sum_of_lanes, _sum_of_two, lambda dtype: 0, _psum_scatter_finalize)


def _psum_scatter_batch(axis: Axis, x: Any, k: int, sizes: Ints, exchange: Exchange) -> Batched:
    if axis.in_order:
        (total,) = _in_order(axis, _SCATTERED, [x])
        return _scattered_in_order(axis, total, k, sizes, exchange)
    return _scattered(axis, folded(axis, _SCATTERED, x, 0), k, sizes, exchange)


def _scattered_in_order(axis: Axis, total: Any, k: int, sizes: Ints, exchange: Exchange) -> Batched:
    """Each lane's own part, for lanes here, of ``total``, the sum over all lanes of ``axis``."""
    shape = typeof(total).shape[1:]
    rows = move(reshape(total, shape=(*sizes, *shape)), k, 0)
    mine = rows_at(rows, index_of(axis))
    mine = reshape(mine, shape=(axis.size, math.prod(sizes) // sizes[k], *shape))
    if exchange is None:
        return reshape(mine, shape=(axis.size, *shape)), 0
    return exchange(move(mine, 1, 0)), 0


def _psum_scatter_groups(axis: Axis, x: Any, groups: Partition) -> Batched:
    exchanged, _ = _all_to_all_groups(axis, x, groups)
    if axis.in_order:
        return tree_of_lanes(_SCATTERED, move(exchanged, 1, 0)), 0
    return reduce_sum(exchanged, dims=(1,)), 0


psum_scatter = _exchange(
    "psum_scatter",
    _psum_scatter_type,
    _psum_scatter_lower,
    transpose=lambda: all_gather,
    batch=_psum_scatter_batch,
    batch_groups=_psum_scatter_groups,
    vary=lambda v, axes, sizes, groups: v | set(axes),
    takes_axis=True,
    gives_axis=False,
    fold=_SCATTERED,
    copied=False,
    doc="out_l = sum_m x_m[l]; stablehlo.reduce_scatter with add",
)


def _all_to_all_type(x: ArrayType, axes: Names, sizes: Ints, groups: Groups) -> ArrayType:
    _check_leading("all_to_all", x, sizes, groups)
    return ArrayType(x.shape, x.dtype)


def _all_to_all_lower(b: Builder, x: Any, axes: Names, sizes: Ints, groups: Groups) -> Any:
    return b.all_to_all(x, 0, 0, b.replica_groups(axes, groups), b.outs[0].shape)


def _all_to_all_batch(axis: Axis, x: Any, k: int, sizes: Ints, exchange: Exchange) -> Batched:
    shape = typeof(x).shape[2:]
    counts = (*sizes[:k], axis.devices, *sizes[k + 1 :])
    blocks = into_blocks(axis, reshape(x, shape=(axis.size, *sizes, *shape)), k + 1)
    mine = move(blocks, k + 2, 0)  # receiving lane, sending lane, the positions of counts
    flat = reshape(mine, shape=(axis.size, axis.size, math.prod(counts), *shape))
    sent = flat if exchange is None else move(exchange(move(flat, 2, 0)), 0, 2)
    blocks = reshape(sent, shape=(axis.size, axis.size, *counts, *shape))
    joined = from_blocks(axis, move(blocks, 1, k + 2), k + 1)
    return reshape(joined, shape=(axis.size, math.prod(sizes), *shape)), 0


def _all_to_all_groups(axis: Axis, x: Any, groups: Partition) -> Batched:
    table = _position_table(groups)
    members = len(groups[0])
    sources = [
        [source * members + table[lane][1] for source in table[lane][0]]
        for lane in range(axis.total)
    ]
    rows = merge_dims(_every_lane(axis, x), 0)
    return _members(axis, rows, np.array(sources, np.int32)), 0


all_to_all = _exchange(
    "all_to_all",
    _all_to_all_type,
    _all_to_all_lower,
    transpose=lambda: all_to_all,
    batch=_all_to_all_batch,
    batch_groups=_all_to_all_groups,
    vary=lambda v, axes, sizes, groups: v | set(axes),
    takes_axis=True,
    gives_axis=True,
    doc="out_l[m] = x_m[l]; stablehlo.all_to_all",
)


# ---- permutation --------------------------------------------------------------------------------


def _ppermute_batch(
    axis: Axis, xs: Operands, dims: LaneDims, *, axes: Names, size: int, perm: Pairs
) -> Batched:
    (x,), (dim,) = xs, dims
    if axis.name not in axes:
        return ppermute(x, axes=axes, size=size, perm=perm), dim
    x = leading(x, dim, axis.size)
    source, places = np.full(axis.devices * axis.size, -1), axis.blocks.places
    for s, t in perm:
        source[places[t]] = places[s]
    source = source[[places[lane] for lane in axis.blocks.held]]  # padding is as the lane before it
    rows, position = _received(axis, x, source)
    if (source < 0).any():
        rows.append(zeros(typeof(x).update(shape=(1, *typeof(x).shape[1:]))))
    joined = concatenate(*rows, dim=0) if len(rows) > 1 else x
    return rows_at(joined, of_places(axis, position)), 0


def _received(axis: Axis, x: Any, source: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The rows that come to a block from all blocks, and where in them each lane finds its own.

    ``source`` says for each lane where its row comes from; -1 is nowhere, which is after the
    last row. Blocks a distance apart exchange at once, and only the rows that are wanted.
    """
    rows, count = [x], axis.size
    position = np.zeros(len(source), np.int32)
    block, place = np.arange(len(source)) // axis.size, source % axis.size
    distance = (block - source // axis.size) % axis.devices
    for step in range(axis.devices):
        lanes = np.flatnonzero((source >= 0) & (distance == step))
        if not step:
            position[lanes] = place[lanes]
        elif lanes.size:
            rows_by_block = {
                b: np.unique(place[lanes[block[lanes] == b]]) for b in block[lanes].tolist()
            }
            table = np.zeros((axis.devices, max(map(len, rows_by_block.values()))), np.int32)
            for b, places in rows_by_block.items():
                table[b - step, : len(places)] = places
            for lane in lanes:
                position[lane] = count + np.searchsorted(rows_by_block[block[lane]], place[lane])
            pairs = tuple(((b - step) % axis.devices, b) for b in rows_by_block)
            sent = rows_at(x, of_block(axis, table))
            rows.append(ppermute(sent, axes=axis.outside, size=axis.devices, perm=pairs))
            count += table.shape[1]
    position[source < 0] = count
    return rows, position


def _ppermute_type(x: ArrayType, axes: Names, size: int, perm: Pairs) -> ArrayType:
    return ArrayType(x.shape, x.dtype)


def _ppermute_lower(b: Builder, x: Value, axes: Names, size: int, perm: Pairs) -> Value:
    groups = b.replica_groups(axes, None)
    # A permutation waits for all devices of the program; of several groups some may not come.
    if b.conditional and len(groups) > 1:
        return _exchanged_in_groups(b, x, axes, perm, groups)
    return b.collective_permute(x, b.partition_pairs(axes, perm))


def _exchanged_in_groups(
    b: Builder, x: Value, axes: Names, perm: Pairs, groups: Sequence[Sequence[int]]
) -> Value:
    """A permutation within each of several groups, which waits for the devices of a group alone.

    A device gathers what all in its group have, and takes what is sent to it; zeros if nothing is.
    """
    position, row = b.axis_index(*axes), b.constant(-1, I32)
    for source, target in perm:
        is_target = b.compare(position, b.constant(target, I32), "EQ")
        row = b.select(is_target, b.constant(source, I32), row)
    shape = b.ins[0].shape
    gathered = b.all_gather(b.reshape(x, (1, *shape)), 0, groups, (len(groups[0]), *shape))
    zero = b.constant(0, I32)
    taken = b.dynamic_slice(gathered, [b.maximum(row, zero), *[zero] * len(shape)], (1, *shape))
    sent = b.broadcast_in_dim(b.compare(row, zero, "GE"), shape, ())
    return b.select(sent, b.reshape(taken, shape), b.constant(0, b.ins[0].dtype, shape))


def _ppermute_transpose(ct: Any, x: Any, axes: Names, size: int, perm: Pairs) -> Cotangents:
    return [ppermute(ct, axes=axes, size=size, perm=tuple((t, s) for s, t in perm))]


def _ppermute_varies(v: frozenset[Any], axes: Names, size: int, perm: Pairs) -> frozenset[Any]:
    return v | set(axes)


ppermute = Primitive(
    "ppermute",
    _ppermute_type,
    _ppermute_lower,
    linearize=linear_in_first(lambda: ppermute),
    transpose=_ppermute_transpose,
    batch=_ppermute_batch,
    vary=_ppermute_varies,
    dims=alike,
    linear=ALL,
    named_axes=NamedAxes(named_by_axes),
    elements=Elements(copied=True),
    doc="out_t = x_s for (s, t) in perm, zeros elsewhere; stablehlo.collective_permute",
    examples=[
        Example(
            (f32(3),),
            {"axes": ("i",), "size": 4, "perm": ((0, 2), (3, 1))},
            axes=(("i", 4),),
        )
    ],
)
