"""Hunting tries new seeds until the time is up, and says how to repeat what fails."""

import re
import sys
import time

import pytest

from tests.hunt import hunt, repeating, shuffled

# What pytest prints on two workers; the last line is that of its summary.
PRINTED = """
[gw0] [ 50%] PASSED tests/test_a.py::test_right
[gw1] [100%] FAILED tests/test_a.py::test_wrong[a b-1]
FAILED tests/test_a.py::test_wrong[a b-1] - AssertionError
"""
LINE = r"\./dev test 'tests/test_a\.py::test_wrong\[a b-1\]' --sample --hypothesis-seed=(\d+)"


def printing(code):
    return [sys.executable, "-c", code]


def test_what_fails_is_printed_with_the_line_that_repeats_it(capsys, monkeypatch):
    monkeypatch.delenv("PHALANX_VENV", raising=False)
    count = hunt(0.1, ["tests"], printing(f"print({PRINTED!r}); raise SystemExit(1)"))
    runs = capsys.readouterr().out.split("seed ")[1:]
    seeds = [run.split()[0] for run in runs]
    lines = [re.findall(LINE, run) for run in runs]
    assert lines[:-1] == [[seed] for seed in seeds[:-1]]  # time was up during the last one
    assert count == sum(map(len, lines)) > 1 and len(set(seeds)) == len(seeds)


def test_the_command_is_stopped_when_the_time_is_up():
    begin = time.monotonic()
    assert hunt(0.02, ["tests"], printing("import time; time.sleep(600)")) == 0
    assert time.monotonic() - begin < 300


def test_tests_that_do_not_run_are_told():
    with pytest.raises(SystemExit, match="no such option"):
        hunt(10, ["tests"], printing("print('no such option'); raise SystemExit(4)"))


def test_files_come_in_an_order_that_the_seed_chooses():
    orders = [shuffled(["tests/golden", "tests/test_hunt.py"], seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2] and sorted(orders[0]) == sorted(orders[2])
    assert {"tests/golden/test_errors.py", "tests/test_hunt.py"} < set(orders[0])


def test_the_line_names_the_environment(monkeypatch):
    monkeypatch.setenv("PHALANX_VENV", ".venv-other")
    assert repeating("a.py::test", 7).startswith("PHALANX_VENV=.venv-other ./dev test a.py::test ")
