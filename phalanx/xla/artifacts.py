"""Modules that outlive this version of XLA: StableHLO as a portable artifact, written and read.

An artifact is what other tools that know StableHLO read as well. Operations of XLA's own that it
lacks are written out in others, and it is of a version that the readers of the last weeks know.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from phalanx.xla.contexts import context_for_module
from phalanx.xla.runtime import xc

_READERS = hlo.StablehloCompatibilityRequirement.WEEK_12


def artifact_of(bytecode: bytes) -> bytes:
    """The artifact of a module."""
    version = hlo.get_version_from_compatibility_requirement(_READERS)
    return xc.mlir.serialize_portable_artifact(bytecode, version, False)


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
    said: list[str] = []

    def listen(diagnostic: Any) -> bool:
        said.append(diagnostic.message)
        return True

    handler = context.attach_diagnostic_handler(listen)
    try:
        return hlo.deserialize_portable_artifact(context, artifact)
    except ValueError:
        raise ValueError(
            f"export: the module cannot be read; it is damaged, or of a later version of StableHLO "
            f"than {hlo.get_current_version()}: {'; '.join(said)}"
        ) from None
    finally:
        handler.detach()
