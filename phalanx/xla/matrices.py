"""Builder: functions of matrices that are registered with XLA, or that it knows by name.

Those of LAPACK are registered when the first of them is written: that imports SciPy, whose LAPACK
they call. jaxlib depends on SciPy for it, so it is there wherever jaxlib is. Those for GPUs are
registered with the plugin.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxlib.mlir import ir

from phalanx.base.on_demand import OnDemand
from phalanx.core.builder import Factors
from phalanx.core.types import ArrayType
from phalanx.xla.block_calls import sharding_rule
from phalanx.xla.jaxlib_versions import xc
from phalanx.xla.regions import RegionEmitter

_lapack = OnDemand("jaxlib.lapack", "slow: with SciPy's LAPACK")
_lapack_of_cpus = OnDemand("jaxlib.cpu._lapack", "slow: with SciPy's LAPACK")
_hybrid = OnDemand("jaxlib.gpu_solver", "only some functions for GPUs need it")

Ints = Sequence[int]


@functools.cache
def register_lapack() -> None:
    """Tell XLA of the functions for CPUs, and which of them may be cut along their batches."""
    kernels = _lapack.registrations()["cpu"]
    _lapack_of_cpus.initialize()
    for name, function, version in kernels:
        xc.register_custom_call_target(name, function, platform="cpu", api_version=version)
        xc.register_custom_call_as_batch_partitionable(name)


@functools.cache
def _prepare_hybrid() -> None:
    """Tell the functions that run on the host, for GPUs, where LAPACK is."""
    _hybrid.initialize_hybrid_kernels()


_PREPARED = {
    "lapack_": register_lapack,
    "tridiagonal_": register_lapack,
    "cuhybrid_": _prepare_hybrid,
    "hiphybrid_": _prepare_hybrid,
}
_OF_CUDA: Final = ("cu_", "cuhybrid_", "cusolver_", "cusparse_")


def prepare(name: str) -> None:
    """What is to be done before a program that calls the function ``name`` runs."""
    for prefix, make in _PREPARED.items():
        if name.startswith(prefix):
            make()


class MatrixEmitter(RegionEmitter):
    """Functions of matrices that are registered with XLA."""

    def matrix_call(
        self,
        name: str,
        args: Sequence[ir.Value],
        out_types: Sequence[ArrayType],
        batch: int,
        config: Mapping[str, Any],
        in_place: Mapping[int, int],
    ) -> list[ir.Value]:
        if name.startswith(_OF_CUDA) and self.target.platform == "rocm":
            name = "hip" + name.removeprefix("cu")
        prepare(name)
        ins = [self.type(x) for x in args]
        shapes, shape_attributes = self.shape_operands(out_types, len(args))
        attributes: dict[str, ir.Attribute] = {
            "call_target_name": ir.StringAttr.get(name),
            "api_version": self.int_attribute(4, 32),
            "backend_config": self.config(config),
            "operand_layouts": _layouts([*ins, *map(self.type, shapes)], batch),
            "result_layouts": _layouts(out_types, batch),
            "mhlo.frontend_attributes": ir.DictAttr.get(
                {"num_batch_dims": ir.StringAttr.get(str(batch))}
            ),
        }
        if shapes:
            attributes |= shape_attributes
        else:
            factors = _batches(ins, out_types, batch)
            attributes["sdy.sharding_rule"] = sharding_rule(factors, ins, out_types)
        if in_place and not shapes:  # elsewhere it copies
            attributes["output_operand_aliases"] = ir.ArrayAttr.get(
                [alias(i, o, len(out_types)) for i, o in in_place.items()]
            )
        results = [self.tensor_of(t) for t in out_types]
        return self.region_op("stablehlo.custom_call", results, [*args, *shapes], attributes)

    def expanded_call(
        self,
        name: str,
        args: Sequence[ir.Value],
        out_types: Sequence[ArrayType],
        options: str,
        orders: Sequence[Ints] | None = None,
    ) -> list[ir.Value]:
        attributes: dict[str, ir.Attribute] = {
            "call_target_name": ir.StringAttr.get(name),
            "backend_config": ir.StringAttr.get(options),
        }
        if orders is not None:
            attributes["operand_layouts"] = layouts_of([range(self.type(x).ndim) for x in args])
            attributes["result_layouts"] = layouts_of(orders)
        results = [self.tensor_of(t) for t in out_types]
        return self.region_op("stablehlo.custom_call", results, args, attributes)


def _layouts(types: Sequence[ArrayType], batch: int) -> ir.Attribute:
    """Each matrix column by column, one of the batch after the other."""
    first = [min(batch, t.ndim) for t in types]
    pairs = zip(types, first, strict=True)
    return layouts_of([[*range(n), *reversed(range(n, t.ndim))] for t, n in pairs])


def layouts_of(orders: Sequence[Sequence[int]]) -> ir.Attribute:
    """How elements lie in memory: of each array its dimensions, the outermost first."""
    index = ir.IndexType.get()
    arrays: list[Any] = [np.asarray(order[::-1], np.int64) for order in orders]
    return ir.ArrayAttr.get(
        [ir.DenseElementsAttr.get(a, type=index, shape=[len(a)]) for a in arrays]
    )


def alias(operand: int, result: int, results: int) -> ir.Attribute:
    """That a result takes over the memory of an operand."""
    indices = f"output_tuple_indices = [{result if results > 1 else ''}]"
    return ir.Attribute.parse(
        f"#stablehlo.output_operand_alias<{indices}, operand_index = {operand}, "
        "operand_tuple_indices = []>"
    )


def _batches(ins: Sequence[ArrayType], outs: Sequence[ArrayType], batch: int) -> Factors:
    """What may be cut: the dimensions of the batch, which are those of all; no others."""
    letters = tuple(map(chr, range(batch)))

    def named(types: Sequence[ArrayType]) -> tuple[tuple[str, ...], ...]:
        return tuple((*letters, *[""] * (t.ndim - batch)) for t in types)

    return Factors(named(ins), named(outs), dict(zip(letters, ins[0].shape, strict=False)))
