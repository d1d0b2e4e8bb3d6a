"""What processes that compute together do with values that are not spread over them."""

from __future__ import annotations

import functools
import hashlib
import operator
from typing import Any, cast

import numpy as np

from phalanx.api.devices import process_index
from phalanx.api.jit import jit
from phalanx.api.parts import make_array_from_process_local_data
from phalanx.api.pmap import pmap
from phalanx.base import tree
from phalanx.base.config import config
from phalanx.base.errors import ProgramMismatch
from phalanx.base.extended import is_key
from phalanx.base.recent import memoized
from phalanx.base.source import user_location
from phalanx.core.types import Array, ArrayType
from phalanx.lax.collective import all_gather
from phalanx.processes import preemption
from phalanx.processes.joined import joined_member
from phalanx.random.keys import key_data, wrap_key_data
from phalanx.run.array import DeviceArray, assemble
from phalanx.run.eager import as_array
from phalanx.run.runtime import backend
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding, PartitionSpec
from phalanx.spmd.sharding import Sharding


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come here, and what their devices were told to do is done.

    Args:
        name: where the program is, which must be the same in every process.

    Raises:
        ProgramMismatch: one of them has come to another ``name``, or launches something else.
        PeerLost: one of them is gone.

    >>> from phalanx.experimental import multihost_utils
    >>> multihost_utils.sync_global_devices("all data is written")
    """
    member = joined_member()
    if member is not None:
        member.everyone.gather(f"sync_global_devices({name!r})", None)
        process_allgather(np.int32(0))


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Gather the values of every process in all of them, as NumPy arrays and arrays of keys.

    Their dtypes are those that NumPy gives them, of 64 bits, too.

    Args:
        in_tree: a tree of arrays, in all processes of the same types. Of those that lie over
            several processes the whole is given.
        tiled: whether what processes have is joined along the leading dimension. Otherwise it is
            stacked along a new one, a row for each process.

    Returns:
        A tree like ``in_tree``: with a first dimension more, as long as there are processes; with
        ``tiled`` joined along the first one.

    Raises:
        ProgramMismatch: the types differ between processes.
        PeerLost: one of them is gone.

    >>> import numpy as np
    >>> from phalanx.experimental import multihost_utils
    >>> multihost_utils.process_allgather({"here": np.arange(2)})
    {'here': array([[0, 1]])}
    """
    with config.override(enable_x64=True):
        arrays = tree.map(as_array, in_tree)
        _check_alike("process_allgather", arrays)
        return tree.map(functools.partial(_gathered, tiled=tiled), arrays)


def _check_alike(who: str, arrays: Any) -> None:
    """Make sure that all processes have trees of arrays of the same types.

    Raises:
        ProgramMismatch: they do not.
    """
    member = joined_member()
    if member is None:
        return
    leaves, treedef = tree.flatten_with_path(arrays)
    mine = [["tree", str(treedef)], *([f"tree{tree.keystr(p)}", str(x.aval)] for p, x in leaves)]
    gathered = member.everyone.gather(who, mine)
    for process, other in enumerate(gathered):
        for (name, first), (_, second) in zip(gathered[0], other, strict=False):
            if first != second:
                raise ProgramMismatch(
                    f"{who}: {name} is {first} in process 0, and {second} in process {process}; "
                    f"all must give arrays of the same types, at {user_location()}"
                )


def _gathered(array: Array, tiled: bool) -> Any:
    if is_key(array.dtype):
        words = _gathered(key_data(array), tiled and array.ndim > 0)
        return wrap_key_data(words, impl=cast(Any, array.dtype))
    if not array.is_fully_addressable:
        replicated = Sharding(array.sharding.device_list)
        return np.asarray(array if array.is_fully_replicated else _resharded(array, replicated))
    gathered = np.asarray(_gather()(array[None]) if joined_member() is not None else array[None])
    if tiled and gathered.ndim > 1:
        return gathered.reshape(-1, *gathered.shape[2:])
    return gathered


