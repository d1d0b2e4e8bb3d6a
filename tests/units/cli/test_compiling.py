"""`phalanx compile`: functions of a script, compiled for chips that are not here."""

import importlib.util
import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import phalanx, phalanx.numpy as jnp
from phalanx import lax
print("arguments", sys.argv[1:], len(phalanx.devices()))
phalanx.jit(lambda x: x + 1)(jnp.ones(8))
mean = phalanx.pmap(lambda x: lax.pmean(x, "i"), "i")
print(mean(jnp.ones((phalanx.device_count(), 4))).shape)
phalanx.jit(jnp.matmul).lower(*[phalanx.ShapeDtypeStruct((4096, 4096), "float32")] * 2).compile()
"""
# in place of the description: CPUs are compiled for as well, if not far away
HERE = """
import sys
from unittest import mock
import phalanx
from phalanx.cli import compiling
from phalanx.cli.main import main
from phalanx.xla import compile, topology
phalanx.config.update("num_cpu_devices", 4)
compiling.described = lambda *_: phalanx.devices("cpu")
compiled_for = compiling.compiled_for

def compiled_as_if_far_away(*args):
    topology.sizes[phalanx.devices()[0].client] = 2**20
    with mock.patch.object(compile, "is_described", lambda _: True):
        return compiled_for(*args)

compiling.compiled_for = compiled_as_if_far_away
sys.exit(main(["compile", *sys.argv[1:]]))
"""


def run(*words, **env):
    made = {n: v for n, v in os.environ.items() if not n.startswith("PHALANX_NUM")} | env
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=made)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_what_a_script_compiles_is_compiled_for_chips_too(script):
    done = run("-c", HERE, script, "--for", "four", "--steps", "3", COLUMNS="100")
    assert done.returncode == 1, done.stderr
    told, shape, _, _, head, _, *rows = done.stdout.splitlines()
    assert (told, shape) == ("arguments ['--steps', '3'] 4", "(4, 4)")
    assert [c.strip() for c in head.strip("┃").split("┃")][:3] == ["function", "at", "chips"]
    cells = [[c.strip() for c in row.strip("│").split("│")] for row in rows[:3]]
    assert [row[:3] for row in cells] == [
        ["<lambda>", "script.py:6", "1"], ["pmap_<lambda>", "script.py:8", "4"],
        ["matmul", "script.py:9", ""],
    ]  # fmt: skip
    assert [row[3] for row in cells] == ["32 B", "16 B", ""]
    assert cells[1][-1] == "16 B" and cells[0][-1] == "0 B"
    fault = "".join(rows[4:])
    assert fault.startswith("matmul, at script.py:9, does not fit: compile, at ")
    assert "matmul needs 0.1875 GiB, and cpu has 0.0009766 GiB" in fault


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--for", "cuda:1x1x8"], "cuda"),
        (["--for", "cuda:1x1x8", "--gpu", "/no/such"], "No such file"),
        ([], "the following arguments are required: --for"),
    ],
)
def test_what_is_missing_is_told(script, words, message):
    done = run("-m", "phalanx", "compile", script, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "arguments" not in done.stdout


def test_a_script_that_fails_is_told_as_by_other_commands(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("import phalanx\nphalanx.jit(lambda x: x + 1)(1.0)\n1 / 0\n")
    done = run("-c", HERE, str(path), "--for", "four")
    assert done.returncode == 2 and "<lambda>" in done.stdout
    first, place, *_, last = done.stderr.splitlines()
    assert (first, last) == (
        "Traceback (most recent call last):", "ZeroDivisionError: division by zero",
    )  # fmt: skip
    assert place == f'  File "{path}", line 3, in <module>'
    missing = run("-c", HERE, "missing.py", "--for", "four")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == "phalanx compile: there is no file missing.py\n"


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs the extra tpu")
def test_a_script_is_compiled_for_tpus(script):
    done = run("-m", "phalanx", "compile", script, "--for", "v5e:2x4", COLUMNS="100")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 x TPU v5 lite" in done.stdout
    wrong = run("-m", "phalanx", "compile", script, "--for", "v5f:2x4")
    assert wrong.returncode == 2
    assert "Near it are v5p:2x2x1, v5p:2x2x2" in wrong.stderr
