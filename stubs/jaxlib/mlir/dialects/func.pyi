from collections.abc import Sequence

from jaxlib.mlir import ir

class FuncOp(ir.Operation):
    def __init__(
        self,
        name: str,
        type: ir.Type | tuple[Sequence[ir.Type], Sequence[ir.Type]],
        *,
        visibility: str | None = None,
    ) -> None: ...
    name: ir.StringAttr
    arg_attrs: ir.ArrayAttr
    result_attrs: ir.ArrayAttr
    @property
    def type(self) -> ir.FunctionType: ...
    @property
    def arguments(self) -> Sequence[ir.Value]: ...
