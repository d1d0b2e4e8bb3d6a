"""What the examples print, as pictures: `python -m docs.generator.gallery` runs them and draws it.

The pictures are windows of a terminal, for the page of the examples.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
COMMANDS = {  # of each example
    "digits": "PHALANX_NUM_CPU_DEVICES=3 python examples/digits.py",
    "train": "python examples/train.py",
    "planted": "phalanx check examples/planted.py",
    "transformer": "python examples/transformer.py",
    "fsdp": "python examples/fsdp.py",
    "pipeline": "python examples/pipeline.py",
    "experts": "python examples/experts.py",
    "ring_matmul": "python examples/ring_matmul.py",
}
FIRST, LAST, COLUMNS = 8, 4, 80  # lines that are shown, and characters of a line
LINE, LETTER, EDGE = 19, 7.83, 16  # pixels of a monospaced font of size 13
STYLE = (
    "text{fill:#24292f;white-space:pre}.typed{font-weight:600}.window{fill:#f6f8fa;stroke:#d0d7de}"
    "@media (prefers-color-scheme: dark){text{fill:#e6edf3}.window{fill:#161b22;stroke:#3d444d}}"
)


def printed(command: str) -> list[str]:
    """The lines that a command of an example prints, run in an empty folder."""
    words = shlex.split(command.replace("examples/", f"{ROOT}/examples/"))
    programs = {"python": [sys.executable], "phalanx": [sys.executable, "-m", "phalanx"]}
    words = [part for word in words for part in programs.get(word, [word])]
    settings = {"PYTHONPATH": str(ROOT), "COLUMNS": str(COLUMNS)}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["env", *words],
            cwd=folder, env=os.environ | settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if not done.stdout:
        sys.exit(f"{command}: {done.stderr}")
    return done.stdout.replace(f"{ROOT}/", "").splitlines()


def shortened(lines: list[str]) -> list[str]:
    """The first and last lines; those that are wider than the window go on below."""
    if len(lines) > FIRST + LAST + 1:
        lines = [*lines[:FIRST], "...", *lines[-LAST:]]
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, COLUMNS, subsequent_indent="    ") or [""]
    ]


def window(command: str, lines: list[str]) -> str:
    """A window as SVG, in which the command was typed and the lines were printed."""
    shown = [f"$ {command}", *shortened(lines)]
    width = round(2 * EDGE + LETTER * max(60, *map(len, shown)))
    height = 2 * EDGE + LINE * len(shown)
    kinds = ["typed", *["printed"] * len(shown)]
    rows = [
        f'<text class="{kind}" x="{EDGE}" y="{EDGE + 13 + LINE * i}">{escape(line)}</text>'
        for i, (kind, line) in enumerate(zip(kinds, shown, strict=False))
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 '
        f'{width} {height}" role="img" aria-labelledby="t" font-family="monospace" '
        'font-size="13">',
        f'<title id="t">{escape(command)}</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="window" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
        *rows,
        "</svg>\n",
    ])  # fmt: skip


if __name__ == "__main__":
    for name, command in COMMANDS.items():
        (FOLDER / f"example-{name}.svg").write_text(
            window(command, printed(command)), encoding="utf-8"
        )
