"""Grids of cells with words in them, as pictures: who holds what, and where devices stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from phalanx.base.on_demand import OnDemand
from phalanx.base.plain import plain


class Cell(Struct, frozen=True):
    """A place in a grid: the devices that it stands for, and what is written below them."""

    devices: tuple[Any, ...]
    lines: tuple[str, ...] = ()

    @property
    def text(self) -> tuple[str, ...]:
        """All lines; the first one has the devices."""
        return _spell_devices(self.devices), *self.lines


class Picture(Struct, frozen=True):
    """Rows of cells, with a title above and a note below; heads name rows and columns."""

    title: str
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    row_heads: tuple[str, ...] = ()
    column_heads: tuple[str, ...] = ()

    def svg(self) -> str:
        """The picture as SVG for a file; its words are light where the reader's system is dark.

        >>> Picture("one", (((Cell(("TPU 0",)),)),)).svg()[:28]
        '<svg xmlns="http://www.w3.or'
        """
        return _Svg(self).written(_BY_SYSTEM)

    def html(self) -> str:
        """The picture as a part of a page, whose words have the colour that words have there."""
        return f"<div>{_Svg(self).written()}</div>"

    _repr_html_ = html


class Tiled(Protocol):
    """What says which device has which tile of a grid."""

    tiles: tuple[int, ...]
    device_list: tuple[Any, ...]

    def tile_at(self, position: int) -> tuple[int, ...]:
        """The place in the grid of the tile that the device at ``position`` has."""
        ...


def drawn_dims(tiles: Sequence[int]) -> tuple[list[int], list[int]]:
    """The dimensions that go down and across in a picture: the first two that are cut.

    >>> drawn_dims((2, 1, 4)), drawn_dims((1, 8)), drawn_dims(())
    (([0], [2]), ([], [1]), ([], []))
    """
    dims = [dim for dim, count in enumerate(tiles) if count > 1]
    down = dims[:1] if len(dims) > 1 or dims[:1] == [0] else []
    return down, dims[1:2] if down else dims


def dim_name(dim: int) -> str:
    """What pictures call a dimension.

    >>> dim_name(0), dim_name(2)
    ('rows', 'dimension 2')
    """
    return ("rows", "columns")[dim] if dim < 2 else f"dimension {dim}"


def tiles_drawn(
    sharding: Tiled, lines: Callable[[int], tuple[str, ...]]
) -> tuple[tuple[Cell, ...], ...]:
    """A cell for each tile, with its devices and the ``lines`` of the first one's position."""
    down, across = drawn_dims(sharding.tiles)
    held: dict[tuple[int, ...], list[int]] = {}
    for position in range(len(sharding.device_list)):
        tile = sharding.tile_at(position)
        held.setdefault(tuple(tile[dim] for dim in (*down, *across)), []).append(position)
    cells = [
        Cell(tuple(sharding.device_list[p] for p in positions), lines(positions[0]))
        for _, positions in sorted(held.items())
    ]
    return in_rows(cells, sharding.tiles[across[0]] if across else 1)


def in_rows(cells: Sequence[Cell], columns: int) -> tuple[tuple[Cell, ...], ...]:
    """``cells`` in rows of so many."""
    return tuple(tuple(cells[i : i + columns]) for i in range(0, len(cells), columns))


def _spell_devices(devices: Sequence[Any]) -> str:
    """Platform and numbers; three and more in a row are told by the first and the last.

    >>> import types
    >>> gpu = lambda i: types.SimpleNamespace(platform="gpu", id=i)
    >>> _spell_devices([gpu(i) for i in (0, 1, 4, 5, 6, 7)])
    'GPU 0,1,4-7'
    """
    if not hasattr(devices[0], "platform"):  # devices are opaque to meshes
        return ", ".join(map(str, devices))
    runs: list[list[int]] = []
    for number in sorted(device.id for device in devices):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{r[0]}-{r[-1]}" if len(r) > 2 else ",".join(map(str, r)) for r in runs]
    return f"{devices[0].platform.upper()} {','.join(parts)}"


# One colour for each set of devices, light enough for black letters on it.
html = OnDemand("html", "slow, for its entities")
_FILLS = ("#9ec9f5", "#a8dcb0", "#f7d794", "#f3b3b3", "#cdb8ee", "#9fdcdc", "#f5c19a", "#d5d5d5")
_BY_SYSTEM = (
    "<style>svg { color: black } "
    "@media (prefers-color-scheme: dark) { svg { color: #e6edf3 } }</style>"
)
_LETTER, _LINE, _MARGIN = 7.3, 17, 10  # of 12-point letters of one width


class _Svg:
    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        cells = [cell for row in picture.rows for cell in row]
        written = [line for cell in cells for line in cell.text]
        self.width = _LETTER * max(map(len, (*written, *picture.column_heads))) + 2 * _MARGIN
        self.height = _LINE * max(len(cell.text) for cell in cells) + 2 * _MARGIN
        self.left = _MARGIN + _LETTER * (1 + max(map(len, picture.row_heads), default=-1))
        self.top = _MARGIN + _LINE * (2 if picture.column_heads else 1) + _MARGIN / 2
        sets = dict.fromkeys(cell.devices for cell in cells)
        self.fills = {devices: _FILLS[i % len(_FILLS)] for i, devices in enumerate(sets)}
        self.parts: list[str] = []

    def written(self, style: str = "") -> str:
        p = self.picture
        bottom = self.top + self.height * len(p.rows)
        self.word(p.title, _MARGIN, _MARGIN + 12, "start", bold=True)
        for i, head in enumerate(p.column_heads):
            self.word(head, self.left + (i + 0.5) * self.width, self.top - 6)
        for i, head in enumerate(p.row_heads):
            self.word(head, _MARGIN, self.top + (i + 0.5) * self.height + 4, "start")
        for i, row in enumerate(p.rows):
            for j, cell in enumerate(row):
                self.cell(cell, self.left + j * self.width, self.top + i * self.height)
        notes = p.note.split("\n") if p.note else []
        for i, line in enumerate(notes):
            self.word(line, _MARGIN, bottom + _LINE * (i + 1), "start")
        longest = max(map(len, (p.title, *notes)))
        across = max(self.left + self.width * len(p.rows[0]), _MARGIN + _LETTER * longest * 1.05)
        size = f"{across + _MARGIN:.0f}", f"{bottom + _LINE * len(notes) + _MARGIN:.0f}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
            f'viewBox="0 0 {size[0]} {size[1]}" font-family="monospace" font-size="12">'
            f"{style}{''.join(self.parts)}</svg>"
        )

    def cell(self, cell: Cell, x: float, y: float) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{self.width:.1f}" height="{self.height:.1f}" '
            f'fill="{self.fills[cell.devices]}" stroke="#57606a"/>'
        )
        first = y + (self.height - _LINE * len(cell.text)) / 2 + 12.5
        for i, line in enumerate(cell.text):
            middle = x + self.width / 2
            self.word(line, middle, first + i * _LINE, bold=i == 0, color="black")

    def word(
        self, text: str, x: float, y: float, anchor: str = "middle", bold: bool = False,
        color: str = "currentColor",
    ) -> None:  # fmt: skip
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight} fill="{color}">'
            f"{html.escape(plain(text))}</text>"
        )
