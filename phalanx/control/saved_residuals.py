"""What the derivative of a program stores, and where each of these values comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phalanx.core.program import Atom, Literal, Program
from phalanx.core.types import ArrayType
from phalanx.primitives.naming import named
from phalanx.transforms.linearize import linearize_program
from phalanx.transforms.remat_partition import divisible, is_rounding


def residuals(
    program: Program, active: tuple[bool, ...], origins: Sequence[str]
) -> list[tuple[ArrayType, str]]:
    """The type and the origin of each value that the linearization of ``program`` stores.

    ``active`` marks the inputs by which it is differentiated; ``origins`` says what each is.
    """
    halves = linearize_program(program, active)
    inputs = [(program.inputs[i].type, origins[i]) for i in halves.forwarded if i is not None]
    primal = halves.primal
    computed = primal.outputs[len(program.outputs) :]
    return inputs + [(a.type, _origin(primal, a, origins.__getitem__)) for a in computed]


def _origin(program: Program, atom: Atom, of_input: Callable[[int], str]) -> str:
    """What made ``atom``, inside sub-programs too: its name or an operation, and the line."""
    if isinstance(atom, Literal):
        return "from a constant"
    if atom in program.inputs:
        return of_input(program.inputs.index(atom))
    e = next(e for e in program.equations if atom in e.outputs)
    if is_rounding(e):
        return _origin(program, e.inputs[0], of_input)
    frame = divisible(e)
    if frame is not None:
        (inner,) = frame.programs
        result = inner.outputs[e.outputs.index(atom)]
        return _origin(inner, result, lambda i: _origin(program, e.inputs[i], of_input))
    what = f"named {e.params['name']!r}" if e.prim is named else f"output of {e.prim.name}"
    return what if e.location is None else f"{what} from {e.location}"
