"""Devices, and moving arrays to them."""

# What an array holds is private to users, not to what runs functions on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeVar, overload

import numpy as np

from phalanx import xla
from phalanx.api.arguments import check_leaf
from phalanx.base import dtypes, tree
from phalanx.base.errors import ArgumentError
from phalanx.base.extended import is_key
from phalanx.base.kinds import is_sequence
from phalanx.base.source import user_location
from phalanx.core.blocks import fewest_blocks
from phalanx.core.platforms import sequence_of
from phalanx.core.trace import Tracer
from phalanx.core.types import Array, ArrayLike, ArrayType, typeof
from phalanx.lax.layout import reshard
from phalanx.run import put
from phalanx.run.array import DeviceArray, default_sharding, place, wait_for
from phalanx.run.backend import Device as Device
from phalanx.run.guards import Explicitly
from phalanx.run.replicas import keep_sample
from phalanx.run.reshard_array import summed
from phalanx.run.runtime import backend as runtime
from phalanx.run.runtime import connect
from phalanx.spmd.constraint import sharding_for
from phalanx.spmd.formats import Format, as_sharding
from phalanx.spmd.memory_kinds import Space
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding, PartitionSpec, PmapSharding
from phalanx.spmd.sharding import Sharding

T = TypeVar("T")  # a tree of arrays

connect(lambda: xla.XlaBackend())


def devices(backend: str | None = None) -> list[Device]:
    """All devices, those of other processes included.

    Args:
        backend: only those of this platform, such as ``"cpu"``.

    Returns:
        A list of devices, in the order of their numbers.

    >>> import phalanx
    >>> phalanx.devices()[0].platform
    'cpu'
    """
    return list(runtime().devices(backend))


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process, or of the process ``process_index``.

    Args:
        process_index: which process; default this one.
        backend: the platform, such as ``"cpu"``.
        host_id: the same as ``process_index``.

    Returns:
        A list of devices, in the order of their numbers.

    Raises:
        ValueError: there is no such process.

    >>> import phalanx
    >>> phalanx.local_devices()[0].process_index == phalanx.process_index()
    True
    """
    index = process_index if process_index is not None else host_id
    if index is None:
        return list(runtime().local_devices(backend))
    _require_process("local_devices", index)
    return [d for d in devices(backend) if d.process_index == index]


def device_count(backend: str | None = None) -> int:
    """The number of devices of all processes, those that ``devices()`` lists.

    Args:
        backend: a platform, such as ``cpu`` or ``gpu``; None for the default one.

    Returns:
        A Python integer.

    >>> import phalanx
    >>> phalanx.device_count() == len(phalanx.devices())
    True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process, those that ``local_devices()`` lists.

    Args:
        backend: a platform, such as ``cpu`` or ``gpu``; None for the default one.

    Returns:
        A Python integer.

    >>> import phalanx
    >>> phalanx.local_device_count() == len(phalanx.local_devices())
    True
    """
    return len(runtime().local_devices(backend))


def process_index(backend: str | None = None) -> int:
    """The rank of this process: its number, from 0 to ``process_count() - 1``.

    Args:
        backend: a platform, such as ``cpu`` or ``gpu``; None for the default one.

    Returns:
        A Python integer.

    >>> import phalanx
    >>> phalanx.process_index() < phalanx.process_count()
    True
    """
    return runtime().process_index()


def process_count(backend: str | None = None) -> int:
    """The number of processes that compute together: 1, unless ``distributed`` joins several.

    Args:
        backend: a platform, such as ``cpu`` or ``gpu``; None for the default one.

    Returns:
        A Python integer.

    >>> import phalanx
    >>> phalanx.process_count() >= 1
    True
    """
    return runtime().process_count()


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of the processes that have devices.

    Args:
        backend: a platform, such as ``cpu`` or ``gpu``; None for the default one.

    Returns:
        A list of integers, ascending.

    >>> import phalanx
    >>> phalanx.process_indices()
    [0]
    """
    return sorted({d.process_index for d in devices(backend)})


