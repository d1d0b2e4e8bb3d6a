"""`phalanx profile`: how long what a script runs takes."""

import json
import os
import subprocess
import sys

SCRIPT = """
import sys
import phalanx, phalanx.numpy as jnp
f = phalanx.jit(lambda x: jnp.sin(x @ x))
kept = []
for _ in range(4):
    kept.append(f(jnp.ones((300, 300))).block_until_ready())
print("arguments", sys.argv[1:])
"""


def profile(*words):
    words = [sys.executable, "-m", "phalanx", "profile", *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, env=os.environ | {"COLUMNS": "99"})


def test_a_script_is_profiled(tmp_path):
    script, page = tmp_path / "script.py", tmp_path / "profile.html"
    script.write_text(SCRIPT)
    done = profile("--json", "--arrays", "--html", page, script, "--steps", "2")
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    parts = {part["title"]: part for part in report["parts"]}
    lines = parts["slowest lines"]["rows"]
    assert any(row["line"].startswith("script.py:4") and row["time"] > 0 for row in lines)
    made = {row["made at"]: row["arrays"] for row in parts["live arrays by line"]["rows"]}
    assert made["script.py:7"] >= 4
    assert "arguments ['--steps', '2']" in done.stderr
    assert 'class="timeline"' in page.read_text()
    assert profile(tmp_path / "nowhere.py").returncode == 2


def test_of_a_script_that_fails_before_it_computes_there_is_no_report(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("def f(:\n")
    done = profile(script)
    assert (done.returncode, done.stdout) == (2, "")
    assert "SyntaxError" in done.stderr and "before the script failed" in done.stderr
