"""What the package says of itself, and the workflows that test and release it."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_classifiers_name_the_pythons_that_workflows_test():
    said = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    assert said == sorted(re.findall(r'python: "(3\.\d+)"', workflow), key=lambda v: int(v[2:]))
    assert PROJECT["requires-python"] == f">={said[0]}"


def test_workflows_call_commands_that_there_are():
    commands = set(re.findall(r"^# \./dev (\w+)", (ROOT / "dev").read_text(), re.MULTILINE))
    called = {
        command
        for path in (ROOT / ".github/workflows").glob("*.yml")
        for command in re.findall(r"\./dev (\w+)", path.read_text())
    }
    assert called == {"test", "docs", "release"} <= commands


def test_constraints_of_workflows_are_those_of_the_gate():
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    run = (ROOT / ".ci/run").read_text()
    for name in re.findall(r"\.ci/(\w+)\.txt", workflow):
        assert (ROOT / f".ci/{name}.txt").exists() and f" {name}" in run
    (tests,) = set(re.findall(r"tests: (.+)", workflow))
    assert f'"{tests}"' in run
