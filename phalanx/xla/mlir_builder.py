"""The builder protocol on XLA's MLIR bindings."""

from __future__ import annotations

from phalanx.core.builder import Builder
from phalanx.xla.block_calls import BlockCallEmitter
from phalanx.xla.contraction import ContractionEmitter
from phalanx.xla.foreign_calls import ForeignCallEmitter
from phalanx.xla.generators import GeneratorEmitter
from phalanx.xla.host_calls import HostCallEmitter
from phalanx.xla.inspection import InspectionEmitter


class MlirBuilder(
    BlockCallEmitter, ContractionEmitter, ForeignCallEmitter, GeneratorEmitter, HostCallEmitter,
    InspectionEmitter,
):  # fmt: skip
    """Writes StableHLO. Make one inside an MLIR context, with a plan and a module."""

    @property
    def builder(self) -> Builder:
        return self
