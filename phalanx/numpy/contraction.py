"""Products of operands whose dimensions have labels, summed over those that a result lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.numpy.promotion import DTypeLike, convert, promote_arrays

Labels = tuple[Any, ...]


class Options:
    """How products are computed: their precision, the dtype of the result, and by what."""

    __slots__ = ("dtype", "own", "precision", "requested_precision")

    def __init__(
        self,
        who: str,
        precision: Any,
        dtype: DTypeLike | None,
        own: Callable[..., Any] | None = None,
    ) -> None:
        self.requested_precision = precision
        self.precision = ops.canonical_precision(who, precision)
        self.dtype = None if dtype is None else dtypes.requested(dtype)
        self.own = own


def factors(who: str, xs: Sequence[Any]) -> tuple[list[Any], bool]:
    """Arrays of one dtype, and whether it was bool, of which products are counted in int32."""
    arrays = promote_arrays(who, xs)
    if arrays[0].aval.dtype != np.bool_:
        return arrays, False
    return [convert(x, np.dtype("int32")) for x in arrays], True


def finished(out: Any, was_bool: bool, options: Options) -> Any:
    if was_bool and options.dtype is None:
        return convert(out, np.dtype(bool))
    if options.dtype is None:
        return out
    return convert(out, options.dtype)


def dot_general(
    x: Any, y: Any, contract: tuple[Any, ...], batch: tuple[Any, ...], options: Options
) -> Any:
    if options.own is not None:
        numbers = contract, batch
        dtype = options.dtype or x.aval.dtype
        return options.own(x, y, numbers, options.requested_precision, preferred_element_type=dtype)
    return ops.dot_general(
        x, y, contract=contract, batch=batch, precision=options.precision, dtype=options.dtype
    )


def without(x: Any, labels: Labels, summed: set[Any]) -> tuple[Any, Labels]:
    """``x`` summed over the dimensions whose labels are in ``summed``."""
    over = tuple(i for i, name in enumerate(labels) if name in summed)
    if not over:
        return x, labels
    return ops.reduce_sum(x, dims=over), tuple(n for n in labels if n not in summed)


def contracted(
    x: Any, xl: Labels, y: Any, yl: Labels, out: Labels, options: Options
) -> tuple[Any, Labels]:
    """The product of ``x`` and ``y``, summed over the labels that are not in ``out``.

    Returns:
        The result, and its labels: those of ``out`` in the order that came cheapest.
    """
    dtype = options.dtype
    if dtype is not None and x.aval.dtype != y.aval.dtype:  # one is a result, of the former
        x, y = convert(x, dtype), convert(y, dtype)
    x, xl = _squeezed(x, xl, dict(zip(yl, y.shape, strict=True)))
    y, yl = _squeezed(y, yl, dict(zip(xl, x.shape, strict=True)))
    x, xl = without(x, xl, set(xl) - set(yl) - set(out))
    y, yl = without(y, yl, set(yl) - set(xl) - set(out))
    shared = [n for n in xl if n in yl]
    batch = [n for n in shared if n in out]
    summed = [n for n in shared if n not in out]
    if not summed and options.dtype is None and options.own is None:
        return _elementwise(x, xl, y, yl)
    contract = tuple(tuple(ls.index(n) for n in summed) for ls in (xl, yl))
    beside = tuple(tuple(ls.index(n) for n in batch) for ls in (xl, yl))
    free = [n for n in (*xl, *yl) if n not in shared]
    return dot_general(x, y, contract, beside, options), (*batch, *free)


def _squeezed(x: Any, labels: Labels, other: dict[Any, int]) -> tuple[Any, Labels]:
    """``x`` without the dimensions of length 1 that the other operand has longer."""
    ones = [i for i, n in enumerate(labels) if x.shape[i] == 1 and other.get(n, 1) != 1]
    if not ones:
        return x, labels
    return ops.squeeze(x, ones), tuple(n for i, n in enumerate(labels) if i not in ones)


def _elementwise(x: Any, xl: Labels, y: Any, yl: Labels) -> tuple[Any, Labels]:
    out = (*xl, *(n for n in yl if n not in xl))
    sizes = {**dict(zip(xl, x.shape, strict=True)), **dict(zip(yl, y.shape, strict=True))}
    shape = tuple(sizes[n] for n in out)
    order = sorted(range(len(yl)), key=lambda i: out.index(yl[i]))
    y = ops.reorder(y, order)
    places = tuple(out.index(yl[i]) for i in order)
    if len(xl) < len(out):
        x = ops.broadcast(x, shape=shape, dims=tuple(range(len(xl))))
    if places != tuple(range(len(out))):
        y = ops.broadcast(y, shape=shape, dims=places)
    return ops.mul(x, y), out


def arranged(x: Any, labels: Labels, out: Labels) -> Any:
    return ops.reorder(x, [labels.index(n) for n in out])
