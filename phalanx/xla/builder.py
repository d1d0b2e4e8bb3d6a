"""The builder protocol on XLA's MLIR bindings."""

from __future__ import annotations

from phalanx.core.builder import Builder
from phalanx.xla.callbacks import HostCalls
from phalanx.xla.contraction import Contraction


class MlirBuilder(Contraction, HostCalls):
    """Writes StableHLO. Make one inside an MLIR context, with a plan and a module."""

    @property
    def builder(self) -> Builder:
        return self
