"""`python -m benchmarks [--quick] [--only NAME] [--repeat N] [--devices N] [--json F] [--plot]`.

Phalanx and jax alternate, a process each, on eight CPU devices; the table shows the medians over
everything that was measured, and the ratios of the medians and of the minima. With `--devices`
Phalanx has so many, and the eight lanes share them; the peer needs its eight.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.case import CASES, DEVICES
from benchmarks.environment import environment
from benchmarks.plot import spell, svg
from benchmarks.recorded import CHART, SHOWN, caption, record, rows
from benchmarks.worker import IMPORT

LIBRARIES = ("phalanx", "jax")
ROOT = Path(__file__).parents[1]
Samples = dict[str, dict[str, list[float]]]  # name of a case -> library -> seconds


def run_turn(
    library: str, seconds: float, names: list[str], devices: int, samples: Samples, cache: str
) -> list[str | None]:
    """All cases of one library, in as many processes as they need; what went wrong."""
    second = [case.name for case in CASES if case.kind == "second" and case.name in names]
    others = [name for name in names if name not in second]
    problems = [run_worker(library, seconds, others, devices, samples, "")]
    for name in second:
        if library == "phalanx" and not samples[name][library]:  # a first process fills the cache
            ignored: Samples = defaultdict(lambda: defaultdict(list))
            run_worker(library, seconds, [name], devices, ignored, cache)
        problems.append(run_worker(library, seconds, [name], devices, samples, cache))
    return problems


def run_worker(
    library: str, seconds: float, names: list[str], devices: int, samples: Samples, cache: str
) -> str | None:
    """One process of one library; adds to `samples`, returns what went wrong."""
    command = [sys.executable, "-m", "benchmarks.worker", library, str(seconds), *names]
    done = subprocess.run(
        command,
        env=environment(devices, DEVICES, cache),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        name, taken = json.loads(line)
        samples[name][library] += taken
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return f"{library}: exit status {done.returncode}: {last}"
    return None


def table(samples: Samples, devices: int) -> Table:
    """Times and ratios, one case a row."""
    ours = "" if devices == DEVICES else f", {devices} for phalanx"
    result = Table(title=f"{DEVICES} CPU devices{ours}, {os.cpu_count()} cores")
    result.add_column("case")
    for title in (*LIBRARIES, "ratio of medians", "of minima"):
        result.add_column(title, justify="right")
    for name, times in samples.items():
        ours, theirs = (times.get(library) for library in LIBRARIES)
        cells = [spell(statistics.median(taken)) if taken else "-" for taken in (ours, theirs)]
        ratios = ["-", "-"]
        if ours and theirs:
            ratios = [f"{f(ours) / f(theirs):.2f}" for f in (statistics.median, min)]
        result.add_row(escape(name), *cells, *ratios)
    return result


def version(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{package} (from a checkout)"


def chosen(parts: list[str] | None, charted: bool) -> list[str]:
    """The cases whose names have one of the parts; without any, those of the chart, or all."""
    names = [case.name for case in CASES]
    if parts:
        return [name for name in names if any(part in name for part in parts)]
    return [name for name in names if name in SHOWN or not charted]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repetition each, short rounds")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="cases whose name holds NAME, or another"
    )
    parser.add_argument("--repeat", type=int, metavar="N", help="repetitions (default: 5)")
    parser.add_argument(
        "--devices", type=int, default=DEVICES, metavar="N", help="devices of Phalanx (default: 8)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", nargs="?", const=CHART,
        help="draw the ratios of minima as SVG: of a few cases, unless --only chooses others "
        "(default: the chart of the documentation, with its table)",
    )  # fmt: skip
    arguments = parser.parse_args()
    names = chosen(arguments.only, charted=bool(arguments.plot))
    repetitions = arguments.repeat or (1 if arguments.quick else 5)
    console = Console()
    packages = ", ".join(version(package) for package in (*LIBRARIES, "jaxlib"))
    console.print(f"Python {platform.python_version()}, {packages}")
    samples: Samples = {name: defaultdict(list) for name in (IMPORT, *names)}
    problems = []
    with console.status("measuring") as status, tempfile.TemporaryDirectory() as cache:
        for repetition in range(repetitions):
            for library in LIBRARIES[:: 1 if repetition % 2 == 0 else -1]:
                status.update(f"repetition {repetition + 1} of {repetitions}: {library}")
                seconds = 0.1 if arguments.quick else 0.7
                problems += run_turn(library, seconds, names, arguments.devices, samples, cache)
    console.print(table(samples, arguments.devices))
    for problem in filter(None, problems):
        console.print(problem, style="red", markup=False)
    if arguments.json:
        arguments.json.write_text(json.dumps(samples, indent=1))
    if arguments.plot == CHART:
        record(samples, caption(packages, repetitions))
    elif arguments.plot:
        drawn = svg(rows(samples), caption(packages, repetitions))
        arguments.plot.write_text(drawn, encoding="utf-8")
    return any(problems)


if __name__ == "__main__":
    sys.exit(main())
