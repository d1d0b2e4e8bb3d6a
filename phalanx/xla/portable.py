"""Modules for one device of any of several platforms, and portable ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from phalanx.core.builder import Builder
from phalanx.core.program import Program
from phalanx.core.types import ArrayType, Types
from phalanx.spmd.plan import Plan
from phalanx.xla.artifacts import artifact_of, text_of
from phalanx.xla.lower import build, lower
from phalanx.xla.module import XlaModule

_INDEX = ArrayType((), np.dtype(np.int32))


def export(
    program: Program, constants: Sequence[np.ndarray], platforms: Sequence[str], name: str
) -> bytes:
    """``program`` for one device of any of ``platforms``, as an artifact.

    Its first inputs are the ``constants``, which are written into it. What is for several platforms
    takes the number of that on which it runs before everything else.
    """
    types = program.input_types[len(constants) :], program.output_types

    def emit(b: Builder, *values: Any) -> list[Any]:
        own = [b.constant(c, c.dtype) for c in constants]
        return b.inline(program, *own, *values)

    # the device need not be there, for a module is written for any
    plans = [Plan((SimpleNamespace(platform=platform),)) for platform in platforms]
    written = [build(*types, plan, emit, name=name) for plan in plans]
    return artifact_of((written[0] if len(written) == 1 else _chosen(types, written)).bytecode)


def lower_for_each(program: Program, plan: Plan, platforms: Sequence[str]) -> XlaModule:
    """``program`` for one device of any of ``platforms``, whose number it takes first."""
    written = [lower(program, replace(plan, platform=platform)) for platform in platforms]
    return _chosen((program.input_types, program.output_types), written)


def _chosen(types: tuple[Types, Types], written: Sequence[XlaModule]) -> XlaModule:
    """The module that is the one among those ``written`` whose number it takes first."""
    artifacts = [artifact_of(module.bytecode) for module in written]
    if len(set(map(text_of, artifacts))) == 1:
        artifacts = artifacts[:1]

    def emit(b: Builder, index: Any, *values: Any) -> list[Any]:
        def on(module: bytes) -> Any:
            return lambda b: b.module_call(module, values, types[1])

        if len(artifacts) == 1:
            return on(artifacts[0])(b)
        return b.case(index, list(map(on, artifacts)))

    plan = Plan(written[0].plan.devices)
    return build((_INDEX, *types[0]), types[1], plan, emit, name=written[0].name)
