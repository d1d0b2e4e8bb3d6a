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
from phalanx.transforms.storage import size_in_bytes, stored

Lower = Callable[[Plan], Module]


def compile_with_oom_retry(
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
        OutOfMemory: the compiler says that it does not fit, however few lanes run at once, or it
            would end the process.
    """
    module = lower(plan)
    if module.largest >= _FIRST:
        _check_shapes(program, plan.target.platform)
    executable = _compiled(module, options)
    lanes = placement.most_lanes(program, plan.mesh)
    if lanes == 1:
        return _there(executable)
    free = least_free(devices or plan.devices, program.name)
    while not _fits(executable, free) and lanes > 2**plan.halvings:
        plan = replace(plan, halvings=plan.halvings + 1)
        smaller = _compiled(lower(plan), options)
        if math.inf > _needed(smaller) >= _needed(executable):
            break
        executable = smaller
    return _there(executable)


_FIRST = 1 << 33  # bytes of the smallest array at which a compiler ends the process


def _check_shapes(program: Program, platform: str) -> None:
    """Raise OutOfMemory if the compiler would end the process at an array that it stores."""
    stored_values = stored(program)
    for e in program.equations:
        for v in stored_values.intersection(e.outputs):
            if backend().ends_the_compiler(v.type.physical, platform):
                size = size_in_bytes(v.type) / 2**30
                raise OutOfMemory(
                    f"{program.name}: {e.prim.name} makes {v.type}, {size:.4g} GiB, at "
                    f"{e.location}, and XLA's compiler for CPUs ends the process at arrays of just "
                    "so many elements. Make it smaller, or a little larger, or compute it in parts"
                )
        for inner in e.programs:
            _check_shapes(inner, platform)


def _compiled(module: Module, options: dict[str, Any] | None) -> Executable | OutOfMemory:
    try:
        return backend().compile(module, options)
    except OutOfMemory as e:
        return e


def _there(outcome: Executable | OutOfMemory) -> Executable:
    if isinstance(outcome, OutOfMemory):
        raise outcome
    return outcome


def _fits(outcome: Executable | OutOfMemory, free: float) -> bool:
    return not isinstance(outcome, OutOfMemory) and _needed(outcome) <= free


def _needed(outcome: Executable | OutOfMemory) -> float:
    """How many bytes a program needs on a device, its arguments apart."""
    if isinstance(outcome, OutOfMemory):
        return math.inf
    sizes = outcome.memory_analysis()
    return sizes["temporaries"] + sizes["outputs"] - sizes["aliased"]
