"""Roles: what an operand or a result of an operation is to the programs that it runs.

An operation such as ``scan`` or ``mapped`` runs a program several times. The role of each operand
says what one run gets of it; what transformations do with the operation follows from the roles. For
an operand of shape (4, 6) and four runs along an axis ``i``:

- FIXED: each run gets all of it, shape (4, 6);
- CARRY: the first run gets it, shape (4, 6), and each other run what the run before gave;
- ``slices((("i",),))``: each run gets one row, shape (6,), as in ``vmap`` and ``scan``;
- ``blocks((("i",),))``: each run gets a quarter of the rows, shape (1, 6), as in ``shard_map``;
- CHOICE: no run gets it; it is the number of the program that runs, as in ``cond``.

An array may be sliced along some axes and in blocks along others: a slice over lanes, whose lanes
are divided over further axes. Along axes of the runs an array may also be *unreduced*: each run has
a summand of its shape, and the array is their sum. If it is *reduced*, all runs have the same, and
its cotangent is unreduced.
"""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from phalanx.base.errors import ShardingTypeError
from phalanx.base.source import user_location
from phalanx.core.layouts import Axes, Layout, along, trimmed
from phalanx.core.manual import typed, user_axis_name
from phalanx.core.mesh_spec import MeshSpec, both
from phalanx.core.types import NOWHERE, ArrayType

ROWS = "<rows>"  # the axis of the runs of a loop, which nobody else names


