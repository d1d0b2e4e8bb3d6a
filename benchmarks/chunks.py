"""`python -m benchmarks.chunks [PART ...] [--lanes N] [--seconds S] [--peer] [--plot FILE]`.

What a `pmap` call on one device takes, and how much memory its program needs besides arguments and
results, with 1, 2 and 4 lanes at once, with all of them, and with as many as Phalanx chooses; and
how far the choice is from the best. The programs are those of `benchmarks/programs.py` in whose
names there is a `PART`. With `--peer` those of eight lanes run with jax, too, whose `pmap` has a
CPU device for each.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import phalanx
from benchmarks.plot import spell
from benchmarks.programs import AXIS, PROGRAMS, Mapped, Named
from benchmarks.worker import load

CHOICE, ALL, PEER = "default", "all", "jax"
WAYS = {CHOICE: None, "1": 1, "2": 2, "4": 4, ALL: ALL}
DEVICES = 8  # of the peer
ROUNDS = 3  # how often a program is measured at least

Results = dict[str, dict[str, tuple[float, int]]]  # program -> way -> seconds, bytes


def mapped(api: Any, made: Mapped, **options: Any) -> Callable:
    out_axes = None if made.shared else 0
    return api.pmap(made.fun, AXIS, in_axes=made.in_axes, out_axes=out_axes, **options)


def calls(program: Named, lanes: int | None) -> dict[str, tuple[Callable[[], Any], int]]:
    """A call and the temporary memory of its program, for each number of lanes at once."""
    made = program.make(np, phalanx, lanes or program.lanes)
    arguments = phalanx.device_put(made.arguments)
    found = {}
    for way, at_once in WAYS.items():
        f = mapped(phalanx, made, devices=phalanx.devices()[:1], lanes_at_once=at_once)
        needed = f.lower(*arguments).compile().memory_analysis().temp_size_in_bytes
        found[way] = (lambda f=f: phalanx.block_until_ready(f(*arguments)), needed)
    return found


def call_of_peer(program: Named) -> tuple[Callable[[], Any], int]:
    """The same with jax, and the memory on all of its devices; the arguments lie there already."""
    jax = sys.modules[PEER]
    made = program.make(np, jax, program.lanes)
    place = jax.pmap(lambda *xs: xs, in_axes=made.in_axes, out_axes=made.in_axes,
                     axis_size=program.lanes)  # fmt: skip
    arguments = place(*made.arguments)
    f = mapped(jax, made)
    needed = f.lower(*arguments).compile().memory_analysis().temp_size_in_bytes
    return lambda: jax.block_until_ready(f(*arguments)), needed * program.lanes


def measure(
    timed: dict[str, tuple[Callable[[], Any], int]], seconds: float
) -> dict[str, tuple[float, int]]:
    """The smallest time of a call each. All are called in every round, for a fair share of load."""
    best = dict.fromkeys(timed, float("inf"))
    for call, _ in timed.values():
        call()
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < ROUNDS or time.perf_counter() < end:
        for way, (call, _) in timed.items():
            start = time.perf_counter()
            call()
            best[way] = min(best[way], time.perf_counter() - start)
        rounds += 1
    return {way: (best[way], needed) for way, (_, needed) in timed.items()}


def table(results: Results, peer: bool) -> Table:
    """Times and megabytes, one program a row."""
    result = Table(title=f"lanes at once on one device, {os.cpu_count()} cores")
    result.add_column("program")
    ways = [*WAYS, *[PEER] * peer]
    for head in (*ways, "default / best", *[f"default / {PEER}"] * peer):
        result.add_column(head, justify="right")
    for name, found in results.items():
        cells = [_cell(found.get(way)) for way in ways]
        least = min(found[way][0] for way in WAYS)
        cells.append(f"{found[CHOICE][0] / least:.2f}")
        if peer:
            cells.append(f"{found[CHOICE][0] / found[PEER][0]:.2f}" if PEER in found else "-")
        result.add_row(name, *cells)
    return result


def _cell(found: tuple[float, int] | None) -> str:
    return "-" if found is None else f"{spell(found[0])}, {found[1] / 1e6:.3g} MB"


def plot(results: Results, file: Path) -> None:
    """Time and memory over the number of lanes at once, as parts of those of all at once."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "chunks"})
    figure = importlib.import_module("matplotlib.figure").Figure((9, 3.4), layout="constrained")
    ways = [way for way in WAYS if way != CHOICE]
    for axes, title, part in zip(figure.subplots(1, 2), ("time", "memory"), (0, 1), strict=True):
        for name, found in results.items():
            whole = found[ALL][part] or 1
            axes.plot(ways, [found[way][part] / whole for way in ways], marker=".", label=name)
        axes.set(title=f"{title} of a call", xlabel="lanes at once")
        axes.set_yscale("log", base=2)
        axes.grid(alpha=0.3)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center")
    figure.savefig(file, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="of the names of programs")
    parser.add_argument("--lanes", type=int, metavar="N", help="lanes of each program")
    parser.add_argument(
        "--seconds", type=float, default=8, metavar="S", help="for each program (default: 8)"
    )
    parser.add_argument("--peer", action="store_true", help=f"beside jax on {DEVICES} CPU devices")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw times and memory there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write times and memory there")
    arguments = parser.parse_args()
    if arguments.peer:
        os.environ |= {"JAX_NUM_CPU_DEVICES": str(DEVICES), "TF_CPP_MIN_LOG_LEVEL": "1"}
        load(PEER)
    results: Results = {}
    with Console(stderr=True).status("measuring") as status:
        for program in PROGRAMS:
            if arguments.parts and not any(part in program.name for part in arguments.parts):
                continue
            status.update(program.name)
            timed = calls(program, arguments.lanes)
            if arguments.peer and (arguments.lanes or program.lanes) == DEVICES:
                timed[PEER] = call_of_peer(program)
            results[program.name] = measure(timed, arguments.seconds)
    Console().print(table(results, arguments.peer))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    if arguments.plot:
        plot(results, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
