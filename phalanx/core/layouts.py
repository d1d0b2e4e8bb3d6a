"""Layouts: which axes cut which dimensions of an array: ``(("x",), ())`` cuts the first by "x".

The axes are those of a region, which the user named, or those of the mesh of a whole program, over
which the axes of regions are divided: ``over_mesh`` goes from one to the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec import Struct

from phalanx.core.blocks import Blocks

Axes = tuple[tuple[Any, int], ...]  # ((name, size), ...), outermost first
MeshAxes = tuple[tuple[str, int], ...]  # the same for the axes of a mesh
Layout = tuple[tuple[Any, ...], ...]  # per dimension, the axes that cut it, major first
OpenLayout = tuple[tuple[Any, ...] | None, ...]  # None: what cuts the dimension is left open

_Entry = TypeVar("_Entry")


class Cut(Struct, frozen=True):
    """An ``axis`` of a region in ``blocks``, one for each position of the mesh axes ``mesh``."""

    axis: Any
    blocks: Blocks
    mesh: tuple[str, ...]


class Target(Struct, frozen=True):
    """What the program of a device is written for: a device of ``platform``.

    Where a program did not fit its memory, it is written again for fewer lanes at once:
    ``halvings`` times the half. Where ``memory`` is known, it has so many bytes of its own.
    """

    platform: str
    halvings: int = 0
    memory: int | None = None


def over_mesh(layout: Layout, cuts: tuple[Cut, ...]) -> Layout:
    """``layout`` with the axes of a region replaced by the mesh axes over which they are divided.

    >>> over_mesh(((), ("i",)), (Cut("i", Blocks(6, 4), ("m0", "m1")),))
    ((), ('m0', 'm1'))
    """
    under = {cut.axis: cut.mesh for cut in cuts}
    return trimmed(tuple([tuple([m for a in axes for m in under[a]]) for axes in layout]))


def trimmed(dims: tuple[_Entry, ...], whole: object = ()) -> tuple[_Entry, ...]:
    """``dims`` without the entries at the end of dimensions that are ``whole``, so that what says
    the same of arrays is equal.

    >>> trimmed((("x",), (), ())), trimmed(((), None)), trimmed((2, 1), whole=1)
    ((('x',),), ((), None), (2,))
    """
    count = len(dims)
    while count and dims[count - 1] == whole:
        count -= 1
    return dims[:count]


def along(dim: int | None, axis: Any) -> Layout:
    """The layout of an array whose dimension ``dim`` is cut by ``axis``; None: not cut at all.

    >>> along(1, "i"), along(None, "i")
    (((), ('i',)), ())
    """
    return () if dim is None else (*((),) * dim, (axis,))


def by_one_axis(requested: OpenLayout, ndim: int, operands: Iterable[Layout]) -> OpenLayout:
    """``requested`` of ``ndim`` dimensions, with one axis along those that several cut, unless the
    same cut that place in one of the ``operands``.

    XLA's partitioner may compute a product wrong that sums up what is cut, and is to lie at once as
    ``requested``. From this layout to the other each device takes a part of what it has.

    >>> by_one_axis(((), ("x", "y")), 2, [(("x",), ("z",))])
    ((), ('x',))
    >>> by_one_axis(((), ("x", "y")), 2, [(("x", "y"), ()), (("x", "y"),)])
    ((), ('x', 'y'))
    """
    there = set[Any]().union(*[_placed(layout, len(layout)) for layout in operands])
    common = {axes for _, axes in _placed(requested, ndim) & there}
    return tuple([axes if axes in common else axes and axes[:1] for axes in requested])


def _placed(layout: OpenLayout, ndim: int) -> set[tuple[int, Any]]:
    """What cuts each dimension, by its place from either end."""
    return {at for d, axes in enumerate(layout) for at in ((d, axes), (d - ndim, axes))}
