"""``optimization_barrier``: values as they are, between which and their uses nothing moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, Active, Example, Primitive
from phalanx.core.types import ArrayType
from phalanx.ops.basis import f32, i32


def _type(*xs: ArrayType) -> tuple[ArrayType, ...]:
    return tuple(ArrayType(x.shape, x.dtype, x.weak) for x in xs)


def _linearize(active: Active, *xs: Any) -> tuple[tuple, Callable]:
    return optimization_barrier(*xs), _of_nonzero


def _of_nonzero(*ts: Any) -> tuple:
    """Tangents, or cotangents, behind a barrier of their own."""
    found = iter(optimization_barrier(*(t for t in ts if t is not ZERO)))
    return tuple(ZERO if t is ZERO else next(found) for t in ts)


def _batch(axis: Axis, values: Sequence, dims: tuple) -> tuple:
    return optimization_barrier(*values), dims


optimization_barrier = Primitive(
    "optimization_barrier",
    _type,
    lambda b, *xs: b.optimization_barrier(xs),
    linearize=_linearize,
    transpose=lambda cts, *xs: list(_of_nonzero(*cts)),
    batch=_batch,
    vary=lambda *xs: xs,
    multi=True,
    doc="the operands, each known to what follows only once all are; "
    "stablehlo.optimization_barrier",
    examples=[Example((f32(2, 3), f32(3), i32(2))), Example((f32(3),))],
)
