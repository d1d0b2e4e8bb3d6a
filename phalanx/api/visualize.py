"""Which device holds which part of an array, and where devices stand in a mesh, as pictures."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import operator
import os
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

from phalanx.base import tree
from phalanx.base.notebook import in_notebook
from phalanx.base.on_demand import OnDemand
from phalanx.base.source import user_location
from phalanx.core.axes import is_internal
from phalanx.core.trace import Tracer
from phalanx.primitives.inspect import Watcher, inspect_sharding
from phalanx.run.array import DeviceArray
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.picture import Picture, dim_name, drawn_dims, tiles_drawn
from phalanx.spmd.sharding import Sharding

_drawing = OnDemand("phalanx.api.drawing", "rich takes longer to import than to draw")
_notebook = OnDemand("IPython.display", "only notebooks have it")

Shape = tuple[int, ...]


def picture_of(shape: Shape, sharding: Sharding) -> Picture:
    """The parts of an array of ``shape``, cut in the first two dimensions that are cut at all.

    >>> import phalanx
    >>> picture_of((3, 2), Sharding(phalanx.devices()[:1])).rows[0][0].text
    ('CPU 0', 'rows 0:3')
    """
    sharding.blocks(shape)  # an error where they do not fit
    down, across = drawn_dims(sharding.tiles)
    dims = sorted({0, *down, *across}) if shape else []  # rows always
    rows = tiles_drawn(sharding, lambda position: _lines(shape, sharding, dims, position))
    sharded_dims = [dim for dim, count in enumerate(sharding.tiles) if count > 1]
    return Picture(_title(shape, sharding), rows, _not_drawn(sharded_dims[2:], sharding))


def _lines(shape: Shape, sharding: Sharding, dims: list[int], position: int) -> tuple[str, ...]:
    part, rows = sharding.shard_shape(shape), sharding.rows(shape, position)
    lines: list[str] = []
    for dim in dims:
        held, name = rows[dim], dim_name(dim)
        lines.append(f"{name} {held.start}:{held.stop}" if held else f"no {name}")
        lines += [f"{part[dim] - len(held)} padding"] if len(held) < part[dim] else []
    return tuple(lines)


def _title(shape: Shape, sharding: Sharding) -> str:
    count = len(sharding.device_list)
    title = f"shape {shape} on {count} device{'s' if count > 1 else ''}"
    by_axis = _by_axis(sharding) if isinstance(sharding, NamedSharding) else ""
    return f"{title}: {by_axis}" if by_axis else title


def _by_axis(sharding: NamedSharding) -> str:
    """What each axis of the mesh is for, if they are the user's."""
    layout, axes = sharding.spec.layout, sharding.mesh.axis_names
    if any(map(is_internal, axes)):
        return ""
    used = {name for names in layout for name in names or ()}
    uses = [(dim_name(dim), names) for dim, names in enumerate(layout) if names]
    left = [name for name in axes if name in sharding.spec.unreduced]
    uses += [("parts of a sum", left)] if left else []
    free = [name for name in axes if name not in used and name not in left]
    uses += [("copies", free)] if free else []
    return ", ".join(f"{what} over {' and '.join(map(repr, names))}" for what, names in uses)


