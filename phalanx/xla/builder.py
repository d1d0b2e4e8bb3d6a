"""The builder protocol on XLA's MLIR bindings."""

from __future__ import annotations

from phalanx.xla.axes import MappedAxes
from phalanx.xla.contraction import Contraction


class MlirBuilder(Contraction, MappedAxes):
    """Writes StableHLO. Make one inside an MLIR context, with a plan and a module."""
