"""Builder: the axes of regions that lie over the mesh, and the devices at their positions."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from phalanx.core.builder import Body, Sums
from phalanx.core.layouts import Cut, Layout
from phalanx.core.mesh_spec import MeshSpec
from phalanx.core.region import Region
from phalanx.core.types import ArrayType
from phalanx.spmd.plan import Plan
from phalanx.spmd.shardings_of_types import sharding_in_type
from phalanx.xla.collectives import CollectiveEmitter
from phalanx.xla.elementwise import ElementwiseEmitter

I32 = np.dtype(np.int32)


class RegionAxesEmitter(ElementwiseEmitter, CollectiveEmitter):
    """Knows which mesh axes each named axis of a region lies over."""

    def __init__(self, plan: Plan, module: ir.Module) -> None:
        super().__init__(plan, module)
        self._depth = 0  # how many axes of regions there are around the current place
        self._positions: dict[str, ir.Value] = {}  # of this device along axes, where it was told
        self._unpadded: dict[ir.Value, ir.Value] = {}

    def cuts(self, region: Region) -> tuple[Cut, ...]:
        """How the axes of a region here are dealt out."""
        return self.plan.mesh.cuts(region, self._depth)

    def parts_work_within(self, region: Region) -> bool:
        """Whether there are axes along which the compiler parts what a region does."""
        mesh = self.plan.mesh
        return len(self.manual.union(mesh.manual(region))) < len(mesh.axes)

    @contextmanager
    def inside(self, axes: Mapping[Any, tuple[str, ...]]) -> Generator[None]:
        """Lower what is inside a region, whose ``axes`` lie over these axes of the mesh."""
        outer = self.scope
        self.scope = {**outer, **axes}
        self._depth += len(axes)
        try:
            yield
        finally:
            self.scope = outer
            self._depth -= len(axes)

    def replica_groups(
        self, axes: Sequence[Any], groups: Sequence[Sequence[int]] | None
    ) -> tuple[tuple[int, ...], ...]:
        """The partitions that communicate over ``axes``, those of a group in order."""
        rows = self.rows_along([name for axis in axes for name in self.scope[axis]])
        if groups is None:
            return tuple(map(tuple, rows))
        return tuple(tuple(row[i] for i in group) for row in rows for group in groups)

    def rows_along(self, names: Sequence[str]) -> list[list[int]]:
        """The partitions in rows along mesh axes, one for each place along the others."""
        order = [name for name, _ in self.plan.axes]
        selected = [order.index(name) for name in names]
        others = [i for i in range(len(order)) if i not in selected]
        mesh = np.arange(len(self.plan.devices)).reshape([size for _, size in self.plan.axes])
        count = math.prod(self._sizes(names))
        return mesh.transpose(others + selected).reshape(-1, count).tolist()

    def partition_pairs(
        self, axes: Sequence[Any], perm: Sequence[tuple[int, int]]
    ) -> tuple[tuple[int, int], ...]:
        """The pairs (source, target) of partitions that a permutation of lanes stands for."""
        rows = self.replica_groups(axes, None)
        return tuple((row[s], row[t]) for row in rows for s, t in perm)

    def axis_index(self, *axes: Any) -> ir.Value:
        """The position of this device along ``axes``, counted row by row, int32."""
        return self.place_along([name for axis in axes for name in self.scope[axis]])

    def place_along(self, names: Sequence[str]) -> ir.Value:
        """The place of this device along mesh axes, counted row by row, int32."""
        position: ir.Value | None = None
        for run in self._runs(names):
            place = self._place(run)
            if position is not None:
                size = self.constant(math.prod(self._sizes(run)), I32)
                place = self.add(self.multiply(position, size), place)
            position = place
        return self.constant(0, I32) if position is None else position

    def _runs(self, names: Sequence[str]) -> list[list[str]]:
        """``names`` in runs; the place along a run is known at once."""
        order = [name for name, _ in self.plan.axes]
        runs: list[list[str]] = []
        for name in names:
            follows = runs and order.index(runs[-1][-1]) + 1 == order.index(name)
            if follows and not self._positions:
                runs[-1].append(name)
            else:
                runs.append([name])
        return runs

    def _place(self, names: Sequence[str]) -> ir.Value:
        """The place of this device along the mesh axes ``names``, which are one run."""
        if self._positions:
            return self.reshape(self._positions[names[0]], ())
        after = [name for name, _ in self.plan.axes].index(names[-1]) + 1
        stride = math.prod(size for _, size in self.plan.axes[after:])
        index = self.convert(self.partition_id(), I32)
        if stride > 1:
            index = self.divide(index, self.constant(stride, I32))
        return self.remainder(index, self.constant(math.prod(self._sizes(names)), I32))

    # XLA does not say which partition it is where it parts the work itself along some axes. So a
    # manual computation over the others is told its places, and tells what is written apart.

    def manual_computation(
        self,
        args: Sequence[ir.Value],
        in_layouts: Sequence[Layout],
        out_layouts: Sequence[Layout],
        out_types: Sequence[ArrayType],
        body: Body,
        over: Sequence[str] | None = None,
        sums: Sums | None = None,
    ) -> list[ir.Value]:
        sizes = dict(self.plan.axes)
        if not self._positions and (over is None or len(over) == len(sizes)):
            return super().manual_computation(
                args, in_layouts, out_layouts, out_types, body, over, sums
            )
        free = [name for name in over or sizes if name not in self.manual]
        counted = {name: self.iota(I32, (sizes[name],), 0) for name in free}
        values = {**self._positions, **counted}
        return super().manual_computation(
            [*values.values(), *args],
            [*[()] * len(self._positions), *[((name,),) for name in counted], *in_layouts],
            out_layouts,
            out_types,
            self._at(tuple(values), body),
            over,
            sums and ([*[None] * len(values), *sums[0]], sums[1]),
        )

    # In what is manual along other axes, XLA would end the process instead of taking a sum, or
    # leaving one. So positions do that there themselves.

    def summed(self, x: ir.Value, spec: MeshSpec) -> ir.Value:
        if not self.manual:
            return super().summed(x, spec)
        groups = self.rows_along(self._over(spec))

        def added(b: Any, x: ir.Value, y: ir.Value) -> Sequence[ir.Value]:
            return [b.add(x, y)]

        def total(b: Any, part: ir.Value) -> Sequence[ir.Value]:
            return b.all_reduce([part], groups, added)

        return self._at_positions(x, spec, total, (spec, None))

    def left_as_sum(self, x: ir.Value, spec: MeshSpec) -> ir.Value:
        if not self.manual and self.order == [name for name, _ in self.plan.axes]:
            self.follows_order = True  # in another order XLA confuses positions
            return super().left_as_sum(x, spec)
        kind = self.type(x)

        def at_first(b: Any, part: ir.Value) -> Sequence[ir.Value]:
            is_first = b.compare(self.place_along(self._over(spec)), b.constant(0, I32), "EQ")
            first = b.broadcast_in_dim(is_first, kind.shape, ())
            return [b.select(first, part, b.constant(0, kind.dtype, kind.shape))]

        return self._at_positions(x, spec, at_first, (None, spec))

    def _over(self, spec: MeshSpec) -> tuple[str, ...]:
        """The axes over which what lies so is a sum."""
        sharding = self.over_plan(sharding_in_type(spec), len(spec.layout))
        sums = frozenset[str]() if sharding is None else sharding.unreduced
        return tuple([name for name, _ in self.plan.axes if name in sums])

    def _at_positions(
        self, x: ir.Value, spec: MeshSpec, body: Body, sums: tuple[MeshSpec | None, MeshSpec | None]
    ) -> ir.Value:
        """``body`` of ``x`` at the positions of the axes over which it is a sum by its ``spec``."""
        before, after = sums
        over, types = self._over(spec), [self.type(x)]
        return self.manual_computation([x], [()], [()], types, body, over, ([before], [after]))[0]

    def call(self, key: Any, emit: Body, args: Sequence[ir.Value]) -> list[ir.Value]:
        places = self._positions
        return super().call(key, self._at(tuple(places), emit), [*places.values(), *args])

    def _at(self, names: tuple[str, ...], body: Body) -> Body:
        """``body``, which takes its places along ``names`` before its operands."""

        def placed(b: Any, *values: ir.Value) -> Sequence[ir.Value]:
            outer, self._positions = self._positions, dict(zip(names, values, strict=False))
            try:
                return body(b, *values[len(names) :])
            finally:
                self._positions = outer

        return placed

    def padded(self, x: ir.Value, shape: tuple[int, ...]) -> ir.Value:
        """``x`` in an array of ``shape``, with copies of its last rows at the ends."""
        before = self._unpadded.get(x)
        if before is not None and self.type(before).shape == shape:
            return before
        for dim, size in enumerate(shape):
            x = self._padded(x, dim, size)
        return x

    def _padded(self, x: ir.Value, dim: int, size: int) -> ir.Value:
        shape = self.type(x).shape
        if shape[dim] == size:
            return x
        start = [n - 1 if i == dim else 0 for i, n in enumerate(shape)]
        last = self.slice(x, tuple(start), shape, (1,) * len(shape))
        return self.concatenate([x, *[last] * (size - shape[dim])], dim)

    def unpadded(self, x: ir.Value, shape: tuple[int, ...]) -> ir.Value:
        """The array of ``shape`` at the front of ``x``; ``padded`` finds the rest again."""
        if self.type(x).shape == shape:
            return x
        out = self.slice(x, (0,) * len(shape), shape, (1,) * len(shape))
        self._unpadded[out] = x
        return out

    def _sizes(self, names: Sequence[str]) -> list[int]:
        size = dict(self.plan.axes)
        return [size[name] for name in names]
