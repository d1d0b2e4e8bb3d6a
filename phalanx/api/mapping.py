"""Which axes of a ``pmap`` are mapped in which dimensions of its arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from phalanx.api.arguments import LeafNames, check_axis_name
from phalanx.api.specs import is_spec
from phalanx.api.vmap import (
    UNNAMED,
    count_by_position,
    input_entries,
    mapped_size,
    normal_dim,
    output_entries,
    scalar_by_keyword,
)
from phalanx.base.errors import suggest_axis
from phalanx.base.source import user_location
from phalanx.core.axes import is_internal
from phalanx.core.layouts import Axes
from phalanx.core.program import Equation
from phalanx.core.roles import FIXED, Role, Roles, slices
from phalanx.core.types import ArrayType
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import P, PartitionSpec
from phalanx.transforms.replication import lines_of

_SEQUENCES: tuple[type, ...] = (tuple, list)


class MappedAxes(Struct, frozen=True):
    """The axes ``names`` of the function ``who``; those of ``mesh``, if there is one."""

    who: str
    names: tuple[Any, ...]
    mesh: Mesh | None

    @classmethod
    def of(cls, who: str, axis_name: Any, mesh: Any) -> MappedAxes:
        """The axes that the user named.

        Raises:
            TypeError: ``mesh`` is none.
            ValueError: the names are not those of axes of the mesh.
        """
        check_axis_name(axis_name, "pmap")
        several = isinstance(axis_name, _SEQUENCES)
        if mesh is None:
            # any other tuple is a name like any hashable value
            if several and all(isinstance(name, str) for name in axis_name):
                raise ValueError(
                    f"{who}: axis_name={axis_name!r} names several axes, at {user_location()}: "
                    "those of a mesh. Give mesh=, such as phalanx.make_mesh(sizes, names)"
                )
            return cls(who, (UNNAMED if axis_name is None else axis_name,), None)
        if not isinstance(mesh, Mesh) or mesh.empty:
            raise TypeError(
                f"{who}: mesh must be a Mesh of devices, got {mesh!r}, at {user_location()}; see "
                "phalanx.make_mesh"
            )
        names: tuple[Any, ...] = tuple(axis_name) if several else (axis_name,)
        names = mesh.axis_names if axis_name is None else names
        for name in names:
            if name not in mesh.axis_names:
                raise ValueError(
                    f"{who}: axis_name has {name!r}, which is no axis of {mesh}, at "
                    f"{user_location()}. {suggest_axis(name, mesh.axis_names)}"
                )
            if names.count(name) > 1:
                raise ValueError(
                    f"{who}: axis_name has {name!r} more than once in {names}, at {user_location()}"
                )
        return cls(who, names, mesh)

    # ---- arguments ----

    def of_inputs(
        self,
        in_axes: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        types: Sequence[ArrayType],
        names: LeafNames,
    ) -> Roles:
        """The role of each leaf of (args, kwargs), which ``names`` names."""
        entries = input_entries(in_axes, args, kwargs, self.who, is_spec)
        for i in range(count_by_position(args, kwargs, len(types)), len(types)):
            if types[i].ndim == 0:
                raise scalar_by_keyword(names[i], self.who)
        return tuple(
            [
                FIXED if e is None else self._role(e, t.ndim, names[i])
                for i, (e, t) in enumerate(zip(entries, types, strict=True))
            ]
        )

    def sizes(
        self, leaves: Sequence[Any], roles: Roles, names: LeafNames,
        axis_size: int | None, keywords: int,
    ) -> Axes:  # fmt: skip
        """The size of each axis, on which all arguments must agree that are mapped over it.

        Where none is, it is that of the mesh.

        Raises:
            AxisSizeError: they disagree, or nothing tells the size.
            ValueError: an axis has no lane.
        """
        sizes: list[tuple[Any, int]] = []
        for axis in self.names:
            dims = [_dimension(r, axis) for r in roles]
            who = self.who if self.mesh is None else f"{self.who}, axis {axis!r}"
            free = (
                self.mesh is not None and axis_size is None and not any(d is not None for d in dims)
            )
            fixed_size = self.mesh.shape[axis] if free else axis_size  # type: ignore[union-attr]
            size = mapped_size(leaves, dims, names, fixed_size, who, keywords)
            if size < 1:
                raise ValueError(f"{who}: the mapped axis must have at least one lane, got {size}")
            sizes.append((axis, size))
        return tuple(sizes)

    # ---- results ----

    def of_outputs(self, out_axes: Any, out_tree: Any, ranks: Sequence[int]) -> Roles:
        """The role of each result, which has one of ``ranks`` dimensions in one lane."""
        entries = output_entries(out_axes, out_tree, self.who, is_spec)
        name = f"the result with the mapped ax{'i' if len(self.names) == 1 else 'e'}s"
        return tuple(
            [
                FIXED if e is None
                else self._role(e, rank + self._count(e), name)
                for e, rank in zip(entries, ranks, strict=True)
            ]
        )  # fmt: skip

    def _count(self, entry: Any) -> int:
        """How many dimensions ``entry`` maps."""
        if isinstance(entry, PartitionSpec):
            return sum(e is not None for e in entry)
        return len(self.names)

    # ---- entries ----

    def _role(self, entry: Any, ndim: int, name: str) -> Role:
        """What ``entry`` says of the array ``name``, which has ``ndim`` dimensions."""
        if isinstance(entry, PartitionSpec):
            return self._of_spec(entry, ndim, name)
        usual = type(entry) is int and 0 <= entry < ndim
        dim: Any = entry if usual else normal_dim(entry, ndim, name, self.who)
        if dim + len(self.names) > ndim:
            raise ValueError(
                f"{self.who}: {entry} for {name} maps the axes {', '.join(map(repr, self.names))} "
                f"in dimensions {dim} to {dim + len(self.names) - 1}, but it has {ndim}, at "
                f"{user_location()}; give a PartitionSpec that says which axis is mapped where"
            )
        return slices((*((),) * dim, *((axis,) for axis in self.names)))

    def _of_spec(self, spec: PartitionSpec, ndim: int, name: str) -> Role:
        if self.mesh is None:
            raise TypeError(
                f"{self.who}: {spec} for {name} names axes of a mesh, at {user_location()}; give "
                "mesh=, or an integer"
            )
        for entry in spec:
            problem = None
            if entry is None:
                continue
            if not isinstance(entry, str):
                problem = f"one axis can be mapped in a dimension, and not {entry!r}"
            elif entry not in self.names:
                hint = suggest_axis(entry, self.names)
                problem = f"{entry!r} is none of the axes that are mapped. {hint}"
            elif spec.count(entry) > 1:
                problem = f"axis {entry!r} occurs more than once; it is mapped in one dimension"
            if problem is not None:
                raise ValueError(f"{self.who}: {spec} for {name}, at {user_location()}: {problem}")
        if len(spec) > ndim:
            raise ValueError(
                f"{self.who}: {spec} for {name}, at {user_location()}: it has {len(spec)} entries, "
                f"and there is one for each dimension, of which there are {ndim}"
            )
        return slices(spec.layout)


def _dimension(role: Role, axis: Any) -> int | None:
    """The dimension in which ``axis`` is mapped."""
    return role.layout.index((axis,)) if axis in role.axes else None


def differs(
    who: str, what: str, role: Role, axis: Any, where: Sequence[Equation], option: str = "out_axes"
) -> str:
    """The message that ``axis`` is not mapped in ``what``, of ``role``, which differs along it.

    ``option`` is the parameter of the user that says so.
    """
    lines = lines_of(where)
    cause = f": it uses mapped values at {lines}" if lines else ""
    named = "" if is_internal(axis) else f" of {axis!r}"
    shown = "axis_name" if is_internal(axis) else repr(axis)
    spec = P.of(role.layout) if role.layout else None
    instead = "an integer" if spec is None else f"{axis!r} a place"
    return (
        f"{who}: {what} has {option} {spec} but differs between lanes{named}{cause}. "
        f"Reduce it over the axis, with lax.pmean(x, {shown}) or lax.psum, or give {option} "
        f"{instead} to get the value of every lane"
    )
