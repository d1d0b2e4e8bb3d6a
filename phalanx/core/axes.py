"""Named axes: which are in scope while a mapped function is traced, and what a split is."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from operator import index
from typing import Any, SupportsIndex, cast

from msgspec import Struct

from phalanx.base.config import config
from phalanx.base.errors import UnboundAxis
from phalanx.base.source import user_location
from phalanx.core.blocks import Blocks
from phalanx.core.layouts import Axes
from phalanx.core.manual import user_axis_name
from phalanx.core.mesh_spec import MeshSpec
from phalanx.core.types import ArrayType

Names = tuple[Any, ...]  # of axes


class Split(Struct, frozen=True):
    """How the lanes of an axis are divided, if an array dimension has only a part of them.

    There is one of the ``blocks`` at each position of the axes ``names``, of ``sizes``, the first
    of them outermost. ``together`` says that all positions must run the same, even what does not
    communicate: the compiler may insert communication between them.
    """

    names: Names
    sizes: tuple[int, ...]
    blocks: Blocks
    together: bool = False


class Axis(Struct, frozen=True):
    """The part of named axis ``name`` that lies in an array dimension, ``size`` lanes long.

    ``rest`` is None when the whole axis is in the dimension because the user wants it there, as
    under ``vmap``. A nameless axis is seen by no collective. ``over`` are the mesh axes along which
    the user wants the dimension to lie where something is said of its values; None: none are named.
    ``spec`` is that of the type of an array of one value for each lane.

    Args:
        name: its name; None where no collective sees it.
        size: how many lanes lie in the dimension.
        rest: how the other lanes are dealt out; None: all are here.
        over: axes of a mesh along which the dimension is to lie.
        spec: that of the type of an array of one value for each lane; None: it says nothing.
        in_order: whether what takes in all lanes does so in an order that depends on their number
            alone, however they are dealt out.

    >>> Axis("batch", 8).size
    8
    """

    name: Any
    size: int
    rest: Split | None = None
    over: tuple[str, ...] | None = None
    spec: MeshSpec | None = None
    in_order: bool = False

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """The axes of type Explicit that cut the dimension of its lanes."""
        return () if self.spec is None else self.spec.layout[0]

    def batched_spec(self, type: ArrayType, dim: int) -> MeshSpec | None:
        """The spec of an array of lanes of ``type``, with the lanes in dimension ``dim``.

        Args:
            type: the type of the array.
            dim: the dimension that its lanes have.
        """
        if type.spec is not None:
            return type.spec.with_dim(dim, self.explicit_axes)
        layout = [()] * type.ndim
        return self.spec and self.spec.with_layout(
            [*layout[:dim], self.explicit_axes, *layout[dim:]]
        )

    @property
    def blocks(self) -> Blocks:
        """The blocks in which all its lanes are dealt out."""
        return Blocks(self.size, 1) if self.rest is None else self.rest.blocks

    @property
    def together(self) -> bool:
        """Whether all positions must agree on what they run."""
        return self.rest is not None and self.rest.together

    @property
    def devices(self) -> int:
        """Over how many positions the lanes are dealt out."""
        return self.blocks.count

    @property
    def total(self) -> int:
        """How many lanes there are in all, without padding."""
        return self.blocks.size

    @property
    def padding(self) -> int:
        """How many lanes beyond ``total`` there are."""
        return self.blocks.padding

    @property
    def outside(self) -> tuple[Any, ...]:
        """The names of the axes over which the blocks lie, if there are several blocks."""
        return () if self.rest is None or self.devices == 1 else self.rest.names

    @property
    def sizes_outside(self) -> tuple[int, ...]:
        """The sizes of these axes."""
        return () if self.rest is None or self.devices == 1 else self.rest.sizes


Scope = tuple[tuple[Any, SupportsIndex], ...]  # sizes that may not have been asked for


class _Scope:
    """Axes that are known by name inside a block, and where it has ended those of the outer one;
    and other facts on which it depends what functions do that are traced in the block.

    The block has ended for all contexts, also those copied inside of it.
    """

    __slots__ = ("alive", "axes", "facts", "outer", "token")

    def __init__(self, axes: Scope, *facts: Hashable) -> None:
        self.axes = axes
        self.facts = facts
        self.alive = True

    def __enter__(self) -> None:
        self.outer = _scope.get()
        self.token = _scope.set(self)

    def __exit__(self, *_: object) -> None:
        self.alive = False
        _scope.reset(self.token)


_OUTSIDE = _Scope(())
_scope: ContextVar[_Scope] = ContextVar("axes", default=_OUTSIDE)


def _innermost() -> _Scope:
    block = _scope.get()
    while not block.alive:
        block = block.outer
    return block


def scope() -> Scope:
    """The axes that are known by name here."""
    return _innermost().axes


def key() -> Hashable:
    """The axes that are known by name here, and the facts: a part of the key of whatever is traced
    of a function of the user's."""
    block = _innermost()
    return (block.axes, block.facts) if block.facts else block.axes


def binding(*axes: tuple[Any, SupportsIndex]) -> AbstractContextManager[None]:
    """Bring ``axes``, ((name, size), ...), into scope; outer ones of their names are shadowed."""
    shadowed = {user_axis_name(axis) for axis, _ in axes}
    block = _innermost()
    return _Scope(
        (*[a for a in block.axes if user_axis_name(a[0]) not in shadowed], *axes), *block.facts
    )


def only(axes: Scope, facts: tuple[Hashable, ...] | None = None) -> AbstractContextManager[None]:
    """Let ``axes`` be the ones that are in scope, and no others; with ``facts``, also these."""
    return _Scope(axes, *(_innermost().facts if facts is None else facts))


def facts() -> tuple[Hashable, ...]:
    """The facts on which it depends what functions do here."""
    return _innermost().facts


def knowing(fact: Hashable) -> AbstractContextManager[None]:
    """What functions do inside a block may depend on ``fact``, which they can ask for."""
    block = _innermost()
    return _Scope(block.axes, *block.facts, fact)


def find(name: Any, who: str) -> tuple[Any, int]:
    """The axis that users call ``name``, and its size, which may not have been asked for before.

    Raises:
        UnboundAxis: no axis of that name is in scope.
    """
    axes = [(user_axis_name(axis), axis, size) for axis, size in reversed(scope())]
    for user_name, axis, size in axes:
        if user_name == name:
            return axis, index(size)
    in_scope = [
        (user_name, size) for user_name, _, size in reversed(axes) if not is_internal(user_name)
    ]
    raise UnboundAxis.of(who, name, in_scope, user_location(), config.mesh)


def is_internal(name: Any) -> bool:
    """Whether ``name`` stands for an axis that the user did not name."""
    return isinstance(name, str) and name.startswith("<")


def find_all(axis_name: Any, who: str) -> Axes:
    """The axes that users call ``axis_name``, one name or a sequence of names, and their sizes."""
    several = isinstance(axis_name, (tuple, list))
    names: tuple[Any, ...] = tuple(cast(Iterable[Any], axis_name)) if several else (axis_name,)
    for name in names:
        if not isinstance(name, (str, int)) and not _hashable(name):
            raise TypeError(
                f"{who}: needs the name of an axis, which can be hashed, or a tuple of names, got "
                f"{name!r}"
            )
    return tuple([find(name, who) for name in names])


def without(axes: Iterable[Any], name: Any) -> tuple[Any, ...]:
    """The names in ``axes`` except ``name``."""
    return tuple(a for a in axes if a != name)


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True
