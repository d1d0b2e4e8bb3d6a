"""Reports: facts, tables and charts, which a terminal, a browser and a program each get in a form.

What a report says is kept as numbers with their kind; words are made of them where they are shown.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from phalanx.base.on_demand import OnDemand
from phalanx.insight.reports.values import Kind, shown

__all__ = ["Chart", "Column", "Facts", "Listing", "Part", "Report", "Table", "Timeline"]


_page = OnDemand("phalanx.insight.reports.page", "it imports this file")
_terminal = OnDemand("phalanx.insight.reports.terminal", "it imports this file, and rich")
_rich = OnDemand("rich.console", "slow, and only what is printed needs it")
_html = OnDemand("html", "slow, and only notebooks need it")
_TICKS = 5  # of a chart by doublings, at most


class Column(Struct, frozen=True):
    """A column of a table, or an axis of a chart: what it is called, and what its numbers are."""

    name: str
    kind: Kind = "text"

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.kind not in ("text", "line", "code")


class _Printed(Struct, frozen=True):
    """What a report is made of; it prints as it stands in one."""

    def __str__(self) -> str:
        _, own = str(Report("", (cast(Part, self),))).split("\n", 1)
        return own


class Facts(_Printed, frozen=True):
    """Single values with their names: ``(name, value, kind)``; a heading starts a group of them."""

    title: str
    items: tuple[tuple[str, Any, Kind], ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Values by name."""
        facts = {name: _plain(x, kind) for name, x, kind in self.items if kind != "heading"}
        return {"title": self.title, "facts": facts}

    @property
    def groups(self) -> list[tuple[str, list[tuple[str, Any, Kind]]]]:
        """The values under each heading; those before the first one have none.

        >>> Facts("f", (("n", 1, "count"), ("time", None, "heading"), ("s", 2.0, "seconds"))).groups
        [('', [('n', 1, 'count')]), ('time', [('s', 2.0, 'seconds')])]
        """
        found: list[tuple[str, list[tuple[str, Any, Kind]]]] = [("", [])]
        for item in self.items:
            if item[2] == "heading":
                found.append((item[0], []))
            else:
                found[-1][1].append(item)
        return [group for group in found if group[1]]


class Table(_Printed, frozen=True):
    """Rows of values under columns."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """A dict for each row."""
        rows = [
            {c.name: _plain(x, c.kind) for c, x in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]
        return {"title": self.title, "rows": rows}


class Chart(_Printed, frozen=True):
    """Lines through points ``(x, y)``, one for each name in ``series``; by ``doublings``, equal
    factors are equal distances."""

    title: str
    x: Column
    y: Column
    series: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    note: str = ""
    doublings: bool = False

    @property
    def drawn(self) -> tuple[tuple[tuple[float, float], ...], ...]:
        """The points of each line, at the places where they are drawn."""
        lines = [line for _, line in self.series]
        if not self.doublings:
            return tuple(lines)
        lowest = min([y for line in lines for _, y in line], default=1.0)
        return tuple(
            [tuple([(math.log2(x), 1 + math.log2(y / lowest)) for x, y in line]) for line in lines]
        )

    @property
    def ticks(self) -> list[tuple[float, float]]:
        """Values beside the chart, and how high they stand: by doublings each of few, else what
        is half as high as the highest point, and that one.

        >>> Chart("c", Column("x"), Column("y"), (("", ((0, 1), (1, 6))),)).ticks
        [(3.0, 3.0), (6.0, 6.0)]
        """
        values = [y for _, line in self.series for _, y in line]
        if not values:
            return []
        if not self.doublings:
            return [(share * max(values), share * max(values)) for share in (0.5, 1.0)]
        lowest, doubled = min(values), math.log2(max(values) / min(values))
        step = max(1, math.ceil(doubled / _TICKS))
        return [(lowest * 2.0**n, 1.0 + n) for n in range(0, math.floor(doubled) + 1, step)]

    def as_json(self) -> dict[str, Any]:
        """The points of each line."""
        axes = {"x": self.x.name, "y": self.y.name}
        return {"title": self.title, **axes, "series": dict(self.series)}


class Timeline(_Printed, frozen=True):
    """What happened when: for each row its name and its spans ``(start, stop, what, kind)``, in
    seconds. The kinds are told apart, and are in the legend."""

    title: str
    rows: tuple[tuple[str, tuple[tuple[float, float, str, str], ...]], ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The spans of each row."""
        return {"title": self.title, "rows": dict(self.rows)}

    @property
    def bounds(self) -> tuple[float, float]:
        """When the first span starts, and when the last one stops."""
        spans = [span for _, own in self.rows for span in own]
        return min([s[0] for s in spans], default=0.0), max([s[1] for s in spans], default=0.0)

    @property
    def kinds(self) -> list[str]:
        """Of spans, in the order in which they are first seen."""
        return list(dict.fromkeys([kind for _, own in self.rows for *_, kind in own]))


