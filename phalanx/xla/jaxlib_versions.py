"""What differs between versions of jaxlib, and what keeps the package jax out of the way."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxlib import _hlo, _jax, version

from phalanx.base.recent import memoized
from phalanx.core.blocks import Blocks
from phalanx.core.types import ArrayType
from phalanx.run.backend import Device
from phalanx.spmd.sharding import Sharding

xc: Any = _jax

Device.register(_jax.Device)


def is_described(device: Any) -> bool:
    """Whether ``device`` is none that is there: programs are compiled for it ahead of time."""
    return isinstance(device.client, _jax.CompileOnlyPyClient)


VERSION: tuple[int, ...] = version.__version_info__
OLD = VERSION < (0, 11)  # 0.10.x
RESULT_HANDLER_ARGUMENTS = (True,) if OLD else ()
# Whether XLA compiles a value that is a sum along one axis of a mesh, still to be taken, where each
# position of another runs by itself. 0.11 refuses it, and 0.10 ends the process.
SUMS_IN_REGIONS = VERSION >= (0, 12)
# Whether XLA's partitioner may cut two dimensions of what is indexed. Before 0.12 it ends the
# process.
CUTS_INDEXED = VERSION >= (0, 12)
# XLA's compiler for CPUs cuts arrays into tiles of up to 8 numbers of the last dimension, and deals
# them out over threads. From 0.11 on it divides by the last 32 bits of half of the count over this.
TILE, TILES = (8, 1 << 33) if VERSION >= (0, 11) else (1, 0)
DIRECT = hasattr(xc.ArrayImpl, "_to_np_array_did_copy")  # to NumPy without looking for jax
VERSIONED_CAPSULES = hasattr(xc, "dlpack_version")  # DLPack's, which say what may be written


class _WithoutJax(threading.local):
    """A finder of modules that says, in threads where it is ``active``, that there is no jax.

    It stays in ``sys.meta_path``. Nothing else is changed, so other threads can import jax at any
    time. Until they have, no part of it is imported here: of two threads that import modules which
    need each other, Python lets one fail.
    """

    active = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if self.active and name.partition(".")[0] == "jax" and not _is_imported("jax"):
            raise ModuleNotFoundError(f"{name} is not imported here for the first time", name=name)


def _is_imported(name: str) -> bool:
    return name in sys.modules and not _is_being_imported(name)


def _is_being_imported(name: str) -> bool:
    """Whether a thread is in the middle of it; a module that somebody made by hand has no spec."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return getattr(spec, "_initializing", False)


_PATIENCE = 10.0  # seconds in which another thread has imported jax


def _let_others_import_jax() -> None:
    """Wait while another thread does: it would fail where this one asks for a part of jax."""
    end = time.monotonic() + _PATIENCE
    while _is_being_imported("jax") and time.monotonic() < end:
        time.sleep(0.002)


_hiding = _WithoutJax()
sys.meta_path.insert(0, _hiding)


def divided(raw: Any) -> list[Any]:
    """The single-device arrays that ``raw`` consists of, in the order of its devices.

    jaxlib looks for classes of the package jax here, and does without where importing it
    fails. That import takes a third of a second, once, and changes settings of jaxlib.
    """
    return without_jax(lambda: raw._arrays)


def to_numpy(raw: Any) -> np.ndarray:
    """The elements of a single-device array, shared where they are in the host's memory."""
    if DIRECT:
        try:
            return raw._to_np_array_did_copy()[0]
        except xc.JaxRuntimeError as e:
            if "addressable devices" not in str(e):  # there are none; jaxlib 0.11: not all are
                raise
            return divided(raw)[0]._to_np_array_did_copy()[0]  # of a program over processes
    return without_jax(raw._single_device_array_to_np_array_did_copy)[0]


def without_jax(function: Callable[[], Any]) -> Any:
    """The result of ``function``, in which importing jax for the first time fails."""
    _let_others_import_jax()
    before, _hiding.active = _hiding.active, True
    try:
        return function()
    finally:
        _hiding.active = before


@memoized(1024)
def device_list(devices: tuple[Any, ...]) -> Any:
    """The runtime's form of a tuple of devices."""
    return xc.DeviceList(devices)


@memoized(1024)
def raw_sharding(sharding: Sharding, ndim: int) -> Any:
    """The runtime's form of a sharding, for arrays of ``ndim`` dimensions."""
    devices, layout = device_list(sharding.device_list), _hlo_sharding(sharding, ndim)
    return xc.GSPMDSharding(devices, layout, memory_kind=sharding.memory)


def result_handler(type: ArrayType, layout: Any) -> Any:
    """What makes an array of the buffers that a program returns."""
    return xc.array_result_handler(type, layout, True, *RESULT_HANDLER_ARGUMENTS)


def _hlo_sharding(sharding: Sharding, ndim: int) -> Any:
    if sharding.is_fully_replicated:
        return _hlo.HloSharding.replicate()
    proto = _hlo.OpSharding()
    proto.type = _hlo.OpSharding.Type.OTHER
    grid = [*sharding.tiles, *[1] * (ndim - len(sharding.tiles))]
    if sharding.copies > 1:
        grid.append(sharding.copies)
        proto.replicate_on_last_tile_dim = True
    proto.tile_assignment_dimensions = grid
    proto.tile_assignment_devices = list(sharding.assignment or range(len(sharding.device_list)))
    return _hlo.HloSharding.from_proto(proto)


def ends_the_compiler(type: ArrayType, platform: str) -> bool:
    """Whether XLA divides by zero, which ends the process, where it computes an array of ``type``.

    >>> f32 = np.dtype(np.float32)
    >>> [ends_the_compiler(ArrayType((n,), f32), "cpu") for n in (2**20, 2**40 + 8)]
    [False, False]
    """
    if not TILES or platform != "cpu" or not type.size:
        return False
    *rows, last = type.shape or (1,)
    return math.prod(rows) * Blocks(last, TILE).length % TILES == 0


def in_tiles(chosen: Any) -> Any:
    """``chosen`` as tiles and their devices. What newer compilers say by the axes of a mesh ends
    the process where it is asked for its tiles."""
    return chosen.v3_to_v2_sharding()


def from_xla_sharding(sharding: Any, devices: tuple[Any, ...]) -> Sharding:
    """The sharding that the compiler chose, from its own form of it."""
    chosen = in_tiles(sharding)
    if chosen.is_replicated() or chosen.is_unreduced():
        return Sharding(devices)
    grid = list(chosen.tile_assignment_dimensions())
    subgroups = len(chosen.subgroup_types()) or chosen.replicate_on_last_tile_dim()
    return Sharding(devices, grid[: len(grid) - subgroups], list(chosen.tile_assignment_devices()))
