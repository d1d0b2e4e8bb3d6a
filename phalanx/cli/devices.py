"""`phalanx devices` lists the devices that phalanx sees, and says why there are no others."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console
from rich.table import Table

import phalanx
from phalanx.run.runtime import backend


def run(arguments: argparse.Namespace) -> int:
    """Print a table of them; the exit status."""
    del arguments
    table = Table(title=f"backend: {phalanx.default_backend()}, jaxlib {backend().version()}")
    for column in ("id", "platform", "kind", "process", "memory"):
        table.add_column(column)
    for device in phalanx.devices():
        row = device.id, device.platform, device.device_kind, device.process_index, _memory(device)
        table.add_row(*map(str, row))
    console = Console()
    console.print(table)
    for name, why in backend().absences().items():
        console.print(f"no {name}: {why}", soft_wrap=True, markup=False, highlight=False)
    return 0


def _memory(device: Any) -> str:
    """How much of its own there is for arrays; a CPU has that of the host."""
    stats: dict[str, int] = device.memory_stats() or {}
    limit = stats.get("bytes_limit")
    return f"{limit / 2**30:.1f} GiB" if limit else ""
