"""Tiles drawn with rich."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from phalanx.api.visualize import Tile

COLORS = ("cyan", "green", "yellow", "magenta", "blue", "red", "bright_cyan", "bright_green")


def draw(
    tiles: Sequence[Tile], title: str, note: str, use_color: bool, min_width: int, max_width: int
) -> None:
    """Print ``tiles`` as a grid under ``title``, and ``note`` below it."""
    rows, columns = (1 + max(tile.place[i] for tile in tiles) for i in range(2))
    grid = Table(show_header=False, show_lines=True, box=box.SQUARE)
    for _ in range(columns):
        grid.add_column(justify="center", min_width=min_width)
    cells = [_cell(tile, COLORS[i % len(COLORS)]) for i, tile in enumerate(tiles)]
    for row in range(rows):
        grid.add_row(*cells[row * columns : (row + 1) * columns])
    console = Console(width=max_width, no_color=not use_color, highlight=False)
    console.print(title)
    console.print(grid)
    if note:
        console.print(note)


def _cell(tile: Tile, color: str) -> Text:
    device, *lines = tile.lines
    text = Text(device, style=f"bold {color}")
    for line in lines:
        text.append(f"\n{line}", style="not bold dim" if line.endswith("padding") else "not bold")
    return text
