"""Sharding propagation: the specs of results from those of operands, by labels of dimensions.

A primitive labels in ``dims`` the dimensions of its operands and results, as an einsum does: a
product of matrices has the operands "ik" and "kj", and the result "ij". Mesh axes that cut a
dimension of an operand cut every dimension of the results with the same label. A label that no
result has is summed up, as "k" is, or must not be cut (``Whole``).

An unreduced operand is a sum that is still to be taken. An operation that is linear in it may be
applied to the summands, and its result is unreduced, too; ``linear`` names such operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Literal, NoReturn, TypedDict

from msgspec import Struct

from phalanx.base.dtypes import is_inexact
from phalanx.base.errors import ShardingTypeError, UnreducedError, coded
from phalanx.base.source import user_location
from phalanx.core.manual import typed
from phalanx.core.mesh_spec import Grid, MeshSpec, spec_text
from phalanx.core.types import ArrayType

Labels = tuple[Hashable, ...]  # of each dimension of an operand or a result
Groups = tuple[tuple[int, ...], ...]  # operands by number: one group or another
LinearIn = Groups | Literal["all"]
ALL: Final = "all"  # linear in all operands together
_NONE: Final = frozenset[str]()


class Whole(Struct, frozen=True):
    """The label of a dimension of an operand that must not be cut.

    Args:
        why: what is done along it, for messages.
    """

    why: str


class Joined(Struct, frozen=True):
    """The label of a dimension of a result that goes through those of ``labels``, row by row."""

    labels: Labels


class Taken(Struct, frozen=True):
    """The label of a dimension of a result that is cut by some of the axes that cut ``label``: by
    those numbered from ``first`` until ``last``."""

    label: Hashable
    first: int
    last: int


class LeftSums(TypedDict, total=False):
    """The parameters of operations that sum over dimensions: where ``unreduced`` axes cut such a
    dimension, the sum over them is left to be taken. Sums over other axes are taken."""

    unreduced: tuple[str, ...]


class Dims(Struct, frozen=True):
    """The labels of the dimensions of each operand and of each result.

    One entry stands for all results. What is not labelled, at the end, corresponds to nothing.

    Attributes:
        operands: the labels of each operand.
        results: the labels of each result.
        product: whether what corresponds is summed up, of operands of several kinds: then they
            may differ in the axes along which they are reduced, and no result is.
        beside_reduced: whether an operand may be cut along axes along which another is reduced:
            then no result is.
        unreduced: the axes over which sums are left to be taken, as the operation is told.
    """

    operands: tuple[Labels, ...]
    results: tuple[Labels, ...]
    product: bool = False
    beside_reduced: bool = False
    unreduced: tuple[str, ...] = ()


def alike(*types: ArrayType, **_: Any) -> Dims:
    """The rule of elementwise operations: the result has the dimensions of the operands, of which
    some may be scalars."""
    return Dims(tuple([tuple(range(t.ndim)) for t in types]), (tuple(range(_rank(types))),))


def alike_but(why: str) -> Callable[..., Dims]:
    """The same, but that operands must be whole along the dimension ``dim``, or else the last."""

    def rule(*types: ArrayType, **params: Any) -> Dims:
        dims = range(_rank(types))
        one = params.get("dim", len(dims) - 1)
        labels = tuple([Whole(why) if d == one else d for d in dims])
        left = tuple([None if d == one else d for d in dims])
        return Dims(tuple([labels[: t.ndim] for t in types]), (left,))

    return rule


def each_alike(*types: ArrayType, **_: Any) -> Dims:
    """The rule of operations that give for each operand a result that has its dimensions."""
    labels = tuple([tuple([(i, d) for d in range(t.ndim)]) for i, t in enumerate(types)])
    return Dims(labels, labels)


def _rank(types: Sequence[ArrayType]) -> int:
    return max([t.ndim for t in types], default=0)


# ---- what follows from it -----------------------------------------------------------------------


def propagate_shardings(
    name: str,
    dims: Dims,
    types: Sequence[ArrayType],
    results: Sequence[ArrayType],
    linear: LinearIn = (),
) -> list[ArrayType]:
    """``results`` with the specs that follow from those of the operands' ``types``.

    Args:
        name: the name of the operation, for messages.
        dims: the dimensions that correspond.
        types: those of the operands.
        results: those of the results, without specs.
        linear: the operands in which it is linear.

    Raises:
        ShardingTypeError: that is not clear, or cannot be.
    """
    propagation = _Propagation(name, types, frozenset(dims.unreduced))
    in_results = {x for labels in dims.results for x in _parts(labels)}
    axes = propagation.axes_of(dims.operands, in_results)
    unreduced, reduced = propagation.sums(linear, dims, results)
    if propagation.leaves and linear == ALL:
        unreduced |= propagation.leaves.intersection(
            [name for label, names in axes.items() if label not in in_results for name in names]
        )
    unreduced |= propagation.left
    out: list[ArrayType] = []
    of_results = dims.results * (len(results) if len(dims.results) == 1 else 1)
    for labels, result in zip(of_results, results, strict=True):
        cuts = [_cutting(label, axes) for label in labels[: result.ndim]]
        cuts += [()] * (result.ndim - len(cuts))
        layout = [
            propagation.left_of(n, names) for n, names in zip(result.shape, cuts, strict=True)
        ]
        propagation.check(layout, result, unreduced | reduced)
        out.append(result.update(spec=MeshSpec.of(propagation.mesh, layout, unreduced, reduced)))
    return out


def _parts(labels: Labels) -> Iterable[Hashable]:
    for label in labels:
        if isinstance(label, Joined):
            yield from label.labels
        else:
            yield label.label if isinstance(label, Taken) else label


def _cutting(label: Hashable, axes: dict[Hashable, tuple[str, ...]]) -> tuple[str, ...]:
    if type(label) is Joined:
        return tuple([axis for part in label.labels for axis in axes.get(part, ())])
    if type(label) is Taken:
        return axes.get(label.label, ())[label.first : label.last]
    return axes.get(label, ())


class _Propagation:
    """What the operands of an operation say, and what is wrong with it."""

    __slots__ = ("leaves", "left", "mesh", "name", "types")

    mesh: Grid | None

    def __init__(self, name: str, types: Sequence[ArrayType], leaves: frozenset[str]) -> None:
        self.name = name
        self.types = types
        self.leaves = leaves  # the axes over which sums need not be taken
        self.left = _NONE  # those of them over which the result is such a sum
        specs = [t.spec for t in types if t.spec is not None]
        meshes = dict.fromkeys([spec.mesh for spec in specs if spec.mesh is not None])
        self.mesh = next(iter(meshes), None)
        if len(meshes) > 1:
            self.refuse(f"they lie over different meshes, {' and '.join(map(str, meshes))}")

    def axes_of(
        self, operands: Sequence[Labels], in_results: set[Hashable]
    ) -> dict[Hashable, tuple[str, ...]]:
        """The axes that cut what has each label."""
        axes: dict[Hashable, tuple[str, ...]] = {}
        for labels, type in zip(operands, self.types, strict=True):
            if type.spec is None:
                continue
            for d, (label, names) in enumerate(zip(labels, type.spec.layout, strict=False)):
                if names:
                    self._note(axes, label, names, f"dimension {d} of {type}", label in in_results)
        return axes

    def _note(
        self, axes: dict[Hashable, tuple[str, ...]], label: Hashable, names: tuple[str, ...],
        which: str, in_results: bool,
    ) -> None:  # fmt: skip
        if type(label) is Whole:
            self.refuse(f"{which} is cut, and {label.why}")
        before = axes.get(label)
        if before is not None and before != names:
            self.refuse(f"{which} meets one that is cut by {_named(before)}")
        if before is not None and not in_results and self.leaves:
            self.left |= self.leaves.intersection(names)
        elif before is not None and not in_results:
            self.refuse(f"the sum is over dimensions that are cut by {_named(names)}", "summed")
        axes[label] = names

    def sums(
        self, linear: LinearIn, dims: Dims, results: Sequence[ArrayType]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The axes along which ``results`` are unreduced, and along which they are reduced."""
        if not any([t.spec is not None and t.spec.has_sums for t in self.types]):
            return _NONE, _NONE
        left = [i for i, t in enumerate(self.types) if t.unreduced]
        varying = _NONE.union(*[t.varying for t in self.types])
        if left:
            exact = all([is_inexact(t.dtype) for t in results])
            exact = exact or not any([is_inexact(self.types[i].dtype) for i in left])
            return self._left(left, linear if exact else (), varying), _NONE
        if dims.product:
            return _NONE, _NONE
        along = _NONE.union(*[t.reduced for t in self.types]) - varying
        if dims.beside_reduced:
            return _NONE, along.difference([n for t in self.types for ns in t.layout for n in ns])
        self._check_factors(along, self.types)
        return _NONE, along

    def _left(
        self, left: Sequence[int], linear: LinearIn, varying: frozenset[Any]
    ) -> frozenset[Any]:
        """The axes over which the sum of a result is still to be taken, as those of operands.

        Raises:
            UnreducedError: the operation on parts of sums does not give parts of its result.
            ShardingTypeError: other operands are no such sums.
        """
        axes = self.types[left[0]].unreduced
        if axes & varying:
            type = next(t for t in self.types if axes & t.varying)
            self._refuse_sum(left, f"and {type} varies along it, a part of no sum")
        operands = tuple(range(len(self.types)))
        groups = [operands] if linear == ALL else linear
        fitting = [g for g in groups if set(left) <= set(g)]
        if not fitting:
            problem = "and the operation cannot be done to its parts"
            self._refuse_sum(left, problem, UnreducedError)
        for i in fitting[0]:
            if self.types[i].unreduced != axes:
                self._refuse_sum(left, f"and {self.types[i]} is not")
        self._check_factors(axes, [self.types[i] for i in set(operands).difference(fitting[0])])
        return axes

    def _check_factors(self, along: frozenset[str], types: Sequence[ArrayType]) -> None:
        """Raise ShardingTypeError if any of ``types`` is cut along axes of sums."""
        for t in types:
            common = along.intersection([name for names in t.layout for name in names])
            if common:
                self.refuse(
                    f"{t} is cut by {_named(sorted(common))}, along which another is a sum or has "
                    f"one as its cotangent; lay it out whole there, {_spec(t, _NONE, along)}"
                )

    def _refuse_sum(
        self, left: Sequence[int], problem: str, error: type[ShardingTypeError] = ShardingTypeError
    ) -> NoReturn:
        type = self.types[left[0]]
        refused = error(
            f"{self.name}: {type}, at {user_location()}, is unreduced: the sum over "
            f"{_named(sorted(type.unreduced, key=str))} is still to be taken, {problem}; operands "
            f"are {' and '.join(map(str, self.types))}. Take the sum first: {how_to_sum(type)}",
            self.name,
        )
        possible, all_unreduced = (
            error is not UnreducedError,
            all([t.unreduced for t in self.types]),
        )
        raise coded(refused, "sum", name=self.name, possible=possible, every=all_unreduced)

    def left_of(self, length: int, names: tuple[str, ...]) -> tuple[str, ...]:
        """The axes among ``names`` that cut a dimension of ``length``: all of them, but none where
        the length is 1 and they have several positions, since one row cannot be divided."""
        if length != 1 or self.mesh is None:
            return names
        sizes = self.mesh.shape
        return names if math.prod(sizes[n] for n in names) == 1 else ()

    def check(
        self, layout: Sequence[tuple[str, ...]], result: ArrayType, sums: frozenset[str]
    ) -> None:
        """Raise ShardingTypeError unless an array of the type ``result`` can lie so.

        ``sums`` are axes that can cut nothing: sums over them are still to be taken.
        """
        used = [name for names in layout for name in names] + list(sums)
        spec = MeshSpec.of(self.mesh, layout)
        twice = next((name for name in used if used.count(name) > 1), None)
        if twice is not None:
            self.refuse(f"both would cut the result, {result} as {spec}, by {twice!r}", "twice")
        sizes = {} if self.mesh is None else self.mesh.shape
        for d, names in enumerate(layout):
            count = math.prod(sizes[name] for name in names)
            if result.shape[d] % count:
                self.refuse(
                    f"dimension {d} of the result, {result}, would be cut by {_named(names)}, "
                    f"whose size {count} does not divide it"
                )

    def refuse(self, problem: str, code: str = "unlike") -> NoReturn:
        error = ShardingTypeError(
            f"{self.name}: how the result is to lie does not follow from the operands, "
            f"{' and '.join(map(str, self.types))}, at {user_location()}: {problem}. Say how it "
            "is to lie: phalanx.sharding.auto_axes(f, out_sharding=P(..)), or out_sharding=P(..) "
            "where the function takes it; or lay an operand out first, phalanx.reshard(x, P(..))",
            self.name,
        )
        raise coded(error, "result unclear", name=self.name, why=code)


def how_to_sum(type: ArrayType) -> str:
    """What a user writes to take the sum that is still to be taken of a value of ``type``."""
    manual = sorted(map(str, typed(type.unreduced)))
    if manual:
        return f"phalanx.lax.psum(x, {manual[0] if len(manual) == 1 else tuple(manual)!r})"
    return f"phalanx.reshard(x, {_spec(type, _NONE, _NONE)})"


def _spec(type: ArrayType, unreduced: frozenset[str], reduced: frozenset[str]) -> str:
    """What lays out an array of ``type`` as it is, but with other sums."""
    layout = [[a for a in names if a not in unreduced | reduced] for names in type.layout]
    entries = [repr(names[0] if len(names) == 1 else tuple(names) or None) for names in layout]
    return spec_text(entries, unreduced, reduced)


def _named(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))
