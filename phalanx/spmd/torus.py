"""Meshes that lie along the links of their devices: tori of chips, and slices or machines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from phalanx.core.platforms import resolve_device

Shape = tuple[int, ...]
Steps = list[tuple[int, ...]]


def along_torus(shape: Shape, devices: Sequence[Any], split: bool = True) -> np.ndarray | None:
    """A grid of that shape over ``devices``, whose axes go along those of the torus they lie in.

    Each axis of the mesh gets whole axes of the torus, or if ``split``, parts of them; those of
    the most positions choose first. One that gets several turns round at the end of each, so that
    neighbours along it are linked. None where the devices fill no box, or no axes fit.
    """
    box = _box(devices)
    if box is None or box.size != math.prod(shape):
        return None
    whole = [[n] for n in box.shape if n > 1]
    ways = [whole, [_factors(n) for (n,) in whole]] if split else [whole]
    for parts in ways:
        lengths = [n for of_axis in parts for n in of_axis]
        chosen = _divided(shape, lengths)
        if chosen is not None:
            order = [dim for dims in chosen for dim in dims]
            grid = box.reshape(lengths).transpose(order).reshape(shape)
            for axis, dims in enumerate(chosen):
                grid = grid.take(_walk(_joined(dims, parts)), axis)
            return grid
    return None


_IN_A_PLANE: Final = ("TPU v5 lite", "TPU v6 lite")


def ends_compilers(devices: Sequence[Any]) -> bool:
    """Whether compilers end the process at a program over just these devices: six of the eight
    chips of a slice, where these lie in a plane."""
    return len(devices) == 6 and _in_a_plane(devices[0]) and devices[0].client.device_count() == 8


def may_be_refused(devices: Sequence[Any]) -> bool:
    """Whether compilers may take no program over just these devices.

    Of chips in a plane that several hosts have they take some parts, and refuse others.
    """
    first, *others = map(resolve_device, devices)
    part = others and _in_a_plane(first) and len(devices) < first.client.device_count()
    return bool(part) and (ends_compilers([first, *others]) or first.client.device_count() > 8)


def _in_a_plane(device: Any) -> bool:
    return getattr(device, "device_kind", None) in _IN_A_PLANE


def _joined(dims: Sequence[int], parts: Sequence[Sequence[int]]) -> list[int]:
    """The lengths of ``dims``; those that follow each other in one axis are one length.

    >>> _joined((0, 1, 2), [[2, 2], [2, 2]]), _joined((1, 3), [[2, 2], [2, 2]])
    ([4, 2], [2, 2])
    """
    axes = [(axis, n) for axis, of_axis in enumerate(parts) for n in of_axis]
    lengths: list[int] = []
    before = None
    for dim in dims:
        axis, n = axes[dim]
        if before == (dim - 1, axis):
            lengths[-1] *= n
        else:
            lengths.append(n)
        before = dim, axis
    return lengths


def _walk(lengths: Sequence[int]) -> list[int]:
    """The numbers of the places of a grid, so that each is beside the one before.

    >>> _walk((2, 3)), _walk(())
    ([0, 1, 2, 5, 4, 3], [0])
    """
    if not lengths:
        return [0]
    row = _walk(lengths[1:])
    rows = (row if i % 2 == 0 else row[::-1] for i in range(lengths[0]))
    return [i * len(row) + place for i, along in enumerate(rows) for place in along]


def _box(devices: Sequence[Any]) -> np.ndarray | None:
    """The devices by their coordinates, cores of a chip last; None if some places are empty."""
    places = [_coordinates(d) for d in map(resolve_device, devices)]
    slices = {getattr(d, "slice_index", None) for d in map(resolve_device, devices)}
    if not places or None in places or len(slices) > 1:
        return None
    table = np.array(places)
    table -= table.min(0)
    box = np.full(tuple(table.max(0) + 1), None, dtype=object)
    for place, device in zip(table, devices, strict=True):
        box[tuple(place)] = device
    return None if box.size != len(devices) or None in box.flat else box


def _coordinates(device: Any) -> tuple[int, ...] | None:
    """None for what is in no torus: GPUs have coordinates too, of partition, host and device."""
    place, core = getattr(device, "coords", None), getattr(device, "core_on_chip", None)
    return (*place, core) if place and core is not None else None


def _factors(n: int) -> list[int]:
    """The primes whose product is ``n``.

    >>> _factors(12), _factors(1)
    ([2, 2, 3], [])
    """
    p = next((p for p in range(2, math.isqrt(n) + 1) if n % p == 0), n)
    return [] if n == 1 else [p, *_factors(n // p)]


def _divided(shape: Shape, lengths: Sequence[int]) -> Steps | None:
    """For each axis of the mesh the fewest dimensions of the torus whose product it is."""
    chosen: Steps = [()] * len(shape)
    free = list(range(len(lengths)))
    for axis in sorted(range(len(shape)), key=lambda axis: -shape[axis]):
        ways = (
            dims
            for count in range(len(free) + 1)
            for dims in itertools.combinations(free, count)
            if math.prod(lengths[d] for d in dims) == shape[axis]
        )
        found = next(ways, None)
        if found is None:
            return None
        chosen[axis] = found
        free = [d for d in free if d not in found]
    return chosen


def granules(devices: Sequence[Any], granule_of: Callable[[Any], int]) -> list[list[Any]]:
    """The devices of each slice or machine, in the order of the numbers that ``granule_of`` tells.

    >>> granules([5, 2, 4, 1], lambda device: device % 2)
    [[2, 4], [5, 1]]
    """
    found: dict[int, list[Any]] = {}
    for device in devices:
        found.setdefault(granule_of(device), []).append(device)
    return [found[number] for number in sorted(found)]


def across_granules(inner: Shape, outer: Shape, grids: Sequence[np.ndarray]) -> np.ndarray:
    """One grid whose axis i has outer[i] granules, with inner[i] devices of each.

    Args:
        inner: the shape of the grid of a granule.
        outer: the shape of the grid of granules.
        grids: that of each granule.
    """
    joined = np.stack(grids).reshape(*outer, *inner)
    pairs = [d for axis in range(len(inner)) for d in (axis, len(outer) + axis)]
    return joined.transpose(pairs).reshape([a * b for a, b in zip(outer, inner, strict=True)])