def _require_process(who: str, index: int) -> None:
    if not 0 <= index < process_count():
        raise ValueError(
            f"{who}: process_index {index} is not one of {process_count()}, which are numbered "
            f"from 0, at {user_location()}"
        )


def process_rows(count: int, process_index: int | None = None) -> slice:
    """The rows of a process, where ``count`` rows are divided among all processes in order.

    No process has more than one row more than another; the first ones have it. ``pmap`` over
    processes takes their rows in this order.

    Args:
        count: the number of all rows.
        process_index: the process; None for this one.

    Returns:
        A slice of the rows.

    Raises:
        ValueError: ``count`` is negative, or there is no such process.

    >>> import phalanx
    >>> rows = list(range(13))
    >>> rows[phalanx.process_rows(len(rows))] == rows  # of one process
    True
    """
    rows = operator.index(count)
    me = runtime().process_index() if process_index is None else operator.index(process_index)
    if rows < 0:
        raise ArgumentError(f"process_rows: the number of rows must be at least 0, not {rows:,}")
    _require_process("process_rows", me)
    each, more = divmod(rows, process_count())
    start = me * each + min(me, more)
    return slice(start, start + each + (me < more))


host_id, host_count, host_ids = process_index, process_count, process_indices


def default_backend() -> str:
    """The platform of the default devices: ``"cpu"``, ``"gpu"`` or ``"tpu"``.

    >>> import phalanx
    >>> phalanx.default_backend() in ("cpu", "gpu", "tpu")
    True
    """
    return runtime().platform()


@overload
def device_put(
    x: ArrayLike,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Array: ...
@overload
def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any: ...
def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: bool | None = None,
) -> Any:
    """Put a tree of arrays on a device, or shard it over several; from the host or other devices.

    Args:
        x: a tree of arrays and numbers.
        device: a device; a ``Sharding``; a ``PartitionSpec`` over the mesh that is set; a
            ``memory.Space``, for that memory of the current devices; a sequence of devices, over
            which the leading axis of every array is split as ``pmap`` splits it: in equal blocks,
            of which the last may be shorter; or a tree of these that is a prefix of ``x``, such as
            a list of devices for a list of as many elements. None: the default device, for what is
            not on a device yet.
        src: accepted; the source is known.
        donate: whether the memory of ``x`` may be reused, or a prefix of ``x`` that says so for
            each array: such arrays are deleted, unless they are the results.
        may_alias: False for results in memory of their own, even if ``x`` is there already. Arrays
            of the host are always copied.

    Returns:
        A tree like ``x``, of arrays.

    A derivative is moved back to where the array came from. Inside ``jit`` a sharding is a
    constraint, as by ``with_sharding_constraint``, and a device alone has no effect. A value that a
    program moves to the host's memory (``memory.Space.Host``, or a sharding with that
    ``memory_kind``) must be moved back (``memory.Space.Device``) before it is used in a
    computation. On CPUs both are the same memory, and nothing is moved.

    Raises:
        ValueError: a sharding does not fit an array: the mesh axes do not divide a dimension, or
            the array has too few dimensions; or its memory is to be both donated and kept.
        NoMesh: there is a spec alone, and no mesh is set.
        OverflowError: the dtype, which has 32 bits unless ``enable_x64`` is set, cannot hold an
            integer.
        TypeError: ``device`` is none of these, or ``x`` has a leaf that is no array.

    >>> import phalanx, numpy as np
    >>> x = phalanx.device_put(np.arange(4.0), phalanx.devices()[:2])
    >>> x.sharding.shard_shape(x.shape)
    (2,)
    """
    leaves, treedef = tree.flatten(x)
    donated = tree.broadcast_prefix(donate, x, "device_put donate")
    if may_alias and any(donated):
        raise ValueError(
            "device_put: donate and may_alias cannot both be true: what shares the memory of x "
            "keeps x from giving it up; choose one"
        )
    targets = _targets(device, x, len(leaves))
    if may_alias is False:
        leaves = [leaf.copy() if isinstance(leaf, DeviceArray) else leaf for leaf in leaves]
    with Explicitly():
        out = [_put(leaf, target) for leaf, target in zip(leaves, targets, strict=True)]
    for leaf, placed, gone in zip(leaves, out, donated, strict=True):
        if gone and isinstance(leaf, DeviceArray) and placed is not leaf:
            leaf._forget("was given up to device_put")
    return treedef.unflatten(out)


