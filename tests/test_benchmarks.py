"""The benchmarks run: both libraries, every case once, and the table has all rows."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import phalanx
from benchmarks import growth, memory, on_libraries, processes, recorded
from benchmarks.__main__ import LIBRARIES, table
from benchmarks.case import CASES, DEVICES
from benchmarks.chunks import WAYS, mapped
from benchmarks.library_programs import PROGRAMS as ON_LIBRARIES
from benchmarks.library_programs import Program
from benchmarks.plot import Row, spell, svg
from benchmarks.programs import PROGRAMS

ROOT = Path(__file__).parents[1]
LONG = "training step", ",000,00", "compile "  # others run the same functions
SLOW = {case.name for case in CASES if any(part in case.name for part in LONG)}


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_one_case_of_both_libraries(tmp_path):
    file = tmp_path / "samples.json"
    picture = tmp_path / "picture.svg"
    files = "--json", str(file), "--plot", str(picture)
    done = run("benchmarks", "--quick", "--only", "eager operation", *files)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ">operation outside jit</text>" in picture.read_text()
    samples = json.loads(file.read_text())
    assert list(samples) == ["import", "eager operation"]
    for taken in samples.values():
        assert set(taken) == set(LIBRARIES)
        assert all(seconds > 0 for times in taken.values() for seconds in times)
    assert "eager operation" in done.stdout


def test_bars_are_of_what_both_took_least():
    times = {"a": {"phalanx": [2.0, 1.0], "jax": [4.0]}, "b": {"phalanx": [1.0]}}
    times["import"] = {"phalanx": [3.0], "jax": [2.0, 9.0]}
    assert recorded.rows(times) == [Row("import", 3.0, 2.0), Row("a", 1.0, 4.0)]


def test_bars_are_as_long_as_the_ratios_and_slower_ones_are_marked():
    drawn = ElementTree.fromstring(svg([Row("a", 1.0, 4.0), Row("<b>", 3.0, 2.0)], ["today"]))
    bars = drawn.findall("{*}rect")
    lengths = [float(bar.get("width")) for bar in bars]
    assert lengths[1] == pytest.approx(6 * lengths[0], rel=1e-2)
    assert [bar.get("class") for bar in bars] == ["faster", "slower"]
    said = [text.text for text in drawn.findall("{*}text")]
    assert {"a", "<b>", "0.25", "1.50", "today"} <= set(said)


def test_the_documentation_shows_the_recorded_times():
    assert recorded.CHART.read_text() == svg(*recorded.recorded())
    assert recorded.table() in recorded.PAGE.read_text()
    assert [row.name for row in recorded.recorded()[0]] == [*recorded.SHOWN.values()]
    assert not set(recorded.SHOWN) - {"import", *(case.name for case in CASES)}


def test_every_quick_case_runs_with_phalanx():
    names = [case.name for case in CASES if case.name not in SLOW]
    done = run("benchmarks.worker", "phalanx", "0.01", *names)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)[0] for line in done.stdout.splitlines()] == ["import", *names]


def test_a_program_with_every_number_of_lanes_at_once(tmp_path):
    results, picture = tmp_path / "results.json", tmp_path / "picture.svg"
    files = "--json", str(results), "--plot", str(picture)
    done = run("benchmarks.chunks", "fixed point", "--lanes", "5", "--seconds", "0", *files)
    assert done.returncode == 0, done.stdout + done.stderr
    ((name, found),) = json.loads(results.read_text()).items()
    assert name in picture.read_text() and set(found) == set(WAYS)
    assert all(seconds > 0 and needed > 0 for seconds, needed in found.values())


def test_every_program_of_lanes_has_results_of_its_lanes():
    assert len({p.name for p in PROGRAMS}) == len(PROGRAMS)
    for program in PROGRAMS:
        made = program.make(np, phalanx, 3)
        results = mapped(phalanx, made).eval_shape(*made.arguments)
        leaves = phalanx.tree.leaves(results)
        assert leaves and (made.shared or all(x.shape[0] == 3 for x in leaves)), program.name


def test_memory_of_steps_is_that_of_their_process():
    most, grown = memory.in_a_process("phalanx", "CNN training step", "1")
    assert most > 100 and abs(grown) < most


@pytest.mark.parametrize("row", growth.ROWS, ids=lambda row: row.name)
def test_what_grows_runs(row, monkeypatch):
    monkeypatch.setattr(growth, "SECONDS", 0)
    assert growth.measured(row, 2) > 0


def test_what_grows_faster_than_it_should_is_marked(monkeypatch):
    monkeypatch.setattr(growth, "measured", lambda row, n: n ** row.make(n))
    rows = [growth.Row("even", 3, lambda n: 1.0), growth.Row("steep", 3, lambda n: 2.0)]
    shown, is_even = growth.grown(rows)
    slopes = [*shown.columns[-1].cells]
    assert slopes[0] == "1.00" and slopes[1].endswith("2.00") and slopes[1] != "2.00"
    assert not is_even and growth.grown(rows[:1])[1]


def test_a_library_that_failed_has_no_ratio():
    shown = table({"x[i]": {"phalanx": [1.0, 2.0, 4.0]}}, DEVICES)
    cells = [next(iter(column.cells)) for column in shown.columns]
    assert cells == [r"x\[i]", "2 s", "-", "-", "-"]


@pytest.mark.parametrize(
    ("seconds", "spelled"), [(2.0, "2 s"), (0.25, "250 ms"), (3e-6, "3 us"), (4e-8, "0.04 us")]
)
def test_times_have_units(seconds, spelled):
    assert spell(seconds) == spelled


def test_programs_on_libraries_are_measured_and_compared(monkeypatch):
    calls = []
    made = Program("a program", 8, lambda: lambda: calls.append(1) or np.ones(3))
    monkeypatch.setattr(on_libraries, "SECONDS", 0.02)
    taken = on_libraries.measure(made)
    assert list(taken) == ["start", "first call", "call"] and len(calls) > 20
    assert all(seconds > 0 for seconds in taken.values())
    assert list(on_libraries.measure(Program("imports", 1, lambda: None))) == ["start"]
    rows = on_libraries.table(1)
    times = {"phalanx": [{"start": 2.0}, {"start": 1.0}], "jax": [{"start": 4.0}]}
    on_libraries.add(rows, made, times)
    shown = [next(iter(column.cells)) for column in rows.columns]
    assert shown == ["a program", "start", "1 s", "4 s", "0.25"]


def test_names_of_programs_on_libraries_are_their_own():
    assert len({p.name for p in ON_LIBRARIES}) == len(ON_LIBRARIES)


def test_processes_are_launched_and_measured():
    taken = processes.start("phalanx launch", 2)
    assert list(taken) == ["start", *processes.STEPS]
    assert all(seconds > 0 for times in taken.values() for seconds in times)
