"""Modules for one device of any of several platforms, and portable ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from phalanx.core.platforms import AnyDevice
from phalanx.core.program import Program
from phalanx.core.types import ArrayType, Types
from phalanx.spmd.plan import Plan
from phalanx.xla.artifacts import artifact_of
from phalanx.xla.builder import MlirBuilder
from phalanx.xla.emitter import OfItsPlatform
from phalanx.xla.lower import build, results_of
from phalanx.xla.module import XlaModule

Emit = Callable[..., Any]
_INDEX = ArrayType((), np.dtype(np.int32))


def export(
    program: Program, constants: Sequence[np.ndarray], platforms: Sequence[str], name: str
) -> bytes:
    """``program`` for one device of any of ``platforms``, as an artifact.

    Its first inputs are the ``constants``, which are written into it. What is for several platforms
    takes the number of that on which it runs before everything else.
    """
    types = program.input_types[len(constants) :], program.output_types

    def emit(b: MlirBuilder, *values: Any) -> list[Any]:
        own = [b.constant(c, c.dtype) for c in constants]
        return results_of(b, program, (*own, *values))

    # the device need not be there, for a module is written for any
    plans = [Plan((AnyDevice(platform),)) for platform in platforms]
    if len(plans) == 1:
        return artifact_of(build(*types, plans[0], emit, name=name).bytecode)
    return artifact_of(_of_several(types, plans, emit, name).bytecode)


def lower_for_each(program: Program, plan: Plan, platforms: Sequence[str]) -> XlaModule:
    """``program`` for one device of any of ``platforms``, whose number it takes first."""
    types = program.input_types, program.output_types
    plans = [Plan(plan.devices, platform=platform) for platform in platforms]

    def emit(b: MlirBuilder, *values: Any) -> list[Any]:
        return results_of(b, program, values)

    return _of_several(types, plans, emit, program.name)


def _of_several(
    types: tuple[Types, Types], plans: Sequence[Plan], emit: Emit, name: str
) -> XlaModule:
    """What ``emit`` writes, for the one among ``plans`` whose number it takes first."""
    ins, outs = types

    def for_all(b: MlirBuilder, _: Any, *values: Any) -> Any:
        b.anywhere = True
        return emit(b, *values)

    def choose(b: MlirBuilder, number: Any, *values: Any) -> list[Any]:
        def on(plan: Plan) -> Any:
            def write(b: MlirBuilder) -> Any:
                with b.planned(plan):
                    return emit(b, *values)

            return write

        return b.case(number, list(map(on, plans)))

    with suppress(OfItsPlatform):
        return build((_INDEX, *ins), outs, plans[0], for_all, name=name)
    return build((_INDEX, *ins), outs, plans[0], choose, name=name)