def _not_drawn(dims: list[int], sharding: Sharding) -> str:
    parts = ", ".join(f"{dim_name(dim)} in {sharding.tiles[dim]} parts" for dim in dims)
    return f"not drawn: {parts}" if parts else ""


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    min_width: int = 9,
    max_width: int = 80,
    save: str | os.PathLike[str] | None = None,
) -> None:
    """Draw which device holds which part of an array of ``shape`` that lies as ``sharding`` says.

    Of the dimensions that are cut the first goes down and the second across; further ones are
    named below. A notebook shows it as a picture, a terminal as text.

    Args:
        shape: the shape of an array.
        sharding: how it lies.
        use_color: whether every set of devices gets a colour, on a terminal that has some.
        min_width: how many characters a tile has at least.
        max_width: how many the whole drawing has at most.
        save: a file for the picture, as SVG, in place of printing it.

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
    _show(picture_of(shape, sharding), use_color, min_width, max_width, save)


def visualize_array_sharding(
    arr: Any,
    *,
    use_color: bool = True,
    min_width: int = 9,
    max_width: int = 80,
    save: str | os.PathLike[str] | None = None,
) -> None:
    """Draw which device holds which part of ``arr``.

    Args:
        arr: an array with data; the other arguments are those of ``visualize_sharding``.
        use_color: whether every set of devices gets a colour, on a terminal that has some.
        min_width: how many characters a tile has at least.
        max_width: how many the whole drawing has at most.
        save: a file for the picture, as SVG, in place of printing it.

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
            "the result, outside the transformation, or inspect_array_sharding inside jit"
        )
    if not isinstance(arr, DeviceArray):
        raise TypeError(
            f"visualize_array_sharding: needs an array on devices, got {_kind(arr)}; "
            "phalanx.device_put(x, devices) puts one there"
        )
    _show(picture_of(arr.shape, arr.sharding), use_color, min_width, max_width, save)


def visualize_mesh(
    mesh: Mesh,
    *,
    use_color: bool = True,
    min_width: int = 9,
    max_width: int = 80,
    save: str | os.PathLike[str] | None = None,
) -> None:
    """Draw where the devices of ``mesh`` stand: the first axis goes down, the second across.

    In a notebook, a mesh shows itself in this way.

    Args:
        mesh: a mesh; the other arguments are those of ``visualize_sharding``.
        use_color: whether every set of devices gets a colour, on a terminal that has some.
        min_width: how many characters a tile has at least.
        max_width: how many the whole drawing has at most.
        save: a file for the picture, as SVG, in place of printing it.

    Raises:
        TypeError: ``mesh`` is no mesh of devices.

    >>> import phalanx
    >>> visualize_mesh(phalanx.make_mesh((1, 1), ("data", "model")), use_color=False)
    Mesh('data': 1, 'model': 1)
    ┌────────┬───────────┐
    │        │  model 0  │
    ├────────┼───────────┤
    │ data 0 │   CPU 0   │
    └────────┴───────────┘
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(f"visualize_mesh: needs a Mesh, got {_kind(mesh)}")
    _show(mesh.picture, use_color, min_width, max_width, save)


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Have ``callback`` told how the arrays in ``value`` lie, also inside ``jit``.

    There it is called when the program has been compiled, once for each array, and learns what the
    compiler chose. Under ``vmap`` that is said of the whole, with the lanes as first dimension.

    Args:
        value: a tree of arrays.
        callback: takes a sharding.

    Raises:
        TypeError: ``callback`` cannot be called, or a leaf of ``value`` is no array.
        ValueError: inside ``pmap`` or ``shard_map`` over several devices, where the program says
            what each device holds.

    >>> import phalanx, phalanx.numpy as jnp
    >>> @phalanx.jit
    ... def f(x):
    ...     y = x * 2
    ...     inspect_array_sharding(y, callback=lambda s: print(len(s.device_set), "device"))
    ...     return y.sum()
    >>> print(f(jnp.ones(3)))
    1 device
    6.0
    """
    if not callable(callback):
        raise TypeError(f"inspect_array_sharding: callback must be a function, got {callback!r}")
    watcher = Watcher(callback, user_location())
    for leaf in tree.leaves(value):
        if not isinstance(leaf, (Tracer, DeviceArray)):
            raise TypeError(
                f"inspect_array_sharding: needs arrays on devices or traced ones, got {_kind(leaf)}"
            )
        inspect_sharding(leaf, watcher=watcher)


def _show(
    picture: Picture,
    use_color: bool,
    min_width: int,
    max_width: int,
    save: str | os.PathLike[str] | None,
) -> None:
    if save is not None:
        with open(save, "w", encoding="utf-8") as file:
            file.write(picture.svg())
        return
    if in_notebook():
        _notebook.display(picture)
        return
    _drawing.draw(picture, use_color, min_width, max_width)


def _kind(x: Any) -> str:
    return f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins.")
