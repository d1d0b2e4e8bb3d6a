"""Findings in whatever a program compiles while it runs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from phalanx.api.stages import Traced, watching
from phalanx.base.source import user_location
from phalanx.insight.checking import findings_in
from phalanx.insight.findings import Finding

__all__ = ["Found", "checking_compiled"]

Found = dict[tuple[str, str, int], Finding]  # by code, file and line


@contextmanager
def checking_compiled() -> Generator[Found]:
    """Look at each function that is compiled inside a block; the block is given what is found.

    A mistake in a line is told once, however many functions it is compiled into.
    """
    found: Found = {}

    def look(traced: Traced) -> None:
        for finding in findings_in(traced, user_location()):
            found.setdefault((finding.code, finding.file, finding.line), finding)

    with watching(look):
        yield found
