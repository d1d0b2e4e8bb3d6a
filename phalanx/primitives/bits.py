"""Operations on the bits of booleans, integers, and of anything through `bitcast`."""

from __future__ import annotations

import numpy as np

from phalanx.base import dtypes
from phalanx.core.axes import Axis
from phalanx.core.builder import Body, Builder, Value
from phalanx.core.correspond import Dims, alike, alike_but
from phalanx.core.primitive import (
    Batched,
    Elements,
    Example,
    LaneDims,
    NoRule,
    Operands,
    Primitive,
    ZeroDerivative,
)
from phalanx.core.types import ArrayType
from phalanx.primitives.basis import move, pointwise
from phalanx.primitives.domains import (
    BOOL,
    I32,
    Domain,
    bools,
    check_domain,
    f32,
    i32,
    integral,
    number_or_bool,
)
from phalanx.primitives.length import need_numbers

U8 = np.dtype("uint8")
U32 = np.dtype("uint32")

_CONSTANT = "its operands are integers or booleans, which have no derivative"


def u32(*shape: int) -> ArrayType:
    """The type of a uint32 array: shorthand for examples."""
    return ArrayType(shape, U32)


def _bitwise(
    name: str,
    lower: Body,
    doc: str,
    on: Domain = integral,
    n: int = 2,
    low: float = -9,
    high: float = 9,
) -> Primitive:
    kinds = (i32(3), u32(2, 3))
    examples = [Example(args=(kind,) * n, low=low, high=high) for kind in kinds]
    if on is integral:
        examples.append(Example((bools(3),) * n))
    return pointwise(name, lower, on=on, partials=_CONSTANT, doc=doc, examples=examples)


and_ = _bitwise("and", lambda b, x, y: b.and_(x, y), "x ∧ y, bit by bit; stablehlo.and")
or_ = _bitwise("or", lambda b, x, y: b.or_(x, y), "x ∨ y, bit by bit; stablehlo.or")
xor = _bitwise("xor", lambda b, x, y: b.xor(x, y), "x ⊕ y, bit by bit; stablehlo.xor")
not_ = _bitwise("not", lambda b, x: b.not_(x), "¬x, bit by bit; stablehlo.not", n=1)


def _count(b: Builder, x: Value) -> Value:
    """Integers of less than a byte are counted without the signs that fill the byte."""
    kind = b.type(x)
    if kind.dtype not in dtypes.NARROW_INTS:
        return b.popcnt(x)
    held = (1 << dtypes.itemsize_bits(kind.dtype)) - 1
    byte, mask = b.convert(x, U8), b.constant(held, U8, kind.shape)
    return b.convert(b.popcnt(b.and_(byte, mask)), kind.dtype)


population_count = _bitwise(
    "population_count",
    _count,
    "the number of bits of x that are set; stablehlo.popcnt",
    on=dtypes.is_integer,
    n=1,
)
clz = _bitwise(
    "clz",
    lambda b, x: b.count_leading_zeros(x),
    "the number of zero bits above the highest set one; stablehlo.count_leading_zeros",
    on=dtypes.is_integer,
    n=1,
)
shift_left = _bitwise(
    "shift_left",
    lambda b, x, y: b.shift_left(x, y),
    "x 2^y, modulo the width of x; stablehlo.shift_left",
    on=dtypes.is_integer,
    low=0,
)
shift_right_arithmetic = _bitwise(
    "shift_right_arithmetic",
    lambda b, x, y: b.shift_right_arithmetic(x, y),
    "⌊x / 2^y⌋, repeating the sign bit; stablehlo.shift_right_arithmetic",
    on=dtypes.is_integer,
    low=0,
)
shift_right_logical = _bitwise(
    "shift_right_logical",
    lambda b, x, y: b.shift_right_logical(x, y),
    "the bits of x moved down by y, zeros above; stablehlo.shift_right_logical",
    on=dtypes.is_integer,
    low=0,
)


# ---- bitcast --------------------------------------------------------------------------------


def _bits(dtype: np.dtype) -> int:
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).bits)
    if dtypes.is_floating(dtype):
        return int(dtypes.finfo(dtype).bits)
    return 8 * dtype.itemsize


def _bitcast_type(x: ArrayType, *, dtype: np.dtype) -> ArrayType:
    for kind in (x, x.update(dtype=dtype)):
        check_domain("bitcast", kind, number_or_bool)
    if (x.dtype == BOOL) != (dtype == BOOL):
        raise TypeError(
            f"bitcast: bool has no bits to share with other dtypes, got {x} and {dtype}; use astype"
        )
    if dtypes.is_complex(x.dtype) or dtypes.is_complex(dtype):
        raise TypeError(
            f"bitcast: a complex number is a pair and not a row of bits, got {x} and {dtype}; "
            "take real and imag apart"
        )
    source, target = _bits(x.dtype), _bits(dtype)
    if source == target:
        return ArrayType(x.shape, dtype)
    if source > target:
        return ArrayType((*x.shape, source // target), dtype)
    if not x.shape or x.shape[-1] != target // source:
        raise ValueError(
            f"bitcast: to make one {dtype} of {target // source} elements of {x.dtype}, the last "
            f"dimension must have that length, got {x}"
        )
    return ArrayType(x.shape[:-1], dtype)


def _bitcast_batch(axis: Axis, values: Operands, dims: LaneDims, *, dtype: np.dtype) -> Batched:
    return bitcast(move(values[0], dims[0], 0), dtype=dtype), 0


def _bitcast_lower(b: Builder, x: Value, dtype: np.dtype) -> Value:
    shape = b.outs[0].shape
    if _bits(b.ins[0].dtype) != _bits(dtype):
        remedy = "convert with astype, or take the bits apart by shifts"
        need_numbers("bitcast", "the shape of elements of another size", shape, remedy)
    return b.bitcast_convert(x, dtype, shape)


def _bitcast_dims(x: ArrayType, *, dtype: np.dtype) -> Dims:
    joins = _bits(x.dtype) < _bits(dtype)
    return alike_but("they are the bits of one number")(x) if joins else alike(x)


bitcast = Primitive(
    "bitcast",
    _bitcast_type,
    _bitcast_lower,
    linearize=ZeroDerivative("bits are not numbers"),
    transpose=NoRule("it is not linear"),
    batch=_bitcast_batch,
    dims=_bitcast_dims,
    elements=Elements(copied=True, operations=2, short="bits"),
    doc="the bits of x read as another dtype; stablehlo.bitcast_convert",
    examples=[
        Example((f32(2, 3),), {"dtype": I32}),
        Example((i32(2, 3),), {"dtype": U8}),
        Example((ArrayType((3, 4), U8),), {"dtype": U32}),
    ],
)
