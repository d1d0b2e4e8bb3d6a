"""A program in two: one that stores what a policy lets be stored, one that computes the rest again.

The policy is called for every operation, those of sub-programs included; what it grants is
stored only where the rest needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from phalanx.base import dtypes
from phalanx.base.source import Location
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import Primitive, selected
from phalanx.core.program import Atom, Equation, Frame, Program, Var
from phalanx.core.roles import CHOICE
from phalanx.core.types import ArrayType
from phalanx.primitives.elementwise import reduce_precision
from phalanx.primitives.naming import named
from phalanx.transforms.simplify import blank, filled, fixpoint

Policy = Callable[..., Any]  # gives True, False, or an ``OffloadTo``


class OffloadTo(Struct, frozen=True, eq=False):  # there are few, and they are keys
    """The answer of a policy for values that are stored in other memory than that of the devices.

    ``move`` brings a value there with the parameters ``there``, and back with those of ``back``.
    """

    move: Primitive
    there: Mapping[str, Any]
    back: Mapping[str, Any]

    def moved(self, v: Var, at: Location | None) -> _Moved:
        """What is stored for ``v``."""
        away = Var(v.type)
        there = Equation(self.move, [v], dict(self.there), (away,), at)
        return _Moved(away, there, Equation(self.move, [away], dict(self.back), (v,), at))


class _Moved(NamedTuple):
    """What is stored elsewhere for a variable: another one, which is made of it, and back."""

    away: Var
    there: Equation
    back: Equation


class _Divided(Struct, frozen=True):
    """``storing`` gives the results and, after them, stored values that are no results.

    ``resuming`` takes the inputs and the stored values, which ``storing`` gives as its outputs
    number ``stored``; it gives what was wanted.
    """

    storing: Program
    resuming: Program
    stored: tuple[int, ...]


def partition_for_remat(
    program: Program, values: Sequence[Atom], policy: Policy, carried: Collection[int] = ()
) -> _Divided:
    """Split ``program`` so that a second part computes ``values`` of it later, as ``policy`` says.

    Its results number ``carried`` are lost, where it is the body of a loop.
    """
    granted = _granted(program, policy)
    moved: dict[Var, _Moved] = {}
    # a granted name is given to a value: that is the named one under another variable
    names = {
        e.inputs[0]: e
        for e in program.equations
        if e.prim is named and e.outputs[0] in granted and isinstance(e.inputs[0], Var)
    }
    needed = {a for a in values if isinstance(a, Var)}
    stored: dict[Var, None] = {}
    storing: list[Equation] = []
    resuming: list[Equation] = []
    for e in reversed(program.equations):
        produced = [v for v in e.outputs if v in needed]
        named_values = [names[v] for v in produced if v in names]
        rest = [v for v in produced if v not in names]
        missing = {v for v in rest if v not in granted}
        first, again, residuals = _again(e, missing, policy) if missing else (e, [], [])
        again += [_unnamed(n) for n in named_values]
        own = [v for v in rest if v in granted] + [n.outputs[0] for n in named_values]
        for v in own:
            where = granted[v]
            if where is not None and v not in moved:
                moved[v] = where.moved(v, e.location)
            residuals.append(moved[v].away if v in moved else v)
        stored.update(dict.fromkeys(residuals))
        needed.update(a for x in again for a in x.inputs if isinstance(a, Var))
        storing.append(first)
        resuming += again[::-1]
    computed = [x for e in storing[::-1] for x in _rounded(e, stored)]
    storing = [*computed, *(m.there for m in moved.values())]
    resuming = [*(m.back for m in moved.values()), *resuming[::-1]]
    results = {a for i, a in enumerate(program.outputs) if i not in carried}
    outputs = [*program.outputs, *(v for v in stored if v not in results)]
    place = {a: i for i, a in enumerate(outputs) if i not in carried}
    return _Divided(
        program.update(equations=storing, outputs=outputs),
        program.update(inputs=[*program.inputs, *stored], equations=resuming, outputs=values),
        tuple(place[v] for v in stored),
    )


def _rounded(e: Equation, stored: Collection[Var]) -> list[Equation]:
    """``e``, and its results that are ``stored`` rounded to their dtype, which they are already.

    So all who use them use what is stored. Otherwise compilers for accelerators also store what is
    made of them, though it could be made again later, of what is stored.
    """
    if e.frame is not None:  # inside
        return [e]
    own = {v: Var(v.type) for v in e.outputs if v in stored and v.type.dtype in _FORMATS}
    first = e.update(outputs=tuple([own.get(v, v) for v in e.outputs])) if own else e
    return [
        first,
        *(
            Equation(reduce_precision, [exact], _FORMATS[v.type.dtype], (v,), e.location)
            for v, exact in own.items()
        ),
    ]


def is_rounding(e: Equation) -> bool:
    """Whether ``e`` rounds what is stored to the dtype that it has."""
    return e.prim is reduce_precision and e.params == _FORMATS.get(e.outputs[0].type.dtype)


_FORMATS = {
    dtype: {"exponent_bits": exponent, "mantissa_bits": mantissa}
    for dtype, exponent, mantissa in (
        (dtypes.as_dtype("float16"), 5, 10),
        (dtypes.as_dtype("bfloat16"), 8, 7),
        (dtypes.as_dtype("float32"), 8, 23),
        (dtypes.as_dtype("float64"), 11, 52),
    )
}


def _unnamed(e: Equation) -> Equation:
    """The value to which ``e`` gives a name, from the variable that has the name."""
    value = e.inputs[0]
    assert isinstance(value, Var)
    return e.update(inputs=[*e.outputs], outputs=(value,))


def _granted(program: Program, policy: Policy) -> dict[Var, OffloadTo | None]:
    """The variables that may or must be stored: in other memory as ``OffloadTo`` says; where that
    is None, where they are."""
    granted: dict[Var, OffloadTo | None] = {}
    for e in program.equations:
        frame = divisible(e)
        if frame is not None:
            (body,) = frame.programs
            inner: dict[Atom, Any] = {**_granted(body, policy)}
            pairs = zip(e.outputs, body.outputs, strict=True)
            # what is stored elsewhere is so inside
            granted.update((v, None) for v, a in pairs if inner.get(a, False) is None)
        elif e.effects:  # which do not happen again
            granted.update(dict.fromkeys(e.outputs))
        elif verdict := _allows(policy, e):
            granted.update(dict.fromkeys(e.outputs, None if verdict is True else verdict))
    return granted


def _allows(policy: Policy, e: Equation) -> bool | OffloadTo:
    """What the policy says of ``e``."""
    verdict = policy(e.prim, *[a.type for a in e.inputs], **e.params)
    if isinstance(verdict, OffloadTo):
        return verdict
    if type(verdict) not in (bool, np.bool_):  # a policy of the user's may give anything
        name = getattr(policy, "__name__", str(policy))
        raise TypeError(
            f"checkpoint: the policy {name} must return True or False for each operation, got "
            f"{verdict!r} for {e.prim} at {e.location}"
        )
    return bool(verdict)


def divisible(e: Equation) -> Frame | None:
    """The frame of an operation whose sub-program can be divided, if it has one.

    So it is where one program runs, a known number of times. Where that is never, the carry that
    goes in comes out, whatever the program is. Rules of the user's fit the program as it is.
    """
    frame = e.frame
    if frame is None or e.prim.user_rules is not None:
        return None
    simple = frame.condition is None and CHOICE not in frame.ins
    return frame if simple and frame.runs.size else None


def _again(
    e: Equation, missing: set[Var], policy: Policy
) -> tuple[Equation, list[Equation], list[Var]]:
    """The equation for the first time, what gives ``missing`` later, and what it starts from.

    An equation with a sub-program divides it, where the policy lets something in it be stored.
    """
    frame = divisible(e)
    if frame is None:
        return e, [_renewed(e, missing, [v.type for v in e.outputs])], []
    parts, used = _divided_inside(frame, tuple(v in missing for v in e.outputs), policy)
    roles_of_results = [
        *frame.outs,
        *map(frame.stored, parts.storing.output_types[len(e.outputs) :]),
    ]
    more = tuple(roles_of_results[len(e.outputs) :])
    first = e
    if more:
        storing = replace(frame, programs=(parts.storing,), outs=(*frame.outs, *more))
        types = storing.result_types[len(e.outputs) :]
        outputs = (*e.outputs, *(Var(t) for t in types))
        first = e.reframed(storing, outputs=outputs)
    residuals = [first.outputs[i] for i in parts.stored]
    roles = tuple(roles_of_results[i] for i in parts.stored)
    resuming = replace(frame, programs=(parts.resuming,), ins=(*frame.ins, *roles))
    operands = list(zip([*e.inputs, *residuals], used, strict=True))
    blanks = [blank(a.type) for a, u in operands if not u]
    rest = iter(blanks)
    inputs = [a if u else next(rest).outputs[0] for a, u in operands]
    last = e.reframed(resuming, inputs=inputs)
    return first, [*blanks, _renewed(last, missing, resuming.result_types)], residuals


def _divided_inside(
    frame: Frame, requested: tuple[bool, ...], policy: Policy
) -> tuple[_Divided, list[bool]]:
    """A sub-program divided, and which inputs the second part uses.

    That has all results, of which those that are not ``requested`` are zeros.
    """
    body = frame.programs[0]
    carried = len(frame.carried_out(frame.outs))

    def parts_for(needed: Sequence[bool]) -> tuple[_Divided, list[bool]]:
        outputs = selected(body.outputs, needed)
        parts = partition_for_remat(
            body, outputs, policy, frame.carried_out(range(len(frame.outs)))
        )
        rest = filled(parts.resuming, body.output_types, needed)
        uses = {a for e in rest.equations for a in e.inputs}.union(rest.outputs)
        return _Divided(parts.storing, rest, parts.stored), [v in uses for v in rest.inputs]

    def carry_of_next(carry: Sequence[bool]) -> Sequence[bool]:
        """What a run uses of the carry the run before must give."""
        _, used = parts_for(frame.with_carried_out(requested, carry))
        return frame.carried_in(used[: len(frame.ins)])

    def make() -> tuple[_Divided, list[bool]]:
        carry = fixpoint(frame.carried_out(requested), carry_of_next) if carried else ()
        return parts_for(frame.with_carried_out(requested, carry))

    return memoize_on(body, ("divide", requested, frame.key, policy), make)


def _renewed(e: Equation, missing: set[Var], types: Sequence[ArrayType]) -> Equation:
    """``e``, which gives ``types``, where only its ``missing`` results are not there yet."""
    pairs = zip(e.outputs, types, strict=True)
    return e.update(outputs=tuple([v if v in missing else Var(t) for v, t in pairs]))
