"""The source of randomness: a counter, encrypted.

A result that many others are computed from, such as a key, is to be computed ``once``. XLA's
CPU compiler would repeat the rounds for each number drawn with the key; it never moves a loop.
So there the rounds are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.core.axes import Axis
from phalanx.core.builder import Body, Builder, Value, Values
from phalanx.core.correspond import alike
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
from phalanx.primitives.basis import align_lanes
from phalanx.primitives.bits import U32, u32
from phalanx.primitives.domains import check_domain, common_type

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def uint32(dtype: np.dtype) -> bool:
    return dtype == U32


def _type(*types: ArrayType, once: bool) -> tuple[ArrayType, ArrayType]:
    out = common_type("threefry2x32", types)
    check_domain("threefry2x32", out, uint32)
    return ArrayType(out.shape, U32), ArrayType(out.shape, U32)


def _emit(b: Builder, k0: Any, k1: Any, x: Any, y: Any) -> list[Any]:
    shape = b.type(x).shape
    keys = _schedule(b, k0, k1)
    x, y = b.add(x, k0), b.add(y, k1)
    for group in range(5):
        shifts = [(left, 32 - left) for left in _ROTATIONS[group % 2]]
        x, y = _four_rounds(b, x, y, [[b.constant(n, U32, shape) for n in two] for two in shifts])
        x = b.add(x, keys[(group + 1) % 3])
        y = b.add(b.add(y, keys[(group + 2) % 3]), b.constant(group + 1, U32, shape))
    return [x, y]


def _emit_loop(b: Builder, k0: Any, k1: Any, x: Any, y: Any) -> list[Any]:
    shape = b.type(x).shape

    def more(b: Builder, group: Any, *_: Any) -> list[Any]:
        return [b.compare(group, b.constant(5, U32), "LT")]

    def step(b: Builder, group: Any, x: Any, y: Any, *keys: Any) -> list[Any]:
        odd = b.compare(b.and_(group, b.constant(1, U32)), b.constant(1, U32), "EQ")
        by_two = zip(*_ROTATIONS, strict=True)
        by = [b.select(odd, b.constant(q, U32), b.constant(p, U32)) for p, q in by_two]
        shifts = [(left, b.subtract(b.constant(32, U32), left)) for left in by]
        shifts = [[b.broadcast_in_dim(n, shape, ()) for n in two] for two in shifts]
        x, y = _four_rounds(b, x, y, shifts)
        group = b.add(group, b.constant(1, U32))
        y = b.add(b.add(y, keys[1]), b.broadcast_in_dim(group, shape, ()))
        return [group, b.add(x, keys[0]), y, keys[1], keys[2], keys[0]]

    first, *others = _schedule(b, k0, k1)
    inits = [b.constant(0, U32), b.add(x, k0), b.add(y, k1), *others, first]
    return b.while_(inits, more, step)[1:3]


def _schedule(b: Builder, k0: Any, k1: Any) -> tuple[Any, Any, Any]:
    return k0, k1, b.xor(b.xor(k0, k1), b.constant(_PARITY, U32, b.type(k0).shape))


def _four_rounds(b: Builder, x: Any, y: Any, shifts: Sequence[Sequence[Any]]) -> tuple[Any, Any]:
    """``shifts`` are those to the left and to the right that rotate y."""
    for left, right in shifts:
        x = b.add(x, y)
        y = b.xor(x, b.or_(b.shift_left(y, left), b.shift_right_logical(y, right)))
    return x, y


def _call(b: Builder, emit: Body, values: Values) -> list[Value]:
    shape = b.outs[0].shape
    operands = [
        v if t.shape == shape else b.broadcast_in_dim(v, shape, ())
        for v, t in zip(values, b.ins, strict=True)
    ]
    return b.call((emit, shape), emit, operands)


def _lower(b: Builder, *values: Value, once: bool) -> list[Value]:
    return _call(b, _emit, values)


def _lower_on_cpu(b: Builder, *values: Value, once: bool) -> list[Value]:
    return _call(b, _emit_loop if once else _emit, values)


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, once: bool) -> Batched:
    aligned, dim = align_lanes(axis, values, dims)
    return threefry2x32(*aligned, once=once), (dim, dim)


threefry2x32 = Primitive(
    "threefry2x32",
    _type,
    _lower,
    lower_on={"cpu": _lower_on_cpu},
    linearize=ZeroDerivative("random bits are no numbers to differentiate"),
    transpose=NoRule("it is not linear"),
    batch=_batch,
    dims=alike,
    multi=True,
    elements=Elements(operations=100),
    doc="the counter (x, y) encrypted under the key (k0, k1) in 20 rounds of Threefry-2x32 "
    "(Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011)",
    examples=[
        Example((u32(3), u32(3), u32(3), u32(3)), {"once": True}, low=0, high=2**31),
        Example(
            (np.uint32(7), np.uint32(9), u32(2, 3), u32(2, 3)), {"once": False}, low=0, high=2**31
        ),
    ],
)
