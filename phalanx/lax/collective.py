"""Collectives: how the lanes of a named axis exchange values.

They are called inside functions that ``pmap`` or ``vmap`` maps with an ``axis_name``. Several
names stand for their product, row-major in the order given. In the formulas, x_l is the value
in lane l, and n the size of the axis.
"""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable, Sequence, Set
from typing import Any, TypeVar

import numpy as np

from phalanx.base import dtypes, jax_arrays, tree
from phalanx.base.errors import ShardingTypeError, coded
from phalanx.base.plain import brief
from phalanx.base.source import user_location
from phalanx.core import axes
from phalanx.core.manual import typed
from phalanx.core.types import SCALARS, Array, typeof
from phalanx.lax import grouped
from phalanx.lax.operands import OPERANDS
from phalanx.primitives import collective as ops
from phalanx.primitives.basis import broadcast, convert, full, move, reshape, zeros
from phalanx.primitives.compare import eq, select
from phalanx.primitives.domains import BOOL, I32
from phalanx.primitives.elementwise import div
from phalanx.primitives.vary import as_parts, as_reduced, as_sum, varying_along

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pbroadcast",
    "pcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
    "pvary",
]

T = TypeVar("T")  # a tree of arrays, and one like it
AxisName = Hashable | Sequence[Hashable]
Groups = Sequence[Sequence[int]] | None


# ---- arguments --------------------------------------------------------------------------------


def _axes(axis_name: AxisName, who: str) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    found = axes.find_all(axis_name, who)
    return tuple([axis for axis, _ in found]), tuple([size for _, size in found])


def _groups(groups: Groups, sizes: tuple[int, ...], who: str, even: bool) -> Any:
    """``axis_index_groups`` as tuples of integers, checked to partition the axes."""
    if groups is None:
        return None
    try:
        checked = tuple(tuple(operator.index(i) for i in group) for group in groups)
    except TypeError:
        raise TypeError(
            f"{who}: axis_index_groups must be a sequence of sequences of integers, got "
            f"{groups!r}, at {user_location()}"
        ) from None
    if sorted(i for g in checked for i in g) != list(range(math.prod(sizes))):
        along = "axis" if len(sizes) == 1 else "axes together"
        raise ValueError(
            f"{who}: axis_index_groups must contain every index from 0 to {math.prod(sizes) - 1} "
            f"of the {along} exactly once, got {checked}, at {user_location()}"
        )
    if even and len({len(g) for g in checked}) > 1:
        raise ValueError(
            f"{who}: axis_index_groups must have equal lengths, got {checked}, at {user_location()}"
        )
    return checked


def _leaf(x: Any, who: str) -> Any:
    if not isinstance(x, OPERANDS):
        raise TypeError(
            f"{who}: every leaf must be an array or a number, got {brief(x)} of type "
            f"{type(x).__name__}, at {user_location()}{jax_arrays.advice_on(x)}"
        )
    return x


def _dim(dim: int, ndim: int, who: str, what: str) -> int:
    if not -ndim <= dim < ndim:
        raise ValueError(
            f"{who}: {what} {dim} is out of range for {ndim} dimensions, at {user_location()}"
        )
    return dim % ndim


# ---- reductions -------------------------------------------------------------------------------


