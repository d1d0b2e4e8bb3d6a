"""Residuals that are cheap to make again are not stored: what they are made of is."""

from __future__ import annotations

from msgspec import Struct, field

from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.primitives.basis import broadcast, convert, reshape, transpose
from phalanx.primitives.shape import iota


def _is_cheap(equation: Equation) -> bool:
    """Whether the operand takes no more room than the result, which is only laid out otherwise."""
    if equation.prim is convert:
        (before,), (after,) = equation.inputs, equation.outputs
        return before.type.dtype.itemsize < after.type.dtype.itemsize
    return equation.prim in (broadcast, reshape, transpose, iota)


def _is_avoidable(residual: Atom, makers: dict[Var, Equation]) -> bool:
    """Whether the residual need not be stored."""
    if not isinstance(residual, Var):
        return True
    return residual in makers and _is_cheap(makers[residual])


class _Store(Struct):
    """``stored`` values of a program, and the ``equations`` that make others of them.

    ``inputs`` stand for ``stored``, in order; ``later`` is what stands for each atom.
    """

    makers: dict[Var, Equation]
    stored: list[Atom] = field(default_factory=list[Atom])
    inputs: list[Var] = field(default_factory=list[Var])
    equations: list[Equation] = field(default_factory=list[Equation])
    later: dict[Atom, Atom] = field(default_factory=dict[Atom, Atom])

    def provide(self, atom: Atom) -> Atom:
        """What stands for ``atom`` later; a constant for itself."""
        if not isinstance(atom, Var):
            return atom
        if atom not in self.later:
            var = self.later[atom] = Var(atom.type)
            equation = self.makers.get(atom)
            if equation is not None and _is_cheap(equation):
                operands = [self.provide(a) for a in equation.inputs]
                self.equations.append(equation.update(inputs=operands, outputs=(var,)))
            else:
                self.stored.append(atom)
                self.inputs.append(var)
        return self.later[atom]


def without_cheap(
    primal: Program, residuals: list[Atom], linear: Program
) -> tuple[list[Atom], Program]:
    """Fewer or smaller ``residuals`` of ``primal``, and ``linear``, which takes them first."""
    makers = {v: e for e in primal.equations for v in e.outputs}
    if not any(_is_avoidable(r, makers) for r in residuals):
        return residuals, linear
    store = _Store(makers)
    count = len(residuals)
    provided = [store.provide(r) for r in residuals]
    renamed: dict[Atom, Atom] = dict(zip(linear.inputs[:count], provided, strict=True))
    half = linear.renamed(renamed)
    return store.stored, half.update(
        inputs=[*store.inputs, *linear.inputs[count:]],
        equations=[*store.equations, *half.equations],
    )
