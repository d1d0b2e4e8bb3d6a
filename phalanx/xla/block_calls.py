"""Builder: operations that the partitioner cuts by asking us (``xla/partitioning.py``)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from phalanx.core.builder import Body, Factors
from phalanx.core.types import ArrayType
from phalanx.xla.client import is_of_others
from phalanx.xla.regions import RegionEmitter

BY_BLOCK = "phalanx_by_block"


class BlockCallEmitter(RegionEmitter):
    """Operations that each device runs on blocks of the operands."""

    def by_block(self, factors: Factors, run: Body, *args: ir.Value) -> list[ir.Value]:
        if not self.parted or is_of_others(self.target.platform):  # whose compiler does not ask us
            whole: Any = run
            return list(whole(self.builder, *args))
        equation: Any = self.equation
        config = {
            "operation": equation.prim.name,
            "params": equation.params,
            "platform": self.target.platform,
            **factors._asdict(),
        }
        attributes = {
            "call_target_name": ir.StringAttr.get(BY_BLOCK),
            "backend_config": ir.StringAttr.get(json.dumps(config)),
            "sdy.sharding_rule": sharding_rule(factors, self.ins, self.outs),
        }
        results = [self.tensor_of(t) for t in self.outs]
        return self.region_op("stablehlo.custom_call", results, args, attributes)


def sharding_rule(
    factors: Factors, ins: Sequence[ArrayType], outs: Sequence[ArrayType]
) -> ir.Attribute:
    """How the partitioner concludes from what is cut of one operand or result to the others."""
    letters = list(factors.sizes)
    sizes = list(factors.sizes.values())

    def mapped(names: Sequence[str], type: ArrayType) -> ir.Attribute:
        dims: list[sdy.DimMappingAttr] = []
        for name, length in zip(names, type.shape, strict=True):
            if not name:
                sizes.append(length)
            own = [letters.index(x) for x in name] or [len(sizes) - 1]
            dims.append(sdy.DimMappingAttr.get(own))
        return sdy.TensorMappingAttr.get(dims)

    operands = list(map(mapped, factors.operands, ins))
    results = list(map(mapped, factors.results, outs))
    return sdy.OpShardingRuleAttr.get(sizes, operands, results, is_custom=True)
