"""The suites of libraries: a library whose tests pass, fail, or pass under jax alone."""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from libraries.suites import (
    OURS,
    PEER,
    STOPPED,
    alone,
    heed_interrupts,
    in_groups,
    outcomes_of,
    read_report,
    reported,
    row,
    run_files,
    stop,
)

ROOT = Path(__file__).parents[1]
TESTS = """
import sys
import jax.numpy as jnp
import pytest

ours = any(name.startswith("phalanx.run") for name in sys.modules)

def test_both():
    assert jnp.arange(3).sum() == 3

def test_neither():
    assert jnp.arange(3).sum() == 4

@pytest.mark.parametrize("array", [jnp.arange(3)])
def test_the_peer_alone(array):
    assert not ours

@pytest.mark.parametrize("printed", [f"ours: {ours}"])
def test_whose_name_differs(printed):
    pass

@pytest.mark.skipif(ours, reason="")
def test_skipped():
    pass
"""


def test_a_library_is_run_under_both(tmp_path):
    source = tmp_path / "tiny-1.0"
    source.mkdir()
    (source / "some_test.py").write_text(TESTS)
    table, results = tmp_path / "table.md", tmp_path / "results"
    command = [sys.executable, "-m", "libraries.suites", "tiny", "--sources", str(tmp_path)]
    done = subprocess.run(
        [*command, "--results", str(results), "--out", str(table)],
        cwd=ROOT,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "tiny: some_test.py::some_test::test_the_peer_alone[array0]: failed" in done.stdout
    assert "tiny: some_test.py::some_test::test_skipped: skipped" in done.stdout
    assert table.read_text().splitlines()[-1] == "| tiny-1.0 | 1 of 1 | 2 | 2 | 50.0% |"
    (results / "tiny" / OURS / "other_test.log").touch()
    ((first, own, theirs),) = reported(results / "tiny")  # the other was not run under jax
    assert own.parent.name == OURS and own.name == theirs.name == "some_test.xml"
    again = {name.rpartition("::")[2] for name in dict(read_report(first, theirs))}
    assert again == {"test_neither", "test_the_peer_alone[array0]", "test_skipped"}


# what a decorator returns without the name of what it was given is, to a report, where it was made
DECORATOR = """
def decorated(test):
    return lambda *args: test(*args)
"""
EITHER = """
import jax
if jax.__spec__.origin == "phalanx":
    from one import decorated
else:
    from other import decorated
"""
OF_A_CLASS = """

class TestIt:
    @stands_in.decorated
    def test_both(self):
        pass
"""


def test_those_that_pass_under_jax_alone_are_the_named_ones(tmp_path):
    file = tmp_path / "tests" / "some_test.py"
    file.parent.mkdir()
    file.write_text("import stands_in\n" + TESTS + OF_A_CLASS)
    (tmp_path / "stands_in.py").write_text(EITHER)
    for name in ("one", "other"):
        (tmp_path / f"{name}.py").write_text(DECORATOR)
    (file.parent / "pytest.ini").write_text("[pytest]\naddopts = --of-another-plugin")
    command = [sys.executable, "-m", "libraries.named", str(file)]
    options = ["-p", "stands_in", "--lists", str(tmp_path), "--results", str(tmp_path / "results")]
    alone = ["some_test::test_the_peer_alone[array0]", "some_test::test_skipped"]

    def told(*named):
        (tmp_path / "some.txt").write_text("\n".join(["# A reason.", *named, ""]))
        env = os.environ | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [*command, *options], cwd=ROOT, env=env, capture_output=True, text=True
        )
        *lines, count = done.stdout.splitlines()
        assert count == "some_test.py: 3 pass, and 2 with jax alone", done.stderr
        return done.returncode, lines

    assert told(*alone) == (0, [])
    other = "some_test::test_both"
    assert told(alone[0], other) == (
        1,
        [
            f"some_test.py: {alone[1]} passes with jax alone, and is not named",
            f"some_test.py: {other} is named, but does not pass with jax alone",
        ],
    )


def test_files_of_a_folder_run_in_one_process(tmp_path):
    of_folder = [Path("a/one_test.py"), Path("a/two_test.py")]
    for file in of_folder:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("import os\n\ndef test_it():\n    os.environ['was here']\n")
    (tmp_path / "a/one_test.py").write_text("import os\nos.environ['was here'] = 'yes'\n" + TESTS)
    (tmp_path / "a/broken_test.py").write_text("import there_is_none")
    (tmp_path / "b_test.py").touch()
    files = [*of_folder, Path("a/broken_test.py"), Path("b_test.py")]
    groups = in_groups(tmp_path, files, 10_000)
    assert groups == [[*of_folder, Path("a/broken_test.py")], [Path("b_test.py")]]
    assert in_groups(tmp_path, files, 0) == [[file] for file in files]
    report = run_files(tmp_path, groups[0], tmp_path / "results", PEER, 600)
    found = dict(read_report(Path("a"), report))
    assert found["a/two_test.py::two_test::test_it"] == "passed"
    assert found["a/one_test.py::one_test::test_neither"] == "failed"


