"""What kernels call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from phalanx import lax
from phalanx import numpy as jnp
from phalanx.api.debug import print as debug_print
from phalanx.base.source import user_location
from phalanx.core.trace import is_known

__all__ = [
    "align_to", "broadcast_to", "cdiv", "debug_print", "delay", "empty", "empty_like", "loop",
    "multiple_of", "next_power_of_2", "reciprocal", "semaphore_read", "semaphore_signal",
    "semaphore_wait", "strides_from_shape", "when",
]  # fmt: skip


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """A decorator that runs the function if ``condition`` holds."""

    def run(f: Callable[[], None]) -> None:
        if is_known(condition):
            if condition:
                f()
        else:
            lax.cond(condition, f, lambda: None)

    return run


def loop(
    lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: Any = None
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that runs the function for numbers from ``lower`` up to ``upper``.

    Given ``init_carry``, it takes and returns a carry besides.
    """

    def run(body: Callable[..., Any]) -> Any:
        def at(i: Any, carry: Any) -> Any:
            number = lower + i * step
            return body(number) if init_carry is None else body(number, carry)

        return lax.fori_loop(0, cdiv(upper - lower, step), at, init_carry, unroll=unroll)

    return run


def cdiv(a: Any, b: Any) -> Any:
    """``a / b``, rounded up."""
    return a // b + (a % b != 0)


def align_to(a: Any, alignment: Any) -> Any:
    """The least multiple of ``alignment`` that is not below ``a``."""
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of two that is not below ``x``."""
    if x < 0:
        raise ValueError(f"next_power_of_2: a number that is not negative is needed, got {x}")
    return 1 << max(x - 1, 0).bit_length()


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """How far apart, in elements, neighbours of each dimension lie."""
    return tuple([math.prod(shape[i + 1 :]) for i in range(len(shape))])


def broadcast_to(a: Any, shape: Sequence[int]) -> Any:
    """``a`` as an array of this shape."""
    return jnp.broadcast_to(a, shape)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array of which nobody says what it holds."""
    return jnp.empty(shape, dtype, out_sharding=out_sharding)


def empty_like(x: Any) -> Any:
    """Such an array like ``x``."""
    return jnp.empty_like(x)


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """``x``, which is promised to be a multiple."""
    return x


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Any:
    """``1 / x``."""
    return 1 / x


def delay(nanos: Any) -> None:
    """Nothing: programs run one after the other, and nobody waits."""


def semaphore_signal(sem_or_view: Any, inc: Any = 1, *, device_id: Any = None, **_: Any) -> None:
    """Add to a semaphore of this device."""
    if device_id is not None:
        raise NotImplementedError(
            f"pl.semaphore_signal: device_id={device_id!r} is given at {user_location()}; only "
            "semaphores of the same device are offered"
        )
    sem_or_view[...] += inc


def semaphore_wait(sem_or_view: Any, value: Any = 1, *, decrement: bool = True) -> None:
    """Take from a semaphore: in programs that run in order, what it waits for was done."""
    if decrement:
        sem_or_view[...] -= value


def semaphore_read(sem_or_view: Any) -> Any:
    """What a semaphore has."""
    return sem_or_view[...]
