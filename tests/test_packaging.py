"""What the package says of itself, and the workflows that test and release it."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

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
    assert called == {"demo", "test", "drift", "docs", "engines", "release"} <= commands


def test_what_workflows_run_between_is_what_the_gate_runs():
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    run = (ROOT / ".ci/run").read_text()
    (lock,) = re.findall(r"\.ci/locks/(\w+)\.txt", workflow)
    assert lock in LOCKS and f' {lock}"' in run
    (tests,) = set(re.findall(r"tests: (.+)", workflow))
    assert f"./dev test {tests}" in run
    named = (ROOT / ".ci/between").read_text().split()
    files = [ROOT / name.split("::")[0] for name in named if name != "--sample"]
    assert files and all(file.exists() for file in files)


LOCKS = {path.stem: path.read_text() for path in (ROOT / ".ci/locks").iterdir()}
EXTRAS = PROJECT["optional-dependencies"]


def test_every_supported_python_has_its_versions():
    said = set(re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"])))
    assert {f"python{version}" for version in said} <= {*LOCKS}


@pytest.mark.parametrize("name", LOCKS)
def test_versions_are_plain_pins_of_all_that_is_installed(name):
    pins = LOCKS[name].splitlines()
    assert all(PIN.fullmatch(pin) for pin in pins)
    pinned = {pin.partition("==")[0] for pin in pins}
    asked = [*PROJECT["dependencies"], *(r for extra in INSTALLED for r in EXTRAS[extra])]
    names = {NAME.match(each)[0].lower().replace("_", "-") for each in asked} - {"phalanx"}
    assert {*names, "hatchling", "editables"} <= pinned


PIN = re.compile(r"[a-z0-9-]+==[a-z0-9.]+(?: ; .+)?")  # and for which Python
NAME = re.compile(r"[\w-]+")
INSTALLED = ("demo", "checkpoint", "test", "docs", "release", "lock")  # extras of `./dev`


def test_the_container_is_made_of_files_and_extras_that_there_are():
    steps = (ROOT / "Dockerfile").read_text()
    (extras,) = re.findall(r"^ARG EXTRAS=(.+)$", steps, re.MULTILINE)
    assert {*extras.split(",")} <= {*EXTRAS}
    copied = [
        word for step in re.findall(r"^COPY (.+)$", steps, re.MULTILINE) for word in step.split()
    ]
    assert copied and all((ROOT / name).exists() for name in copied if not name.startswith("/"))


def test_badges_say_what_the_package_says():
    readme = (ROOT / "README.md").read_text()
    first, *_, last = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert f"python-{first}_to_{last}-" in readme
    assert f"license-{PROJECT['license'].replace('-', '_')}-" in readme
    assert ("status-alpha-" in readme) == ("3 - Alpha" in " ".join(PROJECT["classifiers"]))


def test_a_release_counts_the_links_that_lead_nowhere_on_the_index():
    release = runpy.run_path(str(ROOT / ".ci/release.py"))
    text = "[a](docs/a.md) ![b](https://host/b.svg) [c](#part) [d](e.svg)"
    assert release["relative_links"](text) == ["docs/a.md", "e.svg"]
