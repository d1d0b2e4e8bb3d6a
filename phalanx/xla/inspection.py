"""Asking the partitioner how a value inside a program lies."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from phalanx.core.types import ArrayType
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.xla.jaxlib_versions import from_xla_sharding, xc
from phalanx.xla.mesh_axes import RegionAxesEmitter


class Inspection:
    """A value that somebody asks about. The partitioner calls this while it compiles."""

    __slots__ = ("_chosen", "key", "type", "watcher")

    def __init__(self, type: ArrayType, watcher: Any) -> None:
        self.type, self.watcher = type, watcher
        self.key = xc.encode_inspect_sharding_callback(self)  # the address: it must stay alive
        self._chosen: Any = None

    def __call__(self, chosen: Any) -> None:
        self._chosen = chosen

    def sharding(self, devices: tuple[Any, ...]) -> Sharding:
        """How the value lies; where nobody said so there was nothing to cut."""
        return (
            Sharding(devices) if self._chosen is None else from_xla_sharding(self._chosen, devices)
        )


class InspectionEmitter(RegionAxesEmitter):
    """Builder: questions about values."""

    def __init__(self, plan: Plan, module: ir.Module) -> None:
        super().__init__(plan, module)
        self.inspections: list[Inspection] = []

    def inspect_sharding(self, x: ir.Value, watcher: Any) -> None:
        inspection = Inspection(self.type(x), watcher)
        self.inspections.append(inspection)
        if len(self.plan.devices) == 1:
            return
        attributes = {
            "call_target_name": ir.StringAttr.get("InspectSharding"),
            "has_side_effect": ir.BoolAttr.get(True),
            "backend_config": ir.StringAttr.get(inspection.key),
        }
        self.region_op("stablehlo.custom_call", [x.type], [x], attributes)
