"""Vectorization of operations with sub-programs: each program on all lanes, role by role."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from phalanx.control.framed import bind_frame, frame_of
from phalanx.core.axes import Axis, Names
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import Primitive, Rule
from phalanx.core.program import Frame
from phalanx.core.roles import CARRY, Role
from phalanx.core.runs import Marks
from phalanx.primitives.basis import convert, move
from phalanx.primitives.collective import pmax
from phalanx.primitives.compare import gt
from phalanx.primitives.domains import I32
from phalanx.primitives.reduce import reduce_or
from phalanx.transforms.batch import Dims, batch_program, lanes_in_front
from phalanx.transforms.simplify import fixpoint


class _BatchedFrame(Struct, frozen=True):
    """A frame on all lanes of an axis.

    What is carried has its lanes first if ``carried`` says so; the results have theirs in ``dims``.
    """

    frame: Frame
    carried: Marks
    dims: Dims


def batch_rule(prim: Callable[[], Primitive]) -> Rule:
    """The rule of the family for vectorization, where no choice and no condition has lanes."""

    def rule(
        axis: Axis, values: Sequence[Any], dims: Dims, /, **params: Any
    ) -> tuple[tuple[Any, ...], Dims]:
        frame = frame_of(prim(), params)
        inside = _axis_inside(frame, axis)
        values, dims = _rows_first(frame, values, dims)
        vectorized = batched(frame, inside, dims)
        operands = place_carry(frame, values, dims, vectorized.carried, axis)
        results = bind_frame(prim(), operands, params, vectorized.frame)
        return results, vectorized.dims

    return rule


def anyone(axis: Axis, marks: Sequence[Any], everywhere: bool) -> list[Any]:
    """Whether each of ``marks``, which have a truth value per lane, is true in any lane.

    These are the lanes on this device, or, if devices must agree, those ``everywhere``.
    """
    on_device = [reduce_or(mark, dims=(0,)) for mark in marks]
    if not everywhere or not axis.outside:
        return on_device
    counts = [convert(mark, dtype=I32, weak=False) for mark in on_device]
    return [gt(n, np.int32(0)) for n in pmax(*counts, axes=axis.outside, groups=None)]


def _axis_inside(frame: Frame, axis: Axis) -> Axis:
    """``axis`` as the programs know it: an axis of the same name inside shadows it."""
    return replace(axis, name=None) if axis.name in frame.lanes else axis


def _rows_first(frame: Frame, values: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
    """Operands of a loop with lanes behind the dimension of the runs, which stays in front."""
    values, places = list(values), list(dims)
    for i, (role, dim) in enumerate(zip(frame.ins, dims, strict=True)):
        if frame.is_loop and role.layout and dim == 0:
            values[i], places[i] = move(values[i], 0, 1), 1
    return values, tuple(places)


def place_carry(
    frame: Frame, values: Sequence[Any], dims: Dims, carried: Sequence[bool], axis: Axis
) -> list[Any]:
    """``values`` with the lanes of what is carried first, where it has some."""
    pairs = frame.carried_in(list(zip(values, dims, strict=True)))
    placed = [
        lanes_in_front(v, d, axis) if has else v for (v, d), has in zip(pairs, carried, strict=True)
    ]
    return frame.with_carried_in(values, placed)


def batched(frame: Frame, axis: Axis, dims: Dims) -> _BatchedFrame:
    """``frame`` on all lanes of ``axis``, which the operands carry in ``dims``."""
    key = ("lanes", frame.key, axis, dims)
    return memoize_on(frame.programs[0], key, lambda: _batched(frame, axis, dims))


def _batched(frame: Frame, axis: Axis, dims: Dims) -> _BatchedFrame:
    carried = stable_lanes(frame, axis, dims)
    inner = inner_dims(frame, dims, carried)
    plain = [batch_program(p, axis, inner).about for p in frame.programs]
    leading = _leading(frame, plain, carried)
    derived = [batch_program(p, axis, inner, leading) for p in frame.programs]
    cutting = tuple([name for name in axis.outside if name in frame.lanes])
    condition = frame.condition and batch_program(frame.condition, axis, inner).program
    dims_inside = list(zip(frame.outs, derived[0].about, strict=True))
    places = tuple([d if d is None else r.outer_dim(d) for r, d in dims_inside])
    lanes = replace(
        frame,
        programs=tuple([m.program for m in derived]),
        ins=tuple([_beside_lanes(r, d, cutting) for r, d in zip(frame.ins, dims, strict=True)]),
        outs=tuple([_beside_lanes(r, d, cutting) for r, d in zip(frame.outs, places, strict=True)]),
        condition=condition,
    )
    return _BatchedFrame(lanes, tuple(carried), places)


def stable_lanes(frame: Frame, axis: Axis, dims: Dims) -> list[bool]:
    """What is carried has lanes if it gets some in any run."""

    def step(carried: Sequence[bool]) -> list[bool]:
        inner = inner_dims(frame, dims, carried)
        columns = zip(*(batch_program(p, axis, inner).about for p in frame.programs), strict=True)
        return frame.carried_out([any(d is not None for d in column) for column in columns])

    start = frame.carried_in([d is not None for d in dims])
    return fixpoint(start, step) if start else []


def inner_dims(frame: Frame, dims: Dims, carried: Sequence[bool]) -> Dims:
    """Where the programs see the lanes of what they take."""
    first = [0 if has else None for has in carried]
    placed = frame.with_carried_in(dims, first)
    pairs = zip(frame.ins, placed, strict=True)
    inner = [d if d is None else _beside_lanes(r, d).inner_dim(d) for r, d in pairs]
    return tuple(frame.body_operands(inner))


def _beside_lanes(role: Role, dim: int | None, cutting: Names = ()) -> Role:
    """The role of an array that has lanes in ``dim``, dealt out along the axes ``cutting`` it."""
    return role if dim is None else role.insert_dim(dim, cutting)


def _leading(frame: Frame, plain: Sequence[Dims], carried: Sequence[bool]) -> Marks | None:
    """The results that get their lanes first: what is carried, and what several programs give."""
    if len(frame.programs) == 1 and not carried:
        return None
    batched = [any(d is not None for d in column) for column in zip(*plain, strict=True)]
    if len(frame.programs) > 1:
        return tuple(batched)
    rest = iter(carried)
    return tuple([r is CARRY and next(rest) for r in frame.outs])
