"""Code that may end the process, run in others: what became of each piece of it.

One process imports Phalanx and starts no runtime. It forks another one, which runs pieces one after
the other until one of them ends it; then the next is forked. So most pieces cost what they cost.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 60  # after which a piece hangs


def outcomes(pieces: list[str], devices: int = 1, prelude: str = "") -> list[str]:
    """What became of each piece: "done", "Error: its words", "signal 6", or "hangs"."""
    environment = {**os.environ, "PHALANX_NUM_CPU_DEVICES": str(devices)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.children"], cwd=ROOT, env=environment, text=True,
        input=json.dumps([prelude, pieces]), capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def ended(pieces: list[str], devices: int = 1, prelude: str = "") -> dict[str, str]:
    """The pieces that ended their process, or hang, with how."""
    found = zip(pieces, outcomes(pieces, devices, prelude), strict=True)
    return {piece: how for piece, how in found if how.startswith(("signal", "hangs", "exit"))}


def undone(pieces: list[str], devices: int = 1, prelude: str = "") -> dict[str, str]:
    """The pieces that did not run to their end, with what became of them."""
    found = zip(pieces, outcomes(pieces, devices, prelude), strict=True)
    return {piece: how for piece, how in found if how != "done"}


def _run(piece: str, scope: dict[str, object]) -> str:
    signal.alarm(SECONDS)
    try:
        exec(piece, dict(scope))
    except Exception as e:
        frame = traceback.extract_tb(e.__traceback__)[-1]
        where = "" if "phalanx" in type(e).__module__ else f" [{Path(frame.filename).name}]"
        return f"{type(e).__name__}: {e}{where}"
    finally:
        signal.alarm(0)
    return "done"


def _worker(pieces: list[str], prelude: str, file: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    scope: dict[str, object] = {}
    exec(IMPORTS + prelude, scope)  # which may start the runtime, whose threads are not forked
    with os.fdopen(file, "w") as pipe:
        for piece in pieces:
            pipe.write(json.dumps(_run(piece, scope)) + "\n")
            pipe.flush()
        os._exit(0)


def _forked(pieces: list[str], prelude: str) -> list[str]:
    """What became of the first pieces, the last of which may have ended the process."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        _worker(pieces, prelude, write)
    os.close(write)
    with os.fdopen(read) as pipe:
        found = [json.loads(line) for line in pipe if line.endswith("\n")]
    status = os.waitpid(pid, 0)[1]
    if len(found) < len(pieces):
        number = os.WTERMSIG(status)
        how = f"signal {number}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        found.append("hangs" if number == signal.SIGALRM else how)
    return found


IMPORTS = """
import numpy as np
import phalanx, phalanx.numpy as jnp
from phalanx import *
from phalanx import lax
"""


def _main() -> None:
    prelude, pieces = json.load(sys.stdin)
    exec(IMPORTS, {})
    found: list[str] = []
    while len(found) < len(pieces):
        found += _forked(pieces[len(found) :], prelude)
    print(json.dumps(found))


if __name__ == "__main__":
    _main()
