"""Arrays made of parts: by a function of the place, of arrays that are there, of local data."""

# What an array holds is private to users, not to what runs functions on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes, tree
from phalanx.base.errors import ArgumentError
from phalanx.base.kinds import is_sequence
from phalanx.base.source import user_location
from phalanx.core.blocks import Blocks
from phalanx.core.types import ArrayType, typeof
from phalanx.run.array import DeviceArray, assemble, moved, place
from phalanx.run.eager import as_array
from phalanx.spmd.constraint import sharding_for
from phalanx.spmd.formats import Format, as_sharding
from phalanx.spmd.named import PartitionSpec
from phalanx.spmd.sharding import Index, Sharding


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding | Format,
    data_callback: Callable[[Index], Any],
    dtype: Any = None,
) -> DeviceArray:
    """An array laid out as ``sharding``, of what ``data_callback`` gives for each of its parts.

    Args:
        shape: of the whole array.
        sharding: how it is to lie.
        data_callback: called once for each part that a device of this process holds, with one
            slice for each dimension; returns that part of the array, or, where a sum is still to
            be taken, the summand that each device with that part has.
        dtype: of the whole array; if not given, that of the parts.

    Returns:
        An array of that sharding.

    Raises:
        ValueError: ``sharding`` cannot lay out an array of ``shape``, or a part has another shape.

    >>> import phalanx, numpy as np
    >>> mesh = phalanx.make_mesh((1,), ("x",))
    >>> rows = phalanx.NamedSharding(mesh, phalanx.P("x"))
    >>> squares = np.arange(4.0) ** 2
    >>> print(phalanx.make_array_from_callback((4,), rows, lambda index: squares[index]))
    [0. 1. 4. 9.]
    """
    return _from_callback(tuple(shape), sharding, data_callback, dtype, "make_array_from_callback")


def _from_callback(
    shape: tuple[int, ...],
    sharding: Sharding | Format,
    data_callback: Callable[[Index], Any],
    dtype: Any,
    who: str,
) -> DeviceArray:
    sharding = _checked(sharding, shape, who)
    np_dtype = None if dtype is None else dtypes.canonical(dtype)
    tiles: dict[tuple[int, ...], Any] = {}
    for position in sharding.local_positions:
        tile = sharding.tile_at(position)
        if tile not in tiles:
            part = data_callback(sharding.indices(shape)[position])
            tiles[tile] = part if isinstance(part, DeviceArray) else np.asarray(part)
            _check_shape(tiles[tile].shape, shape, sharding, position, who)
    parts = [tiles[sharding.tile_at(p)] for p in sharding.local_positions]
    return _of(parts, shape, sharding, np_dtype, who)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding | Format, arrays: Sequence[Any], *, dtype: Any = None
) -> DeviceArray:
    """An array laid out as ``sharding``, of ``arrays`` that lie on its devices; no copy.

    Args:
        shape: of the whole array.
        sharding: how it is to lie.
        arrays: one for each device of this process, on that device, in any order.
        dtype: of the whole array, for a process that has none of the devices.

    Returns:
        An array of that sharding.

    Raises:
        ValueError: there are more or fewer arrays than devices, one lies elsewhere, or has
            another shape than its part.

    >>> import phalanx, phalanx.numpy as jnp
    >>> device = phalanx.devices()[0]
    >>> rows = phalanx.NamedSharding(phalanx.sharding.Mesh([device], "x"), phalanx.P("x"))
    >>> parts = [phalanx.device_put(jnp.arange(3), device)]
    >>> print(phalanx.make_array_from_single_device_arrays((3,), rows, parts))
    [0 1 2]
    """
    who = "make_array_from_single_device_arrays"
    shape = tuple(shape)
    sharding = _checked(sharding, shape, who)
    if not is_sequence(arrays):
        raise ArgumentError(
            f"{who}: a list of arrays is needed, got {arrays!r}, at {user_location()}"
        )
    by_device = {_device_of(x, who): x for x in arrays}
    devices = sharding.local_devices
    if set(by_device) != set(devices) or len(arrays) != len(devices):
        raise ValueError(
            f"{who}: one array on each of {', '.join(map(str, devices))} is needed, got "
            f"{len(arrays)} on {', '.join(sorted(map(str, by_device)))}, at {user_location()}"
        )
    parts = [by_device[device] for device in devices]
    for position, part in zip(sharding.local_positions, parts, strict=True):
        _check_shape(part.shape, shape, sharding, position, who)
    return _of(parts, shape, sharding, None if dtype is None else dtypes.canonical(dtype), who)