def psum(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The sum over the lanes of an axis, in every lane (all-reduce).

    Args:
        x: a tree of arrays. A Python number is a constant of all lanes, and so is its sum, a
            Python number: ``psum(1, "i")`` is the size of the axis.
        axis_name: the axis, or a sequence of them.
        axis_index_groups: a partition of the indices of the axis, row-major for several; lanes
            sum within their group. Groups may differ in length.

    Returns:
        A tree like ``x``; booleans are counted as int32.

    Raises:
        UnboundAxis: no axis of that name is in scope.
        ValueError: the groups do not partition the axis.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: psum(x, "i"), axis_name="i")(jnp.arange(4))
    Array([6, 6, 6, 6], dtype=int32)
    """
    return _reduce(ops.psum, x, axis_name, axis_index_groups, "psum")


def _reduce(prim: Any, x: Any, axis_name: AxisName, groups: Groups, who: str) -> Any:
    names, sizes = _axes(axis_name, who)
    checked = _groups(groups, sizes, who, even=False)
    leaves, treedef = tree.flatten(x)
    leaves = [_counted(_leaf(v, who)) for v in leaves] if who == "psum" else leaves
    out: list[Any] = [None] * len(leaves)
    dynamic: list[int] = []
    for i, v in enumerate(leaves):
        if isinstance(_leaf(v, who), SCALARS) and not isinstance(v, np.generic):
            constant = _constant(v, sizes, checked, who)
            if constant is not None:
                out[i] = constant
                continue
        dynamic.append(i)
    if dynamic:
        ready = _summand if who == "psum" else _differing
        operands = [ready(_as_operand(leaves[i]), names) for i in dynamic]
        results = grouped.reduce(prim, operands, names, sizes, checked)
        for i, v in zip(dynamic, results, strict=True):
            out[i] = v
    return treedef.unflatten(out)


def _constant(v: Any, sizes: tuple[Any, ...], groups: Any, who: str) -> Any:
    """The reduction of a Python number over an axis: a Python number where it is the same."""
    if who != "psum":
        return v
    if groups is None:
        return v * math.prod(sizes)
    lengths = {len(g) for g in groups}
    return v * lengths.pop() if len(lengths) == 1 else None


def _counted(x: Any) -> Any:
    """Booleans as int32, for they are counted."""
    if isinstance(x, bool):
        return int(x)
    if not isinstance(x, SCALARS) and typeof(x).dtype == BOOL:
        return convert(x, dtype=I32, weak=False)
    return x


def _summand(x: Any, names: tuple[Any, ...]) -> Any:
    """``x`` as what is summed up over the axes ``names``: of a sum over them its parts."""
    kind = typeof(x)
    return as_parts(x, (kind.unreduced | kind.reduced).intersection(names))


def _differing(x: Any, names: tuple[Any, ...]) -> Any:
    """``x`` as what positions of the axes ``names`` exchange, which is no part of a sum."""
    kind = typeof(x)
    return varying_along(x, (kind.unreduced | kind.reduced).intersection(names))


def _as_operand(x: Any) -> Any:
    """A scalar constant as an array."""
    kind = typeof(x)
    return full((), x, kind.dtype) if isinstance(x, (np.generic, *SCALARS)) else x


def pmean(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The mean over the lanes of an axis, in every lane; booleans and integers give float32.

    Arguments and errors are those of ``psum``.

    Args:
        x: a tree of arrays; a Python number is a constant of all lanes.
        axis_name: the axis, or a sequence of them.
        axis_index_groups: a partition of the indices of the axis, row-major for several; lanes take
            the mean within their group. Groups may differ in length. None: all lanes are one group.

    Returns:
        A tree like ``x``; booleans and integers give float32.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: pmean(x, "i"), axis_name="i")(jnp.arange(4.0))
    Array([1.5, 1.5, 1.5, 1.5], dtype=float32)
    """
    who = "pmean"
    _, sizes = _axes(axis_name, who)
    groups = _groups(axis_index_groups, sizes, who, even=False)
    summands = tree.map(lambda v: _inexact(_leaf(v, who)), x)
    total = psum(tree.map(_summed, summands), axis_name, axis_index_groups=axis_index_groups)
    if groups is not None and len({len(g) for g in groups}) > 1:
        count = psum(full((), 1.0, dtypes.default_float()), axis_name, axis_index_groups=groups)
        mean = tree.map(lambda v: _divide(v, count), total)
    else:
        n = len(groups[0]) if groups is not None else math.prod(sizes)
        mean = tree.map(lambda v: v / n if isinstance(v, SCALARS) else div(v, n), total)
    return tree.map(_in_dtype_of, mean, summands)


def _summed(x: Any) -> Any:
    """``x`` in a dtype that holds the sum over lanes: float16 ends at 65504.

    The sums of bfloat16, which reaches as far as float32, travel as they are.
    """
    if isinstance(x, SCALARS) and not isinstance(x, np.generic):
        return x
    dtype = typeof(x).dtype
    ends = dtypes.is_floating(dtype) and dtypes.finfo(dtype).maxexp < 128
    return convert(_as_operand(x), dtype=dtypes.accumulator(dtype), weak=False) if ends else x