class Role(Struct, frozen=True):
    """What an operand or a result is to a program: ``layout`` has the axes that cut each dimension.

    A dimension that an axis in ``sliced`` cuts is removed in a run; others become shorter.

    >>> x = ArrayType((4, 6, 8), float)
    >>> slices((("i",), (), ("j",))).inner(x, (("i", 4), ("j", 8))).shape
    (6,)
    >>> blocks((("i",), (), ("j",))).inner(x, (("i", 4), ("j", 8))).shape
    (1, 6, 1)
    """

    name: str
    layout: Layout = ()
    unreduced: frozenset[Any] = NOWHERE
    reduced: frozenset[Any] = NOWHERE
    sliced: frozenset[Any] = NOWHERE

    @property
    def sums(self) -> frozenset[Any]:
        """The axes along which a sum is still to be taken: its own, or that of its cotangent."""
        return self.unreduced | self.reduced

    @property
    def cotangent(self) -> Role:
        """The role of the cotangent of what has this one."""
        return replace(self, unreduced=self.reduced, reduced=self.unreduced) if self.sums else self

    @property
    def axes(self) -> frozenset[Any]:
        """The axes of the runs that cut it."""
        return _axes(self.layout)

    @property
    def _gone(self) -> list[int]:
        """The dimensions of the whole that a run does not see."""
        return [d for d, cutting in enumerate(self.layout) if not self.sliced.isdisjoint(cutting)]

    def _counts(self, axes: Axes) -> list[int]:
        """Into how many parts each dimension is cut."""
        sizes = dict(axes)
        return [math.prod(sizes[axis] for axis in cutting) for cutting in self.layout]

    def inner(self, type: ArrayType, axes: Axes) -> ArrayType:
        """The type of what one of the runs over ``axes`` sees of an array of ``type``."""
        spec = type.spec
        if spec is not None:
            axis_names = [user_axis_name(axis) for axis, _ in axes]
            _refuse_sums(type, {*axis_names}.difference(map(user_axis_name, self.unreduced)))
            spec = spec.without_dims(self._gone)
            spec = spec and spec.without_axes(axis_names)
        if not self.layout and not self.sums:
            return type if spec is type.spec else type.update(spec=spec)
        shape, gone = list(type.shape), self._gone
        for d, count in enumerate(self._counts(axes)):
            shape[d] //= count
        left = tuple([n for d, n in enumerate(shape) if d not in gone])
        sums = MeshSpec.of(None, [()] * len(left), typed(self.unreduced), typed(self.reduced))
        varying = type.varying | (typed(self.axes) - self.sums)
        return type.update(shape=left, varying=varying, spec=both(spec, sums))

    def outer(self, type: ArrayType, axes: Axes) -> ArrayType:
        """The type of the whole array, where each of the runs over ``axes`` sees ``type``."""
        if not self.layout and not self.sums:
            return type
        shape, counts = list(type.shape), self._counts(axes)
        spec = type.spec and type.spec.without_axes([axis for axis, _ in axes])
        for d in self._gone:
            shape.insert(d, 1)
            spec = spec and spec.with_dim(d)
        for d, count in enumerate(counts):
            shape[d] *= count
        return type.update(shape=tuple(shape), varying=type.varying - self.axes, spec=spec)

    def sharded_type(self, type: ArrayType, mesh: Any) -> ArrayType:
        """The type of the whole, which also says that parts lie along the axes of ``mesh``."""
        layout, spec = list(type.layout), type.spec
        for d, cutting in enumerate(self.layout):
            axis_names = [
                name for name in map(user_axis_name, cutting) if name in mesh.explicit_axes
            ]
            if type.shape[d] % math.prod(mesh.shape[name] for name in axis_names):
                return type  # the last part is shorter
            layout[d] = (*axis_names, *layout[d])
        unreduced, reduced = (self._left(axes, mesh) for axes in (self.unreduced, self.reduced))
        if spec is not None:
            unreduced, reduced = unreduced | spec.unreduced, reduced | spec.reduced
        return type.update(spec=MeshSpec.of(mesh.abstract_mesh, layout, unreduced, reduced))

    def _left(self, axes: frozenset[Any], mesh: Any) -> frozenset[str]:
        """Those of ``axes``, along which it is a sum, that cut nothing, as ``mesh`` has them."""
        return frozenset(map(user_axis_name, axes - self.axes)).intersection(mesh.explicit_axes)

    # ---- dimensions of the whole, and of what a run sees ----

    def inner_dim(self, dim: int) -> int:
        """The number that dimension ``dim`` of the whole array has inside of a run; for one that is
        sliced away, the number that it would have.

        >>> slices((("i",),)).inner_dim(2)
        1
        """
        return dim - sum(d < dim for d in self._gone)

    def outer_dim(self, dim: int) -> int:
        """The number that dimension ``dim`` of a run has in the whole array.

        >>> slices((("i",),)).outer_dim(1)
        2
        """
        gone = self._gone
        for d in gone:
            dim += d <= dim
        return dim

    def insert_dim(self, dim: int, cutting: tuple[Any, ...] = ()) -> Role:
        """The role of the array after a dimension is inserted at ``dim``, in blocks along the axes
        that are ``cutting`` it.

        >>> blocks((("i",),)).insert_dim(2, ("j",))
        block[i, :, j]
        >>> slices((("i",),)).insert_dim(0, ("j",))
        each[j in blocks, i]
        """
        if not cutting and dim >= len(self.layout):
            return self
        before, after = self.layout[:dim], self.layout[dim:]
        layout = (*before, *((),) * (dim - len(before)), cutting, *after)
        return replace(self, name=self.name if self.sliced else "block", layout=layout)

    def compose(self, inside: Role) -> Role:
        """The role of an array to runs inside of runs: the outer runs get what this role says, and
        the inner runs get of that what ``inside`` says.

        >>> slices(((), ("i",))).compose(slices((("j",),)))
        each[j, i]
        """
        rest = list(inside.layout)
        layout = [cutting or (rest.pop(0) if rest else ()) for cutting in self.layout]
        return slices((*layout, *rest))

    # ---- one axis of several ----

    def place(self, axis: Any, inner: Axes = ()) -> int | None:
        """The dimension that ``axis`` cuts, counted as a run counts; None: it cuts none.

        The dimensions that ``inner`` axes slice are counted, too: those axes have not cut it yet.

        >>> columns = slices((("i",), ("j",)))
        >>> columns.place("j"), columns.place("j", (("i", 4),))
        (0, 1)
        """
        dims = [d for d, cutting in enumerate(self.layout) if axis in cutting]
        return self.without(*[name for name, _ in inner]).inner_dim(dims[0]) if dims else None

    def rows_before(self, axis: Any, axes: Axes) -> int:
        """How often positions along ``axis`` start again at 0 along the dimension that it cuts: the
        product of the sizes, in ``axes``, of those that cut it before ``axis``.

        >>> blocks((("j", "i"),)).rows_before("i", (("i", 2), ("j", 3)))
        3
        """
        (cutting,) = (c for c in self.layout if axis in c)
        return math.prod(dict(axes).get(a, 1) for a in cutting[: cutting.index(axis)])

    def without(self, *axes: Any) -> Role:
        """The role of the same array where ``axes`` do not cut it."""
        layout = tuple([tuple([a for a in cutting if a not in axes]) for cutting in self.layout])
        left = [of.difference(axes) for of in (self.unreduced, self.reduced, self.sliced)]
        return _cut(self.name, layout, *left)

    def __str__(self) -> str:
        if self.sums:
            sums = {"U": self.unreduced, "R": self.reduced}
            sets = [f"{kind}:{'*'.join(sorted(map(str, a)))}" for kind, a in sums.items() if a]
            return f"{replace(self, unreduced=NOWHERE, reduced=NOWHERE)}{{{', '.join(sets)}}}"
        if not self.layout:
            return self.name
        if self.layout[-1] == (ROWS,):
            return f"{self.name}@{len(self.layout) - 1}"
        entries = ["*".join(map(str, cutting)) or ":" for cutting in self.layout]
        if self.sliced:
            in_blocks = self.axes - self.sliced
            pairs = zip(entries, self.layout, strict=True)
            entries = [
                c if in_blocks.isdisjoint(cutting) else f"{c} in blocks" for c, cutting in pairs
            ]
        return f"{self.name}[{', '.join(entries)}]"

    __repr__ = __str__


