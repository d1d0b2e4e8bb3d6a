import enum
from collections.abc import Sequence

from jaxlib.mlir import ir

def register_dialect(context: ir.Context, /) -> None: ...
def get_current_version() -> str: ...
def get_version_from_compatibility_requirement(
    requirement: StablehloCompatibilityRequirement, /
) -> str: ...
def deserialize_portable_artifact(context: ir.Context, artifact: bytes, /) -> ir.Module: ...

class StablehloCompatibilityRequirement(enum.Enum):
    WEEK_12 = ...

class _OfAWord(ir.Attribute):
    @classmethod
    def get(cls, word: str, /) -> ir.Attribute: ...

class PrecisionAttr(_OfAWord): ...
class TransposeAttr(_OfAWord): ...
class FftTypeAttr(_OfAWord): ...
class ComparisonTypeAttr(_OfAWord): ...
class ComparisonDirectionAttr(_OfAWord): ...
class RngDistributionAttr(_OfAWord): ...
class RngAlgorithmAttr(_OfAWord): ...

class TokenType(ir.Type):
    @staticmethod
    def get() -> TokenType: ...

class ChannelHandle(ir.Attribute):
    @staticmethod
    def get(handle: int, type: int, /) -> ChannelHandle: ...

class DotDimensionNumbers(ir.Attribute):
    @staticmethod
    def get(
        lhs_batching_dimensions: Sequence[int],
        rhs_batching_dimensions: Sequence[int],
        lhs_contracting_dimensions: Sequence[int],
        rhs_contracting_dimensions: Sequence[int],
    ) -> DotDimensionNumbers: ...

class ConvDimensionNumbers(ir.Attribute):
    @staticmethod
    def get(
        input_batch_dimension: int,
        input_feature_dimension: int,
        input_spatial_dimensions: Sequence[int],
        kernel_input_feature_dimension: int,
        kernel_output_feature_dimension: int,
        kernel_spatial_dimensions: Sequence[int],
        output_batch_dimension: int,
        output_feature_dimension: int,
        output_spatial_dimensions: Sequence[int],
    ) -> ConvDimensionNumbers: ...

class GatherDimensionNumbers(ir.Attribute):
    @staticmethod
    def get(
        offset_dims: Sequence[int],
        collapsed_slice_dims: Sequence[int],
        operand_batching_dims: Sequence[int],
        start_indices_batching_dims: Sequence[int],
        start_index_map: Sequence[int],
        index_vector_dim: int,
    ) -> GatherDimensionNumbers: ...

class ScatterDimensionNumbers(ir.Attribute):
    @staticmethod
    def get(
        update_window_dims: Sequence[int],
        inserted_window_dims: Sequence[int],
        input_batching_dims: Sequence[int],
        scatter_indices_batching_dims: Sequence[int],
        scattered_dims_to_operand_dims: Sequence[int],
        index_vector_dim: int,
    ) -> ScatterDimensionNumbers: ...
