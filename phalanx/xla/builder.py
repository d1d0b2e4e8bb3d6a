"""The builder protocol on XLA's MLIR bindings."""

from __future__ import annotations

from phalanx.xla.axes import MappedAxes
from phalanx.xla.contraction import Contraction
from phalanx.xla.elementwise import Elementwise


class MlirBuilder(Elementwise, Contraction, MappedAxes):
    """Writes StableHLO. Make one inside an MLIR context, with a plan and a module."""
