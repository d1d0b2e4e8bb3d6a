"""What is asked of a checkpoint: the leaves of a tree beside those that are stored."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.api.aot import sharding_of
from phalanx.base import dtypes, tree
from phalanx.base.errors import ArgumentError, ShapeError, TreeError
from phalanx.base.extended import is_key
from phalanx.base.numpy_kinds import is_dtype
from phalanx.base.plain import brief
from phalanx.base.source import user_location
from phalanx.core.types import ArrayType, typeof
from phalanx.experimental.checkpoint import together
from phalanx.experimental.checkpoint.index import Stored
from phalanx.experimental.checkpoint.leaves import ARRAY, NUMBERS, SCALAR, Leaf, joined_dim
from phalanx.experimental.checkpoint.outline import Node, build, numbers, under
from phalanx.run.array import DeviceArray, default_sharding
from phalanx.spmd.constraint import sharding_for
from phalanx.spmd.named import PartitionSpec
from phalanx.spmd.sharding import Sharding

WHO = "checkpoint.restore"


class RestoredAs(Struct, frozen=True):
    """What becomes of a leaf.

    Attributes:
        type: of the array that it becomes, here; None for a number of Python's.
        sharding: how that lies; None for an array of NumPy.
        scalar: whether it becomes a scalar of NumPy.
        joined: the dimension in which each process has rows of its own.
        number: the type of Python's numbers that it becomes, if it does.
    """

    type: ArrayType | None
    sharding: Sharding | None = None
    scalar: bool = False
    joined: int | None = None
    number: type | None = None

    @classmethod
    def as_saved(cls, leaf: Leaf) -> RestoredAs:
        """What it was; arrays whole on the default device."""
        if leaf.is_number:
            return cls(None)
        sharding = default_sharding() if leaf.kind == ARRAY else None
        return cls(leaf.type, sharding, leaf.kind == SCALAR)


class Wanted:
    """What a tree asks of what is ``stored``: ``targets``, by the numbers of leaves.

    Raises:
        TreeError: it asks for leaves that are not stored, or not for some that are.
        ShapeError, ArgumentError: a leaf has another shape, or is of another dtype or kind.
    """

    def __init__(self, stored: Stored, like: Any, who: str = WHO) -> None:
        pairs, self._treedef = tree.flatten_with_path(like, _is_sharding)
        self._asked = [asked for _, asked in pairs]
        self._nodes = _nodes(stored, [path for path, _ in pairs], who)
        self.targets: dict[int, RestoredAs] = {}
        for (path, asked), node in zip(pairs, self._nodes, strict=True):
            if not isinstance(asked, EllipsisType):
                what = f"{who}: tree{tree.keystr(path)}"
                for number in numbers(node):
                    self.targets[number] = _target(stored.leaves[number], asked, node, what)

    def tree_of(self, found: dict[int, Any]) -> Any:
        """The tree that was asked for, of its leaves by number."""
        return self._treedef.unflatten(
            asked if isinstance(asked, EllipsisType) else build(node, found.__getitem__)
            for asked, node in zip(self._asked, self._nodes, strict=True)
        )


def _is_sharding(x: Any) -> bool:
    return isinstance(x, (Sharding, PartitionSpec))


def _nodes(stored: Stored, paths: Sequence[tree.Path], who: str) -> list[Node]:
    """What is stored at each path, which together lead to all that is.

    Raises:
        TreeError: they do not.
    """
    nodes: list[Node] = []
    missing: list[str] = []
    for path in paths:
        try:
            nodes.append(under(stored.outline, tuple(map(tree.name_of, path))))
        except KeyError:
            missing.append(tree.keystr(path))
    met = {number for node in nodes for number in numbers(node)}
    extra = [leaf.path for number, leaf in enumerate(stored.leaves) if number not in met]
    if not missing and not extra:
        return nodes
    problems: list[str] = []
    advice = ["without a tree, all is restored as it was saved"] if who == WHO else []
    if missing:
        problems.append(f"asked for, but not stored: {_listed(missing)}")
    if extra:
        problems.append(f"stored, but not asked for: {_listed(extra)}")
        advice[:0] = ["ask for what is not to be read as ... in its place"]
    how = f" ({'; '.join(advice)})" if advice else ""
    raise TreeError(
        f"{who}: the tree in {stored.folder} is not like the one that is given: "
        f"{'; '.join(problems)}, at {user_location()}{how}"
    )


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return ", ".join(f"tree{path}" for path in paths[:5]) + more


def _target(leaf: Leaf, asked: Any, node: Node, what: str) -> RestoredAs:
    """What becomes of ``leaf`` where ``node`` is stored and ``asked`` is given."""
    if _is_sharding(asked):
        if leaf.is_number:
            return RestoredAs(None)
        sharding = sharding_for(asked, what)
        _check_fits(sharding, leaf, what)
        return RestoredAs(leaf.type, sharding)
    if isinstance(node, dict):
        raise TreeError(
            f"{what} is stored as a tree, with a leaf tree{leaf.path}, and asked for as one "
            f"leaf, {_shown(asked)}, at {user_location()}; give a tree like it, or a sharding"
        )
    if hasattr(asked, "shape") and hasattr(asked, "dtype"):
        return _target_array(leaf, asked, what)
    if type(asked).__name__ not in NUMBERS:
        raise TypeError(
            f"{what} is asked for as {_shown(asked)}; give an array, a ShapeDtypeStruct, "
            f"a number, a sharding, or ... to leave it out, at {user_location()}"
        )
    kind = type(asked).__name__
    if not leaf.can_be(kind):
        raise _other(leaf, f"as a Python {kind}", what, "Ask for an array or number like it")
    return RestoredAs(None if leaf.is_number else leaf.type, scalar=True, number=NUMBERS[kind])


_ON_HOST: tuple[type, ...] = (np.ndarray, np.generic)


def _target_array(leaf: Leaf, asked: Any, what: str) -> RestoredAs:
    there = typeof(leaf.number) if leaf.is_number else leaf.type
    if leaf.kind == "int":
        dtypes.check_range(leaf.number, there.dtype, what)
    dtype = asked.dtype
    if is_dtype(dtype) and not dtype.isnative:
        dtype = dtype.newbyteorder("=")  # in which it is restored
    if dtype != there.dtype:
        keys = is_key(dtype) or is_key(there.dtype)
        how = "random.key_data or wrap_key_data" if keys else "astype"
        advice = f"Ask for {there.dtype.name}, and convert what is restored with {how}"
        raise _other(leaf, f"with dtype {getattr(dtype, 'name', dtype)}", what, advice)
    on_host = isinstance(asked, _ON_HOST)
    sharding = None if on_host else sharding_of(asked) or default_sharding()
    joined = joined_dim(sharding) if together.others() else None
    shape = tuple(asked.shape)
    if joined is None and shape != there.shape:
        raise _other(leaf, f"with shape {shape}", what, "Ask for that shape", ShapeError)
    if sharding is not None and joined is None:
        _check_fits(sharding, leaf, what)
    weak = asked.aval.weak if isinstance(asked, DeviceArray) else getattr(asked, "weak_type", False)
    type = ArrayType(shape, there.dtype, weak)
    return RestoredAs(type, sharding, isinstance(asked, np.generic), joined)


def _check_fits(sharding: Sharding, leaf: Leaf, what: str) -> None:
    try:
        sharding.shard_shape(leaf.shape)
    except ValueError as e:
        raise ShapeError(
            f"{what} cannot lie as {sharding}, at {user_location()}: tree{leaf.path} is stored as "
            f"{leaf}: {e}"
        ) from None


def _other(
    leaf: Leaf, asked: str, what: str, advice: str, kind: type[Exception] = ArgumentError
) -> Exception:
    return kind(
        f"{what} is stored as {leaf}, and asked for {asked}, at {user_location()}. {advice}"
    )


def _shown(x: Any) -> str:
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return f"an array {x.dtype}[{','.join(map(str, x.shape))}]"
    return f"{type(x).__name__} {brief(x)}"
