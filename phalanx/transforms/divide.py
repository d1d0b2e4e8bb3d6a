"""A program in two: one that stores what a policy lets be stored, one that computes the rest again.

The policy is asked for every operation, those of sub-programs included; what it grants is
stored only where the rest needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from phalanx.core.primitive import Inside
from phalanx.core.program import Atom, Equation, Literal, Program, Var, plain
from phalanx.core.types import ArrayType
from phalanx.ops.basis import broadcast
from phalanx.ops.naming import named

Policy = Callable[..., bool]


@dataclass(frozen=True, slots=True)
class Divided:
    """``storing`` gives the results and, after them, stored values that are no results.

    ``resuming`` takes the inputs and the stored values, which ``storing`` gives as its outputs
    number ``stored``; it gives what was wanted.
    """

    storing: Program
    resuming: Program
    stored: tuple[int, ...]


def divide(
    program: Program, wanted: Sequence[Atom], policy: Policy, carried: int = 0
) -> Divided:
    """Split ``program`` such that ``wanted`` values of it can be had later, as ``policy`` says.

    Its first ``carried`` results are lost, where it is the body of a loop.
    """
    granted = _granted(program, policy)
    # a granted name is given to a value: that is the named one under another variable
    names = {
        e.inputs[0]: e
        for e in program.equations
        if e.prim is named and e.outputs[0] in granted and isinstance(e.inputs[0], Var)
    }
    needed = {a for a in wanted if isinstance(a, Var)}
    stored: dict[Var, None] = {}
    storing: list[Equation] = []
    resuming: list[Equation] = []
    for e in reversed(program.equations):
        here = [v for v in e.outputs if v in needed]
        known = [names[v] for v in here if v in names]
        rest = [v for v in here if v not in names]
        missing = {v for v in rest if v not in granted}
        first, again, kept = _again(e, missing, policy) if missing else (e, [], [])
        again += [_unnamed(n) for n in known]
        kept += [v for v in rest if v in granted] + [n.outputs[0] for n in known]
        stored.update(dict.fromkeys(kept))
        needed.update(a for x in again for a in x.inputs if isinstance(a, Var))
        storing.append(first)
        resuming += again[::-1]
    outputs = list(program.outputs)
    outputs += [v for v in stored if v not in outputs[carried:]]
    place = {a: i for i, a in enumerate(outputs) if i >= carried}
    return Divided(
        Program(program.inputs, storing[::-1], outputs, program.name),
        Program([*program.inputs, *stored], resuming[::-1], wanted, program.name),
        tuple(place[v] for v in stored),
    )


def _unnamed(e: Equation) -> Equation:
    """The value to which ``e`` gives a name, from the variable that has the name."""
    value = e.inputs[0]
    assert isinstance(value, Var)
    return Equation(named, list(e.outputs), e.params, (value,), e.location)


def _granted(program: Program, policy: Policy) -> set[Var]:
    """The variables that may be stored, or must be."""
    found: set[Var] = set()
    for e in program.equations:
        inside = _inside(e)
        if inside is not None:
            inner = _granted(inside.program, policy)
            pairs = zip(e.outputs, inside.program.outputs, strict=True)
            found.update(v for v, a in pairs if a in inner)
        elif e.effects or _allows(policy, e):  # effects do not happen again
            found.update(e.outputs)
    return found


def _allows(policy: Policy, e: Equation) -> bool:
    """What the policy says of ``e``."""
    verdict = policy(e.prim, *[plain(a.type) for a in e.inputs], **e.params)
    if not isinstance(verdict, (bool, np.bool_)):
        name = getattr(policy, "__name__", str(policy))
        raise TypeError(
            f"checkpoint: the policy {name} must return True or False for each operation, got "
            f"{verdict!r} for {e.prim} at {e.location}"
        )
    return bool(verdict)


def _inside(e: Equation) -> Inside | None:
    return e.prim.inside(e.params) if e.prim.inside is not None else None


def _again(
    e: Equation, missing: set[Var], policy: Policy
) -> tuple[Equation, list[Equation], list[Var]]:
    """The equation for the first time, what gives ``missing`` later, and what it starts from.

    An equation with a sub-program divides it, where the policy lets something in it be stored.
    """
    inside = _inside(e)
    if inside is None:
        return e, [_renewed(e, missing)], []
    parts, used = _divided_inside(inside, tuple(v in missing for v in e.outputs), policy)
    more = len(parts.storing.outputs) - len(e.outputs)
    params = inside.extended(parts.storing, 0, more)
    types = e.prim.type(*[a.type for a in e.inputs], **params)
    outputs = (*e.outputs, *(Var(t) for t in types[len(e.outputs) :]))
    first = Equation(e.prim, e.inputs, params, outputs, e.location) if more else e
    kept = [outputs[i] for i in parts.stored]
    operands = list(zip([*e.inputs, *kept], used, strict=True))
    blanks = [_blank(a.type) for a, u in operands if not u]
    rest = iter(blanks)
    inputs = [a if u else next(rest).outputs[0] for a, u in operands]
    params = inside.extended(parts.resuming, len(kept), 0)
    last = Equation(e.prim, inputs, params, e.outputs, e.location)
    return first, [*blanks, _renewed(last, missing)], kept


def _divided_inside(
    inside: Inside, asked: tuple[bool, ...], policy: Policy
) -> tuple[Divided, list[bool]]:
    """A sub-program divided, and which inputs the second part uses.

    That has all results, of which those that are not ``asked`` for are zeros.
    """
    body = inside.program
    key = ("divide", asked, inside.carried, inside.carry_at, policy)
    if key in body.derived:
        return body.derived[key]
    wanted = list(asked)
    while True:  # what it uses of the carry it must also give to the next turn
        outputs = [a for a, k in zip(body.outputs, wanted, strict=True) if k]
        parts = divide(body, outputs, policy, inside.carried)
        rest = _filled(parts.resuming, body.output_types, wanted)
        found = {a for e in rest.equations for a in e.inputs}.union(rest.outputs)
        used = [v in found for v in rest.inputs]
        carry = used[inside.carry_at : inside.carry_at + inside.carried]
        grown = [a or b for a, b in zip_longest(wanted, carry, fillvalue=False)]
        if grown == wanted:
            body.derived[key] = Divided(parts.storing, rest, parts.stored), used
            return body.derived[key]
        wanted = grown


def _renewed(e: Equation, missing: set[Var]) -> Equation:
    """``e`` where only its ``missing`` results are not there yet."""
    types = e.prim.type(*[a.type for a in e.inputs], **e.params)
    pairs = zip(e.outputs, types if e.prim.multi else (types,), strict=True)
    outputs = tuple(v if v in missing else Var(plain(t)) for v, t in pairs)
    return Equation(e.prim, e.inputs, e.params, outputs, e.location)


def _filled(program: Program, types: Sequence[ArrayType], asked: Sequence[bool]) -> Program:
    """``program``, with zeros for results that nobody asked for."""
    given = iter(program.outputs)
    blanks = [_blank(t) for t, a in zip(types, asked, strict=True) if not a]
    rest = iter(blanks)
    outputs = [next(given) if a else next(rest).outputs[0] for a in asked]
    return Program(program.inputs, [*program.equations, *blanks], outputs, program.name)


def _blank(type: ArrayType) -> Equation:
    """Zeros in place of what is not used."""
    zero = Literal(np.zeros((), type.dtype)[()])
    params = {"shape": type.shape, "dims": ()}
    return Equation(broadcast, [zero], params, (Var(broadcast.type(zero.type, **params)),), None)
