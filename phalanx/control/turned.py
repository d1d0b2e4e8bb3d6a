"""Matrices turned before few rows are multiplied by them.

The gradient of ``x @ w`` with respect to ``x`` multiplies by ``w`` from the other side. A product
of the few rows of one lane reads such a matrix across its rows, which takes a CPU twice as long as
to turn it first.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.runs import Marks
from phalanx.core.types import ArrayType
from phalanx.primitives.barrier import optimization_barrier
from phalanx.primitives.basis import transpose
from phalanx.primitives.contract import dot_general


def with_turned_factors(program: Program, own: Marks) -> Program:
    """``program`` of a lane in which products contract the leading dimensions of what all lanes
    share: of the inputs that ``own`` does not mark."""
    shared = {v for v, mine in zip(program.inputs, own, strict=True) if not mine}
    return program.update(equations=list(_turned(program.equations, shared)))


def _turned(equations: list[Equation], shared: Set[Atom]) -> Iterator[Equation]:
    there: dict[tuple[Atom, tuple[int, ...]], Var] = {}
    for e in equations:
        if e.prim is not dot_general or e.inputs[1] not in shared or any(e.params["batch"]):
            yield e
            continue
        rows, factor = e.inputs
        places, contracted = e.params["contract"]
        perm = (*contracted, *[d for d in range(factor.type.ndim) if d not in contracted])
        if perm != tuple(range(len(perm))):
            if (factor, perm) not in there:
                yield from _turning(factor, perm, out := Var(_of_turned(factor.type, perm)))
                there[factor, perm] = out
            leading = (places, tuple(range(len(contracted))))
            inputs = [rows, there[factor, perm]]
            e = e.update(inputs=inputs, params={**e.params, "contract": leading})
        yield e


def _of_turned(type: ArrayType, perm: tuple[int, ...]) -> ArrayType:
    return ArrayType(tuple([type.shape[d] for d in perm]), type.dtype, type.weak)


def _turning(factor: Atom, perm: tuple[int, ...], out: Var) -> list[Equation]:
    """The compiler would put the product back together without the barrier."""
    turned = Var(out.type)
    return [
        Equation(transpose, [factor], {"perm": perm}, (turned,), None),
        Equation(optimization_barrier, [turned], {}, (out,), None),
    ]
