"""What the derivative of a program stores, and where each of these values comes from."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.core.program import Atom, Literal, Program, plain
from phalanx.core.types import ArrayType
from phalanx.ops.naming import named
from phalanx.transforms.linearize import linearize_program


def residuals(
    program: Program, wanted: tuple[bool, ...], origins: Sequence[str]
) -> list[tuple[ArrayType, str]]:
    """The type and the origin of each value that the linearization of ``program`` stores.

    ``wanted`` marks the inputs by which it is differentiated; ``origins`` says what each is.
    """
    halves = linearize_program(program, wanted)
    inputs = [(program.inputs[i].type, origins[i]) for i in halves.forwarded if i is not None]
    whole = halves.primal
    computed = whole.outputs[len(program.outputs) :]
    constants = dict.fromkeys(whole.inputs[: len(halves.constants)], "from a constant")
    return inputs + [
        (plain(a.type), constants.get(a) or _origin(whole, a))  # type: ignore[arg-type]
        for a in computed
    ]


def _origin(program: Program, atom: Atom) -> str:
    """What made ``atom``, inside sub-programs too: its name or an operation, and the line."""
    if isinstance(atom, Literal):
        return "from a literal"
    e = next(e for e in program.equations if atom in e.outputs)
    inside = e.prim.inside(e.params) if e.prim.inside is not None else None
    if inside is not None:
        inner = inside.program.outputs[e.outputs.index(atom)]
        if inner not in inside.program.inputs:
            return _origin(inside.program, inner)
        return _origin(program, e.inputs[inside.program.inputs.index(inner)])  # type: ignore[arg-type]
    what = f"named {e.params['name']!r}" if e.prim is named else f"output of {e.prim.name}"
    return what if e.location is None else f"{what} from {e.location}"
