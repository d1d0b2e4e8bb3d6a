"""The commands that compile and run everything for accelerators, on CPUs."""

import functools
import operator
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import phalanx
from accelerators import attention
from accelerators.compiling import COMPILED, FAILED, NONE, REFUSED, table
from accelerators.here import DIFFERS, SAME, compared
from accelerators.lacks import lacked
from accelerators.subjects import Subject
from phalanx.errors import DeviceError

ROOT = Path(__file__).parents[1]


def found(kind, name, outcome, why=""):
    return {"kind": kind, "name": name, "outcome": outcome, "why": why}


def test_the_table_counts_and_names_what_did_not_compile():
    rows = [
        found("operation", "sin", COMPILED), found("operation", "schur 0", REFUSED, "no"),
        found("operation", "schur 1", REFUSED, "no"), found("operation", "eig", REFUSED, "no"),
        found("function", "numpy.sum", COMPILED), found("function", "numpy.save", NONE),
        found("program", "psum", FAILED, "crash"),
    ]  # fmt: skip
    other = [found("operation", "sin", COMPILED), found("program", "psum", FAILED, "crash")]
    lines = table([("v5e:2x4", rows), ("v6e:2x4", rows[::-1]), ("v3:2x2", other)]).splitlines()
    assert lines[2] == "| v5e:2x4 | 1 of 4 | 1 of 1 | 0 of 1 |"
    assert lines[5:] == [
        "", "v5e:2x4, v6e:2x4, refused:", "", "- eig; schur: no",
        "", "v5e:2x4, v6e:2x4, v3:2x2, failed:", "", "- psum: crash",
    ]  # fmt: skip


def test_the_page_has_the_table_that_was_made():
    made = (ROOT / "accelerators" / "table.md").read_text()
    assert made in (ROOT / "docs" / "ahead-of-time.md").read_text()


def test_the_page_says_which_attention_is_a_kernel():
    page = (ROOT / "docs" / "accelerators.md").read_text()
    rows = re.findall(r"^\| .* \| (?:kernel|products|refused) \|.*$", page, re.MULTILINE)
    assert [r.split(" | ")[0] for r in rows] == [f"| {call.words}" for call in attention.CALLS]
    for some in (slice(None, None, 5), slice(-2, None)):
        assert rows[some] == [attention.row(call) for call in attention.CALLS[some]]


def of_factors(*factors):
    """What is made three times: to be traced, to run here, and to run on a CPU."""
    given = iter(factors)
    return Subject(
        "operation", "x", lambda: (phalanx.jit(functools.partial(operator.mul, next(given))), [1.0])
    )


def test_what_differs_from_a_cpu_is_found():
    assert compared(of_factors(2.0, 2.0, 2.0)) == (SAME, "")
    assert compared(of_factors(2.0, 2.0, 2.0 + 1e-6)) == (SAME, "")
    assert compared(of_factors(np.inf, np.inf, np.inf)) == (SAME, "")
    assert compared(of_factors(np.inf, np.inf, -np.inf))[0] == DIFFERS
    outcome, why = compared(of_factors(2.0, 2.0, 2.01))
    assert outcome == DIFFERS
    assert why.endswith("times what rounding explains")


@pytest.mark.parametrize(
    ("said", "lack"),
    [
        (
            "f, at a.py:1: the plugin for plug has no function 'lapack_spotrf_ffi', by which",
            "LAPACK",
        ),
        (
            "f: a function of Python is called, which the plugin for plug cannot do",
            "calls of Python",
        ),
        ("f: the plugin for cuda has no function 'lapack_spotrf_ffi', by which", None),
        ("f: the plugin for plug has no function 'mine', by which", None),
    ],
)
def test_what_a_plugin_lacks_is_told_apart(said, lack):

    def refuse():
        raise DeviceError(said)

    assert lacked(DeviceError(said)) == lack
    expected = (
        (REFUSED, f"DeviceError: {said}") if lack is None else (f"the plugin lacks {lack}", "")
    )
    assert compared(Subject("operation", "x", refuse)) == expected


def test_everything_runs_here_within_the_time(tmp_path):
    out = tmp_path / "table.md"
    command = [sys.executable, "-m", "accelerators.here", "--minutes", "0.05", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = dict(re.findall(r"\| (same|differs|refused|failed) \| (\d+) \|", out.read_text()))
    assert int(counts.pop("same")) > 0
    assert {*counts.values()} == {"0"}
    assert "| a training step in 8 lanes | " in out.read_text()
