"""Programs that fit the memory of their devices: with fewer lanes at once, where that helps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from phalanx.base.errors import OutOfMemory
from phalanx.core.program import Program
from phalanx.run.agree import least_free
from phalanx.run.backend import Executable, Module
from phalanx.run.runtime import backend
from phalanx.spmd import placement
from phalanx.spmd.plan import Plan

Lower = Callable[[Plan], Module]


def compile_fitting(
    program: Program,
    plan: Plan,
    lower: Lower,
    options: dict[str, Any] | None = None,
    devices: Sequence[Any] = (),
) -> Executable:
    """``program`` compiled as ``lower`` writes it for ``plan``, or for other ``devices``.

    Where it needs more memory than is free, and devices run several lanes, it is written again
    for half as many lanes at once, for as long as that needs less.

    Raises:
        OutOfMemory: the compiler says that it does not fit, however few lanes run at once.
    """
    made = _compiled(lower(plan), options)
    lanes = placement.most_lanes(program, plan.mesh)
    if lanes == 1:
        return _there(made)
    free = least_free(devices or plan.devices, program.name)
    while not _fits(made, free) and lanes > 2**plan.halvings:
        plan = replace(plan, halvings=plan.halvings + 1)
        smaller = _compiled(lower(plan), options)
        if math.inf > _needed(smaller) >= _needed(made):
            break
        made = smaller
    return _there(made)


def _compiled(module: Module, options: dict[str, Any] | None) -> Executable | OutOfMemory:
    try:
        return backend().compile(module, options)
    except OutOfMemory as e:
        return e


def _there(made: Executable | OutOfMemory) -> Executable:
    if isinstance(made, OutOfMemory):
        raise made
    return made


def _fits(made: Executable | OutOfMemory, free: float) -> bool:
    return not isinstance(made, OutOfMemory) and _needed(made) <= free


def _needed(made: Executable | OutOfMemory) -> float:
    """How many bytes a program needs on a device, its arguments apart."""
    if isinstance(made, OutOfMemory):
        return math.inf
    sizes = made.memory_analysis()
    return sizes["temporaries"] + sizes["outputs"] - sizes["aliased"]
