"""From a program to a StableHLO module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func
from msgspec.structs import replace

from phalanx.base.lengths import symbolic
from phalanx.base.source import user_location
from phalanx.core.builder import Builder
from phalanx.core.program import Program
from phalanx.core.types import ArrayType
from phalanx.spmd.memory_kinds import memories_of_results
from phalanx.spmd.named import P
from phalanx.spmd.placement import block_of
from phalanx.spmd.plan import Plan
from phalanx.xla.failures import refused
from phalanx.xla.mlir_builder import MlirBuilder
from phalanx.xla.mlir_contexts import context_for_module
from phalanx.xla.module import XlaModule


def module_of(bytecode: bytes) -> ir.Module:
    """The module that ``bytecode`` holds."""
    with context_for_module():
        return ir.Module.parse(bytecode)


def text_of(bytecode: bytes) -> str:
    """The module that ``bytecode`` holds, as StableHLO."""
    return str(module_of(bytecode))


def lower(
    program: Program, plan: Plan, donate: tuple[int, ...] = (), name: str | None = None
) -> XlaModule:
    """Write ``program`` as the main function of a module, laid out by ``plan``.

    ``donate`` are the positions of inputs whose memory the outputs may take over. For independent
    devices it is the program of any one of them, unless it calls Python: what is called belongs
    to one launch, over all devices.
    """
    if plan.independent:
        lowered = _of_one_device(program, plan, donate, name or program.name)
        if not lowered.callbacks.entries:
            return lowered
        plan = replace(plan, independent=False)

    def emit(b: Any, *values: ir.Value) -> list[ir.Value]:
        return results_of(b, program, values)

    return build(
        program.input_types,
        program.output_types,
        plan,
        emit,
        donate,
        name or program.name,
    )


def results_of(b: MlirBuilder, program: Program, values: Sequence[ir.Value]) -> list[ir.Value]:
    """What ``program`` gives for ``values``, in the own memory of the devices."""
    found = zip(b.inline(program, *values), memories_of_results(program), strict=True)
    return [x if kind is None else b.out_of_memory(x) for x, kind in found]


def _of_one_device(program: Program, plan: Plan, donate: tuple[int, ...], name: str) -> XlaModule:
    own = block_of(program, plan.mesh, plan.target).program
    one = Plan(plan.devices[:1], halvings=plan.halvings, platform=plan.platform)
    lowered = lower(own, one, donate, name)
    return replace(lowered, plan=plan, out_types=program.output_types)


def build(
    in_types: Sequence[ArrayType],
    out_types: Sequence[ArrayType],
    plan: Plan,
    emit: Callable[..., Any],
    donate: tuple[int, ...] = (),
    name: str = "main",
    order: list[str] | None = None,
) -> XlaModule:
    """The module whose main function ``emit(b, *inputs)`` writes.

    It is written once more if what was written depends on the ``order`` of axes, and tells another.
    """
    with context_for_module(), ir.Location.unknown():
        module = ir.Module.create()
        module.operation.attributes["sym_name"] = ir.StringAttr.get(re.sub(r"\W", "_", name))
        with ir.InsertionPoint(module.body):
            b = MlirBuilder(plan, module)
            b.order = order or b.order
            b.symbolic = any([symbolic(t.shape) for t in in_types])
            _count_partitions(b, module)
            padded_ins = [plan.padded(t, x) for t, x in _with_specs(in_types, plan.in_specs)]
            padded_outs = [plan.padded(t, x) for t, x in _with_specs(out_types, plan.out_specs)]
            main = _main(b, padded_ins, padded_outs, donate)

        def body(_: Builder, *values: ir.Value) -> list[ir.Value]:
            b.measure(in_types, values)
            unpadded = [b.unpadded(v, t.shape) for v, t in zip(values, in_types, strict=True)]
            results = emit(b, *unpadded)
            return [b.padded(r, t.shape) for r, t in zip(results, padded_outs, strict=True)]

        b.fill(main.regions[0], [b.tensor_of(t) for t in padded_ins], body, "func.return")
        b.forget_lengths(module)
        if plan.axes:
            found = b.outer_first(name)
            if b.follows_order and found != b.order:
                return build(in_types, out_types, plan, emit, donate, name, found)
            with ir.InsertionPoint(module.body.operations[0]):
                b.declare_mesh(found)
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise refused(error, name, user_location()) from None
    asked = tuple(b.inspections)
    types = tuple(out_types)
    return XlaModule(module, plan, types, donate, b.callbacks, asked, name, b.largest, b.isolated)


def _with_specs(
    types: Sequence[ArrayType], specs: Sequence[P | None]
) -> Iterator[tuple[ArrayType, P | None]]:
    return zip(types, specs or (None,) * len(types), strict=True)


def _count_partitions(b: MlirBuilder, module: ir.Module) -> None:
    attributes = module.operation.attributes
    attributes["mhlo.num_replicas"] = b.int_attribute(1, 32)
    attributes["mhlo.num_partitions"] = b.int_attribute(len(b.plan.devices), 32)


def _annotate(
    b: MlirBuilder,
    attributes: Sequence[dict[str, ir.Attribute]],
    specs: Sequence[P | None],
    types: Sequence[ArrayType],
    follows_types: bool,
) -> None:
    """Write the shardings of arguments or results into their ``attributes``."""
    for entry, spec, t in zip(attributes, specs, types, strict=True):
        if spec is not None:
            entry["sdy.sharding"] = b.sharding(spec, t.ndim, follows_types)


def _main(
    b: MlirBuilder,
    in_types: Sequence[ArrayType],
    out_types: Sequence[ArrayType],
    donate: tuple[int, ...],
) -> func.FuncOp:
    signature = ([b.tensor_of(t) for t in in_types], [b.tensor_of(t) for t in out_types])
    main = func.FuncOp("main", signature, visibility="public")
    arguments: list[dict[str, ir.Attribute]] = [{} for _ in in_types]
    results: list[dict[str, ir.Attribute]] = [{} for _ in out_types]
    heirs = {} if b.plan.axes else _heirs(signature[0], signature[1], donate)
    for i in donate:
        if i in heirs:
            number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), heirs[i])
            arguments[i]["tf.aliasing_output"] = number
        else:  # the compiler finds a result of as many bytes
            arguments[i]["jax.buffer_donor"] = ir.BoolAttr.get(True)
    if b.plan.axes:
        _annotate(b, arguments, b.plan.in_specs, in_types, follows_types=False)
        _annotate(b, results, b.plan.out_specs, out_types, follows_types=True)
    main.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in arguments])
    main.result_attrs = ir.ArrayAttr.get([ir.DictAttr.get(r) for r in results])
    return main


def _heirs(
    inputs: Sequence[ir.Type], outputs: Sequence[ir.Type], donate: tuple[int, ...]
) -> dict[int, int]:
    """The result of its own type that takes over each donated input, if there is one."""
    free: dict[ir.Type, list[int]] = {}
    for o in reversed(range(len(outputs))):
        free.setdefault(outputs[o], []).append(o)
    return {i: free[inputs[i]].pop() for i in donate if free.get(inputs[i])}
