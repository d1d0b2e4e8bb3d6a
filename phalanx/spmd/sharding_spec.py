"""How results of ``pmap`` lie in the words of older programs: chunks, and the axes of a mesh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from phalanx.core.layouts import Layout, MeshAxes


class NoSharding(NamedTuple):
    """A dimension that is whole.

    >>> NoSharding()
    NoSharding()
    """


class Chunked(NamedTuple):
    """A dimension that is cut into ``chunks[0]`` parts, each of these into ``chunks[1]``, ...

    Args:
        chunks: into how many parts each of the axes cuts the dimension.

    >>> Chunked((4, 2)).chunks
    (4, 2)
    """

    chunks: tuple[int, ...]


class ShardedAxis(NamedTuple):
    """An axis of the mesh that makes cut number ``axis``, counted over all dimensions.

    Args:
        axis: the number of the cut.

    >>> ShardedAxis(0).axis
    0
    """

    axis: int


class Replicated(NamedTuple):
    """An axis of the mesh along which there are ``replicas`` copies.

    Args:
        replicas: how many copies there are.

    >>> Replicated(2).replicas
    2
    """

    replicas: int


class ShardingSpec(NamedTuple):
    """What cuts an array, per dimension, and what follows each axis of the mesh, in order.

    Args:
        sharding: per dimension of the array what cuts it.
        mesh_mapping: per axis of the mesh the dimension that it cuts, or how many copies.

    >>> spec = ShardingSpec((Chunked((4,)), NoSharding()), (ShardedAxis(0), Replicated(2)))
    >>> spec.sharding[0].chunks, spec.mesh_mapping[1].replicas
    ((4,), 2)
    """

    sharding: tuple[NoSharding | Chunked, ...]
    mesh_mapping: tuple[ShardedAxis | Replicated, ...]


def sharding_spec_of(axes: MeshAxes, layout: Layout) -> ShardingSpec:
    """The spec of an array whose dimensions ``layout`` cuts along ``axes`` of a mesh."""
    sizes = dict(axes)
    cuts = [name for names in layout for name in names]

    def dimensions() -> Iterator[NoSharding | Chunked]:
        for names in layout:
            yield Chunked(tuple(sizes[name] for name in names)) if names else NoSharding()

    def mapping() -> Iterator[ShardedAxis | Replicated]:
        for name, size in axes:
            yield ShardedAxis(cuts.index(name)) if name in cuts else Replicated(size)

    return ShardingSpec(tuple(dimensions()), tuple(mapping()))
