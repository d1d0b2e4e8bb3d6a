"""A plugin of pytest, `-p libraries.rest --beside=report.xml`: what did not pass there is run.

A name may hold how a parameter prints, which differs where another library prints it. Where as many
tests of a file are left in the report as here, they are the same, in order.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from libraries.suites import Outcomes, interrupted, read_report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--beside", type=Path, required=True, help="a report of the same files")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    report: Path = config.getoption("--beside")
    outcomes = dict(read_report(Path(), report))
    left = [
        item
        for file, of_file in groupby(items, file_of)
        for item in not_passed(
            list(of_file),
            {name: out for name, out in outcomes.items() if name.startswith(f"{file}::")},
            whole=not interrupted(report),
        )
    ]
    kept = set(left)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = left


def not_passed(items: list[pytest.Item], outcomes: Outcomes, whole: bool) -> list[pytest.Item]:
    """The tests of a file of which the outcome is another, or, of a ``whole`` report, missing."""
    ours = {name_of(item): item for item in items}
    unknown = [name for name in ours if name not in outcomes]
    others = [outcome for name, outcome in outcomes.items() if name not in ours]
    if len(unknown) == len(others):
        outcomes = outcomes | dict(zip(unknown, others, strict=True))
    missing = "not run" if whole else "passed"
    return [item for name, item in ours.items() if outcomes.get(name, missing) != "passed"]


def file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def name_of(item: pytest.Item) -> str:
    """As a report has it: the file, the class or else the module, and the test."""
    path, bracket, parameters = item.nodeid.partition("[")
    file, *homes, name = path.split("::")
    home = homes[-1] if homes else Path(file).stem
    return f"{file}::{home}::{name}{bracket}{parameters}"
