"""Findings in whatever a program compiles while it runs, and in what it does between."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager

from phalanx.api.stages import Traced, watching
from phalanx.base.config import config
from phalanx.base.source import user_location
from phalanx.insight.between import watching_between
from phalanx.insight.checking import findings_in
from phalanx.insight.findings import Finding, is_silenced

__all__ = ["Findings", "checking_compiled"]


class Findings(dict[tuple[str, str, int], Finding]):
    """What was found, by code, file and line, in so many compiled ``functions``."""

    functions = 0


@contextmanager
def checking_compiled() -> Generator[Findings]:
    """Look at each function that is compiled inside a block, and at what happens between them; the
    block is given what is found.

    A mistake in a line is told once, however many functions it is compiled into.
    """
    found = Findings()

    def note(findings: Iterable[Finding]) -> None:
        for finding in findings:
            found.setdefault((finding.code, finding.file, finding.line), finding)

    def look(traced: Traced) -> None:
        found.functions += 1
        note(findings_in(traced, user_location()))

    with watching_between() as between, watching(look), config.override(keep_lanes=True):
        yield found
    note([f for f in (*between.findings, *between.loops()) if not is_silenced(f)])
