"""Moving arrays among devices by programs and copies, without the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import xla
from phalanx.base.recent import Recent
from phalanx.core.types import ArrayType
from phalanx.spmd.layout import axes_of, prime_axes
from phalanx.spmd.named import P
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.xla.compile import compile
from phalanx.xla.executables import XlaExecutable
from phalanx.xla.jaxlib_versions import device_list, raw_sharding, xc
from phalanx.xla.tiles import Recipe, recipes

_programs: Recent[XlaExecutable] = Recent(256)
_I32 = np.dtype("int32")


def reshard(raw: Any, type: ArrayType, source: Sharding, target: Sharding) -> Any | None:
    """``raw`` laid out as ``target``, or None where no mesh can tell both layouts."""
    key = type, source.plain, target.plain
    executable = _programs[key]
    if executable is None:
        executable = _identity(*key)
        if executable is None:
            return None
        _programs[key] = executable
    return executable([raw])[0]


def _as_it_is(_: Any, x: Any) -> list[Any]:
    return [x]


def _identity(type: ArrayType, source: Sharding, target: Sharding) -> XlaExecutable | None:
    if source.device_list != target.device_list:
        return None
    axes = prime_axes(len(source.device_list), source, target)
    before, after = (axes_of(s, type.ndim, axes) for s in (source, target))
    if before is None or after is None:
        return None
    plan = Plan(source.device_list, axes, (P.of(before),), (P.of(after),))
    return compile(xla.lower.build([type], [type], plan, _as_it_is, name="move"))


def spread(
    parts: Sequence[Any], type: ArrayType, source: Sharding, target: Sharding
) -> list[Any] | None:
    """The parts of an array for other devices: cut where they lie, copied, and joined there.

    None where they would have to be joined in other memory than the devices' own.
    """
    tiles, order = recipes(type.shape, source, target)
    if target.memory and any(map(_is_to_be_joined, tiles)):
        return None
    part = ArrayType(source.shard_shape(type.shape), type.dtype)
    slices: dict[int, list[Bounds]] = {}  # of each part
    for number, there, _ in [piece for tile in tiles for piece in tile.pieces]:
        slices.setdefault(number, []).append(_bounds(there, part.shape))
    cut_parts = {
        number: iter(_cut(parts[number], part, tuple(pieces), source.local_devices[number]))
        for number, pieces in slices.items()
    }
    pieces = [[next(cut_parts[number]) for number, _, _ in tile.pieces] for tile in tiles]
    shardings = [Sharding((device,), memory=target.memory) for device in target.local_devices]
    sent = [(x, sharding) for n, sharding in zip(order, shardings, strict=True) for x in pieces[n]]
    arrived = iter(
        xc.batched_copy_array_to_devices_with_sharding(
            [x for x, _ in sent],
            [device_list(sharding.device_list) for _, sharding in sent],
            [raw_sharding(sharding, type.ndim) for _, sharding in sent],
            [xc.ArrayCopySemantics.ALWAYS_COPY] * len(sent),
        )
    )
    return [
        _joined([next(arrived) for _ in pieces[n]], tiles[n], type.dtype, device)
        for n, device in zip(order, target.local_devices, strict=True)
    ]


Bounds = tuple[tuple[int, int], ...]  # of what is taken, or where it goes, along each dimension


def _bounds(slices: Sequence[Any], shape: Sequence[int]) -> Bounds:
    explicit = [s for s in slices if s is not ...]
    per_dimension = [*explicit, *[slice(None)] * (len(shape) - len(explicit))]
    return tuple(s.indices(n)[:2] for s, n in zip(per_dimension, shape, strict=True))


def _cut(raw: Any, part: ArrayType, pieces: tuple[Bounds, ...], device: Any) -> Sequence[Any]:
    """Those ``pieces`` of a part of an array, by a program on its device."""
    if pieces == (tuple((0, n) for n in part.shape),):
        return [raw]

    def emit(b: Any, x: Any) -> list[Any]:
        return [_taken(b, x, p) for p in pieces]

    outs = [ArrayType(tuple(end - start for start, end in p), part.dtype) for p in pieces]
    return _on_a_device(device, ("cut", part, pieces), [part], outs, emit)([raw])


def _is_to_be_joined(tile: Recipe) -> bool:
    return len(tile.pieces) > 1 or tile.shape != tile.padded


def _joined(raws: list[Any], tile: Recipe, dtype: Any, device: Any) -> Any:
    """The ``tile`` of pieces that are on its device, by a program there."""
    if not _is_to_be_joined(tile):
        return raws[0]
    places = tuple([_bounds(target, tile.shape) for _, _, target in tile.pieces])

    def emit(b: Any, *xs: Any) -> list[Any]:
        x = b.constant(0, dtype, tile.shape)
        for piece, place in zip(xs, places, strict=True):
            starts = [b.constant(start, _I32) for start, _ in place]
            x = b.dynamic_update_slice(x, piece, starts)
        return [_filled_up(b, x, tile)]

    ins = [ArrayType(tuple(end - start for start, end in p), dtype) for p in places]
    outs = [ArrayType(tile.padded, dtype)]
    key = "join", tile.shape, tile.padded, places, dtype
    return _on_a_device(device, key, ins, outs, emit)(raws)[0]


def _filled_up(b: Any, x: Any, tile: Recipe) -> Any:
    """``x`` with copies of its last rows up to the padded shape of ``tile``."""
    shape = tile.shape
    for d, end in enumerate(tile.padded):
        if end == shape[d]:
            continue
        last = _taken(b, x, tuple((n - 1 if i == d else 0, n) for i, n in enumerate(shape)))
        more = (*shape[:d], end - shape[d], *shape[d + 1 :])
        x = b.concatenate([x, b.broadcast_in_dim(last, more, (*range(len(shape)),))], d)
        shape = (*shape[:d], end, *shape[d + 1 :])
    return x


def _taken(b: Any, x: Any, bounds: Bounds) -> Any:
    return b.slice(x, *zip(*bounds, strict=True), (1,) * len(bounds))


def _on_a_device(
    device: Any, key: tuple[Any, ...], ins: list[ArrayType], outs: list[ArrayType], emit: Any
) -> XlaExecutable:
    """The program that ``emit`` writes, on a device by itself; ``key`` tells it from others."""
    executable = _programs[device, key]
    if executable is None:
        plan = Plan((device,), (), (P(),) * len(ins), (P(),) * len(outs))
        executable = compile(xla.lower.build(ins, outs, plan, emit, name=key[0]))
        _programs[device, key] = executable
    return executable
