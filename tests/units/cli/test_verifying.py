"""``phalanx verify`` runs a script, and compares what it computes on devices with one."""

import json
import os
import subprocess
import sys

import pytest

from phalanx.cli.main import parser
from phalanx.insight.verification.verify import AGAINST

RIGHT = """
import numpy as np, phalanx
from phalanx import lax
x = np.random.default_rng().normal(size=(8, 3)).astype("f")
share = phalanx.pmap(lambda x: x / lax.psum(x, "i"), "i")
print(share(x).shape, phalanx.jit(lambda x: x + 1)(x).shape)
"""
WRONG = """
import numpy as np, phalanx
import phalanx.numpy as jnp
x = np.ones((8, 3), "f")
x[1, 1] = np.nan
sharding = phalanx.NamedSharding(phalanx.make_mesh((8,), ("x",)), phalanx.P("x"))
f = phalanx.jit(lambda x: jnp.max(x, 0), in_shardings=sharding)
f(x)
"""


def verify(folder, text, *words):
    script = folder / "train.py"
    script.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "phalanx", "verify", "--devices", "8", *words, str(script)]
    environment = {**os.environ, "PHALANX_NUM_CPU_DEVICES": "8", "COLUMNS": "100"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_a_right_script(tmp_path):
    done = verify(tmp_path, RIGHT)
    assert done.returncode == 0, done.stderr
    assert "(8, 3) (8, 3)" in done.stdout
    assert "1 function compared: no difference." in done.stdout


def test_a_function_of_arguments_placed_otherwise_is_told_once(tmp_path):
    done = verify(
        tmp_path,
        "import phalanx\nimport phalanx.numpy as jnp\n"
        "f = phalanx.pmap(lambda w, x: w + phalanx.lax.psum(x, 'i'), 'i', in_axes=(None, 0),\n"
        "                 out_axes=None)\n"
        "w = 0.0 * jnp.ones(3)\nfor _ in range(3):\n    w = f(w, jnp.ones((8, 3)))\n",
    )
    assert done.returncode == 0, done.stderr
    assert "1 function compared: no difference." in done.stdout
    assert done.stdout.count("f32[8,3]") == 1


def test_a_wrong_one_ends_with_its_line_and_a_status(tmp_path):
    done = verify(tmp_path, WRONG)
    assert done.returncode == 1, done.stderr
    assert "1 of 1 function differs, first at train.py:7." in done.stdout
    assert "reduce_max gives 1 on 8 devices and nan on one" in " ".join(done.stdout.split())


def test_json(tmp_path):
    (report,) = json.loads(verify(tmp_path, WRONG, "--json").stdout)
    assert report["verdict"].startswith("The result differs from that of one device")
    assert not report["agrees"]
    assert report["line"].endswith("train.py:7")


def test_what_is_compiled_ahead_of_time_is_compared_when_it_is_called(tmp_path):
    text = WRONG.replace(
        "f(x)", "g = f.lower(x).compile()\nprint('called', g(x).shape, g(x).shape)"
    )
    done = verify(tmp_path, text)
    assert done.returncode == 1, done.stderr
    assert "called (3,) (3,)" in done.stdout
    assert "1 of 1 function differs, first at train.py:7." in done.stdout


RAISING = """
import numpy as np, phalanx
calls = []
def own(x):
    calls.append(x)
    if len(calls) > 1:
        raise KeyError("the second time")
    return x
f = phalanx.jit(lambda x: phalanx.pure_callback(own, phalanx.ShapeDtypeStruct((8,), "float32"), x))
rows = phalanx.NamedSharding(phalanx.make_mesh((8,), ("x",)), phalanx.P("x"))
x = phalanx.device_put(np.ones(8, "f"), rows)
try:
    f(x)
except Exception as e:
    print("as it would alone", type(e).__name__)
"""


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_script_goes_on_where_nothing_can_be_compared(tmp_path, words):
    done = verify(tmp_path, RAISING, *words)
    assert done.returncode == 0, done.stderr
    assert "as it would alone" in done.stdout + done.stderr
    told = "It was not compared" if words else "Nothing was compared; 1 could not"
    assert told in " ".join(done.stdout.split())
    assert "the second time" in done.stdout


def test_lines_that_lose_digits(tmp_path):
    text = (
        "import phalanx\nimport phalanx.numpy as jnp\n"
        "f = phalanx.jit(lambda x: jnp.mean(x * x) - jnp.mean(x) ** 2)\nf(1000 + jnp.arange(9.0))\n"
    )
    done = verify(tmp_path, text, "--against", "float64")
    assert done.returncode == 1, done.stderr
    assert "first at train.py:3" in done.stdout


ANOTHER = """
import os, numpy as np, phalanx
from msgspec.structs import force_setattr
from phalanx import lax
from phalanx.core.primitive import REGISTRY
prim = REGISTRY["psum"]
lower = prim.lower
def twice(b, *xs, **params):
    return [b.add(y, y) for y in lower(b, *xs, **params)]
if "ANOTHER" in os.environ:
    force_setattr(prim, "lower", twice)
x = np.random.default_rng().normal(size=(8, 3)).astype("f")
print(phalanx.jit(lambda x: x + 1)(x).shape)
phalanx.pmap(lambda x: x + lax.psum(x, "i"), "i")(x)
"""


def another_python(folder, line='exec "$PYTHON" "$@"'):
    """A program that is this Python, but for a variable of its environment."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\nexport ANOTHER=1 PYTHON={sys.executable}\n{line}\n")
    path.chmod(0o755)
    return str(path)


def test_another_python_that_gives_something_else(tmp_path):
    done = verify(tmp_path, ANOTHER, "--against", another_python(tmp_path))
    assert done.returncode == 1, done.stderr
    told = " ".join(done.stdout.split())
    assert "1 of 3 functions differs, first at train.py:14." in told
    assert "on 8 devices with jaxlib" in told
    assert told.count("verdict agrees") == 2
    assert "psum gives" in told


def test_another_python_that_gives_the_same(tmp_path):
    done = verify(tmp_path, RIGHT, "--against", another_python(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "3 functions compared: no difference." in done.stdout


THREADS = """
import threading, numpy as np, phalanx
x = np.ones((8, 3), "f")
began, ended = threading.Event(), threading.Event()
def waiting(x):
    began.set()
    ended.wait(60)
    return x
def meanwhile():
    began.wait(60)
    print(phalanx.pmap(lambda x: x + 1)(x).sum())
    ended.set()
threading.Thread(target=meanwhile).start()
print(phalanx.jit(lambda x: phalanx.pure_callback(waiting, x, x))(x).sum())
"""


def test_what_is_compiled_while_another_python_is_asked(tmp_path):
    done = verify(tmp_path, THREADS, "--against", another_python(tmp_path))
    told = " ".join(done.stdout.split())
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "48.0" in told and "24.0" in told
    assert "busy with another function" in told


def test_a_script_that_is_another_elsewhere(tmp_path):
    first = "import os, phalanx\nif 'ANOTHER' in os.environ: phalanx.jit(lambda: 1)()\n"
    done = verify(tmp_path, first + RIGHT, "--against", another_python(tmp_path))
    told = " ".join(done.stdout.split())
    assert "1 function compared: no difference; 1 could not be compared." in told
    assert "is compiled here, and with jaxlib" in told


@pytest.mark.parametrize("line", ["exit 0", "echo no such module >&2; exit 1"])
def test_another_python_that_does_not_run_it(tmp_path, line):
    done = verify(tmp_path, RIGHT, "--against", another_python(tmp_path, line))
    assert done.returncode == 2
    assert "the script has ended before it began in" in done.stderr


@pytest.mark.parametrize(
    "text, status, told",
    [
        ("print(1)", 0, "Nothing was compared: the script compiled nothing"),
        (RIGHT + "\nraise ValueError('no data')", 2, "no difference before the script failed."),
        ("open('nowhere.csv')", 2, "before the script failed"),
    ],
)
def test_scripts_with_little_to_compare(tmp_path, text, status, told):
    done = verify(tmp_path, text)
    assert done.returncode == status, done.stderr
    assert told in " ".join(done.stdout.split())


def test_the_command_compares_with_what_the_function_does():
    """The command line has a list of its own, so that its help imports nothing that computes."""
    for against in AGAINST:
        assert parser().parse_args(["verify", "--against", against, "f.py"]).against == against
    with pytest.raises(SystemExit):
        parser().parse_args(["verify", "--against", "nothing", "f.py"])
