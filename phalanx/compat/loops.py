"""Loops as the field has them: what each run has, then what is carried, and rows; and how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from phalanx.compat.private.flattree import FlatTree, nones, pack
from phalanx.core import primitive as core
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Program, Var
from phalanx.core.roles import CARRY, FIXED, Role, Roles, each

LOOPS: Final = ("scan", "while")
Arranged = tuple[list[Any], Sequence[int] | None, Mapping[str, Any]]


def arranged_loop(
    prim: core.Primitive, operands: Sequence[Any], params: Mapping[str, Any]
) -> Arranged:
    """The field's operands, which of our results its own are, if not all in order, and parameters
    with which the operation takes and gives those."""
    return (_scan if prim.name == "scan" else _while)(operands, params)


def _scan(operands: Sequence[Any], params: Mapping[str, Any]) -> Arranged:
    ins, outs, program = params["ins"], params["outs"], params["program"]
    taken, out_order = _sorted(ins), _sorted(outs)

    def make() -> Program:
        inputs, outputs = (
            [program.inputs[i] for i in taken],
            [program.outputs[i] for i in out_order],
        )
        return program.update(inputs=inputs, outputs=outputs)

    reordered = memoize_on(program, ("in the order of the field", *taken, *out_order), make)
    roles = {"ins": tuple([ins[i] for i in taken]), "outs": tuple([outs[i] for i in out_order])}
    return [operands[i] for i in taken], out_order, {**params, **roles, "program": reordered}


def _sorted(roles: Roles) -> list[int]:
    return sorted(range(len(roles)), key=lambda i: (bool(roles[i].layout), roles[i] is CARRY))


def _while(operands: Sequence[Any], params: Mapping[str, Any]) -> Arranged:
    """What is FIXED stands there for the condition and for the body, each of which reads its own.

    Results are what is carried, in order.
    """
    ins, condition, body = params["ins"], params["condition"], params["program"]
    for_condition, for_body = (_read_of_fixed(p, ins) for p in (condition, body))
    carry = [i for i, r in enumerate(ins) if r is CARRY]
    order = [*for_condition, *for_body, *carry]
    roles = tuple([ins[i] for i in order])
    ahead, behind = len(for_condition), len(for_body)
    own = {
        "condition": _taking(condition, order, 0, ahead, behind),
        "program": _taking(body, order, ahead, behind, 0),
    }
    return [operands[i] for i in order], None, {**params, **own, "ins": roles}


def _read_of_fixed(program: Program, ins: Roles) -> list[int]:
    read = {a for e in program.equations for a in e.inputs}.union(program.outputs)
    pairs = enumerate(zip(program.inputs, ins, strict=True))
    return [i for i, (v, r) in pairs if r is not CARRY and v in read]


def _taking(program: Program, order: Sequence[int], skipped: int, own: int, others: int) -> Program:
    """``program`` of the inputs that ``order`` numbers, of which it makes use of its ``own``."""

    def make() -> Program:
        used = {*range(skipped, skipped + own), *range(skipped + own + others, len(order))}
        every = [(n in used, program.inputs[i]) for n, i in enumerate(order)]
        return program.update(inputs=[v if mine else Var(v.type) for mine, v in every])

    return memoize_on(program, ("for one part of a loop", *order, skipped, own, others), make)


# ---- how many there are of each kind, and the way back -------------------------------------------


def counted(prim: core.Primitive, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the field says of a loop, of which these are the arranged parameters.

    Programs of the condition and of the body have their own inputs alone. Roles are said where
    the counts do not tell them all: of rows along another dimension, or of sums to be taken.
    """
    out = _with_counts(prim, params)
    by_roles = with_roles(prim, {k: v for k, v in out.items() if k not in _ROLES})
    return {k: v for k, v in out.items() if k not in _ROLES or v != by_roles[k]}


def _with_counts(prim: core.Primitive, params: Mapping[str, Any]) -> dict[str, Any]:
    ins: Roles = params["ins"]
    carried = ins.count(CARRY)
    if prim.name == "scan":
        fixed = sum(not r.layout for r in ins) - carried
        taken = (fixed, carried, len(ins) - fixed - carried)
        counts = (carried, len(params["outs"]) - carried)
        return {**params, "ft_in": _grouped(taken), "ft_out": _grouped(counts)}
    condition, body = params["condition"], params["program"]
    fixed = len(ins) - carried
    ahead = len(_read_of_fixed(condition, ins))
    own = {
        "condition": condition.update(
            inputs=[*condition.inputs[:ahead], *condition.inputs[fixed:]]
        ),
        "program": body.update(inputs=body.inputs[ahead:]),
    }
    return {**params, **own, "cond_nconsts": ahead, "body_nconsts": fixed - ahead}


def with_roles(prim: core.Primitive, params: Mapping[str, Any]) -> dict[str, Any]:
    """The way back from ``counted``, also where there are others now than there were roles."""
    out = {k: v for k, v in params.items() if k not in _COUNTS}
    if prim.name == "scan":
        ins = _roles((FIXED, CARRY, each(0)), params["ft_in"])
        outs = _roles((CARRY, each(0)), params["ft_out"])
        return {**out, "ins": _as_before(ins, params), "outs": _as_before(outs, params, "outs")}
    condition, body = params["condition"], params["program"]
    ahead, behind = params["cond_nconsts"], params["body_nconsts"]
    carried = body.inputs[behind:]
    own, others = condition.inputs[:ahead], [Var(v.type) for v in body.inputs[:behind]]
    out["condition"] = condition.update(inputs=[*own, *others, *condition.inputs[ahead:]])
    unread = [Var(v.type) for v in own]
    out["program"] = body.update(inputs=[*unread, *body.inputs])
    ins = (FIXED,) * (ahead + behind) + (CARRY,) * len(carried)
    return {**out, "ins": _as_before(ins, params)}


def _grouped(counts: Sequence[int]) -> FlatTree:
    return pack(map(nones, counts))


def _roles(roles: Roles, groups: FlatTree) -> Roles:
    pairs = zip(roles, groups.unpack(), strict=True)
    return tuple([role for role, group in pairs for _ in group.vals])


_ROLES: Final = ("ins", "outs")
_COUNTS: Final = ("ft_in", "ft_out", "cond_nconsts", "body_nconsts")


def _as_before(roles: Roles, params: Mapping[str, Any], which: str = "ins") -> Roles:
    """``roles``, which also say what they did of sums that are still to be taken."""
    before: Sequence[Role] = params.get(which, ())
    same = [r.layout for r in before] == [r.layout for r in roles]
    return tuple(before) if same and before.count(CARRY) == roles.count(CARRY) else roles
