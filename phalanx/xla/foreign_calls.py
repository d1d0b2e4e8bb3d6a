"""Builder: functions of other languages that are registered with XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from phalanx.core.ffi_records import ForeignFunction
from phalanx.core.types import ArrayType
from phalanx.xla.matrices import alias, layouts_of, register_lapack
from phalanx.xla.merging import MergingEmitter


class ForeignCallEmitter(MergingEmitter):
    """Functions of other languages that are registered with XLA."""

    def foreign_call(
        self,
        function: ForeignFunction,
        args: Sequence[ir.Value],
        out_types: Sequence[ArrayType],
        has_side_effect: bool,
    ) -> list[ir.Value]:
        if function.target.startswith("lapack_"):
            register_lapack()
        attributes: dict[str, Any] = {
            "call_target_name": ir.StringAttr.get(function.target),
            "api_version": self.int_attribute(function.version, 32),
            "has_side_effect": ir.BoolAttr.get(has_side_effect),
            "backend_config": self.config(function.values)
            if function.opaque is None
            else ir.StringAttr.get(function.opaque),
            "operand_layouts": layouts_of(function.in_layouts),
            "result_layouts": layouts_of(function.out_layouts),
        }
        if function.aliases:
            attributes["output_operand_aliases"] = ir.ArrayAttr.get(
                [alias(i, o, len(out_types)) for i, o in function.aliases]
            )
        results = [self.tensor_of(t) for t in out_types]
        return self.region_op("stablehlo.custom_call", results, args, attributes)
