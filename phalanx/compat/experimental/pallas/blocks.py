"""Operands of kernels, and their blocks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx import lax
from phalanx import numpy as jnp
from phalanx.base.kinds import is_sequence
from phalanx.base.source import user_location
from phalanx.compat.experimental.pallas.specs import (
    Blocked,
    BlockSpec,
    Element,
    MemorySpace,
    Slice,
    Squeezed,
    is_integer,
)
from phalanx.core.refs import Ref, load
from phalanx.core.types import typeof
from phalanx.numpy.refs import freeze, new_ref


class Dim(Struct, frozen=True):
    """A dimension of an operand: how it is cut, and what is put around it."""

    size: int  # of a block
    step: int  # from what the index counts to elements
    squeezed: bool
    before: int
    after: int


class Memory(Struct, frozen=True):
    """Where operands lie that share it.

    Attributes:
        ref: what they are, and what is put around it, so that all blocks of all are whole.
        around: for each dimension how much is put before and after.
        shared: whether there are several.
    """

    ref: Ref
    around: Sequence[tuple[int, int]]
    shared: bool


class Operand(Struct, frozen=True):
    """An operand of a kernel.

    Attributes:
        memory: where it lies.
        spec: how it is cut.
        dims: of ``spec``; None if it is not cut.
    """

    memory: Memory
    spec: BlockSpec
    dims: Sequence[Dim] | None

    def starts(self, ids: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """Where in memory the block of the program numbered ``ids`` begins."""
        dims = self.dims
        if dims is None or self.spec.index_map is None:
            return self._moved([0] * len(self.memory.around))
        _check_parameters(self.spec.index_map, len(ids), len(scalars))
        index = self.spec.index_map(*ids, *scalars)
        index = index if is_sequence(index) else (index,)
        if len(index) != len(dims):
            raise ValueError(
                f"pallas_call: the index map of {self.spec} must return {len(dims)} values, "
                f"one for each dimension of a block, returned {len(index)}, at {user_location()}"
            )
        counts = [i.start if isinstance(i, Slice) else i for i in index]
        if not all(map(is_integer, counts)):
            raise ValueError(
                f"pallas_call: the index map of {self.spec} must return integers, returned "
                f"{index}, at {user_location()}; divide with // or pl.cdiv"
            )
        return self._moved([count * dim.step for count, dim in zip(counts, dims, strict=True)])

    def _moved(self, starts: Sequence[Any]) -> list[Any]:
        """``starts`` in memory, where others may need more before what they share."""
        own = [dim.before for dim in self.dims or ()] or [0] * len(starts)
        there = [before for before, _ in self.memory.around]
        return [s + (m - o) if m > o else s for s, m, o in zip(starts, there, own, strict=True)]

    @property
    def is_memory(self) -> bool:
        """Whether a kernel gets the memory itself, so that it sees at once what it wrote.

        Where it is told to be slow memory, it does. Otherwise others that share it do not see it
        before the program has ended: on chips it would be a copy in fast memory.
        """
        slow = self.spec.memory_space in (MemorySpace.ANY, MemorySpace.HBM)
        around = any(map(any, self.memory.around))
        return self.dims is None and not around and (slow or not self.memory.shared)

    def block(self, starts: Sequence[Any]) -> Ref:
        """The block that begins at ``starts``, as a kernel sees it."""
        if self.is_memory:
            return self.memory.ref
        block = lax.dynamic_slice(self.memory.ref[...], starts, self._sizes)
        return new_ref(lax.squeeze(block, self._squeezed))

    def keep(self, block: Ref, before: Any, starts: Sequence[Any]) -> None:
        """Put a block back, if it does not hold what it did ``before``."""
        if self.is_memory or load(block) is before:
            return
        ref, whole = self.memory.ref, lax.expand_dims(freeze(block), self._squeezed)
        ref[...] = lax.dynamic_update_slice(ref[...], whole, starts)

    def result(self) -> Any:
        """What it is now, without what was put around it."""
        return _padded(self.memory.ref[...], [(-b, -a, 0) for b, a in self.memory.around])

    @property
    def _sizes(self) -> list[int]:
        if self.dims is not None:
            return [dim.size for dim in self.dims]
        padded = zip(self.memory.ref.shape, self.memory.around, strict=True)
        return [length - before - after for length, (before, after) in padded]

    @property
    def _squeezed(self) -> list[int]:
        return [i for i, dim in enumerate(self.dims or ()) if dim.squeezed]


def _check_parameters(index_map: Callable[..., Any], axes: int, scalars: int) -> None:
    try:
        inspect.signature(index_map).bind(*[None] * (axes + scalars))
    except TypeError as e:
        prefetched = f" and {scalars} prefetched scalars" if scalars else ""
        raise TypeError(
            f"pallas_call: an index map gets the numbers of the program along {axes} axes of the "
            f"grid{prefetched}, and {getattr(index_map, '__name__', index_map)} does not take "
            f"them: {e}; at {user_location()}"
        ) from None


def operands_of(x: Any, cuts: Mapping[str, BlockSpec | None]) -> list[Operand]:
    """Operands that are ``x``, in one memory, cut as their names say; a reference is memory itself.

    Raises:
        ValueError: a spec has not as many dimensions.
        NotImplementedError: a dimension is cut in a way that is not offered.
    """
    shape = np.shape(x)
    specs = [spec or BlockSpec() for spec in cuts.values()]
    every = [_dims(spec, shape, name) for spec, name in zip(specs, cuts, strict=True)]
    around = [
        (max([d.before for d in by_operand]), max([d.after for d in by_operand]))
        for by_operand in zip(*[dims for dims in every if dims is not None], strict=True)
    ] or [(0, 0)] * len(shape)
    ref = x if isinstance(x, Ref) and not any(map(any, around)) else None
    if ref is None:
        held = x[...] if isinstance(x, Ref) else x
        ref = new_ref(_padded(held, [(before, after, 0) for before, after in around]))
    memory = Memory(ref, around, len(specs) > 1)
    return [Operand(memory, spec, dims) for spec, dims in zip(specs, every, strict=True)]


def _dims(spec: BlockSpec, shape: Sequence[int], what: str) -> Sequence[Dim] | None:
    if spec.block_shape is None:
        return None
    if len(spec.block_shape) != len(shape):
        raise ValueError(
            f"pallas_call: {what} has the shape {tuple(shape)}, and the block shape "
            f"{spec.block_shape} must have as many dimensions, at {user_location()}"
        )
    return [_dim(cut, length) for cut, length in zip(spec.block_shape, shape, strict=True)]


def unwritten(shape: Sequence[int], dtype: Any) -> Any:
    """What memory holds that nobody has written: NaN, the least integers, False."""
    dtype = np.dtype(dtype)
    return jnp.full(shape, _nothing(dtype), dtype)


def _nothing(dtype: Any) -> Any:
    if jnp.issubdtype(dtype, np.inexact):
        return np.asarray(np.nan, dtype)
    return jnp.iinfo(dtype).min if jnp.issubdtype(dtype, np.integer) else False


def _padded(x: Any, around: Sequence[tuple[int, int, int]]) -> Any:
    if not any(map(any, around)):
        return x
    dtype = typeof(x).dtype
    return lax.pad(x, jnp.asarray(_nothing(dtype), dtype), around)


def _dim(cut: Any, length: int) -> Dim:
    match cut:
        case Element(size) | Blocked(size) | (int() | np.integer() as size) if size < 1:
            raise ValueError(
                f"pallas_call: a block has a positive length in each dimension, got {size}, at "
                f"{user_location()}; give None for a dimension of which a kernel sees one element"
            )
        case None | Squeezed():
            return Dim(1, 1, True, 0, 0)
        case Element(size, (before, after)):
            return Dim(size, 1, False, before, max(after, size - 1))
        case Blocked(size) | (int() | np.integer() as size):
            step = int(size)
            return Dim(step, step, False, 0, -length % step)
        case _:
            raise NotImplementedError(
                f"pallas_call: a dimension of a block cannot be {cut!r}, at {user_location()}; "
                "give its length, pl.Element(length) or None"
            )
