from collections.abc import Sequence

from jaxlib.mlir import ir

def register_dialect(context: ir.Context, /) -> None: ...
def mesh(name: str, mesh: ir.Attribute, /) -> ir.Operation: ...

class MeshAxisAttr(ir.Attribute):
    @staticmethod
    def get(name: str, size: int, /) -> MeshAxisAttr: ...

class MeshAttr(ir.Attribute):
    @staticmethod
    def get(axes: Sequence[MeshAxisAttr], device_ids: Sequence[int] = ..., /) -> MeshAttr: ...

class AxisRefAttr(ir.Attribute):
    @staticmethod
    def get(name: str, /) -> AxisRefAttr: ...

class DimensionShardingAttr(ir.Attribute):
    @staticmethod
    def get(axes: Sequence[AxisRefAttr], is_closed: bool, /) -> DimensionShardingAttr: ...

class TensorShardingAttr(ir.Attribute):
    @staticmethod
    def get(
        mesh: str,
        dimensions: Sequence[ir.Attribute],
        /,
        *,
        replicated_axes: Sequence[AxisRefAttr] = ...,
        unreduced_axes: Sequence[AxisRefAttr] = ...,
    ) -> TensorShardingAttr: ...

class TensorShardingPerValueAttr(ir.Attribute):
    @staticmethod
    def get(shardings: Sequence[ir.Attribute], /) -> TensorShardingPerValueAttr: ...

class ManualAxesAttr(ir.Attribute):
    @staticmethod
    def get(axes: Sequence[ir.Attribute], /) -> ManualAxesAttr: ...

class DimMappingAttr(ir.Attribute):
    @staticmethod
    def get(factors: Sequence[int], /) -> DimMappingAttr: ...

class TensorMappingAttr(ir.Attribute):
    @staticmethod
    def get(dimensions: Sequence[DimMappingAttr], /) -> TensorMappingAttr: ...

class OpShardingRuleAttr(ir.Attribute):
    @staticmethod
    def get(
        sizes: Sequence[int],
        operands: Sequence[ir.Attribute],
        results: Sequence[ir.Attribute],
        /,
        *,
        is_custom: bool = ...,
    ) -> OpShardingRuleAttr: ...
