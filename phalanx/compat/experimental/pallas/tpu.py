"""``jax.experimental.pallas.tpu``: what kernels for TPUs say and call."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Generator, Sequence
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from msgspec import Struct

from phalanx import lax
from phalanx import numpy as jnp
from phalanx.api.devices import devices
from phalanx.base.kinds import is_sequence
from phalanx.base.source import user_location
from phalanx.compat.experimental.pallas.blocks import operands_of
from phalanx.compat.experimental.pallas.call import over_grid
from phalanx.compat.experimental.pallas.specs import (
    CompilerParams,
    GridSpec,
    MemorySpace,
    no_block_spec,
)
from phalanx.compat.experimental.pallas.within import reciprocal
from phalanx.core.refs import Ref
from phalanx.numpy.refs import new_ref

__all__ = [
    "ARBITRARY", "CMEM", "CORE_PARALLEL", "HBM", "PARALLEL", "SEMAPHORE", "SMEM",
    "SUBCORE_PARALLEL", "VMEM", "VMEM_SHARED", "CompilerParams", "GridDimensionSemantics",
    "InterpretParams", "MemorySpace", "PrefetchScalarGridSpec", "SemaphoreType", "annotate",
    "async_copy", "bitcast", "emit_pipeline", "force_tpu_interpret_mode", "is_tpu_device", "load",
    "make_async_copy", "reciprocal", "reset_tpu_interpret_mode_state", "roll",
    "set_tpu_interpret_mode", "store", "sync_copy", "with_memory_space_constraint",
]  # fmt: skip

VMEM: Final = MemorySpace.VMEM
VMEM_SHARED: Final = MemorySpace.VMEM_SHARED
SMEM: Final = MemorySpace.SMEM
CMEM: Final = MemorySpace.CMEM
HBM: Final = MemorySpace.HBM
SEMAPHORE: Final = MemorySpace.SEMAPHORE


class GridDimensionSemantics(enum.Enum):
    """Whether programs along an axis could run at once; here they run in turn."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL: Final = GridDimensionSemantics.PARALLEL
CORE_PARALLEL: Final = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL: Final = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY: Final = GridDimensionSemantics.ARBITRARY


class PrefetchScalarGridSpec(GridSpec):
    """A grid whose index maps, and then the kernel, also get references to the first operands."""

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


class InterpretParams(SimpleNamespace):
    """How kernels for TPUs are interpreted, which makes no difference here."""


@contextlib.contextmanager
def force_tpu_interpret_mode(params: Any = None) -> Generator[None]:
    """Kernels run as ever: they are always loops."""
    yield


def set_tpu_interpret_mode(params: Any = None) -> None:
    """Nothing: kernels are always loops."""


def reset_tpu_interpret_mode_state() -> None:
    """Nothing: there is no state."""


def is_tpu_device() -> bool:
    """Whether arrays lie on a TPU."""
    return devices()[0].platform == "tpu"


# ---- copies and semaphores ----------------------------------------------------------------------


class _Semaphores(Struct, frozen=True):
    """Memory for semaphores."""

    shape: tuple[int, ...] = ()

    def allocate(self) -> Ref:
        return new_ref(jnp.zeros(self.shape, np.int32))


class SemaphoreType(enum.Enum):
    """Kinds of semaphores. As scratch each is one semaphore, called with a shape it is several."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int]) -> _Semaphores:
        return _Semaphores(tuple(shape))

    def allocate(self) -> Ref:
        return _Semaphores().allocate()


class _Copy(Struct, frozen=True):
    """A copy, which is made when it is started."""

    source: Any
    to: Any

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        if add:
            self.to[...] += self.source[...]
        else:
            self.to[...] = self.source[...]

    def wait(self) -> None:
        """Nothing: it was made."""

    wait_send = wait_recv = wait


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any = None, *, src_sem: Any = None) -> _Copy:
    """A copy between references, which ``start`` makes."""
    return _Copy(src_ref, dst_ref)


def async_copy(
    src_ref: Any, dst_ref: Any, sem: Any = None, *, add: bool = False, **_: Any
) -> _Copy:
    """A copy between references, which is started."""
    copy = _Copy(src_ref, dst_ref)
    copy.start(add=add)
    return copy


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copy what a reference holds to another."""
    async_copy(src_ref, dst_ref, add=add)


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: Any,
    in_specs: Any = (),
    out_specs: Any = (),
    **_: Any,
) -> Callable[..., None]:
    """A function of references that runs ``body`` on their blocks for every point of ``grid``."""
    ins, outs = _listed(in_specs), _listed(out_specs)
    sizes = GridSpec(grid).grid

    def run(*refs: Any, scratches: Sequence[Any] = (), **more: Any) -> None:
        if more or len(refs) != len(ins) + len(outs):
            raise TypeError(
                f"emit_pipeline: {len(ins)} references to operands and {len(outs)} to results are "
                f"needed, got {len(refs)} and {[*more]}, at {user_location()}"
            )
        operands = [
            operands_of(ref if isinstance(ref, Ref) else ref[...], {f"reference {i}": spec})[0]
            for i, (ref, spec) in enumerate(zip(refs, [*ins, *outs], strict=True))
        ]
        over_grid(lambda *blocks: body(*blocks, *scratches), sizes, operands, stands=False)
        for ref, operand in zip(refs[len(ins) :], operands[len(ins) :], strict=True):
            if operand.memory.ref is not ref:
                ref[...] = operand.result()

    return run


def _listed(specs: Any) -> list[Any]:
    return [*specs] if is_sequence(specs) else [specs]


# ---- values -------------------------------------------------------------------------------------


def load(ref: Any, *, mask: Any = None) -> Any:
    """What a reference holds; where ``mask`` is False, zeros."""
    held = ref[...]
    return held if mask is None else jnp.where(mask, held, jnp.zeros_like(held))


def store(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Let a reference hold ``val``, where ``mask`` is True."""
    ref[...] = val if mask is None else jnp.where(mask, val, ref[...])


def roll(
    x: Any, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None
) -> Any:
    """``x``, rolled along ``axis``: by ``stride`` more with each step along ``stride_axis``."""
    if stride is None or stride_axis is None:
        return jnp.roll(x, shift, axis)
    along = lax.broadcasted_iota(np.int32, x.shape, axis)
    by = shift + stride * lax.broadcasted_iota(np.int32, x.shape, stride_axis)
    return jnp.take_along_axis(x, (along - by) % x.shape[axis], axis)


def bitcast(x: Any, ty: Any, dim: int = -2) -> Any:
    """The bits of ``x`` as another dtype, narrower ones side by side along ``dim``."""
    dim %= x.ndim
    old, new = x.dtype.itemsize, np.dtype(ty).itemsize
    if old < new:
        count = new // old
        parts = x.reshape(*x.shape[:dim], x.shape[dim] // count, count, *x.shape[dim + 1 :])
        return lax.bitcast_convert_type(jnp.moveaxis(parts, dim + 1, -1), ty)
    cast = lax.bitcast_convert_type(x, ty)
    if old == new:
        return cast
    return jnp.moveaxis(cast, -1, dim + 1).reshape(*x.shape[:dim], -1, *x.shape[dim + 1 :])


def with_memory_space_constraint(x: Any, memory_space: Any) -> Any:
    """``x``: where it lies is up to the compiler."""
    return x


def annotate(ref: Any, **_: bool) -> Any:
    """``ref``, of which something is promised."""
    return ref