def _itself(x: Any) -> Any:
    return x


def _rows(x: Any) -> Any:
    return all_gather(x, "processes")


def _resharded(array: Array, sharding: Sharding) -> Any:
    """``array`` with ``sharding``, by one program, even where none is to be compiled."""
    with config.override(disable_jit=False):
        return _reshard(sharding)(array)


@memoized(64)
def _reshard(sharding: Sharding) -> Any:
    return jit(_itself, out_shardings=sharding)


@functools.cache
def _gather() -> Any:
    """What gathers a row of each process, on a device of each."""
    devices = backend().devices()
    firsts = {d.process_index: d for d in reversed(devices)}
    return pmap(
        _rows,
        axis_name="processes",
        out_axes=None,
        devices=[firsts[process] for process in sorted(firsts)],
    )


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Give all processes the values of one of them, as NumPy arrays and arrays of keys.

    Their dtypes are those that NumPy gives them, of 64 bits, too.

    Args:
        in_tree: a tree of arrays, in all processes of the same types. Of those that lie over
            several processes the whole is given.
        is_source: whether this process is the one; if not given, process 0 is.

    Returns:
        A tree like ``in_tree``.

    Raises:
        ValueError: no process is the source, or several are.
        ProgramMismatch: the types differ between processes.
        PeerLost: one of them is gone.

    >>> from phalanx.experimental import multihost_utils
    >>> multihost_utils.broadcast_one_to_all(3)
    array(3)
    """
    source = process_index() == 0 if is_source is None else bool(is_source)
    member = joined_member()
    values = [source] if member is None else member.everyone.gather("broadcast_one_to_all", source)
    if sum(values) != 1:
        sources = [process for process, source in enumerate(values) if source]
        raise ValueError(
            f"broadcast_one_to_all: one process is the source, got {sources} of {len(values)}, at "
            f"{user_location()}"
        )
    source = values.index(True)

    def one(array: DeviceArray) -> Any:
        gathered = _gathered(array, tiled=False)
        return gathered[source, ...] if array.is_fully_addressable else gathered

    with config.override(enable_x64=True):
        arrays = tree.map(as_array, in_tree)
        _check_alike("broadcast_one_to_all", arrays)
        return tree.map(one, arrays)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Make sure that a tree of arrays is the same in all processes, bit for bit.

    Args:
        in_tree: a tree of arrays.
        fail_message: what the error says in front.

    Raises:
        AssertionError: it is not, in this process or another; the message names a leaf.
        PeerLost: one of them is gone.

    >>> from phalanx.experimental import multihost_utils
    >>> multihost_utils.assert_equal({"step": 3}, "all begin at the same step")
    """
    leaves, treedef = tree.flatten(in_tree)
    descriptions = [[str(treedef), ""], *map(_description, leaves)]
    member = joined_member()
    gathered = (
        [descriptions] if member is None else member.everyone.gather("assert_equal", descriptions)
    )
    for process, other in enumerate(gathered):
        if other == gathered[0]:
            continue
        pairs = list(zip(other, gathered[0], strict=False))
        at = next(i for i, (one, two) in enumerate(pairs) if one != two)
        what = "the structure" if not at else f"leaf {at - 1}"
        raise AssertionError(
            f"{fail_message or 'assert_equal'}: {what} in process {process}, {other[at][0]}, "
            f"differs from that in process 0, {gathered[0][at][0]}, at {user_location()}"
        )


