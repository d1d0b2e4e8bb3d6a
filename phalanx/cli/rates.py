"""What processes on this computer compute, read, write and exchange in a second.

``phalanx measure`` starts so many of them, and reads what the first one prints.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import phalanx
import phalanx.numpy as jnp

SIDE = 1024  # of the matrices that are multiplied
ELEMENTS = 1 << 22  # that an operation of elements reads, and writes
SIZES = (4, 1 << 24)  # bytes that are exchanged: few, for the latency, and many
RUNS = 10_000  # of a small operation, one after the other
ROUNDS, SECONDS = 20, 0.05  # the best round counts, as others run on this computer, too


def measured() -> dict[str, Any]:
    """What one process takes alone, or several of them for what they exchange."""
    phalanx.distributed.initialize()
    if phalanx.process_count() > 1:
        exchanges = {str(size): _exchange(size) for size in SIZES}
        return {"exchanges": exchanges, "products": _products("float32"), "bandwidth": _bandwidth()}
    products = {name: _products(name) for name in ("bfloat16", "float32", "float64")}
    return {"products": products, "bandwidth": _bandwidth(), "launch": _launch()}


def _summed(x: Any) -> Any:
    return phalanx.lax.psum(x, "all")


def _itself(x: Any) -> Any:
    return x


def _squared(x: Any) -> Any:
    return x @ x


def _scaled(x: Any) -> Any:
    return 2 * x + 1


def _exchange(size: int) -> float:
    """Seconds for the sum over all processes of ``size`` bytes of each."""
    return _seconds(_sum_of(size))


def _sum_of(size: int) -> Callable[[], Any]:
    total = phalanx.pmap(_summed, "all", out_axes=None)
    x = np.ones((phalanx.local_device_count(), size // 4), np.float32)
    lanes = phalanx.pmap(_itself)(x)
    return lambda: total(lanes)


def _products(dtype: str) -> float:
    """Operations a second of products, of all processes."""
    with phalanx.enable_x64(dtype == "float64"):
        x = jnp.ones((SIDE, SIDE), dtype)
        multiply = phalanx.jit(_squared)
        return 2 * SIDE**3 * phalanx.process_count() / _seconds_of_all(lambda: multiply(x))


def _bandwidth() -> float:
    """Bytes a second that operations of elements read and write, of all processes."""
    x = jnp.ones(ELEMENTS, jnp.float32)
    scaled = phalanx.jit(_scaled)
    return 2 * x.nbytes * phalanx.process_count() / _seconds_of_all(lambda: scaled(x))


def _launch() -> float:
    """Seconds of an operation of few elements, one of many in a program."""

    def many(x: Any) -> Any:
        return phalanx.lax.fori_loop(0, RUNS, lambda _, x: jnp.cumsum(x), x)

    x, run = jnp.ones(8, jnp.float32), phalanx.jit(many)
    return _seconds(lambda: run(x)) / RUNS


def _seconds(call: Callable[[], Any]) -> float:
    """Seconds of a call, in the best of some rounds; all processes make as many calls."""
    phalanx.block_until_ready(call())
    calls = 1
    if phalanx.process_count() == 1:
        calls = max(1, round(SECONDS / _round(call, 1)))
    return min(_round(call, calls) for _ in range(ROUNDS))


def _seconds_of_all(call: Callable[[], Any]) -> float:
    """Seconds of a call that all processes make at the same time, until the last is done."""
    if phalanx.process_count() == 1:
        return _seconds(call)
    meet, calls = _sum_of(SIZES[0]), 4

    def everybody() -> Any:
        phalanx.block_until_ready([call() for _ in range(calls)])
        return meet()

    return (_seconds(everybody) - _seconds(meet)) / calls


def _round(call: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        phalanx.block_until_ready(call())
    return (time.perf_counter() - start) / calls


if __name__ == "__main__":
    found = measured()
    if phalanx.process_index() == 0:
        print(json.dumps(found))
