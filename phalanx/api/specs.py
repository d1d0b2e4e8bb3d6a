"""What ``in_specs`` and ``out_specs`` say of each argument and result: which axes cut it how."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

from msgspec import Struct

from phalanx.base import registry, tree
from phalanx.base.errors import coded, suggest_axis
from phalanx.base.keys import PLAIN, key_of
from phalanx.base.kinds import class_of
from phalanx.base.source import user_location
from phalanx.core.blocks import Blocks
from phalanx.core.layouts import Axes
from phalanx.core.manual import user_axis_name
from phalanx.core.roles import FIXED, Role, Roles, blocks
from phalanx.core.types import ArrayType
from phalanx.spmd.mesh import AnyMesh
from phalanx.spmd.named import PartitionSpec


def is_spec(x: Any) -> bool:
    """Whether ``x`` is a leaf of a tree of specs, or of axes, that is not taken apart."""
    return x is None or isinstance(x, PartitionSpec)


def snapshot(specs: Any) -> tuple[Any, tuple[Any, ...]]:
    """A tree of specs, or of axes, that no one else can change, and what it is in a key."""
    leaves, treedef = tree.flatten(specs, is_spec)
    return treedef.unflatten(leaves), (treedef, *map(key_of, leaves))


_NEVER_CHANGE = PLAIN | {bool, float, complex}


class AsItIs:
    """A Python value among the arguments: a tree node without leaves that unflattens to ``value``.

    Nodes are equal if their values are equal and of a class whose objects never change; any other
    object is equal to itself alone, in one call, since it may have changed before the next."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        is_immutable = isinstance(value, Enum) or class_of(value) in _NEVER_CHANGE
        self.key: Any = key_of(value) if is_immutable else object()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsItIs) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


registry.register_pytree_node(AsItIs, lambda x: ((), x), lambda x, _: x.value)


class Specs(Struct, frozen=True):
    """A tree of specs, called ``which``, over ``axes``, which are some of those of ``mesh``."""

    who: str
    which: str
    specs: Any
    axes: Axes
    mesh: AnyMesh

    def roles(self, args: Any, types: Sequence[ArrayType], names: Sequence[str]) -> Roles:
        """What each leaf of ``args`` is to a position; messages call them ``names``.

        Raises:
            TreeError: the specs are no prefix of ``args``.
            TypeError: a spec is none.
            ValueError: a spec does not fit its leaf, or the mesh.
        """
        triples = zip(self.of_leaves(args), types, names, strict=True)
        return tuple([self._role(spec, t, name) for spec, t, name in triples])

    def of_leaves(self, args: Any) -> list[Any]:
        """The spec of each leaf of ``args``.

        Raises:
            TreeError: the specs are no prefix of ``args``.
        """
        return tree.broadcast_prefix(self.specs, args, f"shard_map {self.which}", is_leaf=is_spec)

    def _role(self, spec: Any, type: ArrayType, name: str) -> Role:
        if spec is None:
            return FIXED
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"{self._problem(spec, name)}: it must be a PartitionSpec, such as P('data') or "
                "P() for what every device gets whole"
            )
        self._check_axes(spec, name)
        if len(spec) > type.ndim:
            advice = "" if type.ndim else f"; consider using an {self.which} entry of `P()`"
            error = ValueError(  # "which has length", "rank", and what to use: the field's words
                f"{self.who}: {self.which} has {spec!r}, which has length {len(spec)}, for {name}, "
                f"{type}, which has rank {type.ndim}, at {user_location()}; there is an entry for "
                f"each of the first dimensions{advice}"
            )
            raise coded(error, "long spec", who=self.who)
        by_user_name = {user_axis_name(axis): axis for axis, _ in self.axes}
        layout = tuple([tuple([by_user_name[entry] for entry in names]) for names in spec.layout])
        sums = [
            frozenset([by_user_name[entry] for entry in a]) for a in (spec.unreduced, spec.reduced)
        ]
        return blocks(layout, *sums)

    def _check_axes(self, spec: PartitionSpec, name: str) -> None:
        used = [axis for names in spec.layout for axis in names]
        sums = sorted(spec.unreduced | spec.reduced)
        manual = [user_axis_name(axis) for axis, _ in self.axes]
        there = self.mesh.axis_names
        for axis in used + sums:
            if axis not in there:
                problem = f"the mesh has no axis {axis!r}. {suggest_axis(axis, there)}"
            elif axis not in manual:
                problem = (  # "in_specs refers to" is the field's, for matching
                    f"{self.which} refers to {axis!r}, which is not among axis_names, "
                    f"{sorted(manual)}; the compiler decides how arrays lie along other axes"
                )
            elif used.count(axis) > 1:
                problem = f"axis {axis!r} occurs more than once; an axis cuts one dimension"
            elif axis in sums and axis not in self.mesh.explicit_axes:
                problem = (
                    f"no type tells outside that a sum over {axis!r} is still to be taken, for "
                    f"that axis of {self.mesh} is not Explicit. Make the mesh with "
                    "axis_types=AxisType.Explicit for it"
                )
            else:
                continue
            raise ValueError(f"{self._problem(spec, name)}: {problem}")

    def block(self, type: ArrayType, role: Role, name: str) -> ArrayType:
        """The type of the block that every position has of an array of ``type``.

        Raises:
            ValueError: the axes do not divide a dimension.
        """
        sizes = dict(self.axes)
        for dim, names in enumerate(role.layout):
            rows = Blocks(type.shape[dim], math.prod(sizes[axis] for axis in names))
            if rows.padding:
                below, above = rows.padded - rows.count, rows.padded
                fitting = f"{below} or {above}" if below else f"{above}"
                raise ValueError(
                    f"{self.who}: dimension {dim} of {name}, {type}, has length {rows.size}, "
                    f"which is not evenly divisible over {_named(names)} of size {rows.count}, "
                    f"at {user_location()}; a length of {fitting} would be. Pad it, or cut another "
                    "dimension"
                )
        return role.inner(type, self.axes)

    def _problem(self, spec: Any, name: str) -> str:
        return f"{self.who}: {self.which} has {spec!r} for {name}, at {user_location()}"


def _named(names: Sequence[Any]) -> str:
    listed = ", ".join(map(repr, names))
    return f"axis {listed}" if len(names) == 1 else f"axes {listed} together,"
