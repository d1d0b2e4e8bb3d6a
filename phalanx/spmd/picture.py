"""Grids of cells with words in them, as pictures: who holds what, and where devices stand."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

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
        """The picture as SVG, which also is HTML.

        >>> Picture("one", (((Cell(("TPU 0",)),)),)).svg()[:28]
        '<svg xmlns="http://www.w3.or'
        """
        return _Svg(self).written()


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
_FILLS = ("#9ec9f5", "#a8dcb0", "#f7d794", "#f3b3b3", "#cdb8ee", "#9fdcdc", "#f5c19a", "#d5d5d5")
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

    def written(self) -> str:
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
            f'<rect width="100%" height="100%" fill="white"/>{"".join(self.parts)}</svg>'
        )

    def cell(self, cell: Cell, x: float, y: float) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{self.width:.1f}" height="{self.height:.1f}" '
            f'fill="{self.fills[cell.devices]}" stroke="black"/>'
        )
        first = y + (self.height - _LINE * len(cell.text)) / 2 + 12.5
        for i, line in enumerate(cell.text):
            self.word(line, x + self.width / 2, first + i * _LINE, bold=i == 0)

    def word(
        self, text: str, x: float, y: float, anchor: str = "middle", bold: bool = False
    ) -> None:
        escape = importlib.import_module("html").escape  # slow, for its entities
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight} fill="black">'
            f"{escape(plain(text))}</text>"
        )
