"""`python -m benchmarks.on_libraries [NAME ...] [--devices N] [--repeat N]`: programs for JAX.

Each program of `benchmarks/library_programs.py` whose name holds a NAME runs as it is, with jax and
with `python -m phalanx.as_jax`, which alternate, a process each. The table has the smallest CPU
times: of the process until everything is there that a step needs, of the first call of the step,
with all that is compiled for it, and of a later one. What has lanes runs on a device for each with
jax, and on `--devices` with Phalanx. Neither keeps what it compiled.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.environment import environment
from benchmarks.library_programs import PROGRAMS, Program
from benchmarks.plot import spell

ROOT = Path(__file__).parents[1]
WAYS = {"phalanx": ["-m", "phalanx.as_jax", "-m"], "jax": ["-m"]}
WHAT = ("start", "first call", "call")
SECONDS, ROUND = 2.0, 0.002  # of all calls that are timed, and of those that are timed together
Times = dict[str, float]


def measure(program: Program) -> Times:
    """What this process needs for one program."""
    wait = importlib.import_module("jax").block_until_ready
    step = program.make()
    taken = {"start": time.process_time()}
    if step is not None:
        wait(step())
        taken["first call"] = time.process_time() - taken["start"]
        taken["call"] = least(lambda: wait(step()))
    return taken


def least(call: Callable[[], Any]) -> float:
    """The least CPU time of a call; others get less of a machine in rounds that are short."""

    def round_of(times: int) -> float:
        start = time.process_time()
        for _ in range(times):
            call()
        return (time.process_time() - start) / times

    times = max(1, int(ROUND / min(round_of(1) for _ in range(5))))
    end = time.process_time() + SECONDS
    found = round_of(times)
    while time.process_time() < end:
        found = min(found, round_of(times))
    return found


def measured(way: str, program: Program, devices: int) -> Times:
    """The same of a new process."""
    done = subprocess.run(
        [sys.executable, *WAYS[way], "benchmarks.on_libraries", "--measure", program.name],
        cwd=ROOT,
        env=environment(min(devices, program.devices), program.devices),
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def table(devices: int) -> Table:
    """An empty one."""
    made = Table(title=f"CPU time, with {devices} CPU devices for phalanx")
    made.add_column("program")
    made.add_column("")
    for title in (*WAYS, "ratio"):
        made.add_column(title, justify="right")
    return made


def add(rows: Table, program: Program, times: dict[str, list[Times]]) -> None:
    """The smallest times of a program."""
    ours, theirs = (
        {what: min(taken[what] for taken in times[way]) for what in times[way][0]} for way in WAYS
    )
    for i, what in enumerate(ours):
        ratio = f"{ours[what] / theirs[what]:.2f}"
        rows.add_row("" if i else program.name, what, spell(ours[what]), spell(theirs[what]), ratio)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_libraries", description=__doc__)
    parser.add_argument("names", nargs="*", default=[""], metavar="NAME")
    parser.add_argument("--devices", type=int, default=1, metavar="N")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(next(p for p in PROGRAMS if p.name == given.measure))), flush=True)
        os._exit(0)  # an end is not what is measured
    console, rows = Console(), table(given.devices)
    for program in PROGRAMS:
        if any(name in program.name for name in given.names):
            times: dict[str, list[Times]] = defaultdict(list)
            with console.status(f"measuring {program.name}"):
                for turn in range(given.repeat):
                    for way in list(WAYS)[:: 1 if turn % 2 == 0 else -1]:
                        times[way].append(measured(way, program, given.devices))
            add(rows, program, times)
    console.print(rows)


if __name__ == "__main__":
    main()
