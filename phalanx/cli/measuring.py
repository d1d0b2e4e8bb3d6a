"""`phalanx measure --out cpu.toml` measures this computer, as a system for `phalanx plan`.

Its chips are processes of one CPU device each, which share its cores and exchange over the loopback
interface. So rates are those of all of them together, and a latency is that of a doubling of their
number.
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

Exchanges = dict[int, dict[str, float]]  # by the number of processes, seconds by bytes

FORM = """\
# What {cores} cores of a CPU do, by `phalanx measure`: operations and bytes in a second, bytes of
# memory, seconds. Processes share them: each of n has the n-th part.

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
link = {link:.3g} # that processes exchange over the loopback interface
latency = {latency:.2g}
between = {{ link = {link:.3g}, latency = {latency:.2g} }}
sources = ["phalanx {version} measure, {day}"]
"""


def run(arguments: argparse.Namespace) -> int:
    """Measure, and write the table; 1 if processes fail."""
    if 1 in arguments.processes:
        print("phalanx measure: --processes: a process alone exchanges nothing", file=sys.stderr)
        return 2
    try:
        alone = _measured(1)
        exchanges: Exchanges = {n: _measured(n)["exchanges"] for n in arguments.processes}
    except subprocess.CalledProcessError as e:
        print(f"phalanx measure: processes failed:\n{e.stderr or e.stdout}", file=sys.stderr)
        return 1
    text = table(alone, exchanges)
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


def table(alone: dict[str, Any], exchanges: Exchanges) -> str:
    """The system as a table of TOML."""
    link, latency = _network(exchanges)
    return FORM.format(
        cores=os.cpu_count(), memory=_memory(), link=link, latency=latency, day=date.today(),
        version=__version__, bandwidth=alone["bandwidth"], **alone["products"],
    )  # fmt: skip


def _network(exchanges: Exchanges) -> tuple[float, float]:
    """Bytes a second, and seconds of latency with each doubling, of what processes exchange.

    A sum over n processes moves 2 (n - 1) times its bytes.

    >>> link, latency = _network({2: {"4": 1e-4, "1000000": 2.1e-3}})
    >>> f"{link:.3g} {latency:.3g}"
    '1e+09 0.0001'
    """
    links: list[float] = []
    latencies: list[float] = []
    for count, seconds in exchanges.items():
        small, large = sorted(seconds, key=int)
        links.append(2 * (count - 1) * int(large) / (seconds[large] - seconds[small]))
        latencies.append(seconds[small] / math.log2(count))
    return statistics.geometric_mean(links), statistics.geometric_mean(latencies)


def _memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
