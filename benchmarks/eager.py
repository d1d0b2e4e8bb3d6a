"""`python -m benchmarks.eager [NAME...]`: what calls of NumPy's functions take outside of `jit`.

Each function that both libraries have is called with ten elements, in one process, by turns; the
smallest time of the thread counts, so that it matters little what else the machine does.
"""

from __future__ import annotations

import importlib
import inspect
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

CALLS, ROUNDS = 50, 20
X = np.linspace(0.1, 0.9, 10, dtype=np.float32)
WHOLE = np.arange(10, dtype=np.int32)
OPERANDS = ((X,), (X, X), (WHOLE,), (WHOLE, WHOLE), (X.reshape(2, 5),), (X, WHOLE), (X, X, X))


def measured(f: Callable, arguments: list[Any]) -> float:
    """Seconds of a call."""
    start = time.thread_time()
    for _ in range(CALLS):
        f(*arguments)
    return (time.thread_time() - start) / CALLS


def by_turns(ours: Callable, theirs: Callable, mine: list[Any], yours: list[Any]) -> list[float]:
    """The smallest seconds of a call, of each library."""
    turns = [(measured(ours, mine), measured(theirs, yours)) for _ in range(ROUNDS)]
    return [min(times) for times in zip(*turns[1:], strict=True)]


def functions(api: Any, peer: Any, names: list[str]) -> Iterator[tuple[str, list[float]]]:
    """The times of each function that gives an array for some of the operands."""
    for name in names or [n for n in dir(peer) if not n.startswith("_")]:
        f, g = getattr(api, name, None), getattr(peer, name)
        if not callable(f) or inspect.isclass(g):
            continue
        for given in OPERANDS:
            mine, yours = ([array(x) for x in given] for array in (api.asarray, peer.asarray))
            try:
                f(*mine)
                out = g(*yours)
            except (TypeError, ValueError, IndexError, NotImplementedError):
                continue
            if isinstance(out, peer.ndarray):
                yield name, by_turns(f, g, mine, yours)
            break


def main() -> None:
    os.environ.setdefault("PHALANX_NUM_CPU_DEVICES", "1")
    warnings.simplefilter("ignore")
    api, peer = (importlib.import_module(f"{library}.numpy") for library in ("phalanx", "jax"))
    ratios = []
    for name, times in functions(api, peer, sys.argv[1:]):
        ours, theirs = (seconds * 1e6 for seconds in times)
        ratios.append(ours / theirs)
        print(f"{name:24} {ours:8.1f} us {theirs:8.1f} us {ratios[-1]:6.2f}", flush=True)
    over = sum(ratio > 1.15 for ratio in ratios)
    print(f"{len(ratios)} functions: median {statistics.median(ratios):.2f}, {over} above 1.15")


if __name__ == "__main__":
    main()