def _is_target(x: Any) -> bool:
    return (
        x is None
        or isinstance(x, (Sharding, PartitionSpec, Space, Format))
        or _is_device(x)
        or _is_device_sequence(x)
    )


def _is_device(x: Any) -> bool:
    return hasattr(x, "device_kind") and hasattr(x, "platform")


def _is_device_sequence(x: Any) -> bool:
    return is_sequence(x) and bool(x) and all(map(_is_device, x))


def _targets(device: Any, x: Any, count: int) -> list[Any]:
    one_each = is_sequence(device) and type(device) is type(x) and len(device) == len(x)
    if _is_target(device) and not one_each:
        return [device] * count
    if is_sequence(device) and not device:
        raise ValueError("device_put: the sequence of devices is empty; give at least one device")
    try:
        targets: list[Any] = tree.broadcast_prefix(
            device, x, "device_put device", is_leaf=lambda t: t is not device and _is_target(t)
        )
    except ValueError:
        targets = [device]
    if not all(map(_is_target, targets)):
        hint = f"; devices({device!r}) lists those of a platform" if isinstance(device, str) else ""
        raise ArgumentError(
            f"device_put: the target must be a device, a Sharding, a PartitionSpec or a sequence "
            f"of devices, or a tree of them that is a prefix of x, got {device!r}, "
            f"at {user_location()}{hint}"
        )
    return targets


def _put(x: Any, target: Any) -> Any:
    check_leaf(x, "a leaf", "device_put")
    target = as_sharding(target, "device_put")
    if target is None:
        return x if isinstance(x, Array) else _new(x, default_sharding())
    if isinstance(target, Space):
        return _in(target, x)
    sharding = _sharding(target, typeof(x))
    if isinstance(x, DeviceArray) and x.sharding.device_set != sharding.device_set:
        x = summed(x)  # where it lies: elsewhere are not all of the parts
    if _is_about_sums(typeof(x), sharding):
        return reshard(x, sharding)
    if not isinstance(x, Array):
        placed = _new(x, sharding)
    else:
        placed = put.device_put(x, to=sharding, back=None)
    if not sharding.is_fully_addressable and sharding.tiles:
        keep_sample(placed, x)
    return placed


def _is_about_sums(type: ArrayType, sharding: Sharding) -> bool:
    """Whether a sum that is still to be taken is asked for or given, so that values move."""
    requested = isinstance(sharding, NamedSharding) and sharding.spec.has_sums
    return requested or (type.spec is not None and type.spec.has_sums)


def _in(space: Space, x: Any) -> Any:
    """``x`` where it lies, in another memory."""
    if isinstance(x, Array):
        return put.device_put(x, to=space, back=None)
    return _new(x, default_sharding().with_memory_kind(space.kind))


def _new(x: Any, sharding: Sharding) -> DeviceArray:
    type = typeof(x)
    if dtypes.is_bool(type.dtype):
        type = type.update(weak=False)
    return place(_on_host(x, type), type, sharding)


def _on_host(x: Any, type: ArrayType) -> np.ndarray:
    """The elements of an array of ``type``, or the words of keys."""
    if isinstance(x, DeviceArray):
        return x._fetched()
    value = np.asarray(x)
    if value.dtype == type.dtype:
        return value
    if value.size and dtypes.is_integer(type.dtype):
        for extreme in (value.min(), value.max()):
            dtypes.check_range(int(extreme), type.dtype, "device_put")
    with np.errstate(over="ignore"):  # a float that is too large is inf, as everywhere
        return value.astype(type.dtype)


