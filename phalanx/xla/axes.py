"""Builder: the axes of regions that lie over the mesh, and the devices at their positions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from phalanx.core.region import MeshAxes
from phalanx.spmd.plan import Plan
from phalanx.xla.collectives import CollectiveEmitter
from phalanx.xla.elementwise import ElementwiseEmitter

I32 = np.dtype(np.int32)


class RegionAxesEmitter(ElementwiseEmitter, CollectiveEmitter):
    """Knows which mesh axes each named axis of a region lies over."""

    def __init__(self, plan: Plan, module: ir.Module) -> None:
        super().__init__(plan, module)
        self._depth = 0  # how many regions enclose the current place
        self._unpadded: dict[ir.Value, ir.Value] = {}

    @property
    def level(self) -> MeshAxes:
        """The mesh axes over which a region here lies."""
        levels = self.plan.levels
        return levels[self._depth] if self._depth < len(levels) else ()

    @contextmanager
    def inside(self, axes: Mapping[Any, tuple[str, ...]]) -> Iterator[None]:
        """Lower what is inside a region, whose ``axes`` lie over these axes of the mesh."""
        outer = self.scope
        self.scope = {**outer, **axes}
        self._depth += 1
        try:
            yield
        finally:
            self.scope = outer
            self._depth -= 1

    def replica_groups(
        self, axes: Sequence[Any], groups: Sequence[Sequence[int]] | None
    ) -> tuple[tuple[int, ...], ...]:
        """The partitions that communicate over ``axes``, those of a group in order."""
        names = [name for axis in axes for name in self.scope[axis]]
        order = [name for name, _ in self.plan.axes]
        selected = [order.index(name) for name in names]
        others = [i for i in range(len(order)) if i not in selected]
        mesh = np.arange(len(self.plan.devices)).reshape([size for _, size in self.plan.axes])
        count = math.prod(self._sizes(names))
        rows = mesh.transpose(others + selected).reshape(-1, count).tolist()
        if groups is None:
            return tuple(map(tuple, rows))
        return tuple(tuple(row[i] for i in group) for row in rows for group in groups)

    def partition_pairs(
        self, axes: Sequence[Any], perm: Sequence[tuple[int, int]]
    ) -> tuple[tuple[int, int], ...]:
        """The pairs (source, target) of partitions that a permutation of lanes stands for."""
        rows = self.replica_groups(axes, None)
        return tuple((row[s], row[t]) for row in rows for s, t in perm)

    def axis_index(self, axis: Any) -> ir.Value:
        """The position of this device's lane along ``axis``, int32."""
        names = self.scope[axis]
        if not names:
            return self.constant(0, I32)
        order = [name for name, _ in self.plan.axes]
        after = order.index(names[-1]) + 1
        stride = math.prod(size for _, size in self.plan.axes[after:])
        here = self.convert(self.partition_id(), I32)
        if stride > 1:
            here = self.divide(here, self.constant(stride, I32))
        return self.remainder(here, self.constant(math.prod(self._sizes(names)), I32))

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

