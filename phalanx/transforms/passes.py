"""What happens to a program before it is written as a module: one list of passes, in order."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from phalanx.core.program import Equation, Program
from phalanx.core.runs import Lanes
from phalanx.transforms.constants import Lifted, lifted
from phalanx.transforms.derive import keep
from phalanx.transforms.effects import with_ordered_calls
from phalanx.transforms.keys import on_words
from phalanx.transforms.needed import only_needed
from phalanx.transforms.products import around_products

Pass = Callable[[Program], Program]


def everywhere(change: Pass) -> Pass:
    """``change``, made to a program and to its sub-programs.

    What a device runs of a program in lanes is another program, which is made when it is known how
    many lanes a device has, and how many run at once; so such a program is left as it is.
    """

    def changed(program: Program) -> Program:
        return keep(program, ("everywhere", change), lambda: _new(program)) or program

    def _new(program: Program) -> Program | None:
        """None where nothing changes."""
        equations = list(map(_inside, program.equations))
        same = equations == program.equations
        made = change(program if same else program.update(equations=equations))
        return None if made is program else made

    def _inside(e: Equation) -> Equation:
        frame = e.frame
        if frame is None or isinstance(frame.runs, Lanes):
            return e
        made = frame.rewritten(changed)
        return e if made == frame else e.reframed(made)

    return changed


WHOLE: tuple[Pass, ...] = (with_ordered_calls,)  # they look at the program as a whole
# and these at what each device runs
WITHIN: tuple[Pass, ...] = (only_needed, everywhere(around_products))


def within_a_device(program: Program) -> Program:
    """What one device runs, ready to be written.

    It is made of a program on words. Where lanes ran a rule of the user's, there may be keys again.
    """
    for change in WITHIN:
        program = change(program)
    return on_words(program)


def ready(program: Program) -> Lifted:
    """A whole program, ready to be written, and the constants that it takes first."""
    for change in (*WHOLE, *WITHIN):
        program = change(program)
    made = lifted(program)
    return replace(made, program=on_words(made.program))  # whose constants are operands by now
