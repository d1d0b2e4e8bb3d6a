"""`phalanx plan`: what a script's training step would take elsewhere."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import phalanx, phalanx.numpy as jnp
print("arguments", sys.argv[1:])
def step(w, x):
    return w - phalanx.grad(lambda w: jnp.mean(jnp.tanh(x @ w)))(w)
shapes = [phalanx.ShapeDtypeStruct(s, "bfloat16") for s in ((2**14, 2**14), (2**18, 2**14))]
phalanx.jit(step).lower(*shapes)
phalanx.jit(jnp.sin)(1.0)
"""


def plan(*words):
    words = [sys.executable, "-m", "phalanx", "plan", *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, env=os.environ | {"COLUMNS": "99"})


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_a_script_is_planned(script, tmp_path):
    page = tmp_path / "plan.html"
    words = ["--on", "v5p:4x4x4", "--json", "--tensor", "2", "--steps", "9", "--html", page]
    done = plan(script, *words, "--", "--json")
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    assert report["title"] == "step on 64 x TPU v5p"
    meshes = report["parts"][2]["rows"]
    assert meshes and all(row["tensor"] == 2 for row in meshes)
    assert "arguments ['--steps', '9', '--json']" in done.stderr
    assert "<svg" in page.read_text()
    shown = plan("--on", "h100:16", script).stdout
    assert "16 x NVIDIA H100 SXM" in shown and "best meshes" in shown


def test_what_cannot_be_planned_is_said(script, tmp_path):
    assert "--on v5p:8x8x8" in plan(script).stderr
    assert "from 1 on is needed, got '0'" in plan("--tensor", "0", script).stderr
    none = "no dimension of the batch but its rows goes through its products by weights"
    assert none in plan(script, "--on", "h100:8", "--sequence", "2").stderr
    assert "compiled=True is for TPUs" in plan(script, "--on", "h100:8", "--compiled").stderr
    assert "Did you mean 'v5p'" in plan(script, "--on", "v5pp:2x2").stderr
    empty = tmp_path / "empty.py"
    empty.write_text("print(1)\n")
    done = plan(empty, "--on", "h100:8")
    assert done.returncode == 2 and "compiled nothing" in done.stderr
    no_step = tmp_path / "no_step.py"
    no_step.write_text("import phalanx\nphalanx.jit(lambda x: x.sum())(phalanx.numpy.ones(3))\n")
    assert "returns no array of the type" in plan(no_step, "--on", "h100:8").stderr