def make_array_from_process_local_data(
    sharding: Sharding | Format | tree.Tree,
    local_data: tree.Tree,
    global_shape: Sequence[int | None] | tree.Tree | None = None,
) -> Any:
    """Arrays laid out as ``sharding``; each process has the rows of its devices.

    Args:
        sharding: how the whole array is to lie, a spec alone over the mesh that is set; of a tree
            of data, one for all or a tree that ends where, or above where, that of the data ends.
        local_data: what the devices of this process hold, put together: along a dimension that is
            split over processes its rows of it, along any other the whole dimension. Or a tree of
            such arrays. Of a sum that is still to be taken it is the summand that each of its
            devices has.
        global_shape: of the whole array, None in it where that follows from the data; of a tree of
            data like ``sharding``. It is needed where a ``PmapSharding`` has shorter blocks at the
            end.

    Returns:
        An array of that sharding, or the tree of them.

    Raises:
        ValueError: the data fit neither the whole dimension nor the rows of this process.

    >>> import phalanx, numpy as np
    >>> mesh = phalanx.make_mesh((1,), ("x",))
    >>> rows = phalanx.NamedSharding(mesh, phalanx.P("x"))
    >>> phalanx.make_array_from_process_local_data(rows, np.zeros((2, 3))).shape
    (2, 3)
    """
    who = "make_array_from_process_local_data"
    data, structure = tree.flatten(local_data)
    shardings = tree.broadcast_prefix(sharding, local_data, f"{who} sharding")
    shapes = tree.broadcast_prefix(global_shape, local_data, f"{who} global_shape", _is_shape)
    triples = zip(shardings, data, shapes, strict=True)
    return tree.unflatten(structure, [_from_local_data(*each, who) for each in triples])


def _is_shape(node: Any) -> bool:
    return is_sequence(node) and all(n is None or hasattr(n, "__index__") for n in node)


def _from_local_data(
    sharding: Any, local_data: Any, global_shape: Sequence[int | None] | None, who: str
) -> DeviceArray:
    sharding = _of_kind(sharding, who)
    data = np.asarray(local_data)
    shape, places = _global_shape(sharding, data.shape, global_shape, who)

    def part(index: Index) -> np.ndarray:
        return data[tuple(map(_local_rows, index, shape, places, sharding.blocks(shape)))]

    return _from_callback(shape, sharding, part, None, who)


def _global_shape(
    sharding: Sharding, local: tuple[int, ...], global_shape: Sequence[int | None] | None, who: str
) -> tuple[tuple[int, ...], list[list[int] | None]]:
    """The whole shape; per dimension the places of the local tiles, None where data are whole."""
    sizes = list(local) if global_shape is None else list(global_shape)
    if len(sizes) != len(local):
        raise ValueError(
            f"{who}: global_shape {tuple(sizes)} has {len(sizes)} dimensions, but the data has "
            f"{len(local)}, shape {local}, at {user_location()}"
        )
    places: list[list[int] | None] = []
    for dim, size in enumerate(local):
        count = sharding.tiles[dim] if dim < len(sharding.tiles) else 1
        tiles = [(*sharding.tile_at(p), *[0] * len(local)) for p in sharding.local_positions]
        local_tiles = sorted({tile[dim] for tile in tiles})
        implied = size * count // max(len(local_tiles), 1)
        requested = None if global_shape is None else global_shape[dim]
        length = implied if requested is None else requested
        rows = sum(map(len, map(Blocks(length, count).rows, local_tiles)))
        if size not in (length, rows):
            verb, remedy = "is", ""
            if requested is None:
                verb, remedy = "would by the data be", "; give global_shape, of all processes"
            raise ValueError(
                f"{who}: dimension {dim} of global_shape {verb} {length}, of which this process "
                f"holds {len(local_tiles)} parts of {count}, with {rows} rows, but its data has "
                f"{size}, at {user_location()}{remedy}"
            )
        places.append(None if length == size else local_tiles)
        sizes[dim] = length
    return tuple(int(n) for n in sizes if n is not None), places


