"""``jax.experimental.pallas.triton``: what kernels for GPUs call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phalanx import lax
from phalanx import numpy as jnp
from phalanx.api.devices import devices
from phalanx.compat.experimental.pallas.specs import CompilerParams
from phalanx.compat.experimental.pallas.tpu import store as _store

__all__ = [
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max",
    "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot",
    "is_gpu_device", "load", "max_contiguous", "store",
]  # fmt: skip


def load(ref: Any, *, mask: Any = None, other: Any = None, **_: Any) -> Any:
    """What a reference holds; where ``mask`` is False, ``other``, or zeros."""
    held = ref[...]
    if mask is None:
        return held
    return jnp.where(mask, held, jnp.asarray(0 if other is None else other, held.dtype))


def store(ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Let a reference hold ``val``, where ``mask`` is True."""
    _store(ref, val, mask=mask)


def dot(
    a: Any,
    b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Any:
    """The product of two matrices, summed in float32; of integers in int32."""
    a, b = (a.T if trans_a else a), (b.T if trans_b else b)
    summed = jnp.int32 if jnp.issubdtype(a.dtype, jnp.integer) else jnp.float32
    return jnp.dot(a, b, precision=precision, preferred_element_type=summed)


def _atomic(of: Callable[[Any, Any], Any], name: str) -> Callable[..., Any]:
    """Programs run in turn, so that nothing comes in between anyway."""

    def atomic(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
        before = x_ref_or_view[idx]
        after = of(before, val)
        x_ref_or_view[idx] = after if mask is None else jnp.where(mask, after, before)
        return before

    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"{name}: write to a part of a reference; what it held before."
    return atomic


atomic_add = _atomic(lambda x, y: x + y, "atomic_add")
atomic_and = _atomic(jnp.bitwise_and, "atomic_and")
atomic_max = _atomic(jnp.maximum, "atomic_max")
atomic_min = _atomic(jnp.minimum, "atomic_min")
atomic_or = _atomic(jnp.bitwise_or, "atomic_or")
atomic_xchg = _atomic(lambda _, y: y, "atomic_xchg")
atomic_xor = _atomic(jnp.bitwise_xor, "atomic_xor")


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Any:
    """Let a reference hold ``val`` if it holds ``cmp``; what it held before."""
    before = ref[...]
    ref[...] = jnp.where(before == cmp, val, before)
    return before


def approx_tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return lax.tanh(x)


def debug_barrier() -> None:
    """Nothing: programs run in turn."""


def max_contiguous(x: Any, values: Any) -> Any:
    """``x``, of which something is promised."""
    return x


def is_gpu_device() -> bool:
    """Whether arrays lie on a GPU."""
    return devices()[0].platform in ("gpu", "cuda", "rocm")