class Listing(_Printed, frozen=True):
    """The text of a program."""

    title: str
    text: str
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The text."""
        return {"title": self.title, "text": self.text}


Part = Facts | Table | Chart | Timeline | Listing


@dataclass(frozen=True)
class Report:
    r"""What was found out about a program; it prints as tables, and shows as HTML in notebooks.

    Args:
        title: what it is about.
        parts: facts, tables, charts and timelines.
        verdict: what matters most, in a sentence or two.

    >>> columns = Column("line", "line"), Column("time", "seconds")
    >>> cost = Table("cost", columns, (("f.py:3", 2e-3),))
    >>> report = Report("f", (cost,))
    >>> report.as_json()["parts"][0]["rows"]
    [{'line': 'f.py:3', 'time': 0.002}]
    >>> print(report)  # doctest: +NORMALIZE_WHITESPACE
    f
    cost
      line      time
      f.py:3  2.0 ms
    >>> str(report) == f"f\n{report['cost']}"
    True
    """

    title: str
    parts: tuple[Part, ...] = field(repr=False)
    verdict: str = ""

    def __getitem__(self, title: str) -> Part:
        """The part with this title.

        Raises:
            KeyError: there is none.
        """
        for part in self.parts:
            if part.title == title:
                return part
        raise KeyError(f"{title!r}; the parts are {', '.join(p.title for p in self.parts)}")

    def as_json(self) -> dict[str, Any]:
        """All of it as lists, dicts, numbers and strings; times in seconds, sizes in bytes."""
        parts = [part.as_json() for part in self.parts]
        return {"title": self.title, "verdict": self.verdict, "parts": parts}

    def json(self) -> str:
        """The same as text."""
        return json.dumps(_finite(self.as_json()), indent=1)

    def html(self) -> str:
        """The report as a page of its own, which loads nothing from elsewhere."""
        return _page.page([self])

    def _repr_html_(self) -> str:
        """The page inside a frame, so that its style is not that of the notebook."""
        inner = _html.escape(self.html())
        return f'<iframe srcdoc="{inner}" style="width:100%;height:40rem;border:0"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``html()`` to a file.

        Args:
            path: the file to write to.
        """
        Path(path).write_text(self.html(), encoding="utf-8")

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield from _terminal.rendered(self, options.max_width)

    def __str__(self) -> str:
        console = _rich.Console(
            file=io.StringIO(), width=100, color_system=None, legacy_windows=False
        )
        console.print(self)
        written = console.file.getvalue().splitlines()
        return "\n".join([line.rstrip() for line in written])

    def __repr__(self) -> str:  # what a prompt shows
        return str(self)


def _finite(value: Any) -> Any:
    """``value`` without infinities and NaN, which JSON does not have: they are null."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in cast(dict[Any, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [*map(_finite, cast(Sequence[Any], value))]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any, kind: Kind) -> Any:
    """A value as JSON has it: a number as it is, a line as it is shown."""
    return shown(value, kind) if kind == "line" else value
