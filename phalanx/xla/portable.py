"""Programs as portable modules: for one device of any of several platforms."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from phalanx.core.builder import Builder
from phalanx.core.program import Program
from phalanx.core.types import ArrayType
from phalanx.spmd.plan import Plan
from phalanx.xla.artifacts import artifact_of, text_of
from phalanx.xla.lower import build

_INDEX = ArrayType((), np.dtype(np.int32))


def export(
    program: Program, constants: Sequence[np.ndarray], platforms: Sequence[str], name: str
) -> bytes:
    """``program`` for one device of any of ``platforms``, as an artifact.

    Its first inputs are the ``constants``, which are written into it. What is for several platforms
    takes the number of that on which it runs before everything else.
    """
    types = program.input_types[len(constants) :], program.output_types
    written = [_of_one_platform(program, constants, p, name) for p in platforms]
    if len(platforms) == 1:
        return written[0]
    modules = written if len(set(map(text_of, written))) > 1 else written[:1]

    def emit(b: Builder, index: Any, *values: Any) -> list[Any]:
        def on(module: bytes) -> Any:
            return lambda b: b.module_call(module, values, types[1])

        if len(modules) == 1:
            return on(modules[0])(b)
        return b.case(index, list(map(on, modules)))

    whole = build((_INDEX, *types[0]), types[1], _one_device(platforms[0]), emit, name=name)
    return artifact_of(whole.bytecode)


def _of_one_platform(
    program: Program, constants: Sequence[np.ndarray], platform: str, name: str
) -> bytes:
    def emit(b: Builder, *values: Any) -> list[Any]:
        own = [b.constant(c, c.dtype) for c in constants]
        return b.inline(program, *own, *values)

    types = program.input_types[len(constants) :], program.output_types
    return artifact_of(build(*types, _one_device(platform), emit, name=name).bytecode)


def _one_device(platform: str) -> Plan:
    """A device of a platform that need not be there, for a module is written for any."""
    return Plan((SimpleNamespace(platform=platform),))
