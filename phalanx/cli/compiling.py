"""`phalanx compile script.py --for v5e:2x4` says what functions take on chips that are not here.

The script runs, on the CPU, which is divided into as many devices as there are chips. Whatever it
compiles is compiled for the chips besides.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from phalanx.api.described import compiled_for, use_described_devices
from phalanx.api.stages import Traced, watching
from phalanx.base.errors import OutOfMemory, PhalanxError
from phalanx.base.plain import plain
from phalanx.base.source import user_location
from phalanx.cli.chips import described
from phalanx.cli.options import add_compile_options, with_options_behind
from phalanx.cli.scripts import is_there, run_reporting
from phalanx.insight.reports.values import shown
from phalanx.insight.traced import whole

_COLUMNS = ("function", "at", "chips", "takes", "gives", "between", "exchanged")


def run(arguments: argparse.Namespace) -> int:
    """Run the script; 1 if something does not fit, or cannot be compiled, and its own status if it
    did not come to its end."""
    arguments = with_options_behind(arguments, add_compile_options)
    if not is_there("compile", arguments.script, arguments.module):
        return 2
    try:
        if arguments.machine is None:
            raise ValueError("--for says for which machine: --for v5p:4x4x4, --for h100:4x8")
        devices = described(arguments.machine, arguments.gpu)
    except (PhalanxError, ValueError, OSError) as e:
        print(f"phalanx compile: {e}", file=sys.stderr)
        return 2
    use_described_devices(devices)
    table = Table(title=f"{len(devices)} x {devices[0].device_kind}", title_justify="left")
    for column in _COLUMNS:
        in_words = column in _COLUMNS[:2]
        side = "left" if in_words else "right"
        table.add_column(column, justify=side, no_wrap=not in_words, overflow="fold")
    faults: list[str] = []
    again: list[str] = []
    with watching(_watcher(devices, table, faults)), watching(_noting(again)):
        status = run_reporting(arguments.script, arguments.module, arguments.arguments)
    console = Console()
    if table.row_count or not status:
        console.print(table)
    for fault in [*again, *faults]:
        console.print(plain(fault), soft_wrap=True, markup=False, highlight=False)
    return status or (1 if faults else 0)


def _watcher(devices: Sequence[Any], table: Table, faults: list[str]) -> Callable[[Traced], None]:
    def watch(traced: Traced) -> None:
        place = user_location()
        name, line = plain(traced.fun_name), plain(f"{Path(place.file).name}:{place.line}")
        try:
            compiled = compiled_for(traced, devices)
            sizes = compiled.memory_analysis()
        except (PhalanxError, NotImplementedError) as e:
            table.add_row(Text(name), Text(line), *[""] * (len(_COLUMNS) - 2))
            what = "does not fit" if isinstance(e, OutOfMemory) else "cannot be compiled"
            faults.append(f"{name}, at {line}, {what}: {e}")
            return
        parts = [sizes[key] for key in ("arguments", "outputs", "temporaries")]
        exchanged = sum(e.bytes * e.count for e in compiled.exchanges())
        table.add_row(
            Text(name), Text(line), str(len(compiled.devices)), *map(_bytes, [*parts, exchanged])
        )

    return watch


def _noting(again: list[str]) -> Callable[[Traced], None]:
    """Notes of what is compiled again for arguments of the same types why that is."""
    before: dict[tuple[str, ...], list[str]] = {}

    def watch(traced: Traced) -> None:
        place, call = user_location(), whole(traced)
        name, line = traced.fun_name, f"{Path(place.file).name}:{place.line}"
        key, lying = (name, line, *map(str, call.types)), [*map(_where, call.shardings)]
        differing = [
            f"{call.names[i]} came from {old} and now from {new}"
            for i, (old, new) in enumerate(zip(before.get(key, lying), lying, strict=True))
            if old != new
        ]
        if differing:
            again.append(f"{name}, at {line}, is compiled again: {', '.join(differing)}")
        before[key] = lying

    return watch


def _where(sharding: Any) -> str:
    count = 0 if sharding is None else len(sharding.device_set)
    return {0: "the host", 1: "one device"}.get(count, f"{count} devices")


def _bytes(count: float) -> str:
    return shown(count, "bytes")
