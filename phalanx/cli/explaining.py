"""`phalanx explain script.py` says what the functions that a script compiles do on devices."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from rich.console import Console

from phalanx.api.stages import Traced, watching
from phalanx.base.errors import PhalanxError
from phalanx.base.source import Location, lines_of_users, user_location
from phalanx.cli.options import add_explain_options, with_options_behind
from phalanx.cli.scripts import NOTHING, is_there, run_reporting
from phalanx.insight.explanations.explain import report_on
from phalanx.insight.reports.page import page
from phalanx.insight.reports.report import Report
from phalanx.insight.systems import Machine, machine

__all__ = ["aside", "compiled_in", "run", "write"]

Seen = list[tuple[Traced, Location]]


def run(arguments: argparse.Namespace) -> int:
    """Run the script, and report on what it compiled; its status if it did not come to its end."""
    arguments = with_options_behind(arguments, add_explain_options)
    try:
        chips = machine(arguments.machine) if arguments.machine else None
    except PhalanxError as e:
        print(f"phalanx explain: {e}", file=sys.stderr)
        return 2
    if not is_there("explain", arguments.script, arguments.module):
        return 2
    with compiled_in() as seen, aside(arguments.json):
        status = run_reporting(arguments.script, arguments.module, arguments.arguments)
    reports = list(_reports(seen, chips))  # which compile, and are not to be seen
    write(reports, arguments.json, arguments.html)
    return status


def _reports(seen: Seen, chips: Machine | None) -> Iterator[Report]:
    reports: list[Report] = []
    for traced, where in seen:
        try:
            report = report_on(traced, chips, where)
            if report not in reports:  # as where its arguments lay elsewhere at first
                reports.append(report)
                yield report
        except (PhalanxError, NotImplementedError) as e:
            print(f"phalanx explain: {traced.fun_name}, at {where}: {e}", file=sys.stderr)


@contextmanager
def compiled_in() -> Generator[Seen]:
    """The functions that are compiled inside a block, and the lines that called them."""
    seen: Seen = []

    def watch(traced: Traced) -> None:
        seen.append((traced, user_location()))

    with watching(watch), lines_of_users():
        yield seen


def aside(is_json: bool) -> contextlib.AbstractContextManager[object]:
    """What the script prints goes to stderr where stdout is for the report alone."""
    return contextlib.redirect_stdout(sys.stderr) if is_json else contextlib.nullcontext()


def write(reports: list[Report], is_json: bool, html: Path | None) -> None:
    """Give ``reports`` in the form that was asked for; in the terminal, if in none."""
    if html is not None:
        html.write_text(page(reports), encoding="utf-8")
        print(f"the report is in {html}", file=sys.stderr)
    if is_json:
        print(json.dumps([json.loads(r.json()) for r in reports], indent=1))
    elif html is None:
        if hasattr(sys.stdout, "reconfigure"):  # its encoding may lack µ and blocks
            cast(io.TextIOWrapper, sys.stdout).reconfigure(errors="replace")
        console = Console(highlight=False)
        for report in reports:
            console.print(report)
        if not reports:
            console.print(f"nothing to explain: {NOTHING}")
