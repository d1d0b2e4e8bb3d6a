"""How the operands of a kernel are cut into blocks, and where scratch lies."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.kinds import is_sequence
from phalanx.base.source import user_location
from phalanx.core.types import ArrayType, typeof
from phalanx.numpy.slices import Slice

__all__ = [
    "ANY", "HOST", "BlockSpec", "Blocked", "Buffered", "CompilerParams", "CostEstimate", "Element",
    "GridSpec", "MemoryRef", "MemorySpace", "Slice", "Squeezed", "ds", "dslice", "no_block_spec",
    "squeezed",
]  # fmt: skip


class MemorySpace(enum.Enum):
    """Where something lies. It is a wish: the compiler decides."""

    ANY = "any"
    HOST = "host"
    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        """Memory of this kind, for an array."""
        return MemoryRef(ArrayType(tuple(shape), np.dtype(dtype)), self)


ANY: Final = MemorySpace.ANY
HOST: Final = MemorySpace.HOST


class MemoryRef(Struct, frozen=True):
    """Memory for an array of the type ``inner_aval``."""

    inner_aval: ArrayType
    memory_space: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        return self.inner_aval.dtype


class Blocked(Struct, frozen=True):
    """A dimension cut into blocks, of which the index counts."""

    block_size: int


class Element(Struct, frozen=True):
    """A dimension of which a block begins at the element that the index tells.

    ``padding`` elements are put before the array and after it.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


class Squeezed(Struct, frozen=True):
    """A dimension of which a kernel sees one element, without the dimension."""


squeezed: Final = Squeezed()


class Buffered(Struct, frozen=True):
    """How many blocks are fetched ahead: of a loop there is none."""

    buffer_count: Any
    use_lookahead: bool = False
    revisit: Any = None
    prefetched_count: int = 0


class CostEstimate(Struct, frozen=True):
    """What a kernel is said to cost, for schedulers."""

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0


class CompilerParams(SimpleNamespace):
    """What the compiler of a kernel is told; of a loop there is nothing to tell."""

    BACKEND: ClassVar = "any"


class BlockSpec:
    """How an operand is cut: the block of which lengths a kernel gets, and which one.

    ``index_map`` takes the numbers of the program along the grid. Without ``block_shape`` a kernel
    gets all.
    """

    def __init__(
        self,
        block_shape: Sequence[Any] | None = None,
        index_map: Callable[..., Any] | None = None,
        pipeline_mode: Any = None,
        *,
        memory_space: Any = None,
    ) -> None:
        if not (block_shape is None or is_sequence(block_shape)):
            raise TypeError(
                f"BlockSpec: a block shape is a tuple with a length for each dimension, got "
                f"{block_shape!r} at {user_location()}"
            )
        self.block_shape = None if block_shape is None else tuple(block_shape)
        self.index_map = index_map
        self.pipeline_mode = pipeline_mode
        self.memory_space = memory_space

    def __repr__(self) -> str:
        return f"BlockSpec({self.block_shape}, {getattr(self.index_map, '__name__', None)})"

    def replace(self, **changes: Any) -> BlockSpec:
        """A copy with other attributes."""
        return BlockSpec(**(vars(self) | changes))


no_block_spec: Final = BlockSpec()


class GridSpec:
    """The grid of a kernel, and how operands are cut along it."""

    num_scalar_prefetch: int = 0

    def __init__(
        self,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ) -> None:
        sizes = grid if is_sequence(grid) else (grid,)
        self.grid = tuple([size[1] if is_sequence(size) else size for size in sizes])  # named
        if not all(map(is_integer, self.grid)):
            raise ValueError(
                f"pallas_call: a grid is a tuple of integers, got {grid!r} at {user_location()}"
            )
        self.in_specs = in_specs
        self.out_specs = out_specs
        self.scratch_shapes = scratch_shapes


def is_integer(x: Any) -> bool:
    """Whether it is an integer, or an array or a traced value that is one."""
    return not typeof(x).shape and dtypes.is_integer(typeof(x).dtype)


def ds(start: Any, size: Any = None, stride: int | None = None) -> slice | Slice:
    """``size`` positions from ``start``; all for ``None``, the first ``start`` without a size."""
    if start is None:
        return slice(None, size, stride)
    if size is None:
        start, size = 0, start
    try:
        length = operator.index(size)
    except TypeError:
        raise TypeError(
            f"pl.ds: the size of a slice is a Python integer, got {size!r} at {user_location()}; "
            "take the longest one and mask what is beyond"
        ) from None
    return Slice(start, length, stride or 1)


dslice = ds
