"""Random bits of XLA's own generators, which may be others on another platform or in another
version of XLA.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value, Values
from phalanx.core.primitive import (
    Batched,
    BatchRule,
    Elements,
    Example,
    LaneDims,
    NoRule,
    Operands,
    Primitive,
    ZeroDerivative,
)
from phalanx.core.types import ArrayType, Shape
from phalanx.primitives.basis import broadcast_lanes, move
from phalanx.primitives.bits import U32, u32
from phalanx.primitives.domains import I32, check_domain, number, real_number
from phalanx.primitives.length import need_numbers

U64 = np.dtype("uint64")
_STATES = {U32: 4, U64: 2}  # how many words hold the 128 bits of a generator's state
_NO_NUMBERS = ZeroDerivative("random bits are no numbers to differentiate")


# ---- lanes in turn --------------------------------------------------------------------------

Draw = Callable[..., list[Value]]


def _in_turn(b: Builder, draw: Draw, operands: Sequence[Value], ndims: Sequence[int]) -> Values:
    """The results of ``draw(b, *operands)``, for each lane where ``b.outs`` have lanes.

    A generator draws for one state, with one pair of bounds, so that lanes take turns. ``ndims``
    are the numbers of dimensions of each result that are not lanes.
    """
    outs = b.outs
    lanes = outs[0].shape[: outs[0].ndim - ndims[0]]
    count = math.prod(lanes)
    if not lanes:
        return draw(b, *operands)
    if count == 0:
        return [b.constant(0, t.dtype, t.shape) for t in outs]
    zero = b.constant(0, I32)
    inner = [t.shape[len(lanes) :] for t in outs]

    def more(b: Builder, lane: Value, *_: Value) -> list[Value]:
        return [b.compare(lane, b.constant(count, I32), "LT")]

    def step(b: Builder, lane: Value, *drawn: Value) -> list[Value]:
        own = [_row(b, x, lane, zero) for x in rows]
        new = draw(b, *own)
        updates = [b.reshape(y, (1, *shape)) for y, shape in zip(new, inner, strict=True)]
        starts = [[lane, *[zero] * len(shape)] for shape in inner]
        into = zip(drawn, updates, starts, strict=True)
        return [b.add(lane, b.constant(1, I32)), *(b.dynamic_update_slice(*x) for x in into)]

    rows = [b.reshape(x, (count, *b.type(x).shape[len(lanes) :])) for x in operands]
    blank = [b.constant(0, t.dtype, (count, *shape)) for t, shape in zip(outs, inner, strict=True)]
    drawn = b.while_([zero, *blank], more, step)[1:]
    return [b.reshape(x, t.shape) for x, t in zip(drawn, outs, strict=True)]


def _row(b: Builder, x: Value, lane: Value, zero: Value) -> Value:
    shape = b.type(x).shape[1:]
    return b.reshape(b.dynamic_slice(x, [lane, *[zero] * len(shape)], (1, *shape)), shape)


def _batch(prim: Callable[[], Primitive]) -> BatchRule:
    def rule(axis: Axis, values: Operands, dims: LaneDims, **params: Any) -> Batched:
        pairs = zip(values, dims, strict=True)
        lanes = [broadcast_lanes(x, 0, axis.size) if d is None else move(x, d, 0) for x, d in pairs]
        return prim()(*lanes, **params), (0, 0) if prim().multi else 0

    return rule


# ---- generators with a state ----------------------------------------------------------------


def _bits_type(
    key: ArrayType, *, shape: Shape, dtype: np.dtype, algorithm: str
) -> tuple[ArrayType, ArrayType]:
    check_domain("rng_bit_generator", key, number)
    if key.shape[-1:] != (_STATES.get(key.dtype),):
        raise TypeError(f"rng_bit_generator: the key must be u32[4] or u64[2], got {key}")
    if dtype not in _STATES:
        raise TypeError(f"rng_bit_generator: dtype must be uint32 or uint64, got {dtype}")
    return ArrayType(key.shape, key.dtype), ArrayType((*key.shape[:-1], *shape), dtype)


def _bits_lower(b: Builder, key: Value, *, shape: Shape, dtype: np.dtype, algorithm: str) -> Values:
    def draw(b: Builder, key: Value) -> list[Value]:
        return _next(b, key, shape, dtype, algorithm)

    return _in_turn(b, draw, [key], [1, len(shape)])


def _next(b: Builder, key: Value, shape: Shape, dtype: np.dtype, algorithm: str) -> list[Value]:
    """The next state, and bits, of a single key; a state is u64[2] to XLA."""
    remedy = "draw with keys of threefry2x32"
    need_numbers("rng_bit_generator", "the shape that is drawn", shape, remedy)
    if math.prod(shape) == 0:
        return [key, b.constant(0, dtype, shape)]
    if b.type(key).dtype == U64:
        return [*b.rng_bit_generator(key, shape, dtype, algorithm)]
    state = b.bitcast_convert(b.reshape(key, (2, 2)), U64, (2,))
    state, drawn = b.rng_bit_generator(state, shape, dtype, algorithm)
    return [b.reshape(b.bitcast_convert(state, U32, (2, 2)), (4,)), drawn]


rng_bit_generator = Primitive(
    "rng_bit_generator",
    _bits_type,
    _bits_lower,
    linearize=_NO_NUMBERS,
    transpose=NoRule("it is not linear"),
    batch=_batch(lambda: rng_bit_generator),
    multi=True,
    elements=Elements(operations=40),
    doc="for each key, the state of the generator afterwards, and random bits; "
    "stablehlo.rng_bit_generator",
    examples=[
        Example(
            (u32(4),), {"shape": (2, 3), "dtype": U32, "algorithm": "philox"}, low=0, high=2**31
        ),
        Example(
            (u32(3, 4),), {"shape": (5,), "dtype": U32, "algorithm": "three_fry"}, low=0, high=9
        ),
    ],
)


# ---- one without ----------------------------------------------------------------------------


def _uniform_type(a: ArrayType, b: ArrayType, *, shape: Shape) -> ArrayType:
    for bound in (a, b):
        check_domain("rng_uniform", bound, real_number)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        raise TypeError(f"rng_uniform: the bounds must have one shape and dtype, got {a} and {b}")
    return ArrayType((*a.shape, *shape), a.dtype)


def _uniform_lower(b: Builder, low: Value, high: Value, *, shape: Shape) -> Value:
    def draw(b: Builder, low: Value, high: Value) -> list[Value]:
        return [b.rng_uniform(low, high, shape)]

    return _in_turn(b, draw, [low, high], [len(shape)])[0]


rng_uniform = Primitive(
    "rng_uniform",
    _uniform_type,
    _uniform_lower,
    linearize=ZeroDerivative("which numbers come out is up to the device, and never the same"),
    transpose=NoRule("it is not linear"),
    batch=_batch(lambda: rng_uniform),
    doc="for each pair of bounds, numbers uniform in [a, b), others in every run; stablehlo.rng",
)
