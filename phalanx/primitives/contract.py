"""The general dot product: sums over pairs of dimensions, beside shared batch dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np

from phalanx.base import dtypes, lattice
from phalanx.base.errors import ShapeError
from phalanx.base.recent import memoized
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import Dims, LeftSums
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    LaneDims,
    Linear,
    LinearizeRule,
    Operands,
    Primitive,
)
from phalanx.core.types import ArrayType, Ints, typeof
from phalanx.primitives.basis import TYPES, add_tangents, convert
from phalanx.primitives.domains import check_domain, f32, i32, number_or_bool
from phalanx.primitives.shape import reorder, typeof_operand

# ---- products of different dtypes, in transposes --------------------------------------------


def product_type(who: str, x: ArrayType, y: ArrayType, dtype: np.dtype | None) -> np.dtype:
    """The dtype of a product: ``dtype`` if it is given, else that of both operands.

    Raises:
        TypeError: the operands' dtypes differ.
    """
    check_domain(who, x, number_or_bool)
    if x.dtype != y.dtype:
        raise TypeError(f"{who}: lhs {x} and rhs {y} must have one dtype; convert one of them")
    return x.dtype if dtype is None else dtype


def as_dtype(x: Any, dtype: np.dtype) -> Any:
    """``x`` in ``dtype``; ``x`` itself where it has that dtype already."""
    return x if typeof(x).dtype == dtype else convert(x, dtype=dtype, weak=False)


def same_dtype(x: Any, y: Any) -> tuple[Any, Any]:
    """``x`` and ``y`` in the wider of their dtypes; for floats of 8 bits bfloat16, which holds all
    of them, stands where the other is of another dtype."""
    kinds = [typeof(x).dtype, typeof(y).dtype]
    if kinds[0] != kinds[1]:
        kinds = [dtypes.BFLOAT16 if kind in dtypes.FLOAT8 else kind for kind in kinds]
    dtype = lattice.common(*[(kind, False) for kind in kinds])[0]
    return as_dtype(x, dtype), as_dtype(y, dtype)


def bilinear_linearize(prim: Callable[[], Primitive]) -> LinearizeRule:
    """The linearize rule of a product of two operands."""

    def rule(active: Active, x: Any, y: Any, **params: Any) -> Derivative:
        def linear(tx: Any, ty: Any) -> Any:
            return add_tangents(
                ZERO if tx is ZERO else prim()(tx, y, **params),
                ZERO if ty is ZERO else prim()(x, ty, **params),
            )

        return prim()(x, y, **params), linear

    return rule


# ---- dot_general ----------------------------------------------------------------------------

Pair = tuple[tuple[int, ...], tuple[int, ...]]


def _free(ndim: int, *taken: Sequence[int]) -> list[int]:
    used = {d for dims in taken for d in dims}
    return [d for d in range(ndim) if d not in used]


def _check_dims(side: str, x: ArrayType, contract: Ints, batch: Ints) -> None:
    dims = (*contract, *batch)
    if len(set(dims)) != len(dims) or any(not 0 <= d < x.ndim for d in dims):
        raise ValueError(
            f"dot_general: contracting dimensions {contract} and batch dimensions {batch} of "
            f"{side} {x} must be distinct and lie in 0..{x.ndim - 1}"
        )


def _check_pairs(kind: str, x: ArrayType, y: ArrayType, dims: Pair) -> None:
    if len(dims[0]) != len(dims[1]):
        raise ValueError(
            f"dot_general: as many {kind} dimensions are needed of lhs {x} as of rhs {y}, "
            f"got {dims[0]} and {dims[1]}"
        )
    for i, j in zip(*dims, strict=True):
        if x.shape[i] != y.shape[j]:
            raise ShapeError(
                f"dot_general: dimension {i} of lhs {x} and dimension {j} of rhs {y} must be "
                f"equal, got {x.shape[i]} and {y.shape[j]}"
            )


@memoized(TYPES)
def _dot_type(
    x: ArrayType,
    y: ArrayType,
    *,
    contract: Pair,
    batch: Pair,
    precision: Any = None,
    dtype: np.dtype | None = None,
    **sums: Unpack[LeftSums],
) -> ArrayType:
    for side, type, i in (("lhs", x, 0), ("rhs", y, 1)):
        _check_dims(side, type, contract[i], batch[i])
    _check_pairs("batch", x, y, batch)
    _check_pairs("contracting", x, y, contract)
    shape = (
        *(x.shape[d] for d in batch[0]),
        *(x.shape[d] for d in _free(x.ndim, contract[0], batch[0])),
        *(y.shape[d] for d in _free(y.ndim, contract[1], batch[1])),
    )
    result = product_type("dot_general", x, y, dtype)
    return ArrayType(shape, result, x.weak and y.weak and dtype is None)


def _dot_lower(
    b: Builder,
    x: Value,
    y: Value,
    contract: Pair,
    batch: Pair,
    precision: Any = None,
    dtype: np.dtype | None = None,
    **sums: Unpack[LeftSums],
) -> Value:
    spec = b.outs[0].spec and b.outs[0].spec.explicit
    if spec is not None and spec.unreduced:
        values = zip((x, y), b.ins, contract, strict=True)
        x, y = [b.cut_by_type(v, t, dims, spec) for v, t, dims in values]
    return b.dot_general(x, y, contract, batch, b.outs[0].dtype, precision)


def _dot_transpose(
    ct: Any,
    x: Any,
    y: Any,
    *,
    contract: Pair,
    batch: Pair,
    precision: Any = None,
    dtype: np.dtype | None = None,
    **sums: Unpack[LeftSums],
) -> Cotangents:
    if isinstance(x, Linear) and isinstance(y, Linear):
        return [None, None]
    # the dimensions of ct: batch, x's, y's
    shared, middle, end = len(batch[0]), typeof_operand(x).ndim - len(contract[0]), typeof(ct).ndim
    if isinstance(x, Linear):
        of_y = tuple(range(middle, end))
        return [_dot_cotangent(ct, of_y, x.type, y, contract, batch, precision), None]
    of_x = tuple(range(shared, middle))
    exchanged = _exchanged(contract), _exchanged(batch), _exchanged(precision)
    return [None, _dot_cotangent(ct, of_x, y.type, x, *exchanged)]


def _exchanged(pair: Any) -> Any:
    """What says something of both operands, with the operands exchanged."""
    return pair and (pair[1], pair[0])


def _dot_cotangent(
    ct: Any,
    of_y: tuple[int, ...],
    x: ArrayType,
    y: Any,
    contract: Pair,
    batch: Pair,
    precision: Any,
) -> Any:
    """The cotangent of ``x``: ``ct`` times ``y``, summed over the free dimensions of ``y``.

    In ``ct`` they are ``of_y``. If ``y`` times ``ct`` has its dimensions in the order of ``x``,
    it is that, and nothing need be transposed.
    """
    ct, y = same_dtype(ct, y)
    sums = (of_y, tuple(_free(typeof(y).ndim, contract[1], batch[1])))
    batch_dims = (tuple(range(len(batch[0]))), batch[1])
    by_y = sorted(range(len(contract[1])), key=lambda i: contract[1][i])
    contracted = [contract[0][i] for i in by_y]
    free = _free(x.ndim, contract[0], batch[0])
    order = [*batch[0], *contracted, *free]
    if order == sorted(order):
        exchanged = {"contract": _exchanged(sums), "batch": _exchanged(batch_dims)}
        cotangent = dot_general(y, ct, **exchanged, precision=_exchanged(precision))
    else:
        order = [*batch[0], *free, *contracted]
        cotangent = dot_general(ct, y, contract=sums, batch=batch_dims, precision=precision)
        cotangent = reorder(cotangent, sorted(range(x.ndim), key=lambda i: order[i]))
    return as_dtype(cotangent, x.dtype)


def _dot_batch(
    axis: Axis,
    values: Operands,
    dims: LaneDims,
    *,
    contract: Pair,
    batch: Pair,
    precision: Any = None,
    dtype: np.dtype | None = None,
    **sums: Unpack[LeftSums],
) -> Batched:
    (x, y), (dx, dy) = values, dims
    contract = (_shifted(contract[0], dx), _shifted(contract[1], dy))
    batch = (_shifted(batch[0], dx), _shifted(batch[1], dy))
    if dx is not None and dy is not None:
        batch = ((dx, *batch[0]), (dy, *batch[1]))
        lanes = 0
    elif dx is not None:
        lanes = len(batch[0]) + _place(dx, contract[0], batch[0])
    else:
        from_x = typeof(x).ndim - len(contract[0])
        lanes = from_x + _place(dims[1], contract[1], batch[1])
    how = {"contract": contract, "batch": batch, "precision": precision, "dtype": dtype}
    return dot_general(x, y, **how, **sums), lanes


def _dot_operations(
    results: Sequence[ArrayType], x: ArrayType, y: ArrayType, *, contract: Pair, **_: Any
) -> float:
    """A product and a sum for each element of the result and each pair that it sums up, which of
    complex numbers are 8 operations."""
    each = 8 if dtypes.is_complex(results[0].dtype) else 2
    return each * results[0].size * math.prod(x.shape[d] for d in contract[0])


def _place(dim: int, contract: Ints, batch: Ints) -> int:
    """The place of a free dimension among the free dimensions of an operand."""
    return dim - sum(d < dim for d in (*contract, *batch))


def _shifted(dims: tuple[int, ...], lanes: int | None) -> tuple[int, ...]:
    """Where ``dims`` of a lane lie in an array that carries the lanes in dimension ``lanes``."""
    return dims if lanes is None else tuple(d + (d >= lanes) for d in dims)


def _dot_dims(
    x: ArrayType,
    y: ArrayType,
    *,
    contract: Pair,
    batch: Pair,
    unreduced: tuple[str, ...] = (),
    **_: Any,
) -> Dims:
    """Those that are summed over, and batch dimensions, meet; the others are an operand's own."""
    own: list[list[Any]] = [[(side, d) for d in range(t.ndim)] for side, t in enumerate((x, y))]
    free = [own[0][d] for d in _free(x.ndim, contract[0], batch[0])]
    free += [own[1][d] for d in _free(y.ndim, contract[1], batch[1])]
    for kind, pairs in (("sum", contract), ("batch", batch)):
        for i, pair in enumerate(zip(*pairs, strict=True)):
            for labels, d in zip(own, pair, strict=True):
                labels[d] = (kind, i)
    result = [*[("batch", i) for i in range(len(batch[0]))], *free]
    return Dims((tuple(own[0]), tuple(own[1])), (tuple(result),), product=True, unreduced=unreduced)


dot_general = Primitive(
    "dot_general",
    _dot_type,
    _dot_lower,
    linearize=bilinear_linearize(lambda: dot_general),
    transpose=_dot_transpose,
    batch=_dot_batch,
    dims=_dot_dims,
    leaves_sums=True,
    elements=Elements(operations=_dot_operations),
    doc="sum over contract of x y, beside batch; out: batch, x's, y's; stablehlo.dot_general",
    examples=[
        Example((f32(2, 3), f32(3, 4)), {"contract": ((1,), (0,)), "batch": ((), ())}),
        Example((f32(3), f32(3)), {"contract": ((0,), (0,)), "batch": ((), ())}),
        Example(
            (f32(2, 5, 3, 4), f32(3, 4, 6, 2)),
            {"contract": ((2, 3), (0, 1)), "batch": ((0,), (3,))},
        ),
        Example((f32(4, 2, 3), f32(3, 5, 4)), {"contract": ((2, 0), (0, 2)), "batch": ((), ())}),
        Example((i32(2, 3), i32(3)), {"contract": ((1,), (0,)), "batch": ((), ())}),
    ],
)
