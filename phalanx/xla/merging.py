"""Builder: calls of modules that were written before, which become functions of this one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxlib.mlir import ir

from phalanx.core.types import ArrayType
from phalanx.spmd.plan import Plan
from phalanx.xla.artifacts import read
from phalanx.xla.collectives import CollectiveEmitter
from phalanx.xla.ffi_targets import registered
from phalanx.xla.matrices import MatrixEmitter, prepare
from phalanx.xla.signatures import is_known


class MergingEmitter(MatrixEmitter, CollectiveEmitter):
    """Calls of modules that were written before."""

    def __init__(self, plan: Plan, module: ir.Module) -> None:
        super().__init__(plan, module)
        self._merged: dict[bytes, tuple[str, ir.FunctionType]] = {}

    def module_call(
        self, artifact: bytes, args: Sequence[ir.Value], out_types: Sequence[ArrayType]
    ) -> list[ir.Value]:
        if artifact not in self._merged:
            module = read(artifact)
            main = ir.SymbolTable(module.operation)["main"]
            kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
            for attribute in ("arg_attrs", "res_attrs"):  # whoever calls says how these lie
                if attribute in main.attributes:
                    del main.attributes[attribute]
            self._merged[artifact] = self._merge(module), kind
        name, kind = self._merged[artifact]
        callee = ir.FlatSymbolRefAttr.get(name)
        operands = list(map(self._fitted, args, kind.inputs))
        results = self.region_op("func.call", kind.results, operands, {"callee": callee})
        return list(map(self._fitted, results, map(self.tensor_of, out_types)))

    def _fitted(self, x: ir.Value, kind: ir.Type) -> ir.Value:
        """``x`` as a value of ``kind``, which knows more, or fewer, of its lengths."""
        return x if x.type == kind else self.op("stablehlo.convert", kind, [x])

    def _merge(self, module: ir.Module) -> str:
        """Move what is in ``module`` into this one; the name that its main function has now."""
        symbols = ir.SymbolTable(module.operation)
        functions = list(module.body.operations)
        names = [ir.StringAttr(f.attributes["sym_name"]).value for f in functions]
        self._names.update(names)  # so that no new name is one that is yet to be replaced
        fresh = dict(zip(names, map(self._fresh_name, names), strict=True))
        for f, name in zip(functions, names, strict=True):
            ir.SymbolTable.replace_all_symbol_uses(name, fresh[name], module.operation)
            symbols.set_symbol_name(f, fresh[name])
            if f.operation.name == "func.func":  # not a mesh
                ir.SymbolTable.set_visibility(f, "private")
        for name in _custom_calls(module):
            if not is_known(name) and name not in registered:
                raise ValueError(
                    f"Exported.call: the foreign function {name}, which the module calls, is not "
                    "registered; register it with ffi.register_ffi_target first"
                )
            prepare(name)
        self._number_channels(module)
        for f in functions:
            self.module.body.append(f)
        return fresh["main"]

    def _number_channels(self, module: ir.Module) -> None:
        """Give what communicates in ``module`` numbers that nothing else here has."""

        def number(operation: ir.Operation) -> ir.WalkResult:
            if "channel_handle" in operation.attributes:
                operation.attributes["channel_handle"] = self._channel()
            return ir.WalkResult.ADVANCE

        module.operation.walk(number)


def _custom_calls(module: ir.Module) -> Iterator[str]:
    """The names of functions registered with XLA that ``module`` calls."""
    found: list[str] = []

    def look(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "stablehlo.custom_call":
            found.append(ir.StringAttr(operation.attributes["call_target_name"]).value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    yield from found
