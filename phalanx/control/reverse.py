"""Reverse derivatives of operations with sub-programs: the programs run backwards, role by role.

What an operand is to the program decides what becomes of its cotangent. That of a slice is a slice;
that of what is carried is carried the other way. A FIXED operand of a loop or of lanes was used in
every run, so its cotangents are added up: a loop carries the sum along, and lanes reduce them over
the axes that do not cut it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from phalanx.base import dtypes
from phalanx.control.framed import bind_frame, frame_of
from phalanx.core.layouts import Axes
from phalanx.core.manual import Typed
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import ZERO, Linear, Primitive, Rule, selected, with_zeros
from phalanx.core.program import Frame, Program
from phalanx.core.roles import CARRY, CHOICE, FIXED, Role
from phalanx.core.runs import Loop, Marks
from phalanx.primitives.basis import add_tangents, instantiate, mul, zeros
from phalanx.primitives.collective import psum
from phalanx.transforms.derive import Derived, derive
from phalanx.transforms.simplify import filled
from phalanx.transforms.transpose import backward


class _Transposed(Struct, frozen=True):
    """A frame run backwards, and the operands of the forward one whose cotangents it gives.

    It takes choices, the operands that are not linear, zeros for the sums over runs, and the
    cotangents of results that are given. ``order`` are positions of operands, ``nonzero`` says
    which of these have a cotangent.
    """

    frame: Frame
    order: tuple[int, ...]
    nonzero: Marks


def transpose_rule(prim: Callable[[], Primitive]) -> Rule:
    """The rule of the family for reverse mode."""

    def rule(cts: tuple[Any, ...], /, *operands: Any, **params: Any) -> list[Any]:
        frame = frame_of(prim(), params)
        is_linear = tuple([isinstance(x, Linear) for x in operands])
        linear = tuple([w or r is CARRY for w, r in zip(is_linear, frame.ins, strict=True)])
        has_cotangent = tuple(
            [ct is not ZERO or r is CARRY for ct, r in zip(cts, frame.outs, strict=True)]
        )
        back = transposed(frame, linear, has_cotangent)
        _check_carry(frame)  # after what is not linear has been found, with its line
        nonlinear = [x for x, n in zip(operands, linear, strict=True) if not n]
        sums = [zeros(operands[i].type.cotangent) for i in _summed(frame, linear)]
        starts = [
            instantiate(ct, t.cotangent)
            for ct, t, g in zip(cts, frame.result_types, has_cotangent, strict=True)
            if g
        ]
        results = bind_frame(prim(), [*nonlinear, *sums, *starts], params, back.frame)
        cotangents: list[Any] = [None] * len(operands)
        for i, ct in zip(back.order, with_zeros(results, back.nonzero), strict=True):
            cotangents[i] = ct
        return [ct if w else None for ct, w in zip(cotangents, is_linear, strict=True)]

    return rule


def _check_carry(frame: Frame) -> None:
    """Raise TypeError where what is carried cannot be carried backwards."""
    types = frame.programs[0].input_types
    if frame.is_loop and not all(dtypes.is_inexact(t.dtype) for t in frame.carried_in(types)):
        raise TypeError(
            "linear_transpose: a loop that carries integers cannot be transposed; let scan give "
            "them as rows instead"
        )


def _summed(frame: Frame, linear: Marks) -> list[int]:
    """The operands whose cotangents a loop adds up."""
    if not frame.is_loop:
        return []
    return [i for i, (r, n) in enumerate(zip(frame.ins, linear, strict=True)) if n and r is FIXED]


def transposed(frame: Frame, linear: Marks, has_cotangent: Marks) -> _Transposed:
    """``frame`` backwards in its ``linear`` operands; ``has_cotangent`` marks its results."""
    key = ("transpose", frame.key, linear, has_cotangent)
    return memoize_on(frame.programs[0], key, lambda: _transposed(frame, linear, has_cotangent))


def _transposed(frame: Frame, linear: Marks, has_cotangent: Marks) -> _Transposed:
    order = _order(frame, linear)
    derived = [_backwards(frame, p, linear, has_cotangent, order) for p in frame.programs]
    sums = _summed(frame, linear)
    carried = [frame.ins[i] is CARRY or i in sums for i in order]
    nonzero = tuple(
        [c or any(column) for c, *column in zip(carried, *(m.about for m in derived), strict=True)]
    )
    inputs = frame.programs[0].input_types
    types = {i: t.cotangent for i, t in zip(_positions(frame), inputs, strict=True)}
    cotangent_types = [types[i] for i in selected(order, nonzero)]
    programs = tuple(
        [filled(m.program, cotangent_types, selected(m.about, nonzero)) for m in derived]
    )
    roles = [CARRY if i in sums else frame.ins[i].cotangent for i in order]
    runs = frame.runs
    back = replace(
        frame,
        programs=programs,
        ins=(*selected(frame.ins, [not n for n in linear]), *[CARRY] * len(sums),
             *[r.cotangent for r in selected(frame.outs, has_cotangent)]),
        outs=tuple(selected(roles, nonzero)),
        runs=replace(runs, reverse=not runs.reverse) if isinstance(runs, Loop) else runs,
    )  # fmt: skip
    return _Transposed(back, order, nonzero)


def _positions(frame: Frame) -> list[int]:
    """The positions of the operands that the programs see."""
    return [i for i, r in enumerate(frame.ins) if r is not CHOICE]


def _order(frame: Frame, linear: Marks) -> tuple[int, ...]:
    """The linear operands: first what is summed up, then what is carried, as a loop has them."""
    ranks = {FIXED: 0, CARRY: 1}
    positions = [i for i, n in enumerate(linear) if n]
    return tuple(sorted(positions, key=lambda i: ranks.get(frame.ins[i], 2)))


def _backwards(
    frame: Frame, program: Program, linear: Marks, has_cotangent: Marks, order: tuple[int, ...]
) -> Derived[Marks]:
    """One program backwards: the cotangents of operands in ``order``, and which are not ZERO.

    It takes what is known, the sums so far, and the cotangents of results.
    """
    sums = _summed(frame, linear)
    positions = _positions(frame)

    def back(*inputs: Any) -> tuple[list[Any], Marks]:
        rest = iter(inputs)
        operands = [
            Linear(v.type) if linear[i] else next(rest)
            for i, v in zip(positions, program.inputs, strict=True)
        ]
        so_far = {i: next(rest) for i in sums}
        cts = with_zeros(rest, has_cotangent)
        received = [_received(frame, r, ct) for r, ct in zip(frame.outs, cts, strict=True)]
        sent = iter(backward(program, operands, received))
        by_operand = {i: next(sent) for i in positions if linear[i]}
        outputs = [
            add_tangents(so_far[i], by_operand[i]) if i in so_far
            else _sent(frame, frame.ins[i], by_operand[i])
            for i in order
        ]  # fmt: skip
        return [o for o in outputs if o is not ZERO], tuple([o is not ZERO for o in outputs])

    types = dict(zip(positions, program.input_types, strict=True))
    nonlinear = [types[i] for i in positions if not linear[i]]
    ends = [t.cotangent for t in selected(program.output_types, has_cotangent)]
    key = ("backwards", frame.ins, frame.outs, frame.runs, linear, has_cotangent)
    return derive(program, key, back, [*nonlinear, *(types[i].cotangent for i in sums), *ends])


def _received(frame: Frame, role: Role, ct: Any) -> Any:
    """The cotangent of a result in one run: what lanes have alike is divided among them."""
    alike = _alike(frame, role)
    if ct is ZERO or not alike:
        return ct
    return mul(ct, 1.0 / math.prod(size for _, size in alike))


def _sent(frame: Frame, role: Role, ct: Any) -> Any:
    """The cotangent that one run has for an operand: that of what lanes have alike is their sum."""
    alike = _alike(frame, role)
    if ct is ZERO or not alike:
        return ct
    return psum(ct, axes=tuple([axis for axis, _ in alike]), groups=None)[0]


def _alike(frame: Frame, role: Role) -> Axes:
    """The axes along which lanes have the same of what has ``role``, and do not know that.

    Where types know it, a cotangent is the same for all lanes, too.
    """
    return tuple([(axis, size) for axis, size in frame.alike(role) if type(axis) is not Typed])
