"""`phalanx measure --out cpu.toml` measures this computer, as a system for `phalanx plan`.

Its chips are processes of one CPU device each, which share its cores and exchange over the loopback
interface. So rates are those of all of them together, and a latency is that of a doubling of their
number. How much several do together is measured, too: one does not keep all cores busy, and more
than there are cores wait for each other.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from datetime import date
from typing import Any

from phalanx.base.version import __version__

__all__ = ["run", "table"]

Together = dict[int, dict[str, Any]]  # by the number of processes, what the first of them says

FORM = """\
# What {cores} cores of a CPU do, by `phalanx measure`: operations and bytes in a second, bytes of
# memory, seconds. Processes share them: each of n has the n-th part of what n do together, which is
# for some n so many times what one does alone.

[cpu]
title = "process on {cores} cores of a CPU"
operations = {{ bf16 = {bfloat16:.3g}, f32 = {float32:.3g}, f64 = {float64:.3g} }}
memory = {memory:.3g}
bandwidth = {bandwidth:.3g}
torus = 0
chips = 256
shared = true
reached = 1.0 # as rates are measured
hidden = 0.0
launch = {launch:.2g} # of an operation of few elements
link = {link:.3g} # that processes exchange over the loopback interface
latency = {latency:.2g}
between = {{ link = {link:.3g}, latency = {latency:.2g} }}
sources = ["phalanx {version} measure, {day}"]
together = [
{rows}
]
"""
ROW = """\
    {{ processes = {count}, computing = {computing:.3g}, moving = {moving:.3g}, link = {link:.3g}, \
latency = {latency:.2g} }},"""


def run(arguments: argparse.Namespace) -> int:
    """Measure, and write the table; 1 if processes fail."""
    if 1 in arguments.processes:
        print("phalanx measure: --processes: a process alone does not communicate", file=sys.stderr)
        return 2
    try:
        alone = _measured(1)
        together: Together = {n: _measured(n) for n in arguments.processes}
    except subprocess.CalledProcessError as e:
        print(f"phalanx measure: processes failed:\n{e.stderr or e.stdout}", file=sys.stderr)
        return 1
    text = table(alone, together)
    if arguments.out is None:
        print(text, end="")
    else:
        arguments.out.write_text(text, encoding="utf-8")
        print(f"the system is in {arguments.out}: --on {arguments.out}:8", file=sys.stderr)
    return 0


def _measured(count: int) -> dict[str, Any]:
    """What the first of ``count`` processes says."""
    launch = ["-m", "phalanx", "launch", "-n", str(count), "--devices-per-process", "1"]
    print(f"measuring {count} {'process' if count == 1 else 'processes'} ...", file=sys.stderr)
    done = subprocess.run(
        [sys.executable, *launch, "-m", "phalanx.cli.rates"], check=True, capture_output=True,
        env=os.environ | {"PHALANX_PLATFORMS": "cpu"}, text=True,
    )  # fmt: skip
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("[0] {")]
    return json.loads(line.removeprefix("[0] "))


def table(alone: dict[str, Any], together: Together) -> str:
    """The system as a table of TOML."""
    networks = {
        count: _network(count, measured["exchanges"]) for count, measured in together.items()
    }
    links, latencies = zip(*networks.values(), strict=True)
    rows = [
        ROW.format(
            count=count, link=networks[count][0], latency=networks[count][1],
            computing=measured["products"] / alone["products"]["float32"],
            moving=measured["bandwidth"] / alone["bandwidth"],
        )
        for count, measured in sorted(together.items())
    ]  # fmt: skip
    return FORM.format(
        cores=os.cpu_count(), memory=_memory(), link=statistics.geometric_mean(links),
        latency=statistics.geometric_mean(latencies), day=date.today(), version=__version__,
        bandwidth=alone["bandwidth"], launch=alone["launch"], rows="\n".join(rows),
        **alone["products"],
    )  # fmt: skip


def _network(count: int, seconds: dict[str, float]) -> tuple[float, float]:
    """Bytes a second, and seconds of latency with each doubling, of what processes exchange.

    A sum over n processes moves 2 (n - 1) times its bytes.

    >>> link, latency = _network(2, {"4": 1e-4, "1000000": 2.1e-3})
    >>> f"{link:.3g} {latency:.3g}"
    '1e+09 0.0001'
    """
    small, large = sorted(seconds, key=int)
    moved = 2 * (count - 1) * int(large)
    return moved / (seconds[large] - seconds[small]), seconds[small] / math.log2(count)


def _memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
