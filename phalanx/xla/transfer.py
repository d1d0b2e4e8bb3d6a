"""Arrays between host and devices, and between devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.base.dtypes import as_held, float0
from phalanx.core.types import ArrayType
from phalanx.processes.joined import joined_member
from phalanx.spmd.sharding import Sharding
from phalanx.xla.failures import deleted, translated
from phalanx.xla.flight import read, waited
from phalanx.xla.jaxlib_versions import device_list, raw_sharding, xc
from phalanx.xla.narrow import has_two_bits
from phalanx.xla.reshard import reshard, spread
from phalanx.xla.sharded import Parts, held, is_deleted, lent, parts_of, sharded_type, whole_of
from phalanx.xla.tiles import in_host_memory, joined_tiles, put_part, rearranged, tiled

Raw = Any


def put(host: Any, type: ArrayType, sharding: Sharding) -> Raw:
    """Copy ``host``, or the words of keys, to the devices of ``sharding``, as ``type`` says."""
    array = _host_array(host, type)
    type = type.physical
    if array.shape != type.shape:
        raise ValueError(f"put: the data has shape {array.shape}, but the type is {type}")
    return tiled(array, type, sharding)


def putting(type: ArrayType, sharding: Sharding) -> Callable[[np.ndarray], Raw]:
    """``put`` for many arrays of one type and sharding: what is the same for all is done once."""
    if len(sharding.device_list) > 1 or type.dtype is float0:
        return lambda host: put(host, type, sharding)
    physical = type.physical
    layout, device = raw_sharding(sharding, physical.ndim), next(iter(sharding.device_list))
    dtype = physical.dtype

    def put_one(host: np.ndarray) -> Raw:
        held = host if host.dtype is dtype else as_held(host, dtype)
        return put_part(held, physical, layout, device, shared=False)

    return put_one


def _host_array(host: Any, type: ArrayType) -> np.ndarray:
    """What devices hold of an array of ``type``: of float0 there is nothing to hold."""
    if type.dtype is float0:
        return np.zeros(type.shape, bool)
    return as_held(np.asarray(host), type.physical.dtype)


def fetch(raw: Raw, type: ArrayType, sharding: Sharding) -> np.ndarray:
    """The whole array, or the words of keys, on the host, read-only."""
    if is_deleted(raw):
        raise deleted("fetch")
    try:
        host = _fetch(raw, type.physical, sharding)
        host.flags.writeable = False
        return np.zeros(type.shape, float0) if type.dtype is float0 else host
    except RuntimeError as e:
        raise translated(e, "fetch") from None


def _fetch(raw: Raw, type: ArrayType, sharding: Sharding) -> np.ndarray:
    if not sharding.is_whole_here:
        raise ValueError(
            f"fetch: parts of this {type} are on devices of other processes; gather it first "
            "(multihost_utils.process_allgather), or read its addressable_shards"
        )
    if sharding.is_fully_replicated:
        return read(_parts(raw, sharding)[0])
    return joined_tiles(parts_of(raw), type, sharding)


def shards(raw: Raw, type: ArrayType, sharding: Sharding) -> list[Raw]:
    """The parts on the addressable devices, in local order, for others to hold."""
    return list(_parts(raw if len(sharding.device_list) == 1 else lent(raw), sharding))


def _parts(raw: Raw, sharding: Sharding) -> Sequence[Raw]:
    return (raw,) if len(sharding.device_list) == 1 else parts_of(raw)


def assemble(parts: Sequence[Raw], type: ArrayType, sharding: Sharding) -> Raw:
    """One array of its parts, which are in local order."""
    type = type.physical
    if len(sharding.device_list) > 1:
        return lent(Parts(sharded_type(type, sharding), list(parts)))
    return xc.ArrayImpl(type, raw_sharding(sharding, type.ndim), list(parts), True, True)


def move(raw: Raw, type: ArrayType, source: Sharding, target: Sharding) -> Raw:
    """The same array laid out as ``target``."""
    type, source, target = type.physical, source.plain, target.plain
    if source is target:
        return raw
    if is_deleted(raw):
        raise deleted("moving an array")
    try:
        return _move(raw, type, source, target)
    except RuntimeError as e:
        raise translated(e, "moving an array") from None


def _move(raw: Raw, type: ArrayType, source: Sharding, target: Sharding) -> Raw:
    if not type.size:  # there is nothing to carry over
        return tiled(np.empty(type.shape, type.dtype), type, target)
    copies = _addressable_copies(source)
    if target in copies:
        return parts_of(lent(raw))[copies.index(target)]
    if copies and target.is_fully_addressable and not source.is_fully_addressable:
        return _move(parts_of(lent(raw))[0], type, copies[0], target)
    if source.is_equivalent_to(target, type.ndim):
        return _reordered(raw, type, source, target)
    by_host = in_host_memory(source) or has_two_bits(type.dtype)
    if not (by_host and source.is_fully_addressable):
        moved = _moved_by_devices(raw, type, source, target)
        if moved is not None:
            return moved
    if not source.is_fully_addressable:
        raise ValueError(
            f"moving an array: parts of this {type} are on devices of other processes, and no "
            f"program over {list(source.device_list)} can lay it out as {target}; choose a "
            "sharding over the same devices, or gather it first (multihost_utils.process_allgather)"
        )
    return rearranged(_parts(raw, source), type, source, target)


def _reordered(raw: Raw, type: ArrayType, source: Sharding, target: Sharding) -> Raw:
    """The same parts on the same devices, in the order in which ``target`` has these."""
    goal = raw_sharding(target, type.ndim)
    return xc.reorder_shards(whole_of(raw), goal, xc.ArrayCopySemantics.REUSE_INPUT)


def _moved_by_devices(raw: Raw, type: ArrayType, source: Sharding, target: Sharding) -> Raw | None:
    """What devices can do by themselves: copy parts to others, and exchange what they hold.

    What programs exchange lies in the own memory of the devices.
    """
    kinds = {s.device_list[0].platform for s in (source, target)}
    if len(kinds) > 1:
        return None
    addressable = source.is_fully_addressable and target.is_fully_addressable
    if not addressable and _needs_steps(source, target):
        return _in_steps(raw, type, source, target)
    if not addressable and source.device_list != target.device_list and kinds == {"cpu"}:
        return None  # its processes do not copy to each other
    if len(source.device_list) != len(target.device_list):
        may = addressable and not source.memory  # programs take what is in the devices' own
        parts = spread(_parts(raw, source), type, source, target) if may else None
        return None if parts is None else assemble(parts, type, target)
    intermediate = Sharding(
        target.device_list, source.tiles, source.assignment, memory=target.memory
    )
    if intermediate is not target and target.memory:
        return None
    if source.memory != target.memory and not addressable:
        raw = _in_other_memory(raw, type, source, intermediate)
    elif source.device_list != target.device_list or source.memory != target.memory:
        (raw,) = xc.batched_copy_array_to_devices_with_sharding(
            [whole_of(raw)],
            [device_list(target.device_list)],
            [raw_sharding(intermediate, type.ndim)],
            [xc.ArrayCopySemantics.ALWAYS_COPY],
        )
    return raw if intermediate is target else reshard(raw, type, intermediate, target)


def _needs_steps(source: Sharding, target: Sharding) -> bool:
    """Whether both are over the same devices, and no program or copy does it at once."""
    if source.device_list != target.device_list:
        return source.is_over(target.device_list)
    in_memory = source.memory is not None or target.memory is not None
    return in_memory and source.in_memory(None) is not target.in_memory(None)


def _in_steps(raw: Raw, type: ArrayType, source: Sharding, target: Sharding) -> Raw:
    """Over the same devices, where a program cannot do it at once: it has one order of them, and
    exchanges what is in their own memory. What every device holds whole lies the same in each
    order."""
    start, end = source.in_memory(None), target.in_memory(None)
    steps = [start, end, target]
    if start.device_list != end.device_list:
        by_tiles, target_by_tiles = _in_order_of_tiles(start), _in_order_of_tiles(end)
        steps[1:1] = [
            by_tiles,
            Sharding(by_tiles.device_list),
            Sharding(target_by_tiles.device_list),
            target_by_tiles,
        ]
    for step in steps:
        raw = raw if source is step else _move(raw, type, source, step)
        source = step
    return raw


def _in_other_memory(raw: Raw, type: ArrayType, source: Sharding, target: Sharding) -> Raw:
    """The same parts in other memory of their devices: each process copies its own."""
    shardings = list(map(target.on, target.local_devices))
    parts = xc.batched_copy_array_to_devices_with_sharding(
        list(_parts(lent(raw), source)),
        [device_list(sharding.device_list) for sharding in shardings],
        [raw_sharding(sharding, type.ndim) for sharding in shardings],
        [xc.ArrayCopySemantics.ALWAYS_COPY] * len(shardings),
    )
    return assemble(parts, type, target)


def _in_order_of_tiles(sharding: Sharding) -> Sharding:
    """The same parts on the same devices; the first devices have the first tile."""
    order = sharding.assignment or range(len(sharding.device_list))
    return Sharding([sharding.device_list[position] for position in order], sharding.tiles)


def _addressable_copies(source: Sharding) -> list[Sharding]:
    """The addressable devices, if each of them holds the whole array already, in local order."""
    return list(map(source.on, source.local_devices)) if source.is_fully_replicated else []


def block(raws: Sequence[Raw]) -> None:
    """Wait for arrays."""
    try:
        if len(raws) == 1 and joined_member() is None:  # as most programs do, in each step
            raws[0].block_until_ready()
        else:
            arrays = list(raws)
            if Parts in map(type, raws):
                arrays = [a for raw in raws for a in held(raw)]
            wait = functools.partial(xc.batched_block_until_ready, arrays)
            waited(raws, wait, "waiting for an array")
    except RuntimeError as e:
        raise translated(e, "waiting for an array") from None
