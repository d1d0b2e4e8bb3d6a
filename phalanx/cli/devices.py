"""`phalanx devices` lists the devices that phalanx sees."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

import phalanx


def run(arguments: argparse.Namespace) -> int:
    """Print a table of them; the exit status."""
    del arguments
    table = Table(title=f"backend: {phalanx.default_backend()}")
    for column in ("id", "platform", "kind", "process"):
        table.add_column(column)
    for device in phalanx.devices():
        table.add_row(
            str(device.id), device.platform, device.device_kind, str(device.process_index)
        )
    Console().print(table)
    return 0
