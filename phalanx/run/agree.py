"""Processes agree about a program before they compile it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from phalanx.base.errors import ProgramMismatch
from phalanx.core.program import Program
from phalanx.processes.member import group_over
from phalanx.run.backend import Module
from phalanx.run.runtime import backend


def agree(program: Program, module: Module, devices: Sequence[Any]) -> None:
    """Go on when all processes of ``devices`` have written the same ``module`` for ``program``.

    Raises:
        ProgramMismatch: one of them has another; it tells the first line that differs.
        PeerLost: one of them is gone.
    """
    group = group_over(devices, program.name)
    if group is None:
        return
    what = f"compiling {program.name}"
    digest = hashlib.sha256(module.as_text().encode()).hexdigest()
    if len(set(group.gather(what, digest))) == 1:
        return
    every = group.gather(f"{what}, which differs", program.lines())
    raise ProgramMismatch.of(_first_difference(every, sorted(group.processes))).at(what)


def _first_difference(every: Sequence[Sequence[str]], processes: Sequence[int]) -> str:
    for i in range(max(map(len, every))):
        lines = [program[i] if i < len(program) else "nothing more" for program in every]
        if len(set(lines)) > 1:
            told = zip(processes, lines, strict=True)
            return "; ".join(f"process {process} has: {line}" for process, line in told)
    return "their equations are alike, and constants or the options of the compiler differ"


def least_free(devices: Sequence[Any], who: str) -> float:
    """How many bytes are free on each of ``devices``, in whichever process there are fewest."""
    group = group_over(devices, who)
    if group is None:
        return backend().free_memory(devices)
    own = set(backend().local_devices(devices[0].platform))
    free = backend().free_memory([d for d in devices if d in own])
    return min(group.gather("how much memory is free", free))
