"""What ``in_shardings`` and ``out_shardings`` say: trees of shardings above trees of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.base import tree
from phalanx.base.errors import coded
from phalanx.base.kinds import class_of
from phalanx.base.source import user_location
from phalanx.core.types import ArrayType
from phalanx.spmd.constraint import is_abstract, resolve_devices, sharding_for
from phalanx.spmd.formats import as_sharding
from phalanx.spmd.named import PartitionSpec, unreduced_along
from phalanx.spmd.sharding import Sharding


class ShardingPrefix:
    """A tree of shardings, specs under the mesh that is set, and None where nothing is asked.

    Nobody else can change it; ``key`` stands for it in keys.
    """

    __slots__ = ("key", "spec", "what", "who")

    def __init__(self, spec: Any, who: str, what: str) -> None:
        self.who = who
        self.what = what
        leaves, treedef = tree.flatten(spec, _is_leaf)
        leaves = [as_sharding(leaf, f"{who}: {what}") for leaf in leaves]
        for leaf in leaves:
            if leaf is not None and not isinstance(leaf, (Sharding, PartitionSpec)):
                error = TypeError(
                    f"{who}: {what} takes shardings, PartitionSpecs, None and trees of them, got "
                    f"{leaf!r}; for one device give SingleDeviceSharding(device)"
                )
                raise coded(error, "not a sharding", what=what, got=str(leaf))
            spec = getattr(leaf, "spec", leaf)
            if isinstance(spec, PartitionSpec) and None in spec.open_layout:
                raise ValueError(  # "Unconstrained ... allowed" is the field's, for matching
                    f"{who}: Unconstrained dims are not allowed in {what}, got {spec}, at "
                    f"{user_location()}; leave the whole sharding out, None, or constrain a value "
                    "inside: phalanx.lax.with_sharding_constraint"
                )
        self.spec: Any = treedef.unflatten(leaves)
        self.key = (treedef, *leaves)

    @property
    def nothing(self) -> bool:
        """Whether nothing is asked at all."""
        return self.spec is None

    def of(
        self, value: Any, types: Sequence[ArrayType], name_of_leaf: Callable[[int], str]
    ) -> list[Sharding | None]:
        """What is asked of each leaf of ``value``, which are of ``types``; devices may be known
        later. Messages call a leaf what ``name_of_leaf`` says.

        Raises:
            TreeError: the trees do not fit.
            NoMesh: a spec stands alone, and there is no mesh.
            ValueError: a sharding does not fit its leaf.
        """
        if self.nothing:
            return [None] * len(types)
        name = f"{self.who.partition('(')[0]} {self.what}"
        spec = self.spec
        if class_of(spec) is list and class_of(value) is tuple:
            spec = tuple(spec)
        above = tree.broadcast_prefix(spec, value, name, _is_leaf)
        who = f"{self.who}: {self.what}"
        found = [None if s is None else sharding_for(s, who, later=True) for s in above]
        for i, (sharding, type) in enumerate(zip(found, types, strict=True)):
            if sharding is not None:
                self._check(sharding, type, name_of_leaf(i))
        return found

    def _check(self, sharding: Sharding, type: ArrayType, name: str) -> None:
        """Raise ValueError if ``sharding`` does not fit what it is asked of."""
        try:
            sharding.check_asked(type.shape)
        except ValueError as e:
            error = ValueError(
                f"{self.who}: {self.what} of {name}, {type}, at {user_location()}: {e}"
            )
            spec = getattr(sharding, "spec", ())
            entries, rank = len(spec), type.ndim
            raise coded(
                error, "does not fit", what=self.what, spec=str(spec), entries=entries, rank=rank
            ) from None


def check_followed(
    actual: Sequence[Sharding | None],
    asked: Sequence[Sharding | None],
    types: Sequence[ArrayType],
    names: Any,
    who: str,
) -> None:
    """Raise ValueError if what the user placed is asked to lie elsewhere, or what is whole is asked
    to be parts of a sum; NoMesh if it is on fewer or more devices than a mesh without any needs."""
    for i, (there, requested, type) in enumerate(zip(actual, asked, types, strict=True)):
        if (
            requested is None
            or there is None
            or not (there.committed or unreduced_along(requested))
        ):
            continue
        if not is_abstract(there):
            requested = resolve_devices(requested, there.device_list, who)
        if not requested.is_equivalent_to(there, type.ndim) and not _in_other_order(
            requested, there
        ):
            raise ValueError(  # "Sharding passed ... arg" is the field's, for matching
                f"{who}: Sharding passed to jit does not match the sharding on the respective arg: "
                f"{names[i]}, {type}, lies as {there}, and in_shardings asks for {requested}, at "
                f"{user_location()}. Move it first: phalanx.device_put(x, sharding), or leave its "
                "in_shardings None"
            )


def _in_other_order(one: Sharding, other: Sharding) -> bool:
    """Whether both divide arrays alike among the same devices, but in another order of these."""
    if unreduced_along(one) or unreduced_along(other):  # parts of a sum are not exchanged
        return False
    divided, also = ((s.tiles, s.assignment, s.memory) for s in (one, other))
    return divided == also and one.is_over(other.device_list)


def _is_leaf(x: Any) -> bool:
    return x is None or isinstance(x, (Sharding, PartitionSpec))
