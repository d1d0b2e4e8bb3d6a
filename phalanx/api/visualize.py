"""Which device holds which part of an array, as a drawing."""

from __future__ import annotations

import importlib
import operator
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.core.trace import Tracer
from phalanx.run.array import DeviceArray
from phalanx.spmd.sharding import Sharding

DRAWN = ("rows", "columns")


@dataclass(frozen=True, slots=True)
class Tile:
    """A part of an array, and what is written on it: where it lies and which rows it has."""

    place: tuple[int, int]
    devices: tuple
    lines: tuple[str, ...]


def tiles(shape: tuple[int, ...], sharding: Sharding) -> list[Tile]:
    """The tiles of the first two dimensions, row by row.

    >>> import phalanx
    >>> tiles((3, 2), Sharding(phalanx.devices()[:1]))[0].lines
    ('CPU 0', 'rows 0:3')
    """
    sharding = sharding.plain
    part, indices = sharding.shard_shape(shape), sharding.indices(shape)
    held: dict[tuple[int, int], list[int]] = {}
    for position in range(len(sharding.devices)):
        row, column, *_ = (*sharding.tile_at(position), 0, 0)
        held.setdefault((row, column), []).append(position)
    made = []
    for place, positions in sorted(held.items()):
        devices = tuple(sharding.devices[p] for p in positions)
        lines = [spell_devices(devices)]
        # rows are always told, columns where there is more than one of tiles
        for dim in range(min(len(shape), max(1, len(sharding.tiles[:2])))):
            start, stop, _ = indices[positions[0]][dim].indices(shape[dim])
            padding = part[dim] - (stop - start)
            lines.append(f"{DRAWN[dim]} {start}:{stop}" if start < stop else f"no {DRAWN[dim]}")
            lines += [f"{padding} padding"] if padding else []
        made.append(Tile(place, devices, tuple(lines)))
    return made


def spell_devices(devices: Sequence[Any]) -> str:
    """Platform and numbers; three and more in a row are told by the first and the last.

    >>> import types
    >>> gpu = lambda i: types.SimpleNamespace(platform="gpu", id=i)
    >>> spell_devices([gpu(i) for i in (0, 1, 4, 5, 6, 7)])
    'GPU 0,1,4-7'
    """
    runs: list[list[int]] = []
    for number in sorted(device.id for device in devices):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{r[0]}-{r[-1]}" if len(r) > 2 else ",".join(map(str, r)) for r in runs]
    return f"{devices[0].platform.upper()} {','.join(parts)}"


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    min_width: int = 9,
    max_width: int = 80,
) -> None:
    """Draw which device holds which part of an array of ``shape`` that lies as ``sharding`` says.

    The first dimension goes down, the second across; further ones are not drawn.

    Args:
        shape: the shape of an array.
        sharding: how it lies.
        use_color: whether every tile gets a colour, on a terminal that has some.
        min_width: how many characters a tile has at least.
        max_width: how many the whole drawing has at most.

    Raises:
        TypeError: ``shape`` is no sequence of integers, or ``sharding`` no ``Sharding``.
        ValueError: the sharding splits more dimensions than the shape has.

    >>> import phalanx
    >>> from phalanx.sharding import Sharding
    >>> visualize_sharding((6, 2), Sharding(phalanx.devices()[:1]), use_color=False)
    shape (6, 2) on 1 device
    ┌───────────┐
    │   CPU 0   │
    │ rows 0:6  │
    └───────────┘
    """
    try:
        shape = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise TypeError(
            f"visualize_sharding: the shape must be a sequence of integers, got "
            f"{reprlib.repr(shape)}; for an array there is visualize_array_sharding(x)"
        ) from None
    if not isinstance(sharding, Sharding):
        raise TypeError(
            "visualize_sharding: how the array lies must be a Sharding, such as x.sharding, got "
            f"{sharding!r}"
        )
    made = tiles(shape, sharding)
    # rich takes longer to import than to draw: only who draws waits for it
    drawing = importlib.import_module("phalanx.api.drawing")
    drawing.draw(
        made, _title(shape, sharding), _left_out(sharding), use_color, min_width, max_width
    )


def visualize_array_sharding(
    arr: Any, *, use_color: bool = True, min_width: int = 9, max_width: int = 80
) -> None:
    """Draw which device holds which part of ``arr``.

    Args:
        arr: an array with data; the other arguments are those of ``visualize_sharding``.

    Raises:
        TypeError: ``arr`` is no array on devices.

    >>> import phalanx, numpy as np
    >>> y = phalanx.pmap(lambda x: -x, devices=phalanx.devices()[:1])(np.arange(13.0))
    >>> visualize_array_sharding(y, use_color=False)
    shape (13,) on 1 device
    ┌───────────┐
    │   CPU 0   │
    │ rows 0:13 │
    └───────────┘
    """
    if isinstance(arr, Tracer):
        raise TypeError(
            f"visualize_array_sharding: {arr.aval} is traced and lies nowhere yet; call this with "
            "the result, outside the transformation"
        )
    if not isinstance(arr, DeviceArray):
        raise TypeError(
            f"visualize_array_sharding: needs an array on devices, got {_kind(arr)}; "
            "phalanx.device_put(x, devices) puts one there"
        )
    visualize_sharding(
        arr.shape, arr.sharding, use_color=use_color, min_width=min_width, max_width=max_width
    )


def _kind(x: Any) -> str:
    return f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins.")


def _title(shape: tuple[int, ...], sharding: Sharding) -> str:
    count = len(sharding.devices)
    return f"shape {shape} on {count} device{'s' if count > 1 else ''}"


def _left_out(sharding: Sharding) -> str:
    """What the drawing does not show: dimensions beyond the second that are split."""
    split = [f"{dim} in {n}" for dim, n in enumerate(sharding.tiles) if dim > 1 and n > 1]
    return f"not drawn: dimension {', '.join(split)} parts" if split else ""