def _description(leaf: Any) -> list[str]:
    dtype, shape = getattr(leaf, "dtype", None), list(np.shape(leaf))
    if is_key(dtype):
        leaf = key_data(leaf)
    if isinstance(leaf, DeviceArray) and not leaf.is_fully_addressable:
        leaf = _gathered(leaf, tiled=False)
    value = np.asarray(leaf)
    digest = hashlib.sha256(value.tobytes()).hexdigest()
    name = (dtype or value.dtype).name
    return [f"{name}{shape} of content {digest[:8]}", digest]


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes are to save now, since one of them has been told that it must end.

    Schedulers tell a process with SIGTERM, some time before they kill it. From the first call on,
    that ends no process that called; instead all agree on a step to which none of them has come
    yet, and this is true for that one. The main thread of every process calls it at every step; a
    process that is alone is never told.

    Args:
        step_id: the step that comes now; it grows from call to call.

    Raises:
        ValueError: the first call is not in the main thread.
        PeerLost: one of the processes is gone.

    >>> from phalanx.experimental import multihost_utils
    >>> multihost_utils.reached_preemption_sync_point(1)
    False
    """
    member = joined_member()
    return member is not None and preemption.reached(member, operator.index(step_id))


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays over ``global_mesh``; each process gives what its own devices are to hold.

    Args:
        local_inputs: a tree of arrays: along a dimension that the spec splits over processes the
            rows of this process. What lies over several processes already stays as it is.
        global_mesh: over devices of all processes.
        pspecs: how the arrays lie over it: a spec, or a tree of specs that is a prefix.

    Returns:
        A tree like ``local_inputs``, of arrays over the mesh.

    Raises:
        ValueError: an array does not fit its spec.

    >>> import numpy as np, phalanx
    >>> from phalanx.experimental import multihost_utils
    >>> mesh = phalanx.make_mesh((1,), ("x",))
    >>> multihost_utils.host_local_array_to_global_array(np.ones(2), mesh, phalanx.P("x")).shape
    (2,)
    """

    def one(x: Any, spec: PartitionSpec) -> Any:
        if isinstance(x, DeviceArray) and not x.is_fully_addressable:
            return x
        return make_array_from_process_local_data(NamedSharding(global_mesh, spec), x)

    return _with_specs(one, local_inputs, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The inverse of ``host_local_array_to_global_array``: what the devices of this process hold.

    Args:
        global_inputs: a tree of arrays that span processes.
        global_mesh: the mesh over which they lie.
        pspecs: how they lie there: a ``PartitionSpec``, or a tree of them.

    Returns:
        A tree like ``global_inputs``.

    Raises:
        ValueError: the devices of this process are no block of the mesh.

    >>> import numpy as np, phalanx
    >>> from phalanx.experimental import multihost_utils
    >>> mesh = phalanx.make_mesh((1,), ("x",))
    >>> x = phalanx.device_put(np.ones(2), phalanx.NamedSharding(mesh, phalanx.P("x")))
    >>> multihost_utils.global_array_to_host_local_array(x, mesh, phalanx.P("x")).shape
    (2,)
    """
    mesh = global_mesh.local_mesh

    def one(x: Any, spec: PartitionSpec) -> DeviceArray:
        array = as_array(x)
        global_sharding, local = NamedSharding(global_mesh, spec), NamedSharding(mesh, spec)
        if local == global_sharding == array.sharding:
            return array
        if not array.is_fully_addressable and array.sharding != global_sharding:
            array = _resharded(array, global_sharding)
        tiles = zip(
            global_sharding.tiles, local.tiles or (1,) * len(global_sharding.tiles), strict=False
        )
        shape = list(array.shape)
        for dim, (parts_in_all, own) in enumerate(tiles):
            shape[dim] = shape[dim] // parts_in_all * own
        parts = [shard.data for shard in array.addressable_shards]
        if len(parts) == 1:
            return parts[0]
        return assemble(parts, ArrayType(tuple(shape), array.dtype), local)

    return _with_specs(one, global_inputs, pspecs)


def _with_specs(function: Any, inputs: Any, pspecs: Any) -> Any:
    if pspecs is None:
        raise ValueError(
            f"pspecs must be specs, P() for arrays that lie whole, got None, at {user_location()}"
        )
    if isinstance(pspecs, PartitionSpec):
        return tree.map(lambda x: function(x, pspecs), inputs)
    return tree.map(
        lambda spec, part: tree.map(lambda x: function(x, spec), part), pspecs, inputs,
        is_leaf=lambda s: isinstance(s, PartitionSpec),
    )  # fmt: skip
