"""How results lie, from how operands do: by the dimensions that correspond.

A primitive says in ``dims`` which dimensions of its operands and results are the same one: they
have equal labels. The axes that cut a dimension of an operand cut what has its label in the
results. A label that no result has is summed up, or looked at as a whole. The rest follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NoReturn

from msgspec import Struct

from phalanx.base.errors import ShardingTypeError
from phalanx.base.source import user_location
from phalanx.core.over_mesh import Axed, OverMesh
from phalanx.core.types import ArrayType

Labels = tuple[Hashable, ...]  # of each dimension of an operand or a result


class Whole(Struct, frozen=True):
    """The label of a dimension of an operand that must not be cut.

    Args:
        why: what is done along it, for messages.
    """

    why: str


class Joined(Struct, frozen=True):
    """The label of a dimension of a result that goes through those of ``labels``, row by row."""

    labels: Labels


class Dims(Struct, frozen=True):
    """The labels of the dimensions of each operand and of each result.

    One entry stands for all results. What is not labelled, at the end, corresponds to nothing.
    """

    operands: tuple[Labels, ...]
    results: tuple[Labels, ...]


def alike(*types: ArrayType, **_: Any) -> Dims:
    """The rule of operations whose result has the dimensions of the operands, scalars apart."""
    return Dims(tuple([tuple(range(t.ndim)) for t in types]), (tuple(range(_rank(types))),))


def alike_but(why: str) -> Callable[..., Dims]:
    """The same, but that operands must be whole along the dimension ``dim``, or else the last."""

    def rule(*types: ArrayType, **params: Any) -> Dims:
        every = range(_rank(types))
        one = params.get("dim", len(every) - 1)
        labels = tuple([Whole(why) if d == one else d for d in every])
        left = tuple([None if d == one else d for d in every])
        return Dims(tuple([labels[: t.ndim] for t in types]), (left,))

    return rule


def each_alike(*types: ArrayType, **_: Any) -> Dims:
    """The rule of operations that give for each operand a result that has its dimensions."""
    labels = tuple([tuple([(i, d) for d in range(t.ndim)]) for i, t in enumerate(types)])
    return Dims(labels, labels)


def _rank(types: Sequence[ArrayType]) -> int:
    return max([t.ndim for t in types], default=0)


# ---- what follows from it -----------------------------------------------------------------------


def lying(
    name: str, dims: Dims, types: Sequence[ArrayType], results: Sequence[ArrayType]
) -> list[ArrayType]:
    """``results`` as types that say how they lie, where operands lie as ``types`` say.

    Raises:
        ShardingTypeError: that is not clear, or cannot be.
    """
    told = _Told(name, types)
    axes = told.axes_of(dims.operands, {x for labels in dims.results for x in _parts(labels)})
    out: list[ArrayType] = []
    given = dims.results * (len(results) if len(dims.results) == 1 else 1)
    for labels, result in zip(given, results, strict=True):
        layout = [_cutting(label, axes) for label in labels[: result.ndim]]
        layout += [()] * (result.ndim - len(layout))
        told.check(layout, result)
        out.append(result.update(lies=OverMesh.of(told.mesh, layout)))
    return out


def _parts(labels: Labels) -> Iterable[Hashable]:
    for label in labels:
        yield from label.labels if type(label) is Joined else (label,)


def _cutting(label: Hashable, axes: dict[Hashable, tuple[str, ...]]) -> tuple[str, ...]:
    if type(label) is Joined:
        return tuple([axis for part in label.labels for axis in axes.get(part, ())])
    return axes.get(label, ())


class _Told:
    """What the operands of an operation say, and what is wrong with it."""

    __slots__ = ("mesh", "name", "types")

    mesh: Axed

    def __init__(self, name: str, types: Sequence[ArrayType]) -> None:
        self.name = name
        self.types = types
        meshes = dict.fromkeys([t.lies.mesh for t in types if t.lies is not None])
        self.mesh = next(iter(meshes))
        if len(meshes) > 1:
            self.refuse(f"they lie over different meshes, {' and '.join(map(str, meshes))}")

    def axes_of(
        self, operands: Sequence[Labels], kept: set[Hashable]
    ) -> dict[Hashable, tuple[str, ...]]:
        """The axes that cut what has each label."""
        axes: dict[Hashable, tuple[str, ...]] = {}
        for labels, type in zip(operands, self.types, strict=True):
            if type.lies is None:
                continue
            for d, (label, names) in enumerate(zip(labels, type.lies.layout, strict=False)):
                if names:
                    self._note(axes, label, names, f"dimension {d} of {type}", label in kept)
        return axes

    def _note(
        self, axes: dict[Hashable, tuple[str, ...]], label: Hashable, names: tuple[str, ...],
        which: str, kept: bool,
    ) -> None:  # fmt: skip
        if type(label) is Whole:
            self.refuse(f"{which} is cut, and {label.why}")
        before = axes.get(label)
        if before is not None and before != names:
            self.refuse(f"{which} meets one that is cut by {_named(before)}")
        if before is not None and not kept:
            self.refuse(f"the sum is over dimensions that are cut by {_named(names)}")
        axes[label] = names

    def check(self, layout: Sequence[tuple[str, ...]], result: ArrayType) -> None:
        """Raise ShardingTypeError unless an array of the type ``result`` can lie so."""
        used = [name for names in layout for name in names]
        spec = OverMesh.of(self.mesh, layout)
        twice = next((name for name in used if used.count(name) > 1), None)
        if twice is not None:
            self.refuse(f"both would cut the result, {result} as {spec}, by {twice!r}")
        sizes = self.mesh.shape
        for d, names in enumerate(layout):
            count = math.prod(sizes[name] for name in names)
            if result.shape[d] % count:
                self.refuse(
                    f"dimension {d} of the result, {result}, would be cut by {_named(names)}, "
                    f"whose size {count} does not divide it"
                )

    def refuse(self, problem: str) -> NoReturn:
        raise ShardingTypeError(
            f"{self.name}: how the result is to lie does not follow from the operands, "
            f"{' and '.join(map(str, self.types))}, at {user_location()}: {problem}. Say how it "
            "is to lie: out_sharding=P(..) where the function takes it, or "
            "phalanx.sharding.auto_axes(f, out_sharding=P(..)); or lay an operand out first, "
            "phalanx.reshard(x, P(..))"
        )


def _named(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))
