"""Modules that outlive this version of XLA: StableHLO as a portable artifact, written and read.

An artifact is what other tools that know StableHLO read as well. Operations of XLA's own that it
lacks are written out in others, and it is of a version that the readers of the last weeks know.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from phalanx.xla.jaxlib_versions import xc
from phalanx.xla.mlir_contexts import context_for_module

_READERS = hlo.StablehloCompatibilityRequirement.WEEK_12


def artifact_of(bytecode: bytes) -> bytes:
    """The artifact of a module.

    What says how values lie over devices is no StableHLO, and stands in it as it is.
    """
    version = hlo.get_version_from_compatibility_requirement(_READERS)
    return xc.mlir.serialize_portable_artifact(bytecode, version, True)


def text_of(artifact: bytes) -> str:
    """The module that an artifact holds, as StableHLO.

    Raises:
        ValueError: it holds none, or one of a later version.
    """
    with context_for_module():
        return str(read(artifact))


def read(artifact: bytes) -> ir.Module:
    """The module that an artifact holds, in the context in which this one writes.

    Raises:
        ValueError: it holds none, or one of a later version.
    """
    context: Any = ir.Context.current
    messages: list[str] = []

    def listen(diagnostic: Any) -> bool:
        messages.append(diagnostic.message)
        return True

    handler = context.attach_diagnostic_handler(listen)
    try:
        return hlo.deserialize_portable_artifact(context, artifact)
    except ValueError:
        raise ValueError(
            f"export: the module cannot be read; it is damaged, or of a later version of StableHLO "
            f"than {hlo.get_current_version()}: {'; '.join(messages)}"
        ) from None
    finally:
        handler.detach()


def with_own_operations(module: ir.Module) -> None:
    """XLA's own operations again, in place of what they were written out as in an artifact: which
    has functions of the shapes that were known when it was written."""
    written: set[str] = set()
    found: list[tuple[str, ir.Operation]] = []

    def look(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "stablehlo.composite":
            name = ir.StringAttr(operation.attributes["name"]).value
            if name.startswith("chlo."):
                found.append((name, operation))
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    for name, operation in found:
        written.add(ir.FlatSymbolRefAttr(operation.attributes["decomposition"]).value)
        composite_attributes = operation.attributes.get("composite_attributes")
        attributes = ir.DictAttr(composite_attributes or ir.DictAttr.get({}))
        with ir.InsertionPoint(operation):
            own = ir.Operation.create(
                name,
                results=[x.type for x in operation.results],
                operands=list(operation.operands),
                attributes={attributes[i].name: attributes[i].attr for i in range(len(attributes))},
                loc=operation.location,
            )
        for old, new in zip(operation.results, own.results, strict=True):
            old.replace_all_uses_with(new)
        operation.erase()
    for function in list(module.body.operations):
        if ir.StringAttr(function.attributes["sym_name"]).value in written:
            function.erase()
