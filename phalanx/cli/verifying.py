"""`phalanx verify script.py` compares what a script computes on devices with one device."""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

from msgspec import Struct, field

from phalanx.api.stages import Traced, on_compiled_call, watching
from phalanx.base.config import config
from phalanx.base.errors import ConfigError, PhalanxError, ProgramMismatch, RuntimeFailure
from phalanx.base.plain import plain
from phalanx.base.source import Location, lines_of_users, user_location
from phalanx.cli.explaining import aside, write
from phalanx.cli.options import add_verify_options, with_options_behind
from phalanx.cli.scripts import INTERRUPTED, is_there, run_reporting
from phalanx.insight.reports.report import Column, Report, Table
from phalanx.insight.reports.values import short_line
from phalanx.insight.verification.other_python import Other, answering
from phalanx.insight.verification.verify import AGAINST, Verified, is_divided, verified

__all__ = ["run"]


class _Seen(Struct):
    """What was compared, and what was not.

    Attributes:
        against: what functions are compared with.
        other: the other Python, as long as it runs the same.
        asking: held while it is asked.
        reports: by function and line that calls it, and the line that differs: a function is
            compiled again for arguments that are placed otherwise, and told of once.
        failed: names, lines and reasons.
        alone: how many functions ran on one device.
    """

    against: str
    other: Other | None = None
    asking: Lock = field(default_factory=Lock)
    reports: dict[Any, tuple[Verified, Location]] = field(default_factory=dict[Any, Any])
    failed: list[tuple[str, Location, str]] = field(default_factory=list[Any])
    alone: int = 0

    def look(self, traced: Traced, leaves: Sequence[Any] | None) -> None:
        """Compare a function that is called first, with these arguments."""
        if leaves is None:
            return  # it was compiled ahead of time, and is compared when it is called
        is_free = self.asking.acquire(blocking=False)
        try:
            self._compare(traced, leaves, is_free)
        finally:
            if is_free:
                self.asking.release()

    def _compare(self, traced: Traced, leaves: Sequence[Any], is_free: bool) -> None:
        if self.against == "float64" or is_divided(traced, leaves):
            self._report(traced, leaves, None)
        elif self.other is None:
            self.alone += 1
        if self.other is not None and is_free:
            self._report(traced, leaves, self.other)
        elif self.other is not None:
            reason = "the other Python was busy with another function, as in another thread"
            self.failed.append((traced.fun_name, user_location(), reason))

    def _report(self, traced: Traced, leaves: Sequence[Any], other: Other | None) -> None:
        where, what = user_location(), "float64" if self.against == "float64" else "one-device"
        try:
            verdict = verified(traced, leaves, what, where, other=other)
            key = verdict.title, where.full, verdict.agrees, verdict.line
            self.reports.setdefault(key, (verdict, where))
        except Exception as e:  # whatever it is, the script goes on as it would alone
            kind = "" if isinstance(e, PhalanxError) else f"{type(e).__name__}: "
            self.failed.append((traced.fun_name, where, kind + f"{e}".partition("\n")[0]))
            if isinstance(e, ProgramMismatch):
                self.other = None


def run(arguments: argparse.Namespace) -> int:
    """Run the script; 1 if something differs, and its own status if it did not come to its end."""
    arguments = with_options_behind(arguments, add_verify_options)
    if not is_there("verify", arguments.script, arguments.module):
        return 2
    if arguments.devices is not None:
        try:
            config.update("platforms", "cpu")
            config.update("num_cpu_devices", arguments.devices)
        except ConfigError as e:
            print(f"phalanx verify: {e}", file=sys.stderr)
            return 2
    if arguments.answer is not None:
        with watching(answering(Connection(arguments.answer)), on_compiled_call), lines_of_users():
            return run_reporting(arguments.script, arguments.module, arguments.arguments)
    with ExitStack() as until:
        other = None
        if arguments.against not in AGAINST:
            try:
                other = until.enter_context(_another(arguments))
            except RuntimeFailure as e:
                asked = "is this version of phalanx installed there, with a jaxlib?"
                print(f"phalanx {e} in {arguments.against}: {asked}", file=sys.stderr)
                return 2
        seen = until.enter_context(_verifying(arguments.against, other))
        until.enter_context(aside(arguments.json))
        status = run_reporting(arguments.script, arguments.module, arguments.arguments)
    compared = [report for report, _ in seen.reports.values()]
    different = [r for r in compared if not r.agrees]
    reports: list[Report] = (
        [*compared, *_uncompared(seen)] if arguments.json else [_all(seen, status), *different]
    )
    write(reports, arguments.json, arguments.html)
    return status or (1 if different else 0)


@contextmanager
def _another(arguments: argparse.Namespace) -> Generator[Other]:
    """The script in another Python, which answers this one inside a block."""
    near, far = socket.socketpair()
    words = ["-m", "phalanx", "verify", "--answer", str(far.fileno())]
    if arguments.devices is not None:
        words += ["--devices", str(arguments.devices)]
    words += ["-m"] if arguments.module else []
    process = subprocess.Popen(
        [arguments.against, *words, arguments.script, *arguments.arguments],
        pass_fds=[far.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    far.close()
    other = Other(Connection(near.detach()))
    try:
        other.versions = other.greeted()
        yield other
    finally:
        other.connection.close()
        process.terminate()
        process.wait()


@contextmanager
def _verifying(against: str, other: Other | None) -> Generator[_Seen]:
    """Verify each function that is compiled inside a block, when it is called first."""
    seen = _Seen(against, other)
    with watching(seen.look, on_compiled_call), lines_of_users():
        yield seen


def _uncompared(seen: _Seen) -> list[Report]:
    return [
        Report(plain(name), (), f"It was not compared, called at {where.full}: {why}.")
        for name, where, why in seen.failed
    ]


def _all(seen: _Seen, status: int) -> Report:
    """A row for each function, and what there is to say of all of them."""
    rows = [
        (plain(r.title), where.full, "agrees" if r.agrees else "differs", r.line or "")
        for r, where in seen.reports.values()
    ]
    rows += [(plain(name), where.full, "not compared", "") for name, where, _ in seen.failed]
    columns = (
        Column("function"), Column("called at", "line"), Column("verdict"),
        Column("first difference", "line"),
    )  # fmt: skip
    note = " ".join([f"{name}: {why}." for name, _, why in seen.failed])
    return Report(
        "verify", (Table("functions", columns, tuple(rows), note),), _verdict(seen, status)
    )


def _verdict(seen: _Seen, status: int) -> str:
    count = len(seen.reports)
    bad = [r for r, _ in seen.reports.values() if not r.agrees]
    if not count and not seen.failed:
        text = "Nothing was compared: the script compiled nothing that runs on several devices"
        if seen.alone:
            text += f", and {seen.alone} function{'s' * (seen.alone > 1)} on one"
    elif bad:
        line = next((r.line for r in bad if r.line), None)
        at = f", first at {short_line(line)}" if line else ""
        text = (
            f"{len(bad)} of {count} function{'s' * (count > 1)} differ{'s' * (len(bad) == 1)}{at}"
        )
    elif count:
        text = f"{count} function{'s' * (count > 1)} compared: no difference"
    else:
        text = "Nothing was compared"
    if seen.failed:
        text += f"; {len(seen.failed)} could not be compared"
    if status:
        text += " before the script " + ("was interrupted" if status == INTERRUPTED else "failed")
    return f"{text}."
