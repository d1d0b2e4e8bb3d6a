"""Findings in the formats that other programs read: JSON, comments of GitHub Actions, SARIF."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from phalanx.base.version import __version__
from phalanx.insight.checks.findings import CODES, Finding

__all__ = ["as_github", "as_json", "as_sarif", "relative"]


def as_json(findings: Sequence[Finding]) -> str:
    """A list of objects with the fields of a finding."""
    return json.dumps(list(map(asdict, findings)), indent=2)


def as_github(findings: Sequence[Finding]) -> str:
    """Commands to GitHub Actions, which shows each as a comment at the line."""
    return "\n".join(map(_command, findings))


def _command(finding: Finding) -> str:
    where = f"file={_property(relative(finding.file))},line={finding.line}"
    message = _escaped("\n".join([finding.message, finding.remedy]))
    return f"::warning {where},title=phalanx {finding.code}::{message}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(findings: Sequence[Finding]) -> str:
    """A log of the Static Analysis Results Interchange Format, version 2.1.0 of OASIS."""
    rules = sorted({f.code for f in findings})
    driver = {
        "name": "phalanx check",
        "version": __version__,
        "rules": [_rule(code) for code in rules],
    }
    results = [_result(f, rules.index(f.code)) for f in findings]
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=2)


def _rule(code: str) -> dict[str, Any]:
    declared = CODES[code]
    return {
        "id": code,
        "shortDescription": {"text": declared.title},
        "help": {"text": declared.remedy},
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    place = {
        "artifactLocation": {"uri": _uri(finding.file)},
        "region": {"startLine": finding.line},
    }
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": "warning",
        "message": {"text": f"{finding.message}. {finding.remedy}"},
        "locations": [{"physicalLocation": place}],
    }


def relative(file: str) -> str:
    """The path from the working directory, where the file is in it."""
    path = Path(file).absolute()
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else os.fspath(path)


def _uri(file: str) -> str:
    place = relative(file)
    return Path(place).as_uri() if os.path.isabs(place) else place
