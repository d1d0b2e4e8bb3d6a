"""Values of reports as one reads them."""

from __future__ import annotations

import linecache
import math
import os
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote

from phalanx.base.source import file_name

__all__ = ["Kind", "link", "short_line", "shown", "source_of"]

Kind = Literal[
    "heading", "text", "line", "code", "count", "bytes", "operations", "seconds", "share", "rate"
]

_SCALES = {
    "bytes": (1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB")),
    "operations": (1000, ("", "k", "M", "G", "T", "P", "E")),
    "rate": (1000, ("/s", " k/s", " M/s", " G/s", " T/s", " P/s", " E/s")),
}


def shown(value: Any, kind: Kind) -> str:
    """A value as one reads it.

    >>> shown(3 * 2**20, "bytes"), shown(1.5e9, "operations"), shown(2.5e-5, "seconds")
    ('3.0 MiB', '1.5 G', '25 µs')
    >>> shown(1e-14, "seconds")
    '0 s'
    >>> shown(0.131, "share"), shown(4096, "count"), shown(None, "bytes")
    ('13 %', '4,096', '')
    """
    if value is None:
        return ""
    if kind in _SCALES:
        return _scaled(value, *_SCALES[kind])
    if kind == "seconds":
        return _time(value)
    if kind == "share":
        return f"{100 * value:.0f} %" if abs(value) >= 0.0995 else f"{100 * value:.1f} %"
    if kind == "line":
        return short_line(value)
    return f"{value:,.0f}" if kind == "count" and not isinstance(value, str) else str(value)


def short_line(place: str) -> str:
    """A line of a program without its folder, and its function without the scopes that it is in, as
    locations are written.

    >>> short_line("/home/ada/train.py:12 (net/dense/loss)")
    'train.py:12 (loss)'
    """
    line, _, function = place.partition(" (")
    file, colon, number = line.rpartition(":")
    line, function = f"{file_name(file)}{colon}{number}", function.rpartition("/")[2]
    return f"{line} ({function}" if function else line


def link(place: str) -> str:
    """The address under which editors open a line; "" where there is no such file.

    >>> link("/home/ada/train.py:12 (loss)"), link("arguments")
    ('vscode://file/home/ada/train.py:12', '')
    """
    line = place.partition(" (")[0]
    file, _, number = line.rpartition(":")
    is_file = os.path.isabs(file) and number.isdigit() and file_name(file) == os.path.basename(file)
    return f"vscode://file{quote(file)}:{number}" if is_file else ""


def source_of(place: str) -> str:
    """The text of a line that is told as ``path:line``; "" where that is not known."""
    file, _, number = place.partition(" (")[0].rpartition(":")
    return linecache.getline(file, int(number)).strip() if file and number.isdigit() else ""


def _scaled(value: float, base: int, units: Sequence[str]) -> str:
    if not math.isfinite(value):
        return "unknown"
    power = 0
    while abs(value) >= base and power < len(units) - 1:
        value, power = value / base, power + 1
    number = f"{value:.0f}" if power == 0 else f"{value:.1f}"
    unit = units[power]
    return (number + unit if unit.startswith((" ", "/")) else f"{number} {unit}").strip()


def _time(value: float) -> str:
    if not math.isfinite(value):
        return "unknown"
    if abs(value) < 0.05e-9:  # nothing that a computer does is so short
        return "0 s"
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if abs(value) >= size or unit == "ns":
            count = value / size
            return f"{count:.0f} {unit}" if abs(count) >= 10 else f"{count:.1f} {unit}"
    raise AssertionError(value)
