"""`phalanx devices` lists the devices that phalanx sees, and says why there are no others."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

import phalanx
from phalanx.base.errors import DeviceError
from phalanx.core.platforms import NO_HARDWARE, platform_of
from phalanx.run.runtime import backend


def run(arguments: argparse.Namespace) -> int:
    """Print a table of them; 1 if those that are to be used do not start."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        devices, absent, failure = _found()
    console = Console()
    console.print(_table(devices))
    for line in (*_versions(devices[0]), *_absences(absent, arguments.why)):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    for message in (*(w.message for w in warned), *filter(None, [failure])):
        print(f"phalanx devices: {message}", file=sys.stderr)
    return 0 if failure is None else 1


def _found() -> tuple[Sequence[Any], dict[str, str], DeviceError | None]:
    """The devices, or those of the CPU; what there is not, and why; why the others are not used."""
    failure, absent = None, dict[str, str]()
    try:
        devices = phalanx.devices()
    except DeviceError as e:
        devices, failure = phalanx.devices("cpu"), e
    try:
        absent = backend().absences()
    except DeviceError as e:  # what the environment says of plugins cannot be read
        failure = e
    return devices, absent, failure


def _absences(absent: dict[str, str], why: bool) -> list[str]:
    """Which accelerators cannot be had; why, if that is asked for or there is something to do."""
    quiet = [n for n, reason in absent.items() if reason.startswith(NO_HARDWARE) and not why]
    lines = [f"no {name}: {reason}" for name, reason in absent.items() if name not in quiet]
    return [*lines, f"no {', '.join(quiet)}: phalanx devices --why says why"] if quiet else lines


def _table(devices: Sequence[Any]) -> Table:
    """A row for each device; what is not known of any is left out."""
    table = Table(title=f"backend: {devices[0].platform}, jaxlib {backend().version()}")
    columns: dict[str, list[Any]] = {
        "id": [d.id for d in devices],
        "platform": [d.platform for d in devices],
        "kind": [d.device_kind for d in devices],
        "process": [d.process_index for d in devices],
        "slice": [getattr(d, "slice_index", "") for d in devices],
        "coordinates": [", ".join(map(str, getattr(d, "coords", ()) or ())) for d in devices],
        "memory": [_memory(d) for d in devices],
    }
    known = {name: cells for name, cells in columns.items() if any(c != "" for c in cells)}
    for name in known:
        table.add_column(name)
    for row in zip(*known.values(), strict=True):
        table.add_row(*map(str, row))
    return table


def _versions(device: Any) -> list[str]:
    """What its client was built for, and uses."""
    platform, version = device.platform, str(device.client.platform_version)
    lines = [] if version == platform else version.splitlines()
    text = ", ".join(filter(None, [*lines, backend().libraries(platform_of(device))]))
    return [f"{platform}: {text}"] if text else []


def _memory(device: Any) -> str:
    """How much of its own there is for arrays; a CPU has that of the host."""
    try:
        stats: dict[str, int] = device.memory_stats() or {}
    except RuntimeError:  # it is that of another process
        return ""
    limit = stats.get("bytes_limit")
    return f"{limit / 2**30:.1f} GiB" if limit else ""
