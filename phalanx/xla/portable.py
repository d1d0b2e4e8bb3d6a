"""Modules for devices of any of several platforms, and portable ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from msgspec.structs import replace

from phalanx.base.lengths import symbolic
from phalanx.core.platforms import AnyDevice
from phalanx.core.program import Program
from phalanx.core.types import ArrayType, Types
from phalanx.spmd.named import P
from phalanx.spmd.plan import Plan
from phalanx.xla import verified
from phalanx.xla.artifacts import artifact_of, read, with_own_operations
from phalanx.xla.emitter import OfItsPlatform
from phalanx.xla.jaxlib_versions import xc
from phalanx.xla.lower import build, results_of
from phalanx.xla.mlir_builder import MlirBuilder
from phalanx.xla.mlir_contexts import context_for_module
from phalanx.xla.module import XlaModule, bytecode_of

Emit = Callable[..., Any]
_INDEX = ArrayType((), np.dtype(np.int32))


def export(
    program: Program, constants: Sequence[np.ndarray], plans: Sequence[Plan], name: str
) -> bytes:
    """``program`` for the devices of any of ``plans``, as an artifact.

    Its first inputs are the ``constants``, which are written into it. What is for several plans,
    each of a platform, takes the number of that which is carried out before everything else.
    """
    count = len(constants)
    types = program.input_types[count:], program.output_types
    plans = [replace(p, in_specs=p.in_specs[count:]) for p in plans]

    def emit(b: MlirBuilder, *values: Any) -> list[Any]:
        own = [b.constant(c, c.dtype) for c in constants]
        return results_of(b, program, (*own, *values))

    if len(plans) == 1:
        return artifact_of(build(*types, plans[0], emit, name=name).bytecode)
    return artifact_of(_of_several(types, plans, emit, name).bytecode)


def refined(artifact: bytes, types: Types) -> bytes:
    """The module in which lengths are symbolic, for operands of these ``types``, which are known.

    Raises:
        ValueError: something in it is only known when it runs, or refuses these lengths.
    """
    with context_for_module(), ir.Location.unknown():
        module = read(artifact)
        b = MlirBuilder(Plan((AnyDevice("cpu"),)), module)
        main = ir.SymbolTable(module.operation)["main"]
        operand_types = list(map(b.tensor_of, types))
        for argument, kind in zip(main.regions[0].blocks[0].arguments, operand_types, strict=True):
            argument.set_type(kind)
        results = main.regions[0].blocks[0].operations[-1].operands
        function = ir.FunctionType.get(operand_types, [x.type for x in results])
        main.attributes["function_type"] = ir.TypeAttr.get(function)
        with_own_operations(module)
        return artifact_of(xc.mlir.refine_polymorphic_shapes(bytecode_of(module), True, True))


def check(artifact: bytes, ins: Types, outs: Types, foreign: Collection[str]) -> None:
    """Look at an artifact that comes from elsewhere, described as a function of ``ins`` to ``outs``
    that calls the ``foreign`` functions of other languages.

    Raises:
        ValueError: it is something else than described, or than ``export`` writes.
    """
    with context_for_module(), ir.Location.unknown():
        module = read(artifact)
        b = MlirBuilder(Plan((AnyDevice("cpu"),)), module)
        b.symbolic = any([symbolic(t.shape) for t in ins])

        def type_of(type: ArrayType) -> ir.Type:
            kind: Any = b.tensor_of(type)
            return ir.RankedTensorType.get(kind.shape, kind.element_type)

        verified.check(module, ins, outs, foreign, type_of)


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
    """What ``emit`` writes, for the one among ``plans`` whose number it takes first.

    Operations that are lowered otherwise on some of the platforms choose by the number. Where a
    rule asks for the platform as it goes, it is too late for that, and the whole is written for
    each.
    """
    ins, outs = types
    first = plans[0]
    first = replace(first, in_specs=first.in_specs and (P(), *first.in_specs))

    def shared(b: MlirBuilder, number: Any, *values: Any) -> list[Any]:
        b.plans, b.number = plans, number
        return emit(b, *values)

    def separate(b: MlirBuilder, number: Any, *values: Any) -> list[Any]:
        b.plans, b.number = plans, number
        return b.for_each(lambda: emit(b, *values))

    with suppress(OfItsPlatform):
        return build((_INDEX, *ins), outs, first, shared, name=name)
    return build((_INDEX, *ins), outs, first, separate, name=name)