def _sharding(target: Any, type: Any) -> Sharding:
    if isinstance(target, (Sharding, PartitionSpec)):
        sharding = sharding_for(target, "device_put")
        try:
            sharding.check_asked(type.shape)
        except ValueError as e:
            raise ValueError(f"device_put: {e}, at {user_location()}") from None
        return sharding
    if _is_device(target):
        return Sharding((target,))
    if len(target) == 1:
        return Sharding(target)
    if not type.ndim:
        raise ValueError(
            f"device_put: an array {type} has no leading axis to split over {len(target)} "
            "devices; give one device, or device_put_replicated for a copy on each"
        )
    used = fewest_blocks(type.shape[0], len(target)).count if type.shape[0] else 1
    return Sharding(target[:used], (used,))


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """The trees ``shards`` stacked along a new leading axis, the i-th on ``devices[i]``.

    Args:
        shards: trees of arrays, one for each device.
        devices: the devices, in this order.

    Returns:
        A tree like each shard, whose arrays have one dimension more.

    Raises:
        ValueError: there are more or fewer shards than devices, or their shapes differ.

    >>> import phalanx, numpy as np
    >>> two = phalanx.devices()[:2]
    >>> phalanx.device_put_sharded([np.zeros(3), np.ones(3)], two).shape
    (2, 3)
    """
    shards, devices = list(shards), sequence_of(devices, "device_put_sharded")
    if len(shards) != len(devices):
        raise ValueError(
            f"device_put_sharded: one shard for each device is needed, got {len(shards)} shards "
            f"and {len(devices)} devices"
        )
    if not shards:
        raise ValueError("device_put_sharded: at least one shard is needed")
    with Explicitly():
        return tree.map(lambda *parts: _stack(parts, devices), *shards)


def _stack(parts: tuple[Any, ...], devices: tuple[Any, ...]) -> DeviceArray:
    types = {typeof(p) for p in parts}
    if len(types) != 1:
        listed = ", ".join(sorted(map(str, types)))
        raise ValueError(f"device_put_sharded: the shards must be of one type, got {listed}")
    (type,) = types
    stacked = type.update(shape=(len(parts), *type.shape))
    host = np.stack([_on_host(p, type) for p in parts])
    lanes = PmapSharding(Mesh(np.array(devices), "lanes"), PartitionSpec("lanes"))
    return place(host, stacked, lanes)


def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """``x`` stacked once per device along a new leading axis, one copy on each.

    Args:
        x: a tree of arrays.
        devices: the devices; each gets a copy.

    Returns:
        A tree like ``x``, whose arrays have one dimension more.

    Raises:
        ValueError: no device is given.

    >>> import phalanx
    >>> phalanx.device_put_replicated(1.0, phalanx.devices()[:2]).tolist()
    [1.0, 1.0]
    """
    devices = sequence_of(devices, "device_put_replicated")
    if not devices:
        raise ValueError("device_put_replicated: at least one device is needed")
    with Explicitly():
        return tree.map(lambda leaf: _stack((leaf,) * len(devices), devices), x)


def device_get(x: Any) -> Any:
    """Fetch a tree of arrays to the host, as NumPy arrays.

    Keys, which NumPy does not have, and traced arrays, which have no value, stay as they are.

    Args:
        x: a tree of arrays.

    Returns:
        A tree like ``x``, of NumPy arrays.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.device_get({"a": jnp.arange(2)})
    {'a': array([0, 1], dtype=int32)}
    """
    with Explicitly():
        return tree.map(lambda leaf: np.asarray(leaf) if _has_value(leaf) else leaf, x)


def _has_value(x: Any) -> bool:
    return isinstance(x, Array) and not isinstance(x, Tracer) and not is_key(x.aval.dtype)


def block_until_ready(x: T) -> T:
    """Wait until every array in the tree ``x`` has been computed; returns ``x``.

    Args:
        x: a tree of arrays.

    Returns:
        A tree like ``x``, of arrays.

    >>> import phalanx
    >>> print(phalanx.block_until_ready(jnp.ones(2) + 1))
    [2. 2.]
    """
    if type(x) is DeviceArray:
        x._wait()
        return x
    wait_for([leaf for leaf in tree.leaves(x) if isinstance(leaf, DeviceArray)])
    return x
