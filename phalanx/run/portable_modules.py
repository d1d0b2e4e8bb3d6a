"""Programs as portable modules."""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from phalanx.core.platforms import AnyDevice
from phalanx.core.program import Literal, Program
from phalanx.core.types import Types
from phalanx.run.array import DeviceArray, default_sharding
from phalanx.run.planning import RequestedShardings, make_plan
from phalanx.run.runtime import backend
from phalanx.spmd.named import P
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.passes import ready


def export_program(
    program: Program,
    platforms: Sequence[str],
    shardings: Sequence[Sharding] = (),
    places: RequestedShardings | None = None,
) -> bytes:
    """``program``, with its constants, for devices of any of ``platforms``.

    These are as many as those over which inputs lie as ``shardings`` say, and ``places`` put
    inputs and outputs; one where neither is given. They need not be there.
    """
    prepared = ready(program)
    constants = list(map(_on_host, prepared.constants))
    plans = [Plan((AnyDevice(platform),)) for platform in platforms]
    if places is not None:
        count = len(constants)
        input_shardings = [*[default_sharding()] * count, *shardings]
        plan = make_plan(prepared.program, input_shardings, places, count).plan
        ins, outs = prepared.program.input_types, prepared.program.output_types
        plan = replace(
            plan,
            in_specs=_without_padding(plan, plan.in_specs, ins),
            out_specs=_without_padding(plan, plan.out_specs, outs),
            independent=False,
        )
        plans = [replace(plan, platform=platform) for platform in platforms]
    return backend().export(prepared.program, constants, plans, program.name)


def _without_padding(plan: Plan, specs: Sequence[P | None], types: Types) -> tuple[P | None, ...]:
    """``specs``, left open where parts would not be equal: whoever calls has whole arrays."""
    pairs = zip(specs, types, strict=True)
    return tuple([x if plan.padded(t, x).shape == t.shape else None for x, t in pairs])


def _on_host(constant: Literal) -> np.ndarray:
    """The elements; of keys the words."""
    value = constant.value
    return value._fetched() if isinstance(value, DeviceArray) else np.asarray(value)
