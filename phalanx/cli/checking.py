"""`phalanx check script.py` says what is probably wrong with what a script compiles."""

from __future__ import annotations

import argparse
import contextlib
import sys
import textwrap
from collections.abc import Callable, Collection, Sequence

from rich.console import Console
from rich.text import Text

from phalanx.base.plain import plain
from phalanx.cli import formats
from phalanx.cli.scripts import INTERRUPTED, NOTHING, is_there, run_reporting
from phalanx.insight.checks.findings import CODES, Finding
from phalanx.insight.checks.running_programs import checking_compiled

__all__ = ["explain", "run"]

FORMATS: dict[str, Callable[[Sequence[Finding]], str]] = {
    "json": formats.as_json,
    "github": formats.as_github,
    "sarif": formats.as_sarif,
}
NAMED = 4  # functions that are named at the end


def run(arguments: argparse.Namespace) -> int:
    """Run the script; 1 if something was found, and its own status if it did not come to its
    end."""
    wanted = _codes(arguments.select), _codes(arguments.ignore)
    if not all(map(_are_known, wanted)):
        return 2
    codes = (set(wanted[0]) or CODES.keys()) - set(wanted[1])
    if not is_there("check", arguments.script, arguments.module):
        return 2
    written = FORMATS.get(arguments.format)
    with checking_compiled() as found, _aside(written is not None):
        status = run_reporting(arguments.script, arguments.module, arguments.arguments)
    findings = [f for f in found.values() if f.code in codes]
    findings.sort(key=lambda f: (f.file, f.line, f.code))
    if written is not None:
        print(written(findings))
    else:
        _show(findings)
        print(_verdict(len(findings), list(found.functions), codes, status))
    return status or (1 if findings else 0)


def explain(words: str) -> int:
    """Print what codes mean, or all of them; 2 if there is no such code."""
    codes = _codes(words) or sorted(CODES)
    if not _are_known(codes):
        return 2
    for code in map(CODES.__getitem__, codes):
        print(f"{code.name}: {code.title}\n\n    {code.example}\n")
        print(textwrap.fill(code.remedy, 88), end="\n\n")
    print("To silence a finding, write a comment in its line: # phalanx: ok CODE")
    return 0


def _codes(words: str) -> list[str]:
    return words.upper().replace(",", " ").split()


def _are_known(codes: Sequence[str]) -> bool:
    """Whether there are such codes; if not, that is said."""
    for code in codes:
        if code not in CODES:
            known = f"the codes are {min(CODES)} to {max(CODES)}"
            print(f"phalanx check: there is no code {plain(code)}: {known}", file=sys.stderr)
            return False
    return True


def _aside(is_read: bool) -> contextlib.AbstractContextManager[object]:
    """What the script prints goes to stderr where stdout is for the findings alone."""
    return contextlib.redirect_stdout(sys.stderr) if is_read else contextlib.nullcontext()


def _show(findings: Sequence[Finding]) -> None:
    console = Console(highlight=False)
    for finding in findings:
        head = Text.assemble(
            (plain(formats.relative(finding.file)), "bold"), f":{finding.line}: ",
            (finding.code, "bold red"), f" {plain(finding.message)}",
        )  # fmt: skip
        console.print(head, soft_wrap=True)  # one line, to be searched for
        for line in textwrap.wrap(finding.remedy, console.width - 4):
            console.print(Text(f"    {plain(line)}", "green"))
        console.print()


def _verdict(count: int, functions: Sequence[str], codes: Collection[str], status: int) -> str:
    """The last line: what was found, and of what."""
    text = "nothing was found" if count == 0 else f"{count} finding{'s' * (count > 1)}"
    if status:
        early = "was interrupted" if status == INTERRUPTED else "failed"
        return f"{text} before the script {early}"
    if not functions:
        return f"{text}: {NOTHING}" if count == 0 else text
    names = ", ".join(map(plain, functions[:NAMED])) + ", ..." * (len(functions) > NAMED)
    checked = f"{len(functions)} function{'s' * (len(functions) > 1)} checked ({names})"
    return f"{checked} for {len(codes)} kind{'s' * (len(codes) != 1)} of mistake: {text}"
