"""A module that was written, for whoever compiles and keeps it."""

from __future__ import annotations

import functools
import hashlib
import io
from typing import TYPE_CHECKING, Any

from jaxlib import _hlo
from msgspec import Struct
from msgspec.structs import replace

from phalanx.core.platforms import platform_of
from phalanx.core.types import ArrayType
from phalanx.spmd.plan import Plan
from phalanx.xla.host_callbacks import Callbacks
from phalanx.xla.jaxlib_versions import xc

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from phalanx.xla.inspection import Inspection


class XlaModule(Struct, frozen=True, dict=True):
    """A module, and what compiling and running it needs besides."""

    module: ir.Module
    plan: Plan
    out_types: tuple[ArrayType, ...]  # of whole arrays, without padding
    donate: tuple[int, ...]
    callbacks: Callbacks
    inspections: tuple[Inspection, ...]
    name: str
    largest: int  # bytes of the largest array in it
    isolated: bool  # whether it is compiled so that parts of it do not depend on each other

    @property
    def is_for_its_devices(self) -> bool:
        """Whether it was written for the platform of the devices of the plan."""
        return self.plan.platform in (None, platform_of(self.plan.devices[0]))

    def over(self, devices: tuple[Any, ...]) -> XlaModule:
        """The same for other ``devices``, which take the places of those of the plan."""
        return replace(self, plan=replace(self.plan, devices=devices, platform=None))

    def as_text(self, locations: bool = False, dialect: str = "stablehlo") -> str:
        """The module in a dialect, with the lines of Python if ``locations``."""
        if dialect == "hlo":
            options = _hlo.HloPrintOptions()
            options.print_metadata = locations
            return self.ir(dialect).get_hlo_module().to_string(options)
        return str(self.module.operation.get_asm(enable_debug_info=locations))

    def ir(self, dialect: str = "stablehlo") -> Any:
        """The module of MLIR, or for "hlo" the ``XlaComputation``."""
        if dialect == "stablehlo":
            return self.module
        return xc.mlir.mlir_module_to_xla_computation(self.bytecode, False, False)

    @functools.cached_property
    def bytecode(self) -> bytes:
        """The module in the compact form that ``text_of`` reads."""
        return bytecode_of(self.module)


def bytecode_of(module: ir.Module) -> bytes:
    """``module`` in the compact form."""
    with io.BytesIO() as file:
        module.operation.write_bytecode(file)
        return file.getvalue()


def number_of(text: str) -> int:
    """A number that tells the module of such a ``text`` from others."""
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:7])
