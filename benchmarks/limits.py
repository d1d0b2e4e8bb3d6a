"""`python -m benchmarks.limits [--seconds S] [--width N]`: training steps in lanes beside a limit.

The limit is the same arithmetic as one plain `jit` of the whole batch. Eight lanes have weights of
their own or share them, and run on one device, on two parts of the CPU, or with JAX on eight. All
ways run in one process, by turns, on arrays that are in place. Then comes how long tracing and
lowering take of the ways that have the same names.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import transformer
from benchmarks.case import DEVICES
from benchmarks.plot import spell

LANES = DEVICES
OWN, SHARED = (0, 0, 0), (None, 0, 0)  # what lanes have of weights, tokens and targets
Calls = dict[str, Callable[[], Any]]


def batch_of(lanes: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    shape = (LANES, 1, transformer.LENGTH + 1) if lanes else (LANES, transformer.LENGTH + 1)
    text = rng.integers(0, transformer.VOCABULARY, shape, np.int32)
    return text[..., :-1], text[..., 1:]


def weights(api: Any, width: int, ways: tuple | None) -> Any:
    params = transformer.init(np, width=width)
    if ways == OWN:
        params = api.tree.map(lambda p: np.broadcast_to(p, (LANES, *p.shape)), params)
    return params


def step_of(api: Any, how: str, ways: tuple | None, devices: int = 1) -> Callable:
    """A new step: "plain", or "vmap" or "pmap" of eight lanes."""
    if ways is None:
        return transformer.mesh_step(api, partial(transformer.loss, api))
    lanes = {"axis_name": "batch", "in_axes": ways, "out_axes": 0 if ways == OWN else None}
    step = transformer.training_step(api)
    if how == "vmap":
        return api.jit(api.vmap(step, **lanes))
    return api.pmap(step, devices=api.devices()[:devices], **lanes)


def arguments(api: Any, step: Callable, width: int, ways: tuple | None) -> tuple:
    """What a call of `step` takes, in place: the weights are those that a step returned."""
    batch = api.device_put(batch_of(lanes=ways is not None))
    params, _ = step(weights(api, width, ways), *batch)
    return params, *batch


def steps(ours: Any, peer: Any, width: int) -> Calls:
    """All ways of a step of so wide a transformer."""
    ways: dict[str, tuple[Any, str, tuple | None, int]] = {
        "plain, JAX": (peer, "plain", None, 1),
        "plain": (ours, "plain", None, 1),
        "weights of their own: jit(vmap), JAX": (peer, "vmap", OWN, 1),
        "weights of their own: pmap on 8 devices, JAX": (peer, "pmap", OWN, LANES),
        "weights of their own: jit(vmap)": (ours, "vmap", OWN, 1),
        "weights of their own: pmap on 1 device": (ours, "pmap", OWN, 1),
        "weights of their own: pmap on 2 devices": (ours, "pmap", OWN, 2),
        "shared weights: jit(vmap), JAX": (peer, "vmap", SHARED, 1),
        "shared weights: jit(vmap)": (ours, "vmap", SHARED, 1),
        "shared weights: pmap on 1 device": (ours, "pmap", SHARED, 1),
        "shared weights: pmap on 2 devices": (ours, "pmap", SHARED, 2),
    }

    def calling(api: Any, how: str, lanes: tuple | None, devices: int) -> Callable[[], Any]:
        step = step_of(api, how, lanes, devices)
        values = arguments(api, step, width, lanes)
        return lambda: api.block_until_ready(step(*values))

    return {name: calling(*way) for name, way in ways.items()}


def lowerings(ours: Any, peer: Any, width: int) -> Calls:
    """Tracing and lowering a step that nobody has traced."""
    ways: dict[str, tuple[Any, str, int]] = {
        "pmap on 8 devices, JAX": (peer, "pmap", LANES),
        "jit(vmap), JAX": (peer, "vmap", 1),
        "pmap on 8 devices": (ours, "pmap", LANES),
        "pmap on 1 device": (ours, "pmap", 1),
        "jit(vmap)": (ours, "vmap", 1),
    }
    params, batch = weights(ours, width, OWN), batch_of(lanes=True)

    def lowering(api: Any, how: str, devices: int) -> Callable[[], Any]:
        return lambda: step_of(api, how, OWN, devices).lower(params, *batch)

    return {f"tracing and lowering: {name}": lowering(*way) for name, way in ways.items()}


def by_turns(calls: Calls, seconds: float) -> None:
    """Print the shortest and the median time of each, and both beside the first one's."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end or min(map(len, times.values())) < 3:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    first = next(iter(times.values()))
    for name, taken in times.items():
        least, middle = min(taken), statistics.median(taken)
        ratios = least / min(first), middle / statistics.median(first)
        print(
            f"  {name:46} {spell(least):>9} {spell(middle):>9}   {ratios[0]:.2f} {ratios[1]:.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits")
    parser.add_argument("--seconds", type=float, default=4, help="how long each way is measured")
    parser.add_argument("--width", type=int, action="append", help="widths of the transformer")
    options = parser.parse_args()
    for variable in ("PHALANX_NUM_CPU_DEVICES", "JAX_NUM_CPU_DEVICES"):
        os.environ.setdefault(variable, str(DEVICES))
    os.environ.setdefault("PHALANX_CACHE_DIR", "")
    ours, peer = map(importlib.import_module, ("phalanx", "jax"))
    for width in options.width or (64, 256):
        print(f"width {width}: the shortest and the median time, and ratios to the first row")
        by_turns(steps(ours, peer, width), options.seconds)
        by_turns(lowerings(ours, peer, width), options.seconds / 4)


if __name__ == "__main__":
    main()
