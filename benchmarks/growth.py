"""`python -m benchmarks.growth [NAME ...]`: how time grows with what a program has.

Each row is something that a program has many of: lanes, devices, equations, and so on. It is timed
with one, two, four and eight times as many, and the slope of the logarithms of the times says how
it grows: 1 where twice as many take twice as long. What is above 1.1 is marked, and the exit
status is 1. Traces and executables are forgotten before each measurement of `tracing`.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import phalanx
import phalanx.numpy as jnp
from benchmarks.environment import environment
from benchmarks.plot import spell
from phalanx import lax
from phalanx.processes.hub import Hub
from phalanx.sharding import NamedSharding
from phalanx.sharding import PartitionSpec as P
from tests.units.processes import simulated

DEVICES = 512  # as many as the largest row has
TIMES = (1, 2, 4, 8)
STEEP = 1.1
ROUNDS, SECONDS = 5, 0.5  # how often, and how long, a call is repeated at least
X = np.float32(0.5)


@dataclass(frozen=True)
class Row:
    """What there is more and more of, from how many, and what is timed with ``n`` of it."""

    name: str
    first: int
    make: Callable[[int], Callable[[], Any]]
    is_fresh: bool = True  # nothing is remembered from the call before


def lowered(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    return lambda: phalanx.jit(function).lower(*args)


def chain(n: int, x: Any) -> Any:
    for _ in range(n):
        x = jnp.sin(x)
    return x


def gradient(n: int) -> Callable[[], Any]:
    return lowered(phalanx.grad(partial(chain, n)), X)


def lanes(n: int) -> Callable[[], Any]:
    xs = np.ones((n, 8), np.float32)
    devices = phalanx.devices()[:8]
    return lambda: phalanx.pmap(lambda x: x - lax.pmean(x, "i"), "i", devices=devices).lower(xs)


def calls_of_lanes(n: int) -> Callable[[], Any]:
    mapped = phalanx.pmap(lambda x: x - lax.pmean(x, "i"), "i", devices=phalanx.devices()[:8])
    xs = phalanx.block_until_ready(mapped(np.ones((n, 1024), np.float32)))
    return lambda: phalanx.block_until_ready(mapped(xs))


def devices(n: int) -> Callable[[], Any]:
    xs, mine = np.ones((n, 8), np.float32), phalanx.devices()[:n]
    return lambda: phalanx.pmap(lambda x: x - lax.pmean(x, "i"), "i", devices=mine).lower(xs)


def put_on_devices(n: int) -> Callable[[], Any]:
    mesh = phalanx.make_mesh((n,), ("x",), devices=phalanx.devices()[:n])
    xs, sharding = np.ones((n, 8), np.float32), NamedSharding(mesh, P("x"))
    return lambda: phalanx.block_until_ready(phalanx.device_put(xs, sharding))


def calls_of_leaves(n: int) -> Callable[[], Any]:
    function = phalanx.jit(lambda xs: [x + 1 for x in xs])
    xs = function([X] * n)
    return lambda: phalanx.block_until_ready(function(xs))


def captured(n: int) -> Callable[[], Any]:
    values = [jnp.full(4, i) for i in range(n)]
    return lowered(lambda x: sum(values, x), jnp.ones(4))


def branches(n: int) -> Callable[[], Any]:
    functions = [partial(lambda i, x: x * i, i) for i in range(n)]
    return lambda: phalanx.jit(lambda i, x: lax.switch(i, functions, x)).lower(0, X)


def nested(n: int, apply: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]) -> Any:
    function = jnp.sin
    for _ in range(n):
        function = apply(function)
    return lowered(function, X)


def jits(function: Any) -> Any:
    return phalanx.jit(lambda x: function(x) * 2)


def loops(function: Any) -> Any:
    return lambda x: lax.fori_loop(0, 2, lambda _, y: function(y), x)


def shardings(n: int) -> Callable[[], Any]:
    mesh = phalanx.make_mesh((2, 4), ("x", "y"), devices=phalanx.devices()[:8])
    specs = [P("x"), P("y"), P(("x", "y")), P(None, "x"), P(None, "y"), P("x", "y")]
    wanted = [NamedSharding(mesh, specs[i % len(specs)]) for i in range(n)]

    def function(x: Any) -> Any:
        for sharding in wanted:
            x = lax.with_sharding_constraint(x + 1, sharding)
        return x

    return lowered(function, np.ones((8, 8), np.float32))


def meshes(n: int) -> Callable[[], Any]:
    mine = np.array(phalanx.devices()[:8])
    all_meshes = [phalanx.sharding.Mesh(np.roll(mine, i % 8), (f"x{i}",)) for i in range(n)]
    x = np.ones(8, np.float32)

    def each() -> None:
        for mesh in all_meshes:
            sharding = NamedSharding(mesh, P(*mesh.axis_names))
            phalanx.jit(jnp.sin, in_shardings=sharding).lower(x)

    return each


def entries(n: int) -> Callable[[], Any]:
    function = phalanx.jit(jnp.sin)
    xs = [jnp.ones(i + 1) for i in range(n)]

    def each() -> None:
        for x in xs:
            function(x)

    each()  # compiles
    return each


def join(n: int) -> Callable[[], Any]:
    """A coordinator and its simulated members, who go again."""
    simulated.let_open(8 * n + 1000)

    def all_join() -> None:
        hub = Hub(n, ("127.0.0.1", 0), "token", "/nowhere")
        simulated.Crowd(n, hub.port).close()
        hub.close()

    return all_join


def barrier(n: int) -> Callable[[], Any]:
    simulated.let_open(8 * n + 1000)
    hub = Hub(n, ("127.0.0.1", 0), "token", "/nowhere")
    crowd = simulated.Crowd(n, hub.port)
    return lambda: crowd.gather(lambda process: None)


ROWS = [
    Row("tracing: lanes", 512, lanes),
    Row("tracing: devices", 64, devices),
    Row("tracing: equations", 250, lambda n: lowered(partial(chain, n), X)),
    Row("tracing: equations of a gradient", 125, gradient),
    Row("tracing: leaves", 250, lambda n: lowered(lambda xs: [x + 1 for x in xs], [X] * n)),
    Row("tracing: captured values", 100, captured),
    Row("tracing: branches", 25, branches),
    Row("tracing: jits within jits", 10, lambda n: nested(n, jits)),
    Row("tracing: loops within loops", 5, lambda n: nested(n, loops)),
    Row("tracing: shardings", 50, shardings),
    Row("tracing: meshes", 10, meshes),
    Row("calls: lanes", 512, calls_of_lanes, is_fresh=False),
    Row("calls: devices that get a part", 64, put_on_devices, is_fresh=False),
    Row("calls: leaves", 100, calls_of_leaves, is_fresh=False),
    Row("calls: shapes that are remembered", 25, entries, is_fresh=False),
    Row("processes: simulated members join", 128, join, is_fresh=False),
    Row("processes: a barrier of members", 128, barrier, is_fresh=False),
]  # fmt: skip


def measured(row: Row, n: int) -> float:
    """Seconds of the fastest call with ``n`` of them: of the processor, where nothing waits."""
    clock = time.thread_time if row.is_fresh else time.perf_counter
    call, found = row.make(n), []
    call()
    end = time.perf_counter() + SECONDS
    while len(found) < ROUNDS or time.perf_counter() < end:
        if row.is_fresh:
            phalanx.clear_caches()
            gc.collect()
        begin = clock()
        call()
        found.append(clock() - begin)
    return min(found)


def slope(counts: list[int], seconds: list[float]) -> float:
    """The slope of the line through the logarithms, by least squares."""
    return float(np.polyfit(np.log(counts), np.log(seconds), 1)[0])


def grown(rows: list[Row]) -> tuple[Table, bool]:
    """The table, and whether no row is steep."""
    table = Table(title=f"{DEVICES} CPU devices, {os.cpu_count()} cores")
    table.add_column("what")
    for title in ("from", *(f"{times}x" for times in TIMES), "slope"):
        table.add_column(title, justify="right")
    is_even = True
    for row in rows:
        counts = [row.first * times for times in TIMES]
        seconds = [measured(row, n) for n in counts]
        found = slope(counts, seconds)
        is_even &= found <= STEEP
        marked = f"{found:.2f}" if found <= STEEP else f"[red]{found:.2f}"
        table.add_row(escape(row.name), str(row.first), *map(spell, seconds), marked)
    return table, is_even


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows whose names hold it")
    names = parser.parse_args().names
    if phalanx.device_count() < DEVICES:  # so many are there from the start of a process alone
        command = [sys.executable, "-m", "benchmarks.growth", *names]
        root = Path(__file__).parents[1]
        return subprocess.run(
            command, env=environment(DEVICES, 1), cwd=root, check=False
        ).returncode
    table, is_even = grown([r for r in ROWS if not names or any(n in r.name for n in names)])
    Console().print(table)
    return 0 if is_even else 1


if __name__ == "__main__":
    sys.exit(main())
