"""One process: `python -m benchmarks.worker LIBRARY SECONDS CASE...` prints a JSON line a case.

A line is `[name, [seconds of a call, ...]]`. The import of the library is timed first, before
anything else brings NumPy in.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.case import CASES, Case

# when the process was started, if whoever started it says so
STARTED = float(os.environ.get("BENCHMARK_STARTED", time.time()))
IMPORT = "import"
ROUNDS = 7


def load(library: str) -> tuple[Any, float]:
    """The module with the submodules that the cases use, and how long its import took."""
    start = time.perf_counter()
    api = importlib.import_module(library)
    for part in ("numpy", "lax", "nn", "random", "tree", "image", "scipy.special"):
        importlib.import_module(f"{library}.{part}")
    return api, time.perf_counter() - start


def measure(case: Case, np: Any, api: Any, seconds: float) -> list[float]:
    """Seconds of one call, several times over."""
    wait = api.block_until_ready
    made = case.make(np, api)
    if case.kind == "second":
        wait(made())
        return [time.time() - STARTED]
    if case.kind == "once":
        start = time.perf_counter()
        wait(made())
        return [time.perf_counter() - start]
    if case.kind == "fresh":
        return measure_fresh(*made, wait, seconds)
    wait(made())

    def repeat(times: int) -> float:
        start = time.perf_counter()
        result = None
        for _ in range(times):
            result = wait(made()) if case.kind == "waits" else made()
        wait(result)
        return (time.perf_counter() - start) / times

    times, estimate = 1, repeat(1)
    while estimate * times < seconds / ROUNDS / 4:
        times *= 4
        estimate = repeat(times)
    times = max(1, int(seconds / ROUNDS / estimate))
    return [repeat(times) for _ in range(ROUNDS)]


def measure_fresh(make: Callable, run: Callable, wait: Callable, seconds: float) -> list[float]:
    """The same where every call needs an argument of its own, made outside the timing."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    run(wait(make()))
    while len(taken) < 3 or time.perf_counter() < end:
        argument = wait(make())
        start = time.perf_counter()
        run(argument)
        taken.append(time.perf_counter() - start)
    return taken


def main(library: str, seconds: str, *names: str) -> None:
    api, import_time = load(library)
    np = importlib.import_module("numpy")
    print(json.dumps([IMPORT, [import_time]]), flush=True)
    for case in CASES:
        if case.name in names:
            taken = measure(case, np, api, float(seconds))
            print(json.dumps([case.name, taken]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
