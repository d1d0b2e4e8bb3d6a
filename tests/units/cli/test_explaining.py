"""`phalanx explain`: what the functions of a script do."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import phalanx, phalanx.numpy as jnp
print("arguments", sys.argv[1:])
step = phalanx.jit(lambda w, x: w - x @ w)
for _ in range(3):
    step(jnp.ones((8, 8)), jnp.ones((8, 8)))
phalanx.jit(jnp.sin)(1.0)
"""


def explain(*words):
    words = [sys.executable, "-m", "phalanx", "explain", *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, env=os.environ | {"COLUMNS": "99"})


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_a_script_is_explained(script, tmp_path):
    page = tmp_path / "report.html"
    done = explain("--json", "--html", page, "--on", "v5e", script, "--epochs", "3")
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert first["parts"][0]["facts"]["called at"].startswith("script.py:7")
    assert first["parts"][0]["facts"]["times are for"] == "TPU v5e"
    assert second["title"].startswith("sin")
    assert "arguments ['--epochs', '3']" in done.stderr
    assert page.read_text().count("<article ") == 2


def test_reports_are_written_in_any_encoding(script):
    words = [sys.executable, "-m", "phalanx", "explain", script]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(words, capture_output=True, text=True, env=ascii_only)
    assert done.returncode == 0 and "summary" in done.stdout, done.stderr


def test_a_script_that_fails_is_explained_so_far(script):
    script.write_text(SCRIPT + "raise ValueError('too bad')\n")
    done = explain(script)
    assert done.returncode == 2
    assert "ValueError: too bad" in done.stderr and "summary" in done.stdout


def test_what_cannot_be_explained_is_said(script):
    unknown = explain("--on", "v5pp", script)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "Did you mean 'v5" in unknown.stderr
    missing = explain("nowhere.py")
    assert missing.returncode == 2 and "there is no file nowhere.py" in missing.stderr
    for page in ("nowhere/report.html", "."):
        refused = explain("--html", page, script)
        assert refused.returncode == 2 and "folder" in refused.stderr and not refused.stdout


def test_a_script_that_compiles_nothing_is_told_so(tmp_path):
    (tmp_path / "empty.py").write_text("print(1)\n")
    done = explain(tmp_path / "empty.py")
    told = "nothing to explain: the script compiled nothing; call its step through jit or pmap"
    assert (done.returncode, done.stdout.splitlines()) == (0, ["1", told])
