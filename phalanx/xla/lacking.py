"""What programs ask for that the runtime of their devices, such as a plugin, does not have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from phalanx.base.errors import DeviceError
from phalanx.base.source import Location, user_location
from phalanx.xla.client import plugin_of
from phalanx.xla.host_calls import CALLING

if TYPE_CHECKING:
    from phalanx.xla.module import XlaModule

_UNKNOWN = re.compile(
    r"No FFI handler registered for \"?(?P<foreign>[\w.$]+)"
    r"|No registered implementation for (?:untyped )?custom call to \"?(?P<untyped>[\w.$]+)"
    r"|Side-effect ops cannot be replicated.*custom_call_target=\"(?P<asking>InspectSharding)\""
)
_ASKING = "InspectSharding"
# Where devices run code by themselves, as in shard_map, jaxlib 0.12 writes types of float8 and
# float4 in a form that plugins do not read.
_UNREAD = re.compile(r"(?P<why>unknown attribute code: \d+)[\s\S]*Failed to parse using StableHLO")
_LINE = re.compile(r'"([^"]*)"\("([^"]+)":(\d+)')  # of a location: the function, file and line


def lacking(error: Exception, lowered: XlaModule) -> DeviceError | None:
    """The error for ``lowered``, if ``error`` says that there is no function of such a name, or
    that a plugin does not read the program."""
    unread = _UNREAD.search(str(error))
    if unread is not None:
        return DeviceError(
            f"{lowered.name}, at {user_location()}: the plugin for "
            f"{plugin_of(lowered.plan.devices[0].client)} does not read the program as jaxlib "
            f"writes it ({unread['why']}): in shard_map and pmap convert float8 and float4 to "
            "bfloat16, or use a plugin and a jaxlib that are of one version"
        )
    found = _UNKNOWN.search(str(error))
    if found is None:
        return None
    (target,) = filter(None, found.groups())
    device = lowered.plan.devices[0]
    place = _place_of(target, lowered.module) or user_location()
    return DeviceError(f"{lowered.name}, at {place}: {_advice(target, device)}")


def _advice(target: str, device: Any) -> str:
    """What cannot be done on ``device``, and what to do about it."""
    plugin = plugin_of(device.client)
    if plugin is None:
        return (
            f"no function {target!r} is registered for CPUs, where this is to run: "
            f"phalanx.ffi.register_ffi_target({target!r}, function, platform='cpu')"
        )
    on_host = "run this part on the host, jit(f, device=phalanx.devices('cpu')[0])"
    if target in CALLING:
        return (
            f"a function of Python is called, which the plugin for {plugin} cannot do: leave out "
            f"pure_callback, io_callback, debug.print and debug.callback there, or {on_host}"
        )
    if target == _ASKING:
        return (
            f"inspect_array_sharding asks the partitioner, and the plugin for {plugin} does not "
            "say: return the value from the function, and look at its sharding"
        )
    return (
        f"the plugin for {plugin} has no function {target!r}, by which this is computed: {on_host}"
    )


def _place_of(target: str, module: ir.Module) -> Location | None:
    """The line of the user's that a call of ``target`` comes from."""
    places: list[Location] = []

    def look(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "stablehlo.custom_call":
            name = ir.StringAttr(operation.attributes["call_target_name"]).value
            line = _LINE.search(str(operation.location)) if name == target else None
            if line is not None:
                places.append(Location.at(line[2], int(line[3]), line[1].rpartition("/")[2]))
        return ir.WalkResult.INTERRUPT if places else ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return places[0] if places else None
