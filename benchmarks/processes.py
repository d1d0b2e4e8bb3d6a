"""`python -m benchmarks.processes [COUNT ...] [--repeat N]`: programs of several processes.

So many processes on this machine, with a CPU device each, meet on the loopback interface, add up a
number over all of them in a loop, and then a million numbers. Phalanx without and with its launcher
and jax alternate. A start lasts from that of the first process to the first sum in process 0.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.environment import environment

ROOT = Path(__file__).parents[1]
WAYS = ("phalanx", "phalanx launch", "jax")
STEPS = {"sum": (1, 1000), "sum of 1,000,000": (1_000_000, 20)}  # numbers, calls of a round
ROUNDS = 5
Samples = dict[str, dict[str, list[float]]]  # name of a case -> way -> seconds


def meet(way: str, api: Any) -> None:
    """Initialize from what `start` put into the environment."""
    if way == "phalanx launch":
        api.distributed.initialize()
    else:
        api.distributed.initialize(
            os.environ["BENCHMARK_MEETING"],
            int(os.environ["BENCHMARK_COUNT"]),
            int(os.environ["BENCHMARK_RANK"]),
        )


def measure(way: str) -> dict[str, list[float]]:
    """What one process takes for a start, and for each call."""
    api = importlib.import_module(way.split()[0])
    meet(way, api)
    np = importlib.import_module("numpy")
    step = api.pmap(lambda x: api.lax.psum(x, "i"), axis_name="i")
    api.block_until_ready(step(np.ones((1, 1), np.float32)))
    taken = {"start": [time.time() - float(os.environ["BENCHMARK_STARTED"])]}
    for name, (size, calls) in STEPS.items():
        x = step(np.ones((1, size), np.float32))
        taken[name] = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(calls):
                api.block_until_ready(step(x))
            taken[name].append((time.perf_counter() - start) / calls)
    return taken


def start(way: str, count: int) -> dict[str, list[float]]:
    """The same of process 0, with all processes started here."""
    around = environment(1, 1) | {
        "BENCHMARK_MEETING": f"127.0.0.1:{free_port()}",
        "BENCHMARK_COUNT": str(count),
    }
    module = ["-m", "benchmarks.processes", "--measure", way]
    if way == "phalanx launch":
        command = [sys.executable, "-m", "phalanx", "launch", "-n", str(count), *module]
        return last_line(subprocess.check_output(command, cwd=ROOT, env=around, text=True))
    command = [sys.executable, *module]
    processes = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=around | {"BENCHMARK_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    printed = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit(f"a process of {way} failed")
    return last_line(printed[0])


def last_line(printed: str) -> dict[str, list[float]]:
    """What process 0 measured; the launcher writes its number before."""
    lines = [line.removeprefix("[0] ") for line in printed.splitlines()]
    return json.loads([line for line in lines if line.startswith('{"start"')][-1])


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def table(count: int, samples: Samples) -> Table:
    """Medians, and ratios to those of jax."""
    result = Table(title=f"{count} processes")
    result.add_column("case")
    for title in (*WAYS, "ratio", "launched"):
        result.add_column(title, justify="right")
    for name, taken in samples.items():
        medians = [statistics.median(taken[way]) for way in WAYS]
        unit, digits = (1e3, "ms") if name == "start" else (1e6, "us")
        ratios = [f"{ours / medians[-1]:.2f}" for ours in medians[:2]]
        result.add_row(name, *[f"{m * unit:,.0f} {digits}" for m in medians], *ratios)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=[2, 4])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--measure", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure)), flush=True)
        return
    for count in given.counts:
        samples: Samples = defaultdict(lambda: defaultdict(list))
        for _ in range(given.repeat):
            for way in WAYS:
                for name, seconds in start(way, count).items():
                    samples[name][way] += seconds
        Console().print(table(count, samples))


if __name__ == "__main__":
    main()
