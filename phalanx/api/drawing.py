"""Pictures drawn with rich."""

from __future__ import annotations

from itertools import chain

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from phalanx.base.plain import plain
from phalanx.spmd.picture import Cell, Picture

# Of a lightness between, so that they can be read on black and on white.
COLORS = (
    "#0080a8", "#2e8540", "#9a6c00", "#b0459e", "#4a78c8", "#d14a3a", "#6f7f00", "#8a6fc0",
)  # fmt: skip


_TOO_WIDE = "too wide to be drawn here: give more max_width, or a file to save it in"


def draw(picture: Picture, use_color: bool, min_width: int, max_width: int) -> None:
    """Print ``picture``: the grid under its title, and the note below it."""
    heads = ("",) * bool(picture.row_heads) + tuple(map(plain, picture.column_heads))
    cells = [*chain(*picture.rows)]
    words = " ".join(word for cell in cells for word in cell.text).split()
    share = (max_width - 1) // (len(heads) or len(picture.rows[0])) - 1  # of a column, no line
    room = share - 2 if share - 2 >= max(map(len, words)) else share  # blanks where they fit
    grid = Table(*heads, show_header=bool(heads), show_lines=True, box=box.SQUARE)
    grid.padding = (0, (share - room) // 2)
    for _ in () if heads else picture.rows[0]:
        grid.add_column()
    for column in grid.columns[bool(picture.row_heads) :]:
        column.justify, column.min_width = "center", min(min_width, room)
    sets = dict.fromkeys(cell.devices for cell in cells)
    colors = {devices: COLORS[i % len(COLORS)] for i, devices in enumerate(sets)}
    for i, row in enumerate(picture.rows):
        drawn = [_cell(cell, colors[cell.devices]) for cell in row]
        grid.add_row(*map(plain, picture.row_heads[i : i + 1]), *drawn)
    console = Console(
        width=max_width, no_color=not use_color, highlight=False, markup=False, emoji=False
    )
    console.print(plain(picture.title), soft_wrap=True)
    console.print(grid if room >= max(map(len, words)) else _TOO_WIDE)
    if picture.note:
        console.print(plain(picture.note), soft_wrap=True)


def _cell(cell: Cell, color: str) -> Text:
    devices, *lines = map(plain, cell.text)
    text = Text(devices, style=f"bold {color}")
    for line in lines:
        text.append(f"\n{line}", style="not bold dim" if line.endswith("padding") else "not bold")
    return text
