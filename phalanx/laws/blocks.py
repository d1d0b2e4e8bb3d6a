"""Functions of blocks against the same functions of lanes: ``shard_map`` against ``vmap``.

A function of what one position of a mesh has is given operands that differ along some of the axes,
each along its own, or along none. Over the mesh they are blocks; on one device they are lanes of as
many axes, and an operand that differs along none is the same in all. Values must be equal, and
derivatives: by all operands together, and by each of them alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from phalanx.api.jit import jit
from phalanx.api.shard_map import shard_map
from phalanx.api.vmap import vmap
from phalanx.base import tree
from phalanx.core.types import typeof
from phalanx.laws.compare import LawBroken, require_same, rounding, stacked
from phalanx.laws.derivatives import MODES, inexact_part
from phalanx.laws.mapping import all_derivatives
from phalanx.lax.layout import with_sharding_constraint
from phalanx.lax.slicing import slice_in_dim
from phalanx.numpy.joining import concatenate
from phalanx.primitives.basis import reshape
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding, PartitionSpec

Cuts = tuple[tuple[str, ...], ...]  # of each operand the axes along which it differs


def check_blocks(
    error: type[LawBroken],
    who: str,
    f: Callable[..., Any],
    positions: Sequence[Sequence[Any]],
    mesh: Mesh,
    choices: Sequence[Cuts],
    order: int = 2,
    modes: Sequence[str] = MODES,
    around: Callable[[Callable[..., Any]], Callable[..., Any]] = jit,
    over: Mesh | None = None,
) -> None:
    """Raise ``error`` unless ``shard_map(f)`` is ``vmap(f)``, and their derivatives to ``order``.

    Args:
        error: the exception to raise.
        who: the check and the function.
        f: a function of what one position has, to a list of arrays.
        positions: its arguments at each position of the mesh.
        mesh: the mesh.
        choices: along which axes each operand differs; all of them are tried.
        order: how many times to differentiate.
        modes: ``"fwd"`` for jvp, ``"rev"`` for vjp, or both.
        around: what is done with the mapped functions before they are differentiated.
        over: a mesh with these axes and with others, which are left to the compiler: what the
            blocks have is cut along them.
    """
    inputs = [_where_they_differ(positions, mesh, cuts) for cuts in choices]
    blocks = [_in_blocks(f, mesh, cuts, over or mesh) for cuts in choices]
    over_mesh = [Everything(around(g), order, modes) for g in blocks]
    on_one = [Everything(around(_in_lanes(f, mesh, cuts)), order, modes) for cuts in choices]
    actual, expected = jit(partial(_each, over_mesh))(inputs), jit(partial(_each, on_one))(inputs)
    for cuts, found, wanted in zip(choices, actual, expected, strict=True):
        arrays = [*positions[0], *tree.leaves(wanted["values"])]
        coarsest = max([rounding(typeof(x).dtype) for x in arrays])
        for name in wanted:
            what = f"{who}: {name} in blocks along {cuts} and in lanes"
            require_same(error, what, found[name], wanted[name], rtol=coarsest)


def _each(functions: Sequence[Callable[[Any], Any]], arguments: Sequence[Any]) -> list[Any]:
    return [f(xs) for f, xs in zip(functions, arguments, strict=True)]


def drawn_cuts(count: int, mesh: Mesh, limit: int | None, seed: int) -> list[Cuts]:
    """Along which axes each of ``count`` operands may differ: ``limit`` ways that ``seed`` draws.

    Several operands do not all differ along the same axes.
    """
    names = mesh.axis_names
    subsets = [s for n in range(len(names) + 1) for s in itertools.combinations(names, n)]
    every = [c for c in itertools.product(subsets, repeat=count) if any(c)]
    every = [c for c in every if len({*c}) > 1] or every
    if limit is None or len(every) <= limit:
        return every
    picked = np.random.default_rng(seed).choice(len(every), limit, replace=False)
    return [every[i] for i in picked]


def _where_they_differ(positions: Sequence[Sequence[Any]], mesh: Mesh, cuts: Cuts) -> list[Any]:
    """Arrays that lead with the axes along which they differ; along others the first is meant."""
    operands: list[Any] = []
    for xs, cut in zip(zip(*positions, strict=True), cuts, strict=True):
        index = [slice(None) if name in cut else slice(1) for name in mesh.axis_names]
        numbers = np.arange(mesh.size).reshape(mesh.axis_sizes)[*index]
        sizes = [mesh.shape[name] for name in mesh.axis_names if name in cut]
        lanes = stacked([xs[i] for i in numbers.flat])
        operands.append(reshape(lanes, shape=(*sizes, *typeof(lanes).shape[1:])))
    return operands


def _in_blocks(f: Callable[..., Any], mesh: Mesh, cuts: Cuts, over: Mesh) -> Callable[..., Any]:
    names = mesh.axis_names
    left = [name for name in over.axis_names if name not in names]

    def at_position(*blocks: Any) -> list[Any]:
        lane = [reshape(x, shape=x.shape[len(c) :]) for x, c in zip(blocks, cuts, strict=True)]
        ones = (1,) * len(names)
        return [reshape(y, shape=(*ones, *typeof(y).shape)) for y in f(*lane)]

    specs = tuple([PartitionSpec(*cut) for cut in cuts])
    mapped = shard_map(
        at_position, mesh=over, in_specs=specs, out_specs=PartitionSpec(*names), axis_names={*names}
    )
    if not left:
        return mapped
    return lambda *xs: mapped(
        *[_cut(x, len(cut), over, left) for x, cut in zip(xs, cuts, strict=True)]
    )


def _cut(x: Any, leading: int, mesh: Mesh, names: Sequence[str]) -> Any:
    """``x``, of which ``names`` cut the last dimensions after ``leading`` ones, evenly or not."""
    shape, large = typeof(x).shape, x
    layout: list[tuple[str, ...]] = [()] * len(shape)
    for name, dim in zip(names, reversed(range(leading, len(shape))), strict=False):
        layout[dim] = (name,)
        more = -shape[dim] % mesh.shape[name]
        large = concatenate([large, slice_in_dim(large, 0, more, axis=dim)], axis=dim)
    large = with_sharding_constraint(large, NamedSharding(mesh, PartitionSpec(*layout)))
    return large[tuple(map(slice, shape))]


def _in_lanes(f: Callable[..., Any], mesh: Mesh, cuts: Cuts) -> Callable[..., Any]:
    for name, size in reversed(mesh.shape.items()):
        in_axes = tuple([0 if name in cut else None for cut in cuts])
        f = vmap(f, in_axes=in_axes, axis_name=name, axis_size=size)
    return f


class Everything:
    """Values and derivatives of h, by all arguments and by each alone, by name."""

    def __init__(self, h: Callable[..., Any], order: int, modes: Sequence[str] = MODES) -> None:
        self.h = h
        self.order = order
        self.modes = modes

    def __call__(self, args: Sequence[Any]) -> dict[str, Any]:
        found = {"values": self.h(*args)}
        inner, xs = inexact_part(self.h, args)
        if not xs or not self.order:
            return found
        found |= all_derivatives(inner, xs, self.order, self.modes)
        for i in range(len(xs) if len(xs) > 1 else 0):
            alone = all_derivatives(partial(_of_one, inner, xs, i), [xs[i]], 1, self.modes)
            found |= {f"{name} by argument {i} alone": values for name, values in alone.items()}
        return found


def _of_one(inner: Callable[..., Any], xs: Sequence[Any], i: int, x: Sequence[Any]) -> Any:
    return inner([*xs[:i], *x, *xs[i + 1 :]])