def test_what_does_not_run_or_pass_but_under_jax_is_counted():
    peer = {"f::b": "passed", "f::c": "failed", "f::d": "skipped", "g::a": "passed"}
    ours = {"f::a": "passed", "f::b": "failed"}
    assert alone(ours, peer) == ["f::b", "g::a"]
    assert row("tiny-1.0", 3, ours, peer) == "| tiny-1.0 | 2 of 3 | 1 | 2 | 33.3% |"


SLOW = """
import pathlib, time

def test_quick():
    pass

def test_slow():
    pathlib.Path("begun").touch()
    time.sleep(600)
"""


def test_a_file_that_takes_too_long_counts_as_far_as_both_came(tmp_path):
    (tmp_path / "slow_test.py").write_text(SLOW)
    half, whole = tmp_path / "half.xml", tmp_path / "whole.xml"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={half}"]
    heed_interrupts()
    run = subprocess.Popen([*command, "slow_test.py"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    while run.poll() is None and not (tmp_path / "begun").exists():
        time.sleep(0.02)
    stop(run)
    half.with_suffix(".log").write_text(f"{STOPPED} 1 seconds")
    cases = '<testcase classname="slow_test" name="test_quick"/><testcase name="test_slow"/>'
    whole.write_text(f"<testsuite>{cases}</testsuite>")
    whole.with_suffix(".log").touch()
    quick = {"slow_test.py::slow_test::test_quick": "passed"}
    assert outcomes_of(Path("slow_test.py"), half, whole) == (quick, quick, False)
    written = row("slow-1.0", 1, quick, quick, 1)
    assert written == "| slow-1.0 | 1 of 1, 1 in part | 1 | 0 | 100.0% |"


def test_the_docs_have_the_table_as_it_was_written():
    page = (ROOT / "docs" / "bring-your-program.md").read_text()
    assert (ROOT / "libraries" / "table.md").read_text() in page


SUITE = {
    "conftest.py": """
import os, pytest

def pytest_addoption(parser):
    for option in ("--max-examples", "--xfails-file"):
        parser.addoption(option)
    parser.addoption("--disable-deadline", action="store_true")

def pytest_collection_modifyitems(config, items):
    known = open(config.getoption("--xfails-file")).read().splitlines()
    for item in items:
        if item.nodeid in known:
            item.add_marker(pytest.mark.xfail)
""",
    "array_api_tests/test_array_object.py": """
import importlib, os
xp = importlib.import_module(os.environ["ARRAY_API_TESTS_MODULE"])

def test_setitem():
    xp.ones(2)[0] = 1

def test_dtype(pytestconfig):
    assert xp.__name__ == "phalanx.numpy" and xp.asarray(1.0).dtype == xp.float64
    assert pytestconfig.getoption("--max-examples") == "7"
""",
}


def test_the_standards_suite_is_run_with_what_is_known_to_fail(tmp_path):
    (tmp_path / "array_api_tests").mkdir()
    for file, text in SUITE.items():
        (tmp_path / file).write_text(text)
    command = [sys.executable, "-m", "libraries.standard", "--examples", "7", "-p", "no:randomly"]
    run = partial(subprocess.run, command, cwd=ROOT, capture_output=True, text=True)
    done = run(env=os.environ | {"ARRAY_API_SUITE": str(tmp_path)})
    assert done.returncode == 0 and "1 passed, 1 xfailed" in done.stdout, done.stdout + done.stderr
    done = run(env=os.environ | {"ARRAY_API_SUITE": str(tmp_path / "elsewhere")})
    assert done.returncode == 2 and "a checkout of array-api-tests is needed" in done.stderr


@pytest.mark.parametrize("file", sorted((ROOT / "libraries").glob("*.txt")), ids=lambda f: f.stem)
def test_what_fails_of_a_suite_has_its_reason(file):
    parts = file.read_text().split("\n\n")[1:]
    tests = [line for part in parts for line in part.splitlines() if not line.startswith("# ")]
    assert all(part.startswith("# ") for part in parts) and len(set(tests)) == len(tests)
    assert all("::test" in test for test in tests)
