"""What happens to a program before it is written as a module: one list of passes, in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, wraps
from typing import Protocol

from msgspec.structs import replace

from phalanx.base.config import settings
from phalanx.base.dump import dump
from phalanx.core.check import check
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Equation, Program
from phalanx.core.runs import Lanes
from phalanx.transforms.constants import Lifted, lifted
from phalanx.transforms.dce import dce
from phalanx.transforms.effects import with_ordered_calls
from phalanx.transforms.keys_as_words import on_words
from phalanx.transforms.products import around_products


class Pass(Protocol):
    """What makes a program of a program, under a name."""

    __name__: str

    def __call__(self, program: Program, /) -> Program: ...


def everywhere(change: Pass) -> Pass:
    """``change``, made to a program and to its sub-programs.

    What a device runs of a program in lanes is another program, which is made when it is known how
    many lanes a device has, and how many run at once; so such a program is left as it is.
    """

    @wraps(change)
    def changed(program: Program) -> Program:
        return memoize_on(program, ("everywhere", change), lambda: _new(program)) or program

    def _new(program: Program) -> Program | None:
        """None where nothing changes."""
        equations = list(map(_inside, program.equations))
        same = equations == program.equations
        result = change(program if same else program.update(equations=equations))
        return None if result is program else result

    def _inside(e: Equation) -> Equation:
        frame = e.frame
        if frame is None or isinstance(frame.runs, Lanes):
            return e
        new_frame = frame.rewritten(changed)
        return e if new_frame == frame else e.reframed(new_frame)

    return changed


WHOLE: tuple[Pass, ...] = (with_ordered_calls,)  # they look at the program as a whole
# and these at what each device runs
WITHIN: tuple[Pass, ...] = (dce, everywhere(around_products))


def within_a_device(program: Program) -> Program:
    """What one device runs, ready to be written.

    It is made of a program on words. Where lanes ran a rule of the user's, there may be keys again.
    """
    return _in_order((*WITHIN, on_words), program)


def ready(program: Program) -> Lifted:
    """A whole program, ready to be written, and the constants that it takes first."""
    with_constants = lifted(_in_order((*WHOLE, *WITHIN), program))
    # on words when the constants are operands
    return replace(with_constants, program=_in_order((on_words,), with_constants.program))


def _in_order(passes: Sequence[Pass], program: Program) -> Program:
    """What ``passes`` make of a program; each is dumped and checked, if that is asked for."""
    for change in passes:
        result = change(program)
        if result is program:
            continue
        program = result
        dump(program.name, change.__name__, partial(str, program))
        if settings().enable_checks:
            check(program, f"the pass {change.__name__}")
    return program
