"""`python -m benchmarks.lanes [--most N] [--plot FILE] [--json FILE] [--devices N]`.

The time of a `pmap` call on one device, from one lane to many, beside `jit(vmap)` of the same
function. Two functions: a small one, whose call is nearly all launch, and the mean gradient of a
perceptron with two layers, whose call is nearly all work. And the second one again with the same
work dealt out to more and more lanes: what is left to see there is the price of a lane.

With `--devices N` the CPU is divided into N devices, and what is timed are eight lanes on one of
them, on two, and so on.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
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
import phalanx.numpy as jnp
from benchmarks.plot import spell
from phalanx import lax

SIZES = (32, 64, 10)
ROWS = 32  # of the data of each lane
TOTAL = 1024 * ROWS  # of those of all lanes together, where the work is the same
LANES = 8  # where the devices are many
ROUNDS, ROUND = 40, 0.005  # how often and how long, in seconds, a call is repeated

Times = dict[str, dict[int, float]]  # what is called -> lanes, or devices -> seconds a call


def small(x: Any) -> Any:
    """A few operations on eight numbers."""
    return jnp.sin(x) * x - lax.pmean(x, "lanes")


def loss(params: Any, images: Any, labels: Any) -> Any:
    (v, w) = params
    scores = jnp.tanh(images @ v) @ w
    return jnp.mean((scores - labels) ** 2)


def gradient(params: Any, images: Any, labels: Any) -> Any:
    """The mean over the lanes of the gradients of a perceptron with two layers."""
    return lax.pmean(phalanx.grad(loss)(params, images, labels), "lanes")


def numbers(*shape: int) -> Any:
    values = np.random.default_rng(len(shape)).normal(size=shape)
    return phalanx.device_put(values.astype(np.float32))


def parameters() -> tuple:
    return tuple(numbers(m, n) * m**-0.5 for m, n in itertools.pairwise(SIZES))


def rows_of(lanes: int, rows: int) -> tuple:
    return numbers(lanes, rows, SIZES[0]), numbers(lanes, rows, SIZES[-1])


def calls(lanes: int) -> dict[str, Callable[[], Any]]:
    """What is timed, with ``lanes`` lanes."""
    one = phalanx.devices()[:1]
    shared = {"in_axes": (None, 0, 0), "out_axes": None}

    def mapped(f: Callable, **axes: Any) -> Callable:
        return phalanx.pmap(f, "lanes", devices=one, **axes)

    def vectorized(f: Callable, **axes: Any) -> Callable:
        return phalanx.jit(phalanx.vmap(f, axis_name="lanes", **axes))

    x, params = numbers(lanes, 8), parameters()
    each, dealt = rows_of(lanes, ROWS), rows_of(lanes, TOTAL // lanes)
    timed = {}
    for name, transform in (("pmap", mapped), ("jit(vmap)", vectorized)):
        f, g = transform(small), transform(gradient, **shared)
        timed[f"small, {name}"] = lambda f=f: f(x)
        timed[f"gradient, {name}"] = lambda g=g: g(params, *each)
        timed[f"same work, {name}"] = lambda g=g: g(params, *dealt)
    return timed


def calls_on(count: int) -> dict[str, Callable[[], Any]]:
    """What is timed with ``LANES`` lanes on ``count`` devices; the arguments are there already."""
    devices = phalanx.devices()[:count]
    f = phalanx.pmap(small, "lanes", devices=devices)
    g = phalanx.pmap(gradient, "lanes", in_axes=(None, 0, 0), out_axes=None, devices=devices)
    place = phalanx.pmap(lambda *xs: xs, devices=devices)
    share = phalanx.pmap(lambda xs: xs, in_axes=None, out_axes=None, axis_size=LANES,
                         devices=devices)  # fmt: skip
    (x,), params = place(numbers(LANES, 8)), share(parameters())
    calls = {"a few operations": lambda: f(x)}
    for rows in (ROWS, 16 * ROWS):
        data = place(*rows_of(LANES, rows))
        calls[f"gradient, {rows} rows a lane"] = lambda data=data: g(params, *data)
    return calls


def measure(cases: dict[int, dict[str, Callable[[], Any]]]) -> Times:
    """The smallest time of a call in several rounds.

    All cases are called in every round, so that what else the machine does falls on all of them.
    """
    counts = {(n, name): _warm(call) for n, calls in cases.items() for name, call in calls.items()}
    times: Times = {name: {} for name in next(iter(cases.values()))}
    for _ in range(ROUNDS):
        for number, name in counts:
            taken = _round(cases[number][name], counts[number, name])
            times[name][number] = min(taken, times[name].get(number, taken))
    return times


def _warm(call: Callable) -> int:
    """Compiles, and finds out how many calls fill a round."""
    phalanx.block_until_ready(call())
    return max(1, round(ROUND / max(_round(call, 3), 1e-6)))


def _round(call: Callable, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        result = call()
    phalanx.block_until_ready(result)
    return (time.perf_counter() - start) / count


def table(times: Times, title: str, what: str) -> Table:
    """Times of one function: a call and a lane of it, and the ratio of the two ways."""
    mapped, vectorized = (times[f"{what}, {name}"] for name in ("pmap", "jit(vmap)"))
    result = Table(title=title)
    for head in ("lanes", "pmap", "jit(vmap)", "ratio", "pmap, a lane"):
        result.add_column(head, justify="right")
    for lanes, taken in mapped.items():
        result.add_row(
            str(lanes),
            spell(taken),
            spell(vectorized[lanes]),
            f"{taken / vectorized[lanes]:.2f}",
            spell(taken / lanes),
        )
    return result


def table_of_devices(times: Times) -> Table:
    """Times of a call of ``LANES`` lanes, over the number of devices that share them."""
    result = Table(title=f"{LANES} lanes, {os.cpu_count()} cores")
    for head in ("devices", *times):
        result.add_column(head, justify="right")
    for count in next(iter(times.values())):
        result.add_row(str(count), *(spell(taken[count]) for taken in times.values()))
    return result


TITLES = {
    "small": "a few operations on 8 numbers",
    "gradient": f"gradient, {ROWS} rows a lane",
    "same work": f"gradient, {TOTAL} rows in all",
}


def plot(times: Times, file: Path) -> None:
    """Time of a call over the number of lanes."""
    figure = importlib.import_module("matplotlib.figure").Figure((9, 3.2), layout="constrained")
    for axes, (what, title) in zip(figure.subplots(1, 3), TITLES.items(), strict=True):
        for name, style in (("jit(vmap)", {"lw": 4, "alpha": 0.4}), ("pmap", {"marker": "."})):
            taken = times[f"{what}, {name}"]
            axes.loglog(list(taken), [1e3 * t for t in taken.values()], label=name, **style)
        axes.set(title=title, xlabel="lanes on one device", ylim=_limits(times, what))
        axes.set_xticks([1, 8, 64, 512], ["1", "8", "64", "512"], minor=False)
        axes.set_xticks([], minor=True)
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("milliseconds a call")
    figure.axes[0].legend()
    figure.savefig(file, dpi=100)


def _limits(times: Times, what: str) -> tuple[float, float]:
    """Three decades, the same scale for all, around what was measured."""
    taken = [
        1e3 * t for name, each in times.items() if name.startswith(what) for t in each.values()
    ]
    middle = float(np.sqrt(min(taken) * max(taken)))
    return middle / 10**1.6, middle * 10**1.6


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lanes", description=__doc__)
    parser.add_argument("--most", type=int, default=1024, metavar="N", help="lanes (default: 1024)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the times there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the times there")
    parser.add_argument("--devices", type=int, metavar="N", help=f"deal {LANES} lanes out to 1..N")
    arguments = parser.parse_args()
    if arguments.plot and arguments.devices:
        parser.error("--plot draws lanes on one device; leave --devices out")
    console = Console()
    if arguments.devices:
        phalanx.config.update("num_cpu_devices", arguments.devices)
        times = measure({count: calls_on(count) for count in _doubling(arguments.devices)})
        console.print(table_of_devices(times))
    else:
        times = measure({lanes: calls(lanes) for lanes in _doubling(arguments.most)})
        console.print(f"one {phalanx.default_backend()} device, {os.cpu_count()} cores")
        for what, title in TITLES.items():
            console.print(table(times, title, what))
    if arguments.json:
        arguments.json.write_text(json.dumps(times, indent=1))
    if arguments.plot:
        plot(times, arguments.plot)
    return 0


def _doubling(most: int) -> list[int]:
    """1, 2, 4 and so on up to ``most``."""
    return [2**i for i in range(most.bit_length())]


if __name__ == "__main__":
    sys.exit(main())
