"""``vmap``: a function of one example becomes a function of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from phalanx.api.arguments import (
    NO_STATIC,
    Flat,
    LeafNames,
    check_axis_name,
    check_callable,
    check_leaf,
    result_names,
    wrap,
)
from phalanx.api.in_chunks import checked_at_once, in_chunks
from phalanx.api.lanes_by_class import axes_by_class
from phalanx.api.ref_calls import store_copies, with_copies
from phalanx.api.reproducible_lanes import as_reproducible
from phalanx.api.stages import watched
from phalanx.api.transformed import InAxes, P, R
from phalanx.base import tree
from phalanx.base.config import config
from phalanx.base.errors import AxisSizeError, ShardingTypeError, TreeError, coded
from phalanx.base.kinds import is_list, is_tuple
from phalanx.base.nodes import outline
from phalanx.base.source import name_of, user_location
from phalanx.control.chunks import AtOnce
from phalanx.core import axes
from phalanx.core.axes import Axis
from phalanx.core.mesh_spec import MeshSpec
from phalanx.core.refs import Ref, refuse_aliases
from phalanx.core.trace import is_recorded
from phalanx.core.types import Array, is_scalar, typeof
from phalanx.primitives.basis import full
from phalanx.primitives.resharding import resharded
from phalanx.transforms.batch import batch, place_lanes
from phalanx.transforms.stage import is_value

UNNAMED = "<unnamed>"


def is_none(x: Any) -> bool:
    """Whether ``x`` is None: in axes, None is a leaf that says "not mapped"."""
    return x is None


def normal_dim(dim: Any, ndim: int, name: str, who: str) -> int | None:
    """An axis position, negative ones counted from the end, checked against ``ndim``.

    Raises:
        TypeError: it is neither None nor an integer.
        ValueError: an array of ``ndim`` dimensions has no such position.
    """
    if dim is None:
        return None
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"{who}: {name}: an axis must be an integer or None, got {dim!r}")
    dim = int(dim)
    if not -ndim <= dim < ndim:
        raise ValueError(
            f"{who}: {name} has no axis {dim}: an array of {ndim} dimensions has the axes "
            f"0 to {ndim - 1}, or {-ndim} to -1 from the end"
            if ndim > 1
            else f"{who}: {name} has no axis {dim}: an array of 1 dimension has axis 0, or -1"
            if ndim
            else f"{who}: {name} is a scalar, which has no axis {dim}; give None in in_axes for an "
            "argument that every lane gets whole"
        )
    return dim % ndim


def count_by_position(args: tuple[Any, ...], kwargs: dict[str, Any], leaves: int) -> int:
    """How many of the leaves of (args, kwargs) are of arguments by position."""
    return len(tree.leaves(args)) if kwargs else leaves


def scalar_by_keyword(name: str, who: str) -> ValueError:
    """The error of a number that is passed by keyword: ``in_axes`` cannot say None for it."""
    return ValueError(
        f"{who}: {name} is a scalar, and arguments by keyword are mapped over axis 0; pass it by "
        "position, with None in in_axes, or bind it with functools.partial"
    )


def input_dims(
    in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any], names: LeafNames, who: str
) -> list[int | None]:
    """Per leaf of (args, kwargs) the dimension that is mapped; keywords are mapped over 0."""
    entries = input_entries(in_axes, args, kwargs, who, is_none)
    leaves = tree.leaves((args, kwargs))
    by_position = count_by_position(args, kwargs, len(leaves))
    dims: list[int | None] = []
    for i, (d, x) in enumerate(zip(entries, leaves, strict=True)):
        if d is None:
            dims.append(None)  # of `x`, which need be no array
            continue
        if not is_value(x) and type(x) is not Ref:
            check_leaf(x, names[i], who)
        ndim = x.ndim if type(x) is Ref else typeof(x).ndim
        if ndim == 0 and i >= by_position:
            raise scalar_by_keyword(names[i], who)
        normal = type(d) is int and 0 <= d < ndim
        dims.append(d if normal else normal_dim(d, ndim, names[i], who))
    return dims


_IN_AXES: tuple[type, ...] = (int, type(None), tuple, list)


def input_entries(
    in_axes: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    who: str,
    is_entry: Callable[[Any], bool],
) -> list[Any]:
    """Per leaf of (args, kwargs) what ``in_axes`` says of it; ``is_entry`` knows its leaves."""
    if not isinstance(in_axes, _IN_AXES):
        raise TypeError(
            f"{who}: in_axes must be an integer, None, or a tuple of one entry per positional "
            f"argument, got {in_axes!r}"
        )
    spec = tuple(in_axes) if is_list(in_axes) else in_axes
    # so the field's messages begin a path: that of pmap starts from (args, kwargs)
    name = "pmap in_axes[0]" if who.startswith("pmap(") else "vmap in_axes"
    if is_tuple(spec) and not is_entry(spec) and len(spec) != len(args):
        raise TreeError(  # "pytree structure error ... key path" is the field's, for matching
            f"{who}: in_axes has {len(spec)} entries, and the call {len(args)} positional "
            f"argument{'s' * (len(args) != 1)}; give one entry for each: pytree "
            f"structure error: different lengths of tuple at key path {name}"
        )
    entries = tree.broadcast_prefix(spec, tuple(args), name, is_leaf=is_entry)
    return axes_by_class(entries + [0] * len(tree.leaves(kwargs)), (args, kwargs))


def mapped_size(
    leaves: Sequence[Any],
    dims: list[int | None],
    names: LeafNames,
    axis_size: int | None,
    who: str,
    keywords: int = 0,
) -> int:
    """The size of the mapped axis, on which all mapped arguments must agree.

    Raises:
        AxisSizeError: they disagree, or nothing tells the size.
    """
    if axis_size is not None and not hasattr(axis_size, "__index__"):
        raise TypeError(f"{who}: axis_size must be an integer, got {axis_size!r}")
    mapped = [
        (i, x.shape[d], d)
        for i, (x, d) in enumerate(zip(leaves, dims, strict=True))
        if d is not None
    ]
    sizes = {s for _, s, _ in mapped}
    if axis_size is not None:
        sizes.add(int(axis_size))
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        raise AxisSizeError(
            f"{who}: nothing tells the size of the mapped axis: map at least one argument "
            "(in_axes), or give axis_size"
        )
    listed = [f"{names[i]} has size {s} on axis {d}" for i, s, d in mapped]
    if axis_size is not None:
        listed.append(f"axis_size is {axis_size}")
    # "each argument passed by keyword is mapped" is the field's, for matching
    note = " (each argument passed by keyword is mapped over axis 0)" if keywords else ""
    raise AxisSizeError(
        # the words up to "mapped" are the field's, for matching
        f"{who}: {who.split('(')[0]} got inconsistent sizes for array axes to be mapped: "
        f"{'; '.join(listed)}{note}. Give None in in_axes for arguments that every lane gets whole"
    )


def output_dims(out_axes: Any, out_tree: Any, ranks: list[int], who: str) -> list[int | None]:
    """Per result, of so many dimensions in one lane, the position of the mapped axis."""
    return [
        normal_dim(d, rank + 1, "the result with the mapped axis", who)
        for d, rank in zip(output_entries(out_axes, out_tree, who, is_none), ranks, strict=True)
    ]


def output_entries(
    out_axes: Any, out_tree: Any, who: str, is_entry: Callable[[Any], bool]
) -> list[Any]:
    """Per result what ``out_axes`` says of it; ``is_entry`` knows its leaves."""
    example = outline(out_tree)
    spec = tuple(out_axes) if is_list(out_axes) else out_axes
    name = f"{who.split('(')[0]} out_axes"
    entries = tree.broadcast_prefix(spec, example, name, is_leaf=is_entry)
    return axes_by_class(entries, example, results=True)


def vmap(
    fun: Callable[P, R],
    in_axes: InAxes = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    lanes_at_once: AtOnce = None,
    reproducible: bool = False,
) -> Callable[P, R]:
    """Vectorize a function: ``fun`` on every example, out[i] = fun(x[i]), all at once.

    Args:
        fun: a function of trees of arrays.
        in_axes: which axis of each argument holds the examples; an integer, None for an
            argument that all examples share (which may then be anything), or a tuple of trees of
            them. Keyword arguments are mapped over axis 0.
        out_axes: where the axis goes in each result; None for a result that is the same for
            all examples.
        axis_name: a name by which collectives in ``fun`` refer to the axis.
        axis_size: the number of examples; needed if no argument is mapped.
        spmd_axis_name: the axis of a mesh, or several, over which the examples are sharded by
            sharding constraints in ``fun``; by default the compiler chooses. A ``shard_map`` in
            ``fun`` that does not use such an axis divides the examples along it.
        lanes_at_once: how many examples run at the same time, chunk after chunk, to save memory: an
            integer, or "all". The function is then compiled, and sums such as ``psum`` are added up
            chunk by chunk. With 1, each example runs its own number of iterations of a
            ``while_loop``, and only one branch of a ``cond``. None: all, operation by operation.
        reproducible: whether each example runs alone, and sums over examples are added in an order
            that depends on their number only, which gives the same bits as ``pmap`` with this
            option, unless examples are divided over devices themselves. A ``pmap`` inside is
            reproducible, too.

    Returns:
        A function with the parameters of ``fun``, whose mapped arguments and results have one
        dimension more.

    Raises:
        AxisSizeError: the arguments disagree about the size.
        TreeError: in_axes or out_axes do not fit the tree.
        ValueError: a result with out_axes None differs between examples, or lanes_at_once is no
            positive number.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.vmap(jnp.dot, in_axes=(0, None))(jnp.ones((2, 3)), jnp.arange(3.0))
    Array([3., 3.], dtype=float32)

    >>> total = phalanx.vmap(lambda x: phalanx.lax.psum(x, "i"), axis_name="i", lanes_at_once=2)
    >>> total(jnp.arange(5.0))
    Array([10., 10., 10., 10., 10.], dtype=float32)
    """
    check_callable(fun, "vmap")
    check_axis_name(axis_name, "vmap")
    who = f"vmap({name_of(fun)})"
    over = (spmd_axis_name,) if isinstance(spmd_axis_name, str) else spmd_axis_name
    over = None if over is None else tuple(over)

    at_once = as_reproducible(checked_at_once(lanes_at_once, who), reproducible, who)
    if over is not None and at_once is not None:
        raise ValueError(
            f"{who}: spmd_axis_name deals the examples out over devices, and lanes_at_once has a "
            f"few of them run at a time, at {user_location()}; give one of them"
        )

    def mapped(*args: Any, **kwargs: Any) -> Any:
        together = at_once is None or config.disable_jit
        looked_at = config.keep_lanes and together and is_recorded()
        operands, treedef = tree.flatten_call((args, kwargs))
        names = LeafNames(fun, args, kwargs, range(len(args)))
        dims = input_dims(in_axes, args, kwargs, names, who)
        refs = _refs(operands, who)
        leaves = with_copies(operands, refs)
        size = mapped_size(leaves, dims, names, axis_size, who, len(kwargs))
        flat = Flat(fun, treedef, NO_STATIC, who, refs)

        def dims_of_results(ranks: list[int]) -> list[int | None]:
            results = ranks[: flat.out_tree.num_leaves]
            own = output_dims(out_axes, flat.out_tree, results, who)
            return [*own, *(dims[i] for i in flat.stored)]

        named = nullcontext() if axis_name is None else axes.binding((axis_name, size))
        with named:
            passed = [operands[i] for i in refs]
            spec = _spec_of_lanes(leaves, dims, names, who) if together else None
            if over is not None and spec is not None and spec.layout != (over,):
                error = ShardingTypeError(
                    f"{who}: spmd_axis_name deals the examples out over {over}, and the arguments "
                    f"have them cut as {spec}, at {user_location()}; leave spmd_axis_name out"
                )
                raise coded(error, "lanes are cut", axes=str(over))
            if together and not (looked_at and over is None and spec is None):
                axis = Axis(axis_name, size, over=over, spec=spec)
                values, lanes = batch(flat, axis, leaves, dims, passed)
            else:
                values, lanes = in_chunks(
                    flat, (UNNAMED if axis_name is None else axis_name, size), leaves, tuple(dims),
                    "all" if together else at_once, passed, dims_of_results, together,
                )  # fmt: skip
        ranks = [typeof(v).ndim - (d is not None) for v, d in zip(values, lanes, strict=True)]
        out_dims = dims_of_results(ranks)
        ends = [(name, "out_axes") for name in result_names(flat.out_tree)]
        ends += [(f"what {names[i]} holds", "in_axes") for i in flat.stored]
        _check_shared(values, lanes, out_dims, ends, who)
        placed = [_place(v, d, to, size) for v, d, to in zip(values, lanes, out_dims, strict=True)]
        if spec is not None:
            placed = [_cut(v, to, spec) for v, to in zip(placed, out_dims, strict=True)]
        if flat.stored:
            placed = store_copies([operands[i] for i in flat.stored], placed, leaves)
        return flat.out_tree.unflatten(placed)

    return wrap(watched(mapped), fun)


def _cut(x: Any, dim: int | None, spec: MeshSpec) -> Any:
    """``x``, whose type has no sharding, with its lanes in ``dim`` cut as in ``spec``."""
    kind = typeof(x)
    if dim is None or kind.spec is not None:
        return x
    layout = [() if d != dim % kind.ndim else spec.layout[0] for d in range(kind.ndim)]
    return resharded(x, spec.with_layout(layout))


def _spec_of_lanes(
    leaves: Sequence[Any], dims: Sequence[int | None], names: LeafNames, who: str
) -> MeshSpec | None:
    """How one value for each lane lies: as types say of the dimensions that are mapped.

    Raises:
        ShardingTypeError: they say different things.
    """
    first: tuple[int, MeshSpec] | None = None
    for i, (x, dim) in enumerate(zip(leaves, dims, strict=True)):
        spec = x.aval.spec if isinstance(x, Array) else None
        if dim is None or spec is None:
            continue
        one = spec.with_layout([spec.layout[dim]])
        if one is None or (first is not None and first[1] is one):
            continue
        if first is not None:
            error = ShardingTypeError(
                f"{who}: mapped axes must lie alike, at {user_location()}: that of "
                f"{names[first[0]]}, {typeof(leaves[first[0]])}, as {first[1]}, and that of "
                f"{names[i]}, {typeof(x)}, as {one}; lay one out anew, with "
                "phalanx.reshard(x, P(..))"
            )
            raise coded(error, "mapped axes differ")
        first = i, one
    return None if first is None else first[1]


def _refs(leaves: Sequence[Any], who: str) -> Sequence[int]:
    """Which of ``leaves`` are references; lanes have them as their own, whole or a part of each."""
    if Ref not in map(type, leaves):
        return ()
    refuse_aliases(leaves, (), who)
    return [i for i, x in enumerate(leaves) if type(x) is Ref]


def _check_shared(
    values: Sequence[Any],
    lanes: Sequence[int | None],
    out_dims: Sequence[int | None],
    ends: Sequence[tuple[str, str]],
    who: str,
) -> None:
    """Raise ValueError where a value without a place for the axis has lanes.

    ``ends``: what each is, and the option that gives it a place.
    """
    for (name, option), value, dim, to in zip(ends, values, lanes, out_dims, strict=True):
        if dim is not None and to is None:
            place = name.replace("result", option, 1) if name.startswith("result") else option
            raise ValueError(
                f"{who}: {name}, {typeof(value)}, is to be the same for all examples, but it "
                f"differs (at vmap {place}, got axis spec None but output was batched on axis "
                f"{dim}); reduce it (psum, pmean, jnp.mean) or give its position in {option}"
            )


def _place(value: Any, dim: int | None, to: int | None, size: int) -> Any:
    if to is not None:
        return place_lanes(value, dim, to, size)
    return full((), value, typeof(value).dtype) if is_scalar(value) else value