def _in_dtype_of(mean: Any, x: Any) -> Any:
    if isinstance(mean, SCALARS) or typeof(mean).dtype == typeof(x).dtype:
        return mean
    return convert(mean, dtype=typeof(x).dtype, weak=False)


def _inexact(x: Any) -> Any:
    if isinstance(x, SCALARS) and not isinstance(x, np.generic):
        return float(x) if not isinstance(x, complex) else x
    dtype = typeof(x).dtype
    if dtypes.is_inexact(dtype):
        return x
    return convert(_as_operand(x), dtype=dtypes.to_inexact(dtype), weak=False)


def _divide(x: Any, count: Any) -> Any:
    kind = typeof(x)
    count = convert(count, dtype=kind.dtype, weak=False)
    return div(x, broadcast(count, shape=kind.shape, dims=()))


def pmax(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The maximum over the lanes of an axis, in every lane.

    Its derivative is that of the lanes that attain it, averaged.

    Arguments and errors are those of ``psum``.

    Args:
        x: a tree of arrays, of one lane.
        axis_name: the axis, or a sequence of them.
        axis_index_groups: a partition of the indices of the axis, row-major for several; lanes
            compare within their group. Groups may differ in length. None: all lanes are one group.

    Returns:
        A tree like ``x``.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: pmax(x, "i"), axis_name="i")(jnp.array([3, 1, 2]))
    Array([3, 3, 3], dtype=int32)
    """
    return _reduce(ops.pmax, x, axis_name, axis_index_groups, "pmax")


def pmin(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The minimum over the lanes of an axis, in every lane.

    Its derivative is that of the lanes that attain it, averaged.

    Arguments and errors are those of ``psum``.

    Args:
        x: a tree of arrays, of one lane.
        axis_name: the axis, or a sequence of them.
        axis_index_groups: a partition of the indices of the axis, row-major for several; lanes
            compare within their group. Groups may differ in length. None: all lanes are one group.

    Returns:
        A tree like ``x``.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: pmin(x, "i"), axis_name="i")(jnp.array([3, 1, 2]))
    Array([1, 1, 1], dtype=int32)
    """
    return _reduce(ops.pmin, x, axis_name, axis_index_groups, "pmin")


# ---- exchanges --------------------------------------------------------------------------------


