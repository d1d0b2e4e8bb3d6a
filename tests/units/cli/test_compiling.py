"""`phalanx compile`: functions of a script, compiled for chips that are not here."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

import phalanx
from phalanx import lax
from phalanx.api.stages import watching
from phalanx.cli import chips, compiling
from phalanx.errors import ArgumentError
from phalanx.experimental import topologies
from phalanx.insight.plans import compiled_step

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
    with (
        mock.patch.object(compile, "is_described", lambda _: True),
        mock.patch.object(compile, "_compile_only", lambda *words: compile._load(*words).loaded),
    ):
        return compiled_for(*args)

compiling.compiled_for = compiled_as_if_far_away
sys.exit(main(["compile", *sys.argv[1:]]))
"""


@pytest.mark.parametrize(
    ("name", "platform", "topology", "options"),
    [
        ("v5p:4x4x4", "tpu", "v5p:4x4x4", {}), ("v5e:8", "tpu", "v5e:2x4", {}),
        ("v5e:16x16:4", "tpu", "v5e:16x16", {"num_slices": 4}), ("v5p:2x2", "tpu", "v5p:2x2x1", {}),
        ("tpu7x:2x2x1", "tpu", "tpu7x:2x2x1", {}),
        ("h100:4x8", "cuda", "1x4x8", {"target_config": "NVIDIA H100 80GB HBM3"}),
        ("h200:16", "cuda", "1x2x8", {"target_config": "NVIDIA H200 141GB HBM3e"}),
    ],
)  # fmt: skip
def test_machines_are_called_as_in_plans(monkeypatch, name, platform, topology, options):
    asked = []

    def described(topology, platform, **options):
        asked.append((platform, topology, options))
        return topologies.TopologyDescription([])

    for module in (chips, compiled_step):
        monkeypatch.setattr(module, "get_topology_desc", described)
    chips.described(name)
    assert asked == [(platform, topology, options)]


def test_a_system_of_a_file_is_for_plans_alone(tmp_path):
    path = tmp_path / "cpu.toml"
    path.write_text(
        "[cpu]\ntitle = 'A CPU'\noperations = { f32 = 1e11 }\nmemory = 1e10\nbandwidth = 1e10\n"
        "torus = 0\nchips = 8\nlink = 1e9\nlatency = 1e-5\nsources = []\n"
        "between = { link = 1e9, latency = 1e-5 }\n"
    )
    with pytest.raises(ArgumentError, match=r"cpu\.toml is a system for plans"):
        chips.described(f"{path}:4")


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


def test_lanes_that_do_not_fit_at_once_run_a_part_at_a_time_there_too(tmp_path):
    path = tmp_path / "lanes.py"
    path.write_text(
        "import phalanx, phalanx.numpy as jnp\n"
        "f = phalanx.pmap(lambda i: jnp.sort(jnp.sin(i * jnp.arange(4096.0))).sum())\n"
        "f.lower(phalanx.ShapeDtypeStruct((512,), 'float32')).compile()\n"
    )
    done = run("-c", HERE, str(path), "--for", "four")
    assert (done.returncode, "does not fit" in done.stdout) == (0, False), done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--for", "cuda:1x1x8"], "get_topology_desc: "),
        (["--for", "cuda:1x1x8", "--gpu", "/no/such"], "No such file"),
        (["--for", "h100:12"], "a machine has 8 of NVIDIA H100 SXM"),
        (["--for", "h100:8", "--gpu", "H200"], "h100:8 says it itself"),
        ([], "--for says for which machine: --for v5p:4x4x4, --for h100:4x8"),
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
def test_a_script_is_compiled_for_tpus(script, tmp_path):
    done = run("-m", "phalanx", "compile", script, "--for", "v5e:2x4", COLUMNS="100")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 x TPU v5 lite" in done.stdout
    few = tmp_path / "few.py"
    few.write_text(
        "import phalanx, numpy as np\n"
        "phalanx.pmap(lambda x: phalanx.lax.psum(x, 'i'), 'i')(np.ones(4))\n"
        "mesh, rows = phalanx.make_mesh((8, 2), ('a', 'b')), phalanx.P('a')\n"
        "block = phalanx.shard_map(lambda x: phalanx.lax.psum(x, 'b'), mesh=mesh, in_specs=rows, "
        "out_specs=rows)\n"
        "phalanx.jit(block)(np.ones(8))\n"
    )
    done = run("-m", "phalanx", "compile", str(few), "--for", "v5e:4x4", COLUMNS="100")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "few.py:2 │    16 " in done.stdout
    wrong = run("-m", "phalanx", "compile", script, "--for", "v5f:2x4")
    assert wrong.returncode == 2
    assert "Near it are v5p:2x2x1, v5p:2x2x2" in wrong.stderr


@pytest.mark.skipif(phalanx.device_count() < 2, reason="it is about lanes on two devices")
def test_what_is_compiled_again_says_what_differs():
    def step(w, x):
        return w - lax.pmean(x @ w, "batch")

    f = phalanx.pmap(step, "batch", in_axes=(None, 0), out_axes=None)
    w, x, again = np.ones(3, np.float32), np.ones((2, 3, 3), np.float32), []
    with watching(compiling._noting(again)):
        for _ in range(3):
            w = f(w, x)
    (note,) = again
    assert note.startswith("pmap_step, at test_compiling.py:")
    assert note.endswith("w came from the host and now from 2 devices")
