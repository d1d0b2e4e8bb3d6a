"""Operands of kernels, and their blocks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx import lax
from phalanx import numpy as jnp
from phalanx.base.kinds import is_sequence
from phalanx.base.source import user_location
from phalanx.compat.pallas.specs import (
    Blocked,
    BlockSpec,
    Element,
    Slice,
    Squeezed,
    is_integer,
)
from phalanx.core.refs import Ref
from phalanx.core.types import typeof
from phalanx.numpy.refs import freeze, new_ref


class Dim(Struct, frozen=True):
    """A dimension of an operand: how it is cut, and what is put around it."""

    size: int  # of a block
    step: int  # from what the index counts to elements
    squeezed: bool
    before: int
    after: int


class Operand(Struct, frozen=True):
    """An operand of a kernel.

    Attributes:
        ref: what it is, and what is put around it, so that all blocks are whole.
        shape: of what it is.
        spec: how it is cut.
        dims: of ``spec``; None if it is not cut.
        written: whether what a kernel leaves in its block is kept.
    """

    ref: Ref
    shape: tuple[int, ...]
    spec: BlockSpec
    dims: Sequence[Dim] | None
    written: bool

    def starts(self, ids: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """Where the block of the program numbered ``ids`` begins."""
        assert self.dims is not None
        if self.spec.index_map is None:
            return [0] * len(self.dims)
        _check_parameters(self.spec.index_map, len(ids), len(scalars))
        index = self.spec.index_map(*ids, *scalars)
        index = index if is_sequence(index) else (index,)
        if len(index) != len(self.dims):
            raise ValueError(
                f"pallas_call: the index map of {self.spec} must return {len(self.dims)} values, "
                f"one for each dimension of a block, returned {len(index)}, at {user_location()}"
            )
        counts = [i.start if isinstance(i, Slice) else i for i in index]
        if not all(map(is_integer, counts)):
            raise ValueError(
                f"pallas_call: the index map of {self.spec} must return integers, returned "
                f"{index}, at {user_location()}; divide with // or pl.cdiv"
            )
        return [count * dim.step for count, dim in zip(counts, self.dims, strict=True)]

    def block(self, starts: Sequence[Any]) -> Ref:
        """The block that begins at ``starts``, as a kernel sees it."""
        assert self.dims is not None
        block = lax.dynamic_slice(self.ref[...], starts, [dim.size for dim in self.dims])
        return new_ref(lax.squeeze(block, self._squeezed))

    def keep(self, block: Ref, starts: Sequence[Any]) -> None:
        """Put a block back, if it is kept."""
        left = freeze(block)
        if self.written:
            whole = lax.expand_dims(left, self._squeezed)
            self.ref[...] = lax.dynamic_update_slice(self.ref[...], whole, starts)

    def result(self) -> Any:
        """What it is now, without what was put around it."""
        around = [(-d.before, -d.after, 0) for d in self.dims or ()]
        return _padded(self.ref[...], around)

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


def operand_of(x: Any, spec: BlockSpec | None, what: str, written: bool) -> Operand:
    """The operand ``x``, in memory of its own.

    Raises:
        ValueError: ``spec`` has not as many dimensions.
        NotImplementedError: a dimension is cut in a way that is not offered.
    """
    shape = typeof(x).shape
    spec = spec or BlockSpec()
    if spec.block_shape is None:
        return Operand(new_ref(x), shape, spec, None, written)
    if len(spec.block_shape) != len(shape):
        raise ValueError(
            f"pallas_call: {what} has the shape {shape}, and the block shape {spec.block_shape} "
            f"must have as many dimensions, at {user_location()}"
        )
    dims = [_dim(cut, length) for cut, length in zip(spec.block_shape, shape, strict=True)]
    around = [(d.before, d.after, 0) for d in dims]
    return Operand(new_ref(_padded(x, around)), shape, spec, dims, written)


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