def all_gather(
    x: T,
    axis_name: AxisName,
    *,
    axis_index_groups: Groups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> T:
    """The values of all lanes along a new dimension, in every lane: out[l] = x_l.

    Args:
        x: a tree of arrays of shape ``[...]``.
        axis_name: the axis, or a sequence of them.
        axis_index_groups: equal groups that partition the axes; lanes gather within theirs.
        axis: where the new dimension stands in the result; negative ones count from the end.
        tiled: whether to concatenate along the existing dimension ``axis`` instead.
        to: what types inside ``shard_map`` say of the result: that it is "varying", so that every
            position may use it in its own way, and has a cotangent of its own; "invarying", so that
            all have one cotangent, of which each takes its own part; or "reduced", so that the
            cotangent is a sum that is still to be taken, of which each gets its own part.
            Elsewhere they are the same.

    Returns:
        Arrays of shape ``[..., n, ...]``, or ``[..., n * d, ...]`` if ``tiled``.

    Raises:
        ValueError: ``to`` is something else; or it is asked of groups, or of axes of
            ``shard_map`` together with others, that all have the same.
        ShardingTypeError: ``x`` is unreduced along the axes.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: all_gather(x, "i"), axis_name="i", out_axes=None)(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    names, sizes = _axes(axis_name, "all_gather")
    groups = _groups(axis_index_groups, sizes, "all_gather", even=True)
    alike = _alike(to, names, groups)

    def gather_one(v: Any) -> Any:
        v = _differing(_as_operand(_leaf(v, "all_gather")), names)
        shape = typeof(v).shape
        ndim = len(shape) + (not tiled)
        dim = _dim(axis, ndim, "all_gather", "axis") if ndim else 0
        if tiled and not shape:
            raise ValueError(
                "all_gather: tiled=True needs an array with a dimension, got a scalar, at "
                f"{user_location()}"
            )
        if alike and to == "invarying":
            out = ops.all_gather_alike(v, axes=names, sizes=sizes, groups=None)
        else:
            out = grouped.all_gather(v, names, sizes, groups)
        if alike and to == "reduced":
            out = as_reduced(out, typed(names))
        moved = move(out, 0, dim)
        return _merged(moved, dim) if tiled else moved

    return tree.map(gather_one, x)


def _alike(to: str, names: tuple[Any, ...], groups: Any) -> bool:
    """Whether types are to say that all positions have what ``all_gather`` gives."""
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(
            f"all_gather: to must be 'varying', 'invarying' or 'reduced', got {to!r}, at "
            f"{user_location()}; with 'invarying' every position takes its part of one cotangent, "
            "and with 'reduced' its part of the sum of the cotangents"
        )
    known = typed(names)
    if to == "varying" or not known:
        return False
    if groups is not None or len(known) < len(names):
        what = f"along axes of vmap, too, in {names}" if groups is None else "within groups"
        raise ValueError(
            f"all_gather: what is gathered {what} is not the same at all positions of the "
            f"shard_map, so it cannot be {to!r}, at {user_location()}; leave out to="
        )
    return True


def _merged(x: Any, dim: int) -> Any:
    """Dimensions ``dim`` and ``dim + 1`` as one."""
    shape = typeof(x).shape
    return reshape(x, shape=(*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _divided(x: Any, dim: int, parts: int, who: str) -> Any:
    """Dimension ``dim`` as two, of lengths ``parts`` and the rest."""
    shape = typeof(x).shape
    if shape[dim] % parts:
        raise ValueError(
            f"{who}: dimension {dim} of an array {typeof(x)} has length {shape[dim]}, which the "
            f"axis size {parts} does not divide, at {user_location()}"
        )
    return reshape(x, shape=(*shape[:dim], parts, shape[dim] // parts, *shape[dim + 1 :]))


def psum_scatter(
    x: T,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> T:
    """The sum over lanes, of which each keeps its part (reduce-scatter): out_l = sum_m x_m[l].

    Args:
        x: a tree of arrays; dimension ``scatter_dimension`` has length n, or a multiple of it
            if ``tiled``.
        axis_name: the axis, or a sequence of them.
        scatter_dimension: the dimension that is scattered; negative ones count from the end.
        axis_index_groups: equal groups that partition the axes.
        tiled: whether the dimension stays, divided by n, instead of vanishing.

    Returns:
        A tree like ``x``, whose ``scatter_dimension`` is gone; with ``tiled`` it is shorter by a
        factor of n.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(jnp.ones((2, 2)))
    Array([2., 2.], dtype=float32)
    """
    who = "psum_scatter"
    names, sizes = _axes(axis_name, who)
    groups = _groups(axis_index_groups, sizes, who, even=True)
    n = ops.group_size(sizes, groups)

    def scatter_one(v: Any) -> Any:
        v = _summand(_counted(_leaf(v, who)), names)
        kind = typeof(v)
        dim = _dim(scatter_dimension, kind.ndim, who, "scatter_dimension")
        if not tiled:
            _check_split(kind, dim, n, who)
            return grouped.psum_scatter(move(v, dim, 0), names, sizes, groups)
        divided = move(_divided(v, dim, n, who), dim, 0)
        return grouped.psum_scatter(divided, names, sizes, groups)

    return tree.map(scatter_one, x)


def _check_split(kind: Any, dim: int, n: int, who: str) -> None:
    if kind.shape[dim] != n:
        raise ValueError(
            f"{who}: dimension {dim} of an array {kind} is split over the axis and must have its "
            f"size {n}, got {kind.shape[dim]}, at {user_location()}; use tiled=True for a multiple"
        )


def all_to_all(
    x: T,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> T:
    """Exchange parts between lanes: lane m sends its part l to lane l, out_l[m] = x_m[l].

    Args:
        x: a tree of arrays.
        axis_name: the axis, or a sequence of them.
        split_axis: the dimension that is cut into one part per lane; its length is n, or a
            multiple if ``tiled``.
        concat_axis: where the received parts stand in the result.
        axis_index_groups: equal groups that partition the axes.
        tiled: whether dimensions stay: ``split_axis`` divided by n, ``concat_axis`` times n.
            Otherwise ``split_axis`` vanishes and a dimension n appears at ``concat_axis``.

    Returns:
        A tree like ``x``. With ``tiled`` dimension ``split_axis`` is cut into n parts and the parts
        are joined along ``concat_axis``; without, the first has length n and goes, and the second
        is new.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(jnp.arange(4).reshape(2, 2))
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    who = "all_to_all"
    names, sizes = _axes(axis_name, who)
    groups = _groups(axis_index_groups, sizes, who, even=True)
    n = ops.group_size(sizes, groups)

    def exchange_one(v: Any) -> Any:
        v = _differing(_leaf(v, who), names)
        kind = typeof(v)
        split = _dim(split_axis, kind.ndim, who, "split_axis")
        concat = _dim(concat_axis, kind.ndim, who, "concat_axis")
        if tiled:
            parts = move(_divided(v, split, n, who), split, 0)
            sent = grouped.all_to_all(parts, names, sizes, groups)
            return _merged(move(sent, 0, concat), concat)
        _check_split(kind, split, n, who)
        parts = move(v, split, 0)
        sent = grouped.all_to_all(parts, names, sizes, groups)
        return move(sent, 0, concat)

    return tree.map(exchange_one, x)


def pswapaxes(x: T, axis_name: AxisName, axis: int, *, axis_index_groups: Groups = None) -> T:
    """Swap the mapped axis with dimension ``axis``, whose length must be n.

    Args:
        x: a tree of arrays, of one lane.
        axis_name: the name of the axis, or a sequence of names.
        axis: the dimension to be swapped with the mapped axis.
        axis_index_groups: a partition of the indices of the axis; lanes work within their group.
            None: all are one group.

    Returns:
        A tree like ``x``.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: pswapaxes(x, "i", 0), axis_name="i")(jnp.arange(4).reshape(2, 2))
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


# ---- permutations -----------------------------------------------------------------------------


def ppermute(x: T, axis_name: AxisName, perm: Iterable[Iterable[int]]) -> T:
    """Send values between lanes: out_t = x_s for every pair (s, t) of ``perm``.

    Lanes to which nobody sends get zeros.

    Args:
        x: a tree of arrays.
        axis_name: the axis, or a sequence of them.
        perm: pairs (source, target) of lane indices; no source and no target occurs twice.

    Returns:
        A tree like ``x``.

    Raises:
        ValueError: an index is out of range or occurs twice; the message names the pair.

    >>> import phalanx, phalanx.numpy as jnp
    >>> shift = lambda x: ppermute(x, "i", [(0, 1), (1, 2)])
    >>> phalanx.vmap(shift, axis_name="i")(jnp.array([5, 6, 7]))
    Array([0, 5, 6], dtype=int32)
    """
    names, sizes = _axes(axis_name, "ppermute")
    pairs = _pairs(perm, math.prod(sizes))

    def permute_one(v: Any) -> Any:
        v = _differing(_as_operand(_leaf(v, "ppermute")), names)
        if len(names) == 1:
            return ops.ppermute(v, axes=names, size=sizes[0], perm=pairs)
        return _permute_product(v, names, sizes, pairs)

    return tree.map(permute_one, x)


def _pairs(perm: Iterable[Iterable[int]], n: int) -> tuple[tuple[int, int], ...]:
    listed = list(perm)
    for pair in listed:
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"ppermute: perm must hold pairs (source, target), got {listed}, at "
                f"{user_location()}; for a list of sources use pshuffle"
            )
    pairs = [tuple(int(i) for i in pair) for pair in listed]
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError(
                f"ppermute: perm must hold pairs (source, target), got {pair}, at {user_location()}"
            )
        if not all(0 <= i < n for i in pair):
            raise ValueError(
                f"ppermute: the pair {pair} leaves the axis, whose indices go from 0 to {n - 1}, "
                f"at {user_location()}"
            )
    for role, at in (("source", 0), ("target", 1)):
        seen = [p[at] for p in pairs]
        twice = next((p for i, p in enumerate(pairs) if p[at] in seen[:i]), None)
        if twice is not None:
            raise ValueError(
                f"ppermute: the {role} {twice[at]} occurs in more than one pair, as in {twice}, "
                f"at {user_location()}"
            )
    return tuple((p[0], p[1]) for p in pairs)


def _permute_product(
    v: Any, names: tuple[Any, ...], sizes: tuple[Any, ...], pairs: tuple[Any, ...]
) -> Any:
    """A permutation of the product of several axes: gather all lanes, pick the sender's."""
    total = math.prod(sizes)
    gathered = ops.all_gather(v, axes=names, sizes=sizes, groups=None)
    table = np.full(total, 0, np.int32)
    sent = np.zeros(total, bool)
    for source, target in pairs:
        table[target], sent[target] = source, True
    here = grouped.position(names, sizes)
    mine = grouped.entry(gathered, grouped.entry(table, here))
    received = broadcast(grouped.entry(sent, here), shape=typeof(v).shape, dims=())
    return select(received, mine, zeros(typeof(mine)))


def pshuffle(x: T, axis_name: AxisName, perm: Sequence[int]) -> T:
    """The values of the lanes in another order: out_l = x_{perm[l]}.

    Args:
        x: a tree of arrays, of one lane.
        axis_name: the name of the axis, or a sequence of names.
        perm: for each lane the index of the lane whose value it gets.

    Returns:
        A tree like ``x``.

    Raises:
        ValueError: ``perm`` is not a permutation of the indices of the axis.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.array([5, 6, 7]))
    Array([7, 5, 6], dtype=int32)
    """
    _, sizes = _axes(axis_name, "pshuffle")
    order = [int(i) for i in perm]
    if sorted(order) != list(range(math.prod(sizes))):
        raise ValueError(  # "`perm` ... permutation: [...]" is the field's, for matching
            f"pshuffle: `perm` does not represent a permutation: {order}; it must hold every "
            f"index from 0 to {math.prod(sizes) - 1} once, at {user_location()}"
        )
    return ppermute(x, axis_name, [(s, t) for t, s in enumerate(order)])


def pbroadcast(x: T, axis_name: AxisName, source: int) -> T:
    """The value of the lane ``source``, in every lane.

    Args:
        x: a tree of arrays, of one lane.
        axis_name: the name of the axis, or a sequence of names.
        source: the index of the lane whose value all get.

    Returns:
        A tree like ``x``.

    Raises:
        ValueError: ``source`` is out of range.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(jnp.array([5, 6, 7]))
    Array([6, 6, 6], dtype=int32)
    """
    _, sizes = _axes(axis_name, "pbroadcast")
    if not 0 <= source < math.prod(sizes):
        raise ValueError(
            f"pbroadcast: source {source} is out of range; the axis has indices from 0 to "
            f"{math.prod(sizes) - 1}, at {user_location()}"
        )
    chosen = eq(axis_index(axis_name), np.int32(source))

    def send_one(v: Any) -> Any:
        v = _as_operand(_leaf(v, "pbroadcast"))
        kind = typeof(v)
        if kind.dtype == BOOL:
            return convert(send_one(convert(v, dtype=I32, weak=False)), dtype=BOOL, weak=False)
        mask = broadcast(chosen, shape=kind.shape, dims=())
        return psum(select(mask, v, zeros(kind)), axis_name)

    return tree.map(send_one, x)


# ---- types ------------------------------------------------------------------------------------


def pvary(x: T, axis_name: AxisName) -> T:
    """``x`` as a value that varies along the axes, to types: its values stay what they are.

    Inside ``shard_map`` the cotangent of what every position has is the sum over all positions.
    Behind ``pvary`` every position has a copy of its own, with a cotangent of its own. Along axes
    of ``pmap``, ``vmap`` and ``shard_map(check_vma=False)``, of which types do not know, it does
    nothing.

    Args:
        x: a tree of arrays.
        axis_name: the axis, or a sequence of them.

    Returns:
        A tree like ``x``.

    >>> import phalanx
    >>> mesh = phalanx.make_mesh((1,), ("i",))
    >>> def kind(x):
    ...     print(phalanx.typeof(x).vma, phalanx.typeof(pvary(x, "i")).vma)
    ...     return x
    >>> phalanx.shard_map(kind, mesh=mesh, in_specs=phalanx.P(), out_specs=phalanx.P())(1.0)
    frozenset() frozenset({'i'})
    Array(1., dtype=float32, weak_type=True)
    """
    names, _ = _axes(axis_name, "pvary")
    along = typed(names)
    return tree.map(lambda v: varying_along(_leaf(v, "pvary"), along), x)


def pcast(x: T, axis_name: AxisName, *, to: str) -> T:
    """``x`` as a value of another kind along the axes, to types: its values stay what they are.

    What every position has can be told as "varying", which is what ``pvary`` does, or "reduced":
    then its cotangent is a sum that is still to be taken. What varies can be told as "unreduced":
    the sum, still to be taken, of what the positions have, which ``psum`` takes. What is reduced
    can be told as varying. Along axes of ``pmap``, ``vmap`` and ``shard_map(check_vma=False)``,
    of which types do not know, it does nothing.

    Args:
        x: a tree of arrays, of one lane.
        axis_name: the name of the axis, or a sequence of names.
        to: "varying", "reduced" or "unreduced".

    Returns:
        A tree like ``x``.

    Raises:
        ValueError: ``to`` is something else.
        TypeError: the names are in a set.
        ShardingTypeError: a value is of a kind of which it cannot be made without communication.

    >>> import phalanx
    >>> mesh = phalanx.make_mesh((1,), ("i",))
    >>> def total(x):
    ...     part = pcast(x, "i", to="unreduced")
    ...     print(phalanx.typeof(part))
    ...     return psum(2 * part, "i")
    >>> phalanx.shard_map(total, mesh=mesh, in_specs=phalanx.P("i"), out_specs=phalanx.P())(
    ...     phalanx.numpy.ones(2)
    ... )
    f32[2]{U:i}
    Array([2., 2.], dtype=float32)
    """
    if to not in _CASTS:
        raise ValueError(
            f"pcast: to must be 'varying', 'reduced' or 'unreduced', got {to!r}, at "
            f"{user_location()}; psum, pmean and all_gather(to='invarying') make values that are "
            "the same everywhere"
        )
    if isinstance(axis_name, Set):  # as types have them; the words are the field's, for matching
        raise TypeError(
            f"pcast: axis_name must be a tuple or a str, got {axis_name!r}, at {user_location()}; "
            "give tuple(axis_name)"
        )
    along = typed(_axes(axis_name, "pcast")[0])
    return tree.map(lambda v: _cast(_leaf(v, "pcast"), along, to), x)


_CASTS = {
    "varying": (varying_along, "what is the same everywhere, or reduced"),
    "reduced": (as_reduced, "what is the same everywhere"),
    "unreduced": (as_sum, "what varies"),
}


def _cast(x: Any, along: frozenset[Any], to: str) -> Any:
    kind = typeof(x)
    kinds = {"varying": kind.varying, "reduced": kind.reduced, "unreduced": kind.unreduced}
    left = along - kinds.pop(to)  # along which it is of another kind
    wrong = {
        "varying": kind.unreduced,
        "reduced": kind.varying | kind.unreduced,
        "unreduced": left - kind.varying,
    }[to]
    if left & wrong:
        axis = sorted(left & wrong, key=str)[0]
        now = next((name for name, axes in kinds.items() if axis in axes), "the same everywhere")
        error = ShardingTypeError(
            f"pcast: {kind} is {now} along {axis!r}, at {user_location()}, and only "
            f"{_CASTS[to][1]} can be told as {to!r} without communication; psum makes a value that "
            "is the same everywhere of one that varies or is unreduced"
        )
        raise coded(error, "cast of mixed")
    return _CASTS[to][0](_as_operand(x), left) if left else x


# ---- positions --------------------------------------------------------------------------------


def axis_index(axis_name: AxisName) -> Array:
    """The index l of this lane along the axis; row-major for a sequence of axes.

    Args:
        axis_name: the name of the axis, or a sequence of names.

    Returns:
        An int32 scalar.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: x + axis_index("i"), axis_name="i")(jnp.array([10, 10]))
    Array([10, 11], dtype=int32)
    """
    return grouped.position(*_axes(axis_name, "axis_index"))


def axis_size(axis_name: AxisName) -> int:
    """The size of a named axis: the number of lanes of ``pmap`` or ``vmap``, or of positions.

    Args:
        axis_name: the name of the axis, or a sequence of names.

    Returns:
        A Python integer; of several names, the product of their sizes.

    Raises:
        UnboundAxis: nothing around binds an axis of that name.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(lambda x: x * axis_size("i"), axis_name="i")(jnp.array([1, 2]))
    Array([2, 4], dtype=int32)
    """
    _, sizes = _axes(axis_name, "axis_size")
    return math.prod(sizes)
