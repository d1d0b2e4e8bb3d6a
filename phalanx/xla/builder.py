"""The builder protocol on XLA's MLIR bindings."""

from __future__ import annotations

from phalanx.core.builder import Builder
from phalanx.xla.contraction import ContractionEmitter
from phalanx.xla.generators import GeneratorEmitter
from phalanx.xla.host_calls import HostCallEmitter
from phalanx.xla.inspection import InspectionEmitter
from phalanx.xla.merging import MergingEmitter


class MlirBuilder(
    ContractionEmitter, MergingEmitter, GeneratorEmitter, HostCallEmitter, InspectionEmitter
):
    """Writes StableHLO. Make one inside an MLIR context, with a plan and a module."""

    @property
    def builder(self) -> Builder:
        return self
