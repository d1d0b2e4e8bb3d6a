"""What ``in_specs`` and ``out_specs`` say of each argument and result: which axes cut it how."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.base import tree
from phalanx.base.errors import suggest
from phalanx.base.source import user_location
from phalanx.core.axes import as_said, typed
from phalanx.core.blocks import Blocks
from phalanx.core.region import Axes, Layout
from phalanx.core.types import ArrayType
from phalanx.spmd.mesh import AbstractMesh
from phalanx.spmd.named import PartitionSpec


def is_spec(x: Any) -> bool:
    """Whether ``x`` is a leaf of a tree of specs; None is one, too."""
    return x is None or isinstance(x, PartitionSpec)


@dataclass(frozen=True, slots=True)
class Specs:
    """A tree of specs, called ``which``, over ``axes``, which are some of those of ``mesh``."""

    who: str
    which: str
    specs: Any
    axes: Axes
    mesh: AbstractMesh

    def layouts(
        self, args: Any, types: Sequence[ArrayType], names: Sequence[str]
    ) -> tuple[Layout, ...]:
        """The layout of each leaf of ``args``, of ``types``, which messages call ``names``.

        Raises:
            TreeError: the specs are no prefix of ``args``.
            TypeError: a spec is none.
            ValueError: a spec does not fit its leaf, or the mesh.
        """
        wanted = tree.broadcast_prefix(
            self.specs, args, f"shard_map {self.which}", is_leaf=is_spec
        )
        triples = zip(wanted, types, names, strict=True)
        return tuple([self._layout(spec, t, name) for spec, t, name in triples])

    def _layout(self, spec: Any, type: ArrayType, name: str) -> Layout:
        if spec is None:
            return ()
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"{self._problem(spec, name)}: it must be a PartitionSpec, such as P('data') or "
                "P() for what every device gets whole"
            )
        self._check_axes(spec, name)
        if len(spec) > type.ndim:
            raise ValueError(
                f"{self._problem(spec, name)}: its entry {len(spec) - 1} is about a dimension that "
                f"{name}, {type}, does not have; there is an entry for each of the first dimensions"
            )
        meant = {as_said(axis): axis for axis, _ in self.axes}
        layout = tuple(tuple(meant[said] for said in names) for names in spec.layout)
        while layout and not layout[-1]:
            layout = layout[:-1]
        return layout

    def _check_axes(self, spec: PartitionSpec, name: str) -> None:
        used = [axis for names in spec.layout for axis in names]
        manual = [as_said(axis) for axis, _ in self.axes]
        there = self.mesh.axis_names
        for axis in used:
            if axis not in there:
                listed = f"The axes are {', '.join(map(repr, there))}."
                problem = f"the mesh has no axis {axis!r}. {suggest(axis, there) or listed}"
            elif axis not in manual:
                problem = (
                    f"axis {axis!r} is not among axis_names, which are {sorted(manual)}; the "
                    "compiler decides how arrays lie along the others"
                )
            elif used.count(axis) > 1:
                problem = f"axis {axis!r} occurs more than once; an axis cuts one dimension"
            else:
                continue
            raise ValueError(f"{self._problem(spec, name)}: {problem}")

    def block(self, type: ArrayType, layout: Layout, name: str) -> ArrayType:
        """The type of the block that every position has of an array of ``type``.

        Raises:
            ValueError: the axes do not divide a dimension.
        """
        shape = list(type.shape)
        for dim, names in enumerate(layout):
            blocks = Blocks(shape[dim], self._parts(names))
            if blocks.padding:
                below, above = blocks.padded - blocks.count, blocks.padded
                fitting = f"{below} or {above}" if below else f"{above}"
                raise ValueError(
                    f"{self.who}: dimension {dim} of {name}, {type}, has length {blocks.size}, "
                    f"which is not evenly divisible over {_named(names)} of size {blocks.count}, "
                    f"at {user_location()}; a length of {fitting} would be. Pad it, or cut another "
                    "dimension"
                )
            shape[dim] = blocks.length
        return type.update(shape=tuple(shape), varying=type.varying | typed(cutting(layout)))

    def _parts(self, names: Sequence[Any]) -> int:
        sizes = dict(self.axes)
        return math.prod(sizes[axis] for axis in names)

    def _problem(self, spec: Any, name: str) -> str:
        return f"{self.who}: {self.which} has {spec!r} for {name}, at {user_location()}"


def cutting(layout: Layout) -> frozenset[Any]:
    """The axes that cut any dimension."""
    return frozenset(axis for names in layout for axis in names)


def _named(names: Sequence[Any]) -> str:
    listed = ", ".join(map(repr, names))
    return f"axis {listed}" if len(names) == 1 else f"axes {listed} together,"
