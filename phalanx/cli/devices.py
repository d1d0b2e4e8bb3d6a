"""`phalanx devices` lists the devices that phalanx sees, and says why there are no others."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

import phalanx
from phalanx.base.errors import DeviceError
from phalanx.run.runtime import backend


def run(arguments: argparse.Namespace) -> int:
    """Print a table of them; 1 if those that are to be used do not start."""
    del arguments
    failure = None
    try:
        devices = phalanx.devices()
    except DeviceError as e:
        devices, failure = phalanx.devices("cpu"), e
    try:
        absent = backend().absences()
    except DeviceError as e:  # what the environment says of plugins cannot be read
        absent, failure = {}, e
    platform, version = devices[0].platform, devices[0].client.platform_version
    table = Table(title=f"backend: {platform}, jaxlib {backend().version()}")
    for column in ("id", "platform", "kind", "process", "memory"):
        table.add_column(column)
    for device in devices:
        row = device.id, device.platform, device.device_kind, device.process_index, _memory(device)
        table.add_row(*map(str, row))
    console = Console()
    console.print(table)
    told = [f"{platform}: {', '.join(version.splitlines())}"] if version != platform else []
    told += [f"no {name}: {why}" for name, why in absent.items()]
    for line in told:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    if failure is not None:
        print(f"phalanx devices: {failure}", file=sys.stderr)
    return 0 if failure is None else 1


def _memory(device: Any) -> str:
    """How much of its own there is for arrays; a CPU has that of the host."""
    stats: dict[str, int] = device.memory_stats() or {}
    limit = stats.get("bytes_limit")
    return f"{limit / 2**30:.1f} GiB" if limit else ""
