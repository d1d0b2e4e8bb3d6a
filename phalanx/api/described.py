"""Programs that run here, compiled for accelerators that are only described."""

# What a traced function holds is private to users, not to what exports and compiles it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.api.stages import Traced
from phalanx.base.config import config
from phalanx.core.platforms import describe_devices, platform_of
from phalanx.run.backend import Executable


def use_described_devices(devices: Sequence[Any]) -> None:
    """Divide the CPU into devices that stand for ``devices`` from now on, to trace programs on."""
    config.update("platforms", "cpu")
    config.update("num_cpu_devices", len(devices))
    describe_devices(devices)


def compiled_for(traced: Traced, devices: Sequence[Any]) -> Executable:
    """``traced`` as compiled for those of ``devices`` for which those that it is for here stand.

    Raises:
        DeviceError: there are too few of them.
        OutOfMemory, RuntimeFailure: the compiler refuses it.
    """
    lowered = traced.lower(lowering_platforms=(platform_of(devices[0]),))
    return lowered._planned.compile_for(devices, lowered._module)
