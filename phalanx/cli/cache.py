"""`phalanx cache` says what lies in the cache of compiled programs; with `clear` it empties it."""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.table import Table

from phalanx.base.config import config
from phalanx.run.cache import Cache, unusable


def run(arguments: argparse.Namespace) -> int:
    """Show or clear the cache that the environment chooses; the exit status."""
    console = Console()
    folder, limit = config.compilation_cache_dir, config.compilation_cache_max_size
    reason = unusable(folder) if folder is not None else "PHALANX_CACHE_DIR is empty, or no home"
    if folder is None or reason is not None:
        console.print(f"no cache{f' at {folder}' if folder else ''}: {reason}", soft_wrap=True)
        return 1
    cache = Cache(folder)
    if arguments.action == "clear":
        console.print(f"{cache.clear()} compiled programs removed from {folder}", soft_wrap=True)
    else:
        console.print(table(cache, limit))
    return 0


def table(cache: Cache, limit: int) -> Table:
    """Where the cache is, how much it holds, and how much it may hold."""
    entries = cache.entries()
    ages = [time.time() - e.used for e in entries]
    rows = {
        "directory": cache.folder,
        "compiled programs": f"{len(entries):,}",
        "size": size(sum(e.size for e in entries)),
        "limit": "none" if limit < 0 else "0, switched off" if limit == 0 else size(limit),
    }
    if ages:
        rows |= {"used last": f"{age(min(ages))} ago", "unused for longest": age(max(ages))}
    result = Table(title="Cache of compiled programs", show_header=False)
    result.add_column()
    result.add_column(overflow="fold")
    for title, value in rows.items():
        result.add_row(title, value)
    return result


def size(count: float) -> str:
    """Bytes, with three digits and a unit.

    >>> size(2 << 30), size(1536), size(5)
    ('2 GiB', '1.5 KiB', '5 B')
    """
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def age(seconds: float) -> str:
    """A time span in the largest unit that it fills.

    >>> age(7300), age(59), age(200_000)
    ('2 hours', '59 seconds', '2 days')
    """
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"
