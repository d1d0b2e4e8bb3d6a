"""Which operations lose digits: errors of a program on one device, compared with float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.insight.verification.collectives import Values
from phalanx.insight.verification.intermediates import Path, enters, program_at, tapped
from phalanx.insight.verification.reference import Reference
from phalanx.insight.verification.rounding import difference
from phalanx.insight.verification.single_device import wider

__all__ = ["Lost", "lost_digits"]

_ROWS = 8  # that are told
_TIMES = 64  # an operation that makes an error so many times larger loses digits

Row = tuple[Equation, float, float, int]


class Lost(Struct, frozen=True):
    """What was found.

    Attributes:
        error: of the results, the largest, relative to the largest element.
        rows: operations, the errors of their operands and results, and how many digits are left.
        culprit: the operation that makes errors larger than all others, if one does.
    """

    error: float
    rows: Sequence[Row]
    culprit: Equation | None


def lost_digits(program: Program, inputs: Sequence[np.ndarray], device: Any) -> Lost:
    """Compare all values of ``program``, which calls nothing, with those in float64."""
    plain, exact = Reference(device), Reference(device, wider)
    error, path = 0.0, Path()
    found: list[Row] = []
    while True:
        body = program_at(program, path)
        variables = _numbers(body)
        taps = tapped(program, path, variables).program
        values: list[Values] = [[x] for x in inputs]
        pairs = zip(plain(taps, values), exact(taps, values), strict=True)
        errors = [difference(x, y) for x, y in pairs]
        if not path:
            error = max(errors[len(variables) :], default=0.0)
        known: dict[Atom, float] = dict(zip(variables, errors, strict=False))
        rows = sorted([_row(e, known) for e in body.equations if _is_known(e, known)], key=_growth)
        rows.reverse()
        found += rows
        worst = rows[0] if rows else None
        if worst is None or not enters(worst[0]):
            break
        path = (*path, body.equations.index(worst[0]))
    found.sort(key=_growth, reverse=True)
    rows = [row for row in found if not enters(row[0])][:_ROWS]
    loses = rows and _growth(rows[0]) > _TIMES and error > _TIMES * _eps(rows[0][0])
    return Lost(error, rows, rows[0][0] if loses else None)


def _numbers(body: Program) -> list[Var]:
    """The results of equations that are floating-point numbers."""
    used = {a for e in body.equations for a in e.inputs} | {*body.outputs}
    every = [v for e in body.equations for v in e.outputs if v in used]
    return [v for v in every if dtypes.is_inexact(v.type.dtype)]


def _is_known(e: Equation, known: dict[Atom, float]) -> bool:
    return any([v in known for v in e.outputs])


def _row(e: Equation, known: dict[Atom, float]) -> Row:
    before = max([known.get(a, 0.0) for a in e.inputs], default=0.0)
    after = max([known.get(v, 0.0) for v in e.outputs])
    digits = 16 if after == 0 else max(0, math.floor(-math.log10(min(after, 1.0))))
    return e, before, after, digits


def _growth(row: Row) -> float:
    e, before, after, _ = row
    return after / max(before, _eps(e)) if math.isfinite(after) else math.inf


def _eps(e: Equation) -> float:
    floating = [v.type.dtype for v in e.outputs if dtypes.is_inexact(v.type.dtype)]
    return float(dtypes.finfo(floating[0]).eps) if floating else 1.0
