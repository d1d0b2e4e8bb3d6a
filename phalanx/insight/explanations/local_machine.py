"""The devices of this process as a system: what they compute, read, write and exchange, measured.

It takes a fraction of a second, once in a process. ``phalanx measure`` measures longer, and what
several processes do together.
"""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx.api.devices import device_put
from phalanx.api.jit import jit
from phalanx.api.pmap import pmap
from phalanx.insight.systems import Link, Machine, System, Together
from phalanx.lax import psum

__all__ = ["measured"]

_SIDE = 512  # of the matrices that are multiplied
_ELEMENTS = 1 << 21  # that an operation of elements reads, and writes
_LARGE = 1 << 18  # elements that are exchanged, for the bandwidth; one, for the latency
_ROUNDS = 8  # the best one counts, as others run on this computer, too


@functools.cache
def measured(devices: tuple[Any, ...]) -> Machine:
    """The machine that ``devices`` are, which this process can reach.

    Products of 64-bit numbers are taken to need twice as long as those of 32 bits.
    """
    one, count = devices[0], len(devices)
    products = {name: _products(name, one) for name in ("bfloat16", "float32")}
    bandwidth = _bandwidth(one)
    latency, link = _exchange(devices) if count > 1 else (0.0, bandwidth)
    shared = one.platform == "cpu"
    between = Link(link / (1 if shared else count), latency)
    system = System(
        name="here",
        title=_title(one),
        operations={
            "bf16": products["bfloat16"], "f32": products["float32"],
            "f64": products["float32"] / 2,
        },
        memory=_memory(one), bandwidth=bandwidth, torus=0, chips=count, link=between,
        between=between, sources=("measured here",), shared=shared,
        together=(Together(count, 1.0, 1.0, link, latency),) if shared and count > 1 else (),
    )  # fmt: skip
    return Machine(system, (count,))


def _title(device: Any) -> str:
    cores = os.cpu_count()
    return f"this CPU ({cores} cores)" if device.platform == "cpu" else str(device.device_kind)


def _memory(device: Any) -> float:
    stats: dict[str, int] = {} if device.platform == "cpu" else device.memory_stats() or {}
    here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return float(stats.get("bytes_limit", here))


def _squared(x: Any) -> Any:
    return x @ x


def _scaled(x: Any) -> Any:
    return 2 * x + 1


def _summed(x: Any) -> Any:
    return psum(x, "all")


def _products(dtype: str, device: Any) -> float:
    """Operations a second of a product of matrices."""
    x = device_put(np.ones((_SIDE, _SIDE), np.dtype(dtype)), device)
    return 2 * _SIDE**3 / _seconds(_compiled(_squared, x))


def _bandwidth(device: Any) -> float:
    """Bytes a second that an operation of elements reads and writes."""
    x = device_put(np.ones(_ELEMENTS, np.float32), device)
    return 2 * x.nbytes / _seconds(_compiled(_scaled, x))


def _compiled(f: Callable[..., Any], x: Any) -> Callable[[], Any]:
    """A call of ``f`` that was compiled ahead of time, of which nobody who watches is told."""
    compiled = jit(f).trace(x).lower().compile()
    return lambda: compiled(x)


def _exchange(devices: tuple[Any, ...]) -> tuple[float, float]:
    """Seconds of an all-reduce for each doubling of the devices, and the bytes that all of them
    exchange in a second."""
    count = len(devices)
    small, large = (_seconds(_sum_of(devices, size)) for size in (1, _LARGE))
    moved = 2 * (count - 1) * 4 * _LARGE
    return small / math.log2(count), moved / max(large - small, 1e-6)


def _sum_of(devices: tuple[Any, ...], size: int) -> Callable[[], Any]:
    total = pmap(_summed, "all", devices=devices)
    x = np.ones((len(devices), size), np.float32)
    compiled = total.trace(x).lower().compile()
    lanes = compiled(x)
    return lambda: compiled(lanes)


def _seconds(call: Callable[[], Any]) -> float:
    call().block_until_ready()
    return min([_round(call) for _ in range(_ROUNDS)])


def _round(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call().block_until_ready()
    return time.perf_counter() - start