def _local_rows(index: slice, size: int, places: list[int] | None, blocks: Any) -> slice:
    start, stop, _ = index.indices(size)
    if places is None:
        return slice(start, stop)
    if start >= stop:  # it is padding alone
        return slice(0, 0)
    first = places.index(start // blocks.length) * blocks.length
    return slice(first, first + stop - start)


def _of(
    parts: Sequence[Any], shape: tuple[int, ...], sharding: Sharding, dtype: Any, who: str
) -> DeviceArray:
    """The array of its parts without padding, in local order."""
    kinds = {typeof(p).dtype for p in parts}
    if (dtype is not None and kinds - {dtype}) or len(kinds) > 1:
        raise ValueError(
            f"{who}: the parts must have one dtype{'' if dtype is None else f', {dtype.name}'}, "
            f"got {', '.join(sorted(k.name for k in kinds))}, at {user_location()}"
        )
    if not kinds and dtype is None:
        raise ValueError(
            f"{who}: this process has no device of {sharding}; give the dtype, at {user_location()}"
        )
    type = ArrayType(shape, dtype if dtype is not None else kinds.pop())
    if sharding.padded_shape(shape) != shape:
        return _padded(parts, type, sharding)
    placed: dict[int, DeviceArray] = {}  # what lies on several devices is copied from the host once
    local: list[DeviceArray] = []
    for part, device in zip(parts, sharding.local_devices, strict=True):
        single = sharding.on(device)
        if id(part) not in placed:
            host = not isinstance(part, DeviceArray)
            placed[id(part)] = place(part, typeof(part), single) if host else part
        local.append(moved(placed[id(part)], single))
    on_one_device = len(sharding.device_list) == 1
    return moved(local[0], sharding) if on_one_device else assemble(local, type, sharding)


def _padded(parts: Sequence[Any], type: ArrayType, sharding: Sharding) -> DeviceArray:
    """The array of parts that are not all of one length, through the host."""
    padded = np.empty(type.physical.shape, type.physical.dtype)
    for position, part in zip(sharding.local_positions, parts, strict=True):
        words = part._fetched() if isinstance(part, DeviceArray) else part
        padded[sharding.indices(type.shape)[position]] = words
    return place(padded, type, sharding)


def _device_of(x: Any, who: str) -> Any:
    array = as_array(x)
    if len(array.sharding.device_list) != 1:
        raise ValueError(
            f"{who}: every array must lie on one device, got {array.sharding}, at {user_location()}"
        )
    return array.sharding.device_list[0]


def _of_kind(requested: Any, who: str) -> Sharding:
    sharding = as_sharding(requested, who)
    if not isinstance(sharding, (Sharding, PartitionSpec)):
        raise TypeError(f"{who}: a Sharding is needed, got {requested!r}, at {user_location()}")
    return sharding_for(sharding, who)


def _checked(requested: Any, shape: tuple[int, ...], who: str) -> Sharding:
    sharding = _of_kind(requested, who)
    try:
        sharding.shard_shape(shape)
    except ValueError as e:
        raise ValueError(f"{who}: {e}, at {user_location()}") from None
    return sharding


def _check_shape(
    got: tuple[int, ...], shape: tuple[int, ...], sharding: Sharding, position: int, who: str
) -> None:
    expected = sharding.real_shape(shape, position)
    if got != expected:
        raise ValueError(
            f"{who}: the part on {sharding.device_list[position]}, "
            f"{sharding.indices(shape)[position]} of an array of shape {shape}, has shape "
            f"{expected}, got one of shape {got}, at {user_location()}"
        )
