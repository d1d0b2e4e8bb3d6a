"""`phalanx check script.py` says what is probably wrong with what a script compiles."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import textwrap
from collections.abc import Sequence

from msgspec.structs import asdict
from rich.console import Console
from rich.text import Text

from phalanx.base.plain import plain
from phalanx.cli.scripts import INTERRUPTED, is_there, run_reporting
from phalanx.insight.findings import Finding
from phalanx.insight.watching import checking_compiled

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Run the script; 1 if something was found, and its own status if it did not come to its
    end."""
    if not is_there("check", arguments.script, arguments.module):
        return 2
    with checking_compiled() as found, _aside(arguments.json):
        status = run_reporting(arguments.script, arguments.module, arguments.arguments)
    findings = sorted(found.values(), key=lambda f: (f.file, f.line, f.code))
    if arguments.json:
        print(json.dumps(list(map(asdict, findings)), indent=2))
    else:
        _show(findings, found.functions, status)
    return status or (1 if findings else 0)


def _aside(is_json: bool) -> contextlib.AbstractContextManager[object]:
    """What the script prints goes to stderr where stdout is for the findings alone."""
    return contextlib.redirect_stdout(sys.stderr) if is_json else contextlib.nullcontext()


def _show(findings: Sequence[Finding], functions: int, status: int) -> None:
    console = Console(highlight=False)
    for finding in findings:
        head = Text.assemble(
            (plain(_short(finding.file)), "bold"), f":{finding.line}: ", (finding.code, "bold red"),
            f" {plain(finding.message)}",
        )  # fmt: skip
        console.print(head, soft_wrap=True)  # one line, to be searched for
        for line in textwrap.wrap(finding.remedy, console.width - 4):
            console.print(Text(f"    {plain(line)}", "green"))
        console.print()
    count = len(findings)
    told = "nothing was found" if count == 0 else f"{count} finding{'s' * (count > 1)}"
    told += ": the script compiled nothing" if count == functions == status == 0 else ""
    early = "was interrupted" if status == INTERRUPTED else "failed"
    console.print(f"{told} before the script {early}" if status else told)


def _short(file: str) -> str:
    """The path from the working directory, if the file is in it."""
    inside = os.path.relpath(file) if os.path.isabs(file) else file
    return file if inside.startswith("..") else inside
