"""The family of primitives on matrices [..., m, n]: dimensions in front are a batch of them.

A lane is one more of the batch, so all members share their batching rule. On CPUs they are lowered
to functions of LAPACK, in float32, float64, complex64 and complex128; on GPUs to those of cuSOLVER
and jaxlib; on TPUs to those that the compiler writes out. Where one fails, as it does where a
matrix is singular, the results are NaN. What is made of other operations has one rule, in their
words, for all platforms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from phalanx.base import dtypes
from phalanx.base.errors import DeviceError, ShapeError
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import Dims, Whole
from phalanx.core.primitive import (
    Batched,
    BatchRule,
    Elements,
    LaneDims,
    LowerRule,
    NoRule,
    Operands,
    Operations,
    Primitive,
    TransposeRule,
    TypeRule,
)
from phalanx.core.types import ArrayType, Shape
from phalanx.primitives.basis import broadcast_lanes, move
from phalanx.primitives.domains import I32, check_domain

NOT_LINEAR: Final = NoRule("it is not linear")

# ---- types ----------------------------------------------------------------------------------

_LETTERS: Final = {np.float32: "s", np.float64: "d", np.complex64: "c", np.complex128: "z"}


def of_lapack(dtype: np.dtype) -> bool:
    """The domain of the dtypes that LAPACK has: float32, float64, complex64, complex128."""
    return dtype.type in _LETTERS


def check_matrices(who: str, *types: ArrayType) -> Shape:
    """The batch dimensions that matrices of one dtype share.

    Raises:
        TypeError: there is no LAPACK for their dtype, or they have several.
        ShapeError: one has fewer than 2 dimensions, or their batches differ.
    """
    first = types[0]
    check_domain(who, first, of_lapack)
    for t in types:
        if t.dtype != first.dtype:
            raise TypeError(f"{who}: operands must have one dtype, got {listed(types)}")
        if t.ndim < 2:
            raise ShapeError(f"{who}: matrices [..., m, n] are needed, got {t}")
        if t.shape[:-2] != first.shape[:-2]:
            raise ShapeError(f"{who}: the dimensions in front must be equal, got {listed(types)}")
    return first.shape[:-2]


def check_square(who: str, type: ArrayType) -> None:
    """Raise unless ``type`` is that of square matrices, of a dtype that LAPACK has."""
    check_matrices(who, type)
    if type.shape[-1] != type.shape[-2]:
        raise ShapeError(f"{who}: square matrices [..., n, n] are needed, got {type}")


def listed(types: Sequence[ArrayType]) -> str:
    return ", ".join(map(str, types))


def real_of(dtype: np.dtype) -> np.dtype:
    """The dtype of the real part."""
    return dtypes.to_real(dtype) if dtypes.is_complex(dtype) else dtype


def complex_of(dtype: np.dtype) -> np.dtype:
    """The complex dtype whose parts have the precision of ``dtype``."""
    return np.result_type(dtype, np.complex64)


# ---- the declaration ------------------------------------------------------------------------


def batch_in_front(prim: Callable[[], Primitive]) -> BatchRule:
    """The batching rule: lanes are the first dimension of all operands and results."""

    def rule(axis: Axis, values: Operands, dims: LaneDims, **params: Any) -> Batched:
        fronted = [
            broadcast_lanes(v, 0, axis.size) if d is None else move(v, d, 0)
            for v, d in zip(values, dims, strict=True)
        ]
        out = prim()(*fronted, **params)
        return out, (0,) * len(out) if prim().multi else 0

    return rule


def cubic(each: float) -> Operations:
    """``each`` operations of every element of the largest operand, times the shorter side of the
    matrices that are the first one.

    How many a factorization takes stands in Golub and Van Loan, Matrix Computations.
    """

    def rule(results: Sequence[ArrayType], *types: ArrayType, **_: Any) -> float:
        return each * max([t.size for t in types]) * min(types[0].shape[-2:])

    return rule


def matrices_in_front(*types: ArrayType, **_: Any) -> Dims:
    """Dimensions in front correspond; a matrix is whole, and so is a vector beside one."""
    whole = Whole("an operation on matrices needs the whole of each")
    batch = tuple(range(max([t.ndim for t in types]) - 2))
    operands = [(*batch, *(whole,) * (t.ndim - len(batch))) for t in types]
    return Dims(tuple(operands), (batch,))


def solving(*types: ArrayType, left: bool = True, **_: Any) -> Dims:
    """The same, but each right side is for itself: columns, or rows, of the last operand."""
    dims = matrices_in_front(*types)
    (batch,), whole = dims.results, dims.operands[-1][-1]
    sides, results = (whole, "side"), (None, "side")
    if not left:
        sides, results = sides[::-1], results[::-1]
    return Dims((*dims.operands[:-1], (*batch, *sides)), ((*batch, *results),))


def factorization(
    name: str,
    type: TypeRule,
    lower: LowerRule | None = None,
    *,
    lower_on: Mapping[str, LowerRule] | None = None,
    transpose: TransposeRule | NoRule = NOT_LINEAR,
    operations: Operations,
    dims: Callable[..., Dims] = matrices_in_front,
    **rules: Any,
) -> Primitive:
    """Declare an operation on matrices, which is refused where there is no rule for a platform."""

    def itself() -> Primitive:
        return prim

    on = lower_on or {}
    prim = Primitive(
        name,
        type,
        lower or _refused(name, [*on]),
        lower_on=on,
        batch=batch_in_front(itself),
        dims=dims,
        transpose=transpose,
        elements=Elements(operations=operations),
        **rules,
    )
    return prim


def _refused(name: str, platforms: Sequence[str]) -> LowerRule:
    """In place of a lowering where there is none."""

    def lower(b: Builder, *values: Value, **params: Any) -> Any:
        raise DeviceError(
            f"{name}: it is computed on {' and '.join(platforms)} alone; run this part under "
            "phalanx.default_device(phalanx.devices('cpu')[0]), or jit it for that device"
        )

    return lower


# ---- LAPACK ---------------------------------------------------------------------------------

_OF_COMPLEX: Final = {"syevd": "heevd", "sytrd": "hetrd", "orgqr": "ungqr", "ormqr": "unmqr"}


def lapack(
    b: Builder,
    routine: str,
    args: Sequence[Value],
    outs: Sequence[tuple[Shape, np.dtype]],
    *,
    batch: int,
    in_place: Mapping[int, int] | None = None,
    **options: str | bool | np.generic,
) -> list[Value]:
    """The results of a routine of LAPACK, named as it is for real numbers.

    ``outs`` are the shapes without the batch, the first ``batch`` dimensions. Options are letters,
    as in LAPACK, and numbers.
    """
    kind = b.type(args[0])
    if dtypes.is_complex(kind.dtype):
        routine = _OF_COMPLEX.get(routine, routine)
    types = _batched(b, args[0], batch, outs)
    config = {k: np.uint8(ord(v)) if isinstance(v, str) else v for k, v in options.items()}
    name = f"lapack_{_LETTERS[kind.dtype.type]}{routine}_ffi"
    return b.matrix_call(name, args, types, batch, config, {0: 0} if in_place is None else in_place)


# ---- accelerators ---------------------------------------------------------------------------


def on_gpu(
    b: Builder,
    name: str,
    args: Sequence[Value],
    outs: Sequence[tuple[Shape, np.dtype]],
    *,
    batch: int,
    in_place: Mapping[int, int] | None = None,
    **options: str | bool | np.generic,
) -> list[Value]:
    """The results of a function that jaxlib has for GPUs, named as it is for CUDA's.

    Most are cuSOLVER's, for which AMD has functions that are called the same but for a prefix.

    ``outs`` are the shapes without the batch, as those of ``lapack``; so is what is ``in_place``.
    """
    types, over = _batched(b, args[0], batch, outs), {0: 0} if in_place is None else in_place
    return b.matrix_call(name, args, types, batch, options, over)


def expanded(
    b: Builder,
    name: str,
    args: Sequence[Value],
    outs: Sequence[tuple[Shape, np.dtype]],
    options: str = "",
) -> list[Value]:
    """The results of a function of matrices that XLA knows by name and writes out for TPUs."""
    batch = b.type(args[0]).ndim - 2
    return b.expanded_call(name, args, _batched(b, args[0], batch, outs), options)


def _batched(
    b: Builder, x: Value, batch: int, outs: Sequence[tuple[Shape, np.dtype]]
) -> list[ArrayType]:
    front = b.type(x).shape[:batch]
    return [ArrayType((*front, *shape), dtype) for shape, dtype in outs]


# ---- failures -------------------------------------------------------------------------------

INFO: Final = ((), I32)  # the result of a routine that says what went wrong; 0: nothing


def where_done(b: Builder, info: Value, *results: Value) -> list[Value]:
    """The results of a routine, NaN where its ``info`` is not 0."""
    done = b.compare(info, b.constant(0, I32, b.type(info).shape), "EQ")
    return [_where(b, done, x) for x in results]


def _where(b: Builder, done: Value, x: Value) -> Value:
    kind = b.type(x)
    nan = complex(np.nan, np.nan) if dtypes.is_complex(kind.dtype) else np.nan
    everywhere = b.broadcast_in_dim(done, kind.shape, tuple(range(b.type(done).ndim)))
    return b.select(everywhere, x, b.constant(nan, kind.dtype, kind.shape))
