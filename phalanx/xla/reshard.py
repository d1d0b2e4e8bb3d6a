"""Moving an array among its devices by a program, without the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx import xla
from phalanx.base.recent import Recent
from phalanx.core.types import ArrayType
from phalanx.spmd.layout import axes_of, prime_axes
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.xla.compile import XlaExecutable, compile
from phalanx.xla.runtime import device_list, raw_sharding, xc
from phalanx.xla.tiles import recipes

_programs: Recent[XlaExecutable] = Recent(256)


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
    plan = Plan(source.device_list, axes, (before,), (after,))
    return compile(xla.lower.build([type], [type], plan, _as_it_is, name="move"))


def spread(
    parts: Sequence[Any], type: ArrayType, source: Sharding, target: Sharding
) -> list[Any] | None:
    """The parts of an array for other devices, cut where they lie and copied from there.

    None where they would have to be joined, or filled up.
    """
    tiles, order = recipes(type.shape, source, target)
    if any(len(tile.pieces) > 1 or tile.shape != tile.padded for tile in tiles):
        return None
    part = ArrayType(source.shard_shape(type.shape), type.dtype)
    wanted: dict[int, list[Bounds]] = {}  # of each part
    for number, there, _ in [tile.pieces[0] for tile in tiles]:
        wanted.setdefault(number, []).append(_bounds(there, part.shape))
    made = {
        number: iter(_cut(parts[number], part, tuple(pieces), source.local_devices[number]))
        for number, pieces in wanted.items()
    }
    every = [next(made[tile.pieces[0][0]]) for tile in tiles]
    homes = [Sharding((device,), memory=target.memory) for device in target.local_devices]
    return xc.batched_copy_array_to_devices_with_sharding(
        [every[n] for n in order],
        [device_list(home.device_list) for home in homes],
        [raw_sharding(home, type.ndim) for home in homes],
        [xc.ArrayCopySemantics.ALWAYS_COPY] * len(homes),
    )


Bounds = tuple[tuple[int, int], ...]  # of what is taken, along each dimension


def _bounds(slices: Sequence[Any], shape: Sequence[int]) -> Bounds:
    given = [s for s in slices if s is not ...]
    every = [*given, *[slice(None)] * (len(shape) - len(given))]
    return tuple(s.indices(n)[:2] for s, n in zip(every, shape, strict=True))


def _cut(raw: Any, part: ArrayType, pieces: tuple[Bounds, ...], device: Any) -> Sequence[Any]:
    """Those ``pieces`` of a part of an array, by a program on its device."""
    if pieces == (tuple((0, n) for n in part.shape),):
        return [raw]
    key = part, device, pieces
    executable = _programs[key]
    if executable is None:
        outs = [ArrayType(tuple(end - start for start, end in p), part.dtype) for p in pieces]

        def emit(b: Any, x: Any) -> list[Any]:
            return [b.slice(x, *zip(*p, strict=True), (1,) * len(p)) for p in pieces]

        plan = Plan((device,), (), ((),), ((),) * len(outs))
        executable = _programs[key] = compile(xla.lower.build([part], outs, plan, emit, name="cut"))
    return executable([raw])
