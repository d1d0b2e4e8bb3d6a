"""Reports as one HTML page: no network, light and dark, for phones and wide screens.

Tables can be read without JavaScript; with it, a click on a head sorts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from phalanx.insight.reports.report import Chart, Facts, Listing, Part, Report, Table, Timeline
from phalanx.insight.reports.values import Kind, link, shown

__all__ = ["page"]

_LINES = 10  # colours of lines in a chart; the style has as many
_WIDE, _HIGH = 1000, 240  # the units of a chart, which is stretched to where it is
_FIRST = 20  # rows of a table that are shown at once; the style hides the others


def page(reports: Sequence[Report]) -> str:
    """A page with all ``reports``, one after the other."""
    title = reports[0].title if reports else "phalanx"
    articles = "\n".join([_article(r, i) for i, r in enumerate(reports)])
    body = _contents(reports) + articles or "<p>Nothing was compiled.</p>"
    form = files("phalanx.insight.reports").joinpath("page.html").read_text(encoding="utf-8")
    head, _, rest = form.partition("{{title}}")  # what is put in is not looked into
    middle, _, foot = rest.partition("{{body}}")
    return f"{head}{escape(title)}{middle}{body}{foot}"


def _contents(reports: Sequence[Report]) -> str:
    """Links to all reports, if there are several."""
    if len(reports) < 2:
        return ""
    items = "".join(
        f'<li><a href="#r{i}">{escape(r.title)}</a><br>{escape(r.verdict.partition(". ")[0])}</li>'
        for i, r in enumerate(reports)
    )
    return f"<nav><ol>{items}</ol></nav>\n"


def _article(report: Report, number: int) -> str:
    parts = "\n".join(map(_section, report.parts))
    verdict = f'<p class="verdict">{escape(report.verdict)}</p>\n' if report.verdict else ""
    return f'<article id="r{number}"><h1>{escape(report.title)}</h1>\n{verdict}{parts}</article>'


def _section(part: Part) -> str:
    if isinstance(part, Table):
        inner = _table(part)
    elif isinstance(part, Facts):
        inner = _facts(part)
    elif isinstance(part, Chart):
        inner = _chart(part)
    elif isinstance(part, Listing):
        inner = f'<div class="wide"><pre>{escape(part.text)}</pre></div>'
    else:
        inner = _timeline(part)
    note = f'<p class="note">{escape(part.note)}</p>' if part.note else ""
    return f"<section><h2>{escape(part.title)}</h2>{inner}{note}</section>"


def _facts(facts: Facts) -> str:
    groups = "".join(
        f"<div>{f'<h3>{escape(head)}</h3>' if head else ''}<dl>"
        + "".join(
            f"<dt>{escape(name)}</dt><dd>{_place(value, kind)}</dd>" for name, value, kind in items
        )
        + "</dl></div>"
        for head, items in facts.groups
    )
    return f'<div class="groups">{groups}</div>'


def _table(table: Table) -> str:
    if not table.rows:
        return "<p>none</p>"
    head = "".join(
        f'<th scope="col"{_side(c.is_number)}><button>{escape(c.name)}</button></th>'
        for c in table.columns
    )
    rows = "".join(
        "<tr>"
        + "".join(_cell(v, c.kind, c.is_number) for v, c in zip(row, table.columns, strict=True))
        + "</tr>"
        for row in table.rows
    )
    inner = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    count = len(table.rows)
    more = f'<label><input type="checkbox"> show all {count:,} rows</label>'
    more = more if count > _FIRST else ""
    return f'<div class="wide"><table>{inner}</table></div>{more}'


def _side(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(value: Any, kind: Kind, is_number: bool) -> str:
    if not is_number:
        return f"<td>{_place(value, kind)}</td>"
    if value is None:
        return '<td class="number"></td>'
    bar = f' style="--share:{min(max(value, 0.0), 1.0):.1%}"' if kind == "share" else ""
    text = escape(shown(value, kind))
    return f'<td class="number"{bar} data-v="{float(value):.9g}">{text}</td>'


def _place(value: Any, kind: Kind) -> str:
    """A value; a line is a link to where it is."""
    text = escape(shown(value, kind))
    if kind not in ("line", "code"):
        return text
    address = link(value) if kind == "line" else ""
    return (
        f'<a href="{escape(address)}"><code>{text}</code></a>'
        if address
        else (f"<code>{text}</code>")
    )


# ---- charts -------------------------------------------------------------------------------------


def _chart(chart: Chart) -> str:
    points = [p for _, line in chart.series for p in line]
    if not points:
        return "<p>nothing to draw</p>"
    places = [p for line in chart.drawn for p in line]
    ends = min(x for x, _ in places), max(x for x, _ in places)
    top = max(y for _, y in places) or 1.0
    lines = "".join(
        _line(line, i, *ends, top, filled=len(chart.series) == 1)
        for i, line in enumerate(chart.drawn)
    )
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    legend = "".join(
        f'<li class="c{i % _LINES}">{escape(name)}</li>'
        for i, (name, _) in enumerate(chart.series)
        if name
    )
    ticks = "".join(
        f'<span style="bottom:{place / top:.1%}">{escape(shown(value, chart.y.kind))}</span>'
        for value, place in chart.ticks
    )
    return (
        f'<figure><div class="top">{escape(chart.y.name)}</div><div class="plot">'
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(chart.title)}">{lines}</svg>{ticks}</div>'
        f'<div class="ends"><span>{escape(shown(low, chart.x.kind))}</span>'
        f"<span>{escape(chart.x.name)}</span>"
        f"<span>{escape(shown(high, chart.x.kind))}</span></div>"
        f"{f'<ul>{legend}</ul>' if legend else ''}</figure>"
    )


def _line(
    points: Sequence[tuple[float, float]], i: int, low: float, high: float, top: float, filled: bool
) -> str:
    across = _WIDE / ((high - low) or 1)
    places = [((x - low) * across, _HIGH - y / top * _HIGH) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    colour = f"c{i % _LINES}"
    drawn = f'<polyline class="{colour}" points="{path}"/>'
    if filled:
        first, last = places[0][0], places[-1][0]
        around = f"{first:.1f},{_HIGH} {path} {last:.1f},{_HIGH}"
        return f'<polygon class="{colour}" points="{around}"/>' + drawn
    return drawn


def _timeline(timeline: Timeline) -> str:
    start, stop = timeline.bounds
    scale = 100 / ((stop - start) or 1)
    colours = {kind: f"c{i % _LINES}" for i, kind in enumerate(timeline.kinds)}
    rows = "".join(
        f'<div class="track"><span class="name">{escape(name)}</span><div class="bar">'
        + "".join(
            _span(first - start, last - start, f"{kind}: {what}", colours[kind], scale)
            for first, last, what, kind in spans
        )
        + "</div></div>"
        for name, spans in timeline.rows
    )
    ends = f"<span>0</span><span>{escape(shown(stop - start, 'seconds'))}</span>"
    legend = "".join(f'<li class="{c}">{escape(kind)}</li>' for kind, c in colours.items())
    return f'<div class="timeline">{rows}<div class="ends">{ends}</div><ul>{legend}</ul></div>'


def _span(start: float, stop: float, what: str, colour: str, scale: float) -> str:
    text = escape(f"{what}: {shown(stop - start, 'seconds')}", quote=True)
    return (
        f'<i class="{colour}" style="left:{start * scale:.3f}%;'
        f'width:{max((stop - start) * scale, 0.05):.3f}%" title="{text}"></i>'
    )
