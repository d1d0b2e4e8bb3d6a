"""Builder: the mapped axes that lie over the mesh, and the devices of their lanes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from phalanx.spmd.plan import Plan
from phalanx.xla.collectives import Collectives
from phalanx.xla.elementwise import Elementwise

I32 = np.dtype(np.int32)


class MappedAxes(Elementwise, Collectives):
    """Knows which mesh axes each named axis of a mapped function lies over."""

    def __init__(self, plan: Plan, module: ir.Module) -> None:
        super().__init__(plan, module)
        self._unpadded: dict[ir.Value, tuple[ir.Value, int]] = {}

    @property
    def depth(self) -> int:
        """How many mapped axes that lie over the mesh enclose the current place."""
        return self.scope.get(_DEPTH, 0)

    def next_level(self) -> tuple[tuple[str, ...], int]:
        """The mesh axes for a mapped axis here, and how many devices they have."""
        levels = self.plan.levels
        names = levels[self.depth] if self.depth < len(levels) else ()
        return names, math.prod(self._sizes(names))

    @contextmanager
    def entering(self, axis: Any, names: tuple[str, ...]) -> Iterator[None]:
        """Lower what is inside the mapped axis ``axis``, which lies over mesh axes ``names``."""
        outer = self.scope
        self.scope = {**outer, axis: names, _DEPTH: self.depth + 1}
        try:
            yield
        finally:
            self.scope = outer

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

    def padded(self, x: ir.Value, dim: int, size: int) -> ir.Value:
        """``x`` with copies of its last row at the end of ``dim``, ``size`` long."""
        shape = self.type(x).shape
        if shape[dim] == size:
            return x
        before, at = self._unpadded.get(x, (None, None))
        if before is not None and at == dim and self.type(before).shape[dim] == size:
            return before
        start = [n - 1 if i == dim else 0 for i, n in enumerate(shape)]
        last = self.slice(x, tuple(start), shape, (1,) * len(shape))
        return self.concatenate([x, *[last] * (size - shape[dim])], dim)

    def unpadded(self, x: ir.Value, dim: int, size: int) -> ir.Value:
        """The first ``size`` rows of ``x`` along ``dim``; ``padded`` finds the others again."""
        shape = self.type(x).shape
        if shape[dim] == size:
            return x
        limit = tuple(size if i == dim else n for i, n in enumerate(shape))
        out = self.slice(x, (0,) * len(shape), limit, (1,) * len(shape))
        self._unpadded[out] = x, dim
        return out

    def host_constant(self, value: Any) -> ir.Value:
        """An array that is known while lowering, written into the module."""
        host = np.asarray(value)
        return self.constant(host, host.dtype)

    def _sizes(self, names: Sequence[str]) -> list[int]:
        size = dict(self.plan.axes)
        return [size[name] for name in names]


_DEPTH = object()
