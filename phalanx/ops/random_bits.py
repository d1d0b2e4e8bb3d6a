"""The source of randomness: a counter, encrypted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.core.axes import Axis
from phalanx.core.primitive import Example, NoRule, Primitive, ZeroDerivative
from phalanx.core.types import ArrayType
from phalanx.ops.basis import align_lanes, check_domain, common_type
from phalanx.ops.bits import U32, u32

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def uint32(dtype: np.dtype) -> bool:
    return dtype == U32


def _type(*types: ArrayType) -> tuple[ArrayType, ArrayType]:
    out = common_type("threefry2x32", types)
    check_domain("threefry2x32", out, uint32)
    return ArrayType(out.shape, U32), ArrayType(out.shape, U32)


def _rotate_left(b: Any, x: Any, by: int) -> Any:
    shape = b.type(x).shape
    left = b.shift_left(x, b.constant(by, U32, shape))
    return b.or_(left, b.shift_right_logical(x, b.constant(32 - by, U32, shape)))


def _emit(b: Any, k0: Any, k1: Any, x: Any, y: Any) -> list:
    shape = b.type(x).shape
    keys = (k0, k1, b.xor(b.xor(k0, k1), b.constant(_PARITY, U32, shape)))
    x, y = b.add(x, k0), b.add(y, k1)
    for group in range(5):
        for by in _ROTATIONS[group % 2]:
            x = b.add(x, y)
            y = b.xor(x, _rotate_left(b, y, by))
        x = b.add(x, keys[(group + 1) % 3])
        y = b.add(y, b.add(keys[(group + 2) % 3], b.constant(group + 1, U32, shape)))
    return [x, y]


def _lower(b: Any, *values: Any) -> list:
    shape = b.outs[0].shape
    spread = [
        v if t.shape == shape else b.broadcast_in_dim(v, shape, ())
        for v, t in zip(values, b.ins, strict=True)
    ]
    return b.call(("threefry2x32", shape), _emit, spread)


def _batch(axis: Axis, values: Sequence, dims: Sequence) -> tuple[tuple, tuple]:
    aligned, dim = align_lanes(axis, values, dims)
    return threefry2x32(*aligned), (dim, dim)


threefry2x32 = Primitive(
    "threefry2x32",
    _type,
    _lower,
    linearize=ZeroDerivative("random bits are no numbers to differentiate"),
    transpose=NoRule("it is not linear"),
    batch=_batch,
    multi=True,
    doc="the counter (x, y) encrypted under the key (k0, k1) in 20 rounds of Threefry-2x32 "
    "(Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011)",
    examples=[
        Example((u32(3), u32(3), u32(3), u32(3)), low=0, high=2**31),
        Example((np.uint32(7), np.uint32(9), u32(2, 3), u32(2, 3)), low=0, high=2**31),
    ],
)