FIXED = Role("fixed")  # whole, the same in every run
CARRY = Role("carry")  # what one run gives, the next one takes; operand and result number k match
CHOICE = Role("choice")  # the number of the program that runs; programs do not see it

Roles = tuple[Role, ...]


def slices(
    layout: Layout, unreduced: frozenset[Any] = NOWHERE, reduced: frozenset[Any] = NOWHERE
) -> Role:
    """Each run gets one row of every dimension that is cut, without the dimension."""
    return _cut("each", layout, unreduced, reduced, _axes(layout))


def blocks(
    layout: Layout, unreduced: frozenset[Any] = NOWHERE, reduced: frozenset[Any] = NOWHERE
) -> Role:
    """Each run gets an equal part of the rows of every dimension that is cut."""
    return _cut("block", layout, unreduced, reduced, NOWHERE)


def each(dim: int) -> Role:
    """Each run of a loop gets one row along ``dim``, without the dimension."""
    return slices(along(dim, ROWS))


def _refuse_sums(type: ArrayType, axes: set[Any]) -> None:
    """Raise ShardingTypeError if the sum over any of ``axes`` is still to be taken."""
    left = sorted(type.unreduced.intersection(axes))
    if left:
        raise ShardingTypeError(
            f"{type}, at {user_location()}, is unreduced: the sum over "
            f"{' and '.join(map(repr, left))} is still to be taken, and the function runs at each "
            f"position of it. Take the sum first: phalanx.reshard(x, P(..)); shard_map also takes "
            f"the parts, in_specs=P(.., unreduced={{{', '.join(map(repr, left))}}})"
        )


def _axes(layout: Layout) -> frozenset[Any]:
    return frozenset(axis for cutting in layout for axis in cutting)


def _cut(
    name: str,
    layout: Layout,
    unreduced: frozenset[Any],
    reduced: frozenset[Any],
    sliced: frozenset[Any],
) -> Role:
    layout = trimmed(layout)
    if not layout and not unreduced and not reduced:
        return FIXED
    return Role(name, layout, unreduced, reduced, sliced)
