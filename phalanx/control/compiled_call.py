"""``compiled_call``: run a program that the compiler is given options for.

It is what ``jit`` with ``compiler_options`` binds inside other transformations. A module is
compiled as a whole, so nothing else is lowered that contains such a call; what derivatives and
lanes make of it outside of ``jit`` is compiled with its options.
"""

from __future__ import annotations

from typing import Any, NoReturn

from phalanx.base.source import user_location
from phalanx.control.call import call, frame_of_one
from phalanx.control.family import with_subprograms
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Execution, Primitive
from phalanx.core.program import Frame, Program
from phalanx.run.eager import run_compiled

Options = tuple[tuple[str, Any], ...]  # by name


def _frame(*, program: Program, options: Options) -> Frame:
    return frame_of_one(program=program)


def _lower(b: Builder, *xs: Value, program: Program, options: Options) -> NoReturn:
    raise ValueError(  # "`compiler_options` ... top-level" is the field's, for matching
        "`compiler_options` can only be passed to top-level `phalanx.jit`, and "
        f"jit({program.name}) with {dict(options)} is called inside another program, at "
        f"{user_location()}. Pass them to the function that is compiled: "
        "phalanx.jit(f, compiler_options=..)"
    )


def _run(*xs: Any, program: Program, options: Options) -> Any:
    return run_compiled(call, xs, {"program": program}, options)


compiled_call: Primitive = with_subprograms(
    "compiled_call",
    _lower,
    _frame,
    execution=Execution(run=_run),
    doc="the results of a program that is compiled with options; for itself alone",
)
