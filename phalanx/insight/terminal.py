"""Reports in a terminal: tables by rich, charts in blocks of letters."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid
from rich.text import Text

from phalanx.insight.report import Chart, Column, Facts, Report, Table, Timeline, shown

__all__ = ["rendered"]

_BLOCKS = " ▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT = 64, 6
_MOST = 20  # rows of a table; a page and JSON have all


def rendered(report: Report) -> Iterator[Grid | Text]:
    """What rich prints of ``report``."""
    yield Text(report.title, style="bold")
    for part in report.parts:
        yield Text(part.title, style="bold cyan")
        if isinstance(part, Table) and not part.rows:
            yield Text("  none")
        elif isinstance(part, Table):
            yield _table(part)
            left = len(part.rows) - _MOST
            if left > 0:
                yield Text(f"  and {left} more rows, which HTML and JSON have", style="dim")
        elif isinstance(part, Facts):
            yield _facts(part)
        elif isinstance(part, Chart):
            yield from map(Text, _chart(part))
        else:
            yield from map(Text, _timeline(part))
        if part.note:
            yield Text(f"  {part.note}", style="dim")


def _facts(facts: Facts) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    for name, value, kind in facts.items:
        grid.add_row(f"  {name}", Text(shown(value, kind)))
    return grid


def _table(table: Table) -> Grid:
    grid = Grid(box=SIMPLE_HEAD, pad_edge=True)
    for column in table.columns:
        side = "right" if column.is_number else "left"
        whole = column.is_number or column.kind == "line"
        grid.add_column(
            column.name, justify=side, overflow="fold", no_wrap=whole,
            min_width=min(len(column.name), 8),
        )  # fmt: skip
    for row in table.rows[:_MOST]:
        pairs = zip(row, table.columns, strict=True)
        grid.add_row(*[Text(_short(shown(value, column.kind), column)) for value, column in pairs])
    return grid


def _short(text: str, column: Column) -> str:
    return text[:31] + "…" if column.kind == "code" and len(text) > 32 else text


# ---- charts -------------------------------------------------------------------------------------


def _chart(chart: Chart) -> Iterator[str]:
    for name, points in chart.series:
        highest = max([y for _, y in points], default=0.0)
        if name:
            yield f"  {name}"
        yield from _columns(_heights(points), highest, shown(highest, chart.y.kind))
        if points:
            first, last = (shown(points[i][0], chart.x.kind) for i in (0, -1))
            yield f"  {'':>9} {first}{last:>{max(_WIDTH - len(first), 1)}}  {chart.x.name}"


def _heights(points: tuple[tuple[float, float], ...]) -> list[float]:
    """The greatest value of the points in each of the columns, from the first ``x`` to the last."""
    if not points:
        return []
    low, high = points[0][0], points[-1][0]
    found = [0.0] * _WIDTH
    place = 0
    for (x, y), (after, _) in zip(points, [*points[1:], (high, 0.0)], strict=True):
        place = min(_WIDTH - 1, int((x - low) / ((high - low) or 1) * _WIDTH))
        end = min(_WIDTH, max(place + 1, int((after - low) / ((high - low) or 1) * _WIDTH)))
        for i in range(place, end):
            found[i] = max(found[i], y)
    return found


def _columns(heights: list[float], highest: float, label: str) -> Iterator[str]:
    for row in reversed(range(_HEIGHT)):
        filled = [h / (highest or 1) * _HEIGHT - row for h in heights]
        blocks = "".join(_BLOCKS[max(0, min(8, round(8 * f)))] for f in filled)
        yield f"  {label if row == _HEIGHT - 1 else '':>9} {blocks}"


def _timeline(timeline: Timeline) -> Iterator[str]:
    start, stop = timeline.bounds
    scale = _WIDTH / ((stop - start) or 1)
    wide = max([len(name) for name, _ in timeline.rows], default=0)
    for name, spans in timeline.rows:
        line = [" "] * _WIDTH
        for first, last, _ in spans:
            begin = min(_WIDTH - 1, int((first - start) * scale))
            for i in range(begin, min(_WIDTH, max(begin + 1, round((last - start) * scale)))):
                line[i] = "█"
        yield f"  {name:<{wide}} {''.join(line)}"
    if timeline.rows:
        total = shown(stop - start, "seconds")
        yield f"  {'':<{wide}} 0{total:>{_WIDTH - 1}}"
