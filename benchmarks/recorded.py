"""The measurements that the documentation shows: a file of times, a chart and a table of them.

`python -m benchmarks --plot` measures them anew. `python -m benchmarks.recorded` draws again what
was measured.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.plot import Row, spell, svg

ROOT = Path(__file__).parents[1]
TIMES = ROOT / "benchmarks" / "recorded.json"
CHART = ROOT / "docs" / "pictures" / "benchmarks.svg"
PAGE = ROOT / "docs" / "benchmarks.md"
TABLE = re.compile(r"(?<=<!-- recorded -->\n).*?(?=<!-- end -->)", re.DOTALL)

SHOWN = {  # the cases of the chart, and how it calls them
    "import": "import",
    "eager operation": "operation outside jit",
    "eager gradient": "gradient outside jit",
    "jit call, 1 argument": "jit call, 1 argument",
    "jit call, 100 arguments": "jit call, 100 arguments",
    "pmap call, sharded input": "pmap call, arrays on 8 devices",
    "pmap call, NumPy input": "pmap call, NumPy array",
    "training step, trace and lower": "transformer step: tracing, lowering",
    "training step, first call": "transformer step: first call, compiles",
    "training step, second process": "transformer step: in a second process",
    "training step": "transformer step: pmap, 8 devices",
    "mesh training step, jit": "transformer step: jit on a mesh, 8 devices",
    "training step, 8 lanes on 1 device": "transformer step: 8 lanes on 1 device",
    "CNN training step": "CNN step: pmap, 8 devices",
    "gradient through 1,000 scanned steps": "gradient through a scan, 1,000 steps",
}
Times = Mapping[str, Mapping[str, Sequence[float]]]  # name of a case -> library -> seconds


def rows(times: Times) -> list[Row]:
    """The shortest times of the cases that both libraries ran; cases of the chart by its names."""
    return [
        Row(SHOWN.get(name, name), min(taken["phalanx"]), min(taken["jax"]))
        for name, taken in sorted(times.items(), key=lambda pair: _place(pair[0]))
        if taken.get("phalanx") and taken.get("jax")
    ]


def _place(name: str) -> int:
    return [*SHOWN].index(name) if name in SHOWN else len(SHOWN)


def caption(versions: str, repetitions: int) -> list[str]:
    """On what, when and how the times were measured."""
    commit = subprocess.run(  # the last that changed the library
        ["git", "log", "-1", "--format=%h", "--", "phalanx"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    at = f", commit {commit}" if commit else ""
    return [
        f"{processor()}, {os.cpu_count()} cores, as 8 CPU devices. "
        f"{datetime.date.today().isoformat()}{at}.",
        f"Python {platform.python_version()}, {versions}.",
        f"The shortest times of {repetitions} processes each, by turns, beside other work.",
    ]


def processor() -> str:
    """The model of the processor, where the system names it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    found = re.search(r"model name\s*: (.+)", text)
    return found[1] if found else platform.machine()


def record(times: Times, caption: Sequence[str]) -> None:
    """Save the times, and draw them."""
    shortest = {row.name: {"phalanx": row.phalanx, "jax": row.jax} for row in rows(times)}
    TIMES.write_text(json.dumps({"caption": list(caption), "seconds": shortest}, indent=1) + "\n")
    draw()


def recorded() -> tuple[list[Row], list[str]]:
    """The rows and the caption that were saved."""
    saved: dict[str, Any] = json.loads(TIMES.read_text(encoding="utf-8"))
    return [Row(name, **seconds) for name, seconds in saved["seconds"].items()], saved["caption"]


def table() -> str:
    """The rows, and the caption, as Markdown."""
    lines = [
        f"| {row.name} | {_in_a_cell(row.phalanx)} | {_in_a_cell(row.jax)} | {row.ratio:.2f} |"
        for row in recorded()[0]
    ]
    head = ["| | Phalanx | JAX | ratio |", "|---|---|---|---|"]
    return "\n".join([*head, *lines, "", *recorded()[1]])


def _in_a_cell(seconds: float) -> str:
    return spell(seconds).replace(" ", "\u00a0")  # so that a narrow column keeps the unit


def draw() -> None:
    """Write the chart, and the table into its page."""
    CHART.write_text(svg(*recorded()), encoding="utf-8")
    text = TABLE.sub(lambda _: f"\n{table()}\n\n", PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    draw()
