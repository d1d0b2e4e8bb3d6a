"""Processes that a program starts where jax is served: they are set up as it is itself."""

import builtins
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import builtins, concurrent.futures, importlib, multiprocessing, subprocess, sys

def told(first):
    seen = [importlib.import_module(first).__name__]
    import phalanx, jax, jax.numpy as jnp
    from phalanx import as_jax

    def refused(x):
        raise ValueError("mine")

    seen += [str(jax.typeof(jnp.ones((2, 3)))), repr(jax.P("x")), as_jax.is_installed()]
    seen += [repr(jax.numpy.uint8(200) * -1), type(jax.jit(jnp.sin).trace(1.0).jaxpr).__name__]
    seen += ["api_boundary" in jax.jit(refused).__globals__, len(jax.devices())]
    seen += [getattr(builtins, "MINE", None), [p for p in sys.path if p.endswith("startup")]]
    for wrong in (lambda: jax.reshard(1, 2), lambda: jax.jit(lambda x: x if x > 0 else 1)(1.0),
                  lambda: jax.block_until_ready(jax.jit(
                      lambda x: jax.pure_callback(refused, x, x))(1.0))):
        try:
            wrong()
        except Exception as e:
            seen += [str(e), [kind.__name__ for kind in type(e).__mro__]]
    options = phalanx.config
    seen += [options.wrap_integers, options.enable_x64, options.num_cpu_devices, options.platforms]
    return repr(seen)

if __name__ == "__main__":
    here = told("jax")
    assert "mine" in here and "float64[2,3]" in here and "sitecustomize of mine" in here, here
    for first in ("jax", "phalanx"):
        for method in ("spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            with context.Pool(1) as pool:
                there = pool.map(told, [first])
            with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
                there.append(pool.submit(told, first).result())
            for seen in there:
                print(method, first, seen.replace("'phalanx'", "'jax'", 1) == here or (seen, here))
        code = f"import program; print(program.told({first!r}))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        seen = done.stdout.strip().replace("'phalanx'", "'jax'", 1)
        print("subprocess", first, seen == here or (seen, here, done.stderr))
"""


@pytest.fixture
def program(tmp_path):
    """A folder with a program, and one with a ``sitecustomize`` of the user's."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "mine").mkdir()
    own = 'import builtins\nbuiltins.MINE = "sitecustomize of mine"\n'
    (tmp_path / "mine" / "sitecustomize.py").write_text(own)
    return tmp_path


def test_they_are_set_up_as_what_starts_them(program):
    assert not hasattr(builtins, "MINE")
    places = [str(ROOT), str(program / "mine"), ""]  # the last is the working directory
    done = subprocess.run(
        [sys.executable, "-m", "phalanx.as_jax", "program.py"],
        env={
            **{k: v for k, v in os.environ.items() if k != "PHALANX_ENABLE_X64"},
            "PYTHONPATH": os.pathsep.join(places),
            "JAX_ENABLE_X64": "1",
            "PHALANX_NUM_CPU_DEVICES": "3",
            "PHALANX_PLATFORMS": "cpu",
        },
        cwd=program,
        capture_output=True,
        text=True,
        timeout=300,
    )
    wanted = [
        f"{way} {first} True"
        for first in ("jax", "phalanx")
        for way in ("spawn", "spawn", "forkserver", "forkserver", "subprocess")
    ]
    assert done.stdout.splitlines() == wanted, done.stdout + done.stderr
