"""A chart of what `python -m benchmarks` measured: the time of Phalanx, where JAX takes 1.

A file of SVG whose colours follow the reader's theme, light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, LABELS, BARS, ROW, TOP = 570, 290, 220, 24, 56  # pixels: bars begin behind the labels
STYLE = (
    "text{fill:#24292f}.quiet{fill:#57606a;font-size:11px}.axis{stroke:#8c959f}"
    ".faster{fill:#4c9be8}.slower{fill:#e5a04c}"
    "@media (prefers-color-scheme: dark){text{fill:#e6edf3}.quiet{fill:#9198a1}}"
)


class Row(NamedTuple):
    """A case, and the shortest time of each library, in seconds."""

    name: str
    phalanx: float
    jax: float

    @property
    def ratio(self) -> float:
        return self.phalanx / self.jax


def spell(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError


def svg(rows: Sequence[Row], caption: Sequence[str]) -> str:
    """The chart, with a line at the time of JAX, and lines of ``caption`` below."""
    longest = max(1.0, *(row.ratio for row in rows))
    scale = BARS / longest
    one, bottom = LABELS + scale, TOP + ROW * len(rows)
    height = bottom + 18 + 16 * len(caption)
    body = [_bar(row, TOP + ROW * i, scale) for i, row in enumerate(rows)]
    body.append(f'<path class="axis" d="M{one:.1f} {TOP - 6}V{bottom}"/>')
    lines = [_text(20, bottom + 22 + 16 * i, line, "quiet") for i, line in enumerate(caption)]
    title = "Time of Phalanx where JAX takes 1: shorter bars are faster"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 '
        f'{WIDTH} {height}" role="img" aria-labelledby="t" font-family="system-ui, sans-serif" '
        'font-size="13">',
        f'<title id="t">{title}</title>',
        f"<style>{STYLE}</style>",
        _text(20, 24, title),
        _text(one, TOP - 12, "JAX", "quiet", "middle"),
        *body,
        *lines,
        "</svg>\n",
    ])  # fmt: skip


def _bar(row: Row, top: int, scale: float) -> str:
    kind, length = "faster" if row.ratio <= 1 else "slower", row.ratio * scale
    line = top + 15
    beside = LABELS + max(length, scale) + 8
    return "\n".join([
        _text(LABELS - 8, line, row.name, anchor="end"),
        f'<rect class="{kind}" x="{LABELS}" y="{top + 3}" width="{length:.1f}" height="{ROW - 8}" '
        'rx="3"/>',
        _text(beside, line, f"{row.ratio:.2f}", "quiet"),
    ])  # fmt: skip


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    options = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{options}>{escape(text)}</text>'
