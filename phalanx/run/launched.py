"""Operations that all processes launch together: nothing is compiled with them.

A ``pmap`` over the rows of processes is one. What is around it in a program is of this process
alone: in others, arrays may have other shapes there. So there is no module for the whole.
"""

from __future__ import annotations

from phalanx.base.errors import DeviceError
from phalanx.base.source import Location, user_location
from phalanx.core.primitive import Rule
from phalanx.core.program import Program


def launched(program: Program, compiled: bool) -> Rule | None:
    """What launches ``program``, if its only operation is one that is launched by itself.

    Args:
        program: what is to run.
        compiled: whether it is to be a module, as what users compile has to be.

    Raises:
        DeviceError: such an operation is in ``program``, but not all of it, or ``compiled``.
    """
    if not any(p.execution.launch for p in program.primitives):
        return None
    only = program.only
    if only is not None and only.prim.execution.launch is not None and not compiled:
        return only.prim.execution.launch
    rows = next(e for e in program.walk() if e.prim.execution.launch is not None)
    raise not_compiled(program.name, rows.location)


def not_compiled(who: str, place: Location | None) -> DeviceError:
    """The error that ``who`` is to be compiled with the ``pmap`` of rows at ``place`` in it."""
    return DeviceError(
        f"{who}: the pmap at {place or user_location()} maps rows of each process. All processes "
        "launch it by itself, so no compiled program has it in it, at "
        f"{user_location()}. Map arrays over all processes, with mesh= "
        "(make_array_from_process_local_data makes them of rows), or put what is around the pmap "
        "inside of it"
    )
