"""Reports in a terminal: tables by rich, charts in blocks of letters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text

from phalanx.base.plain import plain
from phalanx.insight.reports.report import Chart, Column, Facts, Listing, Report, Table, Timeline
from phalanx.insight.reports.values import shown

__all__ = ["rendered"]

_BLOCKS = " ▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT, _LABEL = 64, 6, 12  # of charts, at most; of what stands before a chart
_MOST = 20  # rows of a table; a page and JSON have all
_PARTS, _BAR = " ▏▎▍▌▋▊▉█", 6  # of a bar, and how long it is
_MARKS = "█▒░▓#*+="  # of kinds of spans
_TIED = "\xa0"  # a space at which no line ends: a mark stands beside its word
_GAP, _HEAD, _CODE = "  ", 13, 70  # before a column; the longest line of its name, and of code


def rendered(report: Report, width: int) -> Iterator[Grid | Text]:
    """What rich prints of ``report``, ``width`` letters wide."""
    yield Text(plain(report.title), style="bold underline")
    yield from map(_text, _wrapped(report.verdict, width))
    for part in report.parts:
        yield Text(plain(part.title), style="bold")
        if isinstance(part, Table) and not part.rows:
            yield Text("  none")
        elif isinstance(part, Table):
            yield from _table(part, width)
            left = len(part.rows) - _MOST
            if left > 0:
                rows = f"{left} more row{'s' * (left > 1)}"
                yield Text(f"  and {rows}, in HTML and JSON", style="dim")
        elif isinstance(part, Facts):
            yield _facts(part)
        elif isinstance(part, Chart):
            yield from map(_text, _chart(part, _across(width, _LABEL)))
        elif isinstance(part, Listing):  # to be copied: no line is cut
            lines = part.text.splitlines()
            yield from [Text(plain(_GAP + line), no_wrap=True, overflow="ignore") for line in lines]
        else:
            yield from map(_text, _timeline(part, width))
        for line in _wrapped(part.note, width - len(_GAP)):
            yield Text(_GAP + plain(line), style="dim")


def _text(line: str) -> Text:
    return Text(plain(line))


def _wrapped(note: str, width: int) -> list[str]:
    """The lines of a note; addresses, which people click, stay whole where they fit."""
    return textwrap.wrap(note, width, break_on_hyphens=False)


def _facts(facts: Facts) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for head, items in facts.groups:
        if head:
            grid.add_row(Text(f"  {plain(head)}", style="bold"))
        for name, value, kind in items:
            grid.add_row(_text(f"  {'  ' * bool(head)}{name}"), _text(shown(value, kind)))
    return grid


# ---- tables -------------------------------------------------------------------------------------


class _Layout:
    """How wide the columns of a table are, and how many of them stand beside each other: the last
    ones, where all are too wide, stand on a line below each row."""

    def __init__(self, table: Table, rows: list[list[str]], width: int) -> None:
        self.columns = table.columns
        self.heads = [textwrap.wrap(c.name, _HEAD) for c in table.columns]
        cells = [[row[i] for row in rows] for i in range(len(table.columns))]
        self.wide = [max(map(cell_len, [*h, *x])) for h, x in zip(self.heads, cells, strict=True)]
        ends = accumulate(len(_GAP) + w for w in self.wide)
        self.count = max(1, sum(end <= width for end in ends))
        self.width = width

    def line(self, cells: Sequence[str]) -> str:
        """The columns that stand beside each other."""
        shown = zip(cells[: self.count], self.wide, self.columns, strict=False)
        return "".join([_GAP + _aligned(x, w, c.is_number) for x, w, c in shown]).rstrip()

    def head(self) -> Iterator[str]:
        """The names of these columns, of which the longest take several lines."""
        heads = self.heads[: self.count]
        height = max(map(len, heads))
        for i in range(height):
            yield self.line([h[i - height] if height - i <= len(h) else "" for h in heads])

    def below(self, row: Sequence[str]) -> list[str]:
        """Lines of the other columns, if any, with their names where these are needed."""
        pairs = [*zip(row[self.count :], self.columns[self.count :], strict=True)]
        code = [x for x, c in pairs if c.kind == "code" and x]
        legend = [
            x if c.name == "line" else f"{c.name} {x}" for x, c in pairs if x not in ("", *code)
        ]
        space, found = f"{_GAP}    ", list[str]()
        for text in (", ".join(legend), *code):
            fits = cell_len(space + text) <= self.width
            found += [text] if fits else textwrap.wrap(text, self.width - len(space))
        return [space + line for line in found if line]


def _table(table: Table, width: int) -> Iterator[Text]:
    columns = table.columns
    rows = [
        [_short(plain(_cell(v, c)), c) for v, c in zip(row, columns, strict=True)]
        for row in table.rows[:_MOST]
    ]
    layout = _Layout(table, rows, width)
    yield from [Text(line, style="bold") for line in layout.head()]
    for row in rows:
        yield Text(layout.line(row))
        yield from [Text(line, style="dim") for line in layout.below(row)]


def _cell(value: Any, column: Column) -> str:
    """A value; a share has a bar."""
    text = shown(value, column.kind)
    if column.kind != "share" or value is None:
        return text
    eighths = round(8 * _BAR * min(max(value, 0.0), 1.0))
    bar = _PARTS[8] * (eighths // 8) + _PARTS[eighths % 8].strip()
    return f"{text} {bar:<{_BAR}}"


def _aligned(text: str, width: int, to_the_right: bool) -> str:
    space = " " * (width - cell_len(text))
    return space + text if to_the_right else text + space


def _short(text: str, column: Column) -> str:
    return text[: _CODE - 1] + "…" if column.kind == "code" and len(text) > _CODE else text


# ---- charts -------------------------------------------------------------------------------------


def _across(width: int, label: int) -> int:
    """How many columns a chart has behind its labels."""
    return max(16, min(_WIDTH, width - label))


def _chart(chart: Chart, across: int) -> Iterator[str]:
    for (name, points), drawn in zip(chart.series, chart.drawn, strict=True):
        highest = max([y for _, y in points], default=0.0)
        top = max([y for _, y in drawn], default=0.0)
        if name:
            yield f"  {name}"
        yield from _columns(_heights(drawn, across), top, shown(highest, chart.y.kind))
        if points:
            first, last = (shown(points[i][0], chart.x.kind) for i in (0, -1))
            between = max(across - len(first) - len(last), len(chart.x.name) + 2)
            yield f"  {'':>9} {first}{chart.x.name:^{between}}{last}"


def _heights(points: tuple[tuple[float, float], ...], across: int) -> list[float]:
    """The greatest value of the points in each of the columns, from the first ``x`` to the last."""
    if not points:
        return []
    low, high = points[0][0], points[-1][0]
    found = [0.0] * across
    place = 0
    for (x, y), (after, _) in zip(points, [*points[1:], (high, 0.0)], strict=True):
        place = min(across - 1, int((x - low) / ((high - low) or 1) * across))
        end = min(across, max(place + 1, int((after - low) / ((high - low) or 1) * across)))
        for i in range(place, end):
            found[i] = max(found[i], y)
    return found


def _columns(heights: list[float], highest: float, label: str) -> Iterator[str]:
    for row in reversed(range(_HEIGHT)):
        filled = [h / (highest or 1) * _HEIGHT - row for h in heights]
        blocks = "".join(_BLOCKS[max(0, min(8, round(8 * f)))] for f in filled)
        yield f"  {label if row == _HEIGHT - 1 else '':>9} {blocks}"


def _timeline(timeline: Timeline, width: int) -> Iterator[str]:
    start, stop = timeline.bounds
    wide = max([len(name) for name, _ in timeline.rows], default=0)
    across = _across(width, wide + len(_GAP) + 1)
    scale = across / ((stop - start) or 1)
    marks = {kind: _MARKS[i % len(_MARKS)] for i, kind in enumerate(timeline.kinds)}
    for name, spans in timeline.rows:
        line = [" "] * across
        for first, last, _, kind in spans:
            begin = min(across - 1, int((first - start) * scale))
            for i in range(begin, min(across, max(begin + 1, round((last - start) * scale)))):
                line[i] = marks[kind]
        yield f"  {name:<{wide}} {''.join(line)}"
    if timeline.rows:
        total = shown(stop - start, "seconds")
        yield f"  {'':<{wide}} 0{total:>{across - 1}}"
        legend = "  ".join([f"{mark}{_TIED}{kind}" for kind, mark in marks.items()])
        for line in _wrapped(legend, across):
            yield f"  {'':<{wide}} {line.replace(_TIED, ' ')}"
