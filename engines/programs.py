"""Starts programs as an engine does, and reads what their processes tell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 240  # seconds
OF_SCHEDULERS = re.compile(
    "SLURM_(?!CONF)|OMPI|PMI|MPI_|RAY|TORCHELASTIC|PHALANX_(COORD|NUM_PROC|PROCESS)"
)
TELL = """
def tell(who, *words):  # in a file: the standard output has lines of others, too
    with open(f"{os.path.dirname(__file__)}/told-{who}", "a") as file:
        print(*words, file=file, flush=True)
"""


def environment(**given: str) -> dict[str, str]:
    """The environment of a program, without what a scheduler of these tests may have set."""
    known = {k: v for k, v in os.environ.items() if not OF_SCHEDULERS.match(k)}
    path = os.pathsep.join(filter(None, (str(ROOT), known.get("PYTHONPATH"))))
    ours = {"PYTHONPATH": path, "PHALANX_NUM_CPU_DEVICES": "1", "JAX_PLATFORMS": "cpu"}
    return known | ours | given


def write(folder: Path, program: str) -> Path:
    """A program in a file, in which ``tell(who, ...)`` writes what a process has to tell."""
    script = folder / "program.py"
    script.write_text(f"import os\n{TELL}\n{textwrap.dedent(program)}")
    return script


def run(
    command: list[str], cwd: Path | None = None, **given: str
) -> subprocess.CompletedProcess[str]:
    """Run a command until it ends."""
    return subprocess.run(
        command, cwd=cwd, env=environment(**given), capture_output=True, text=True, timeout=PATIENCE
    )


def run_python(script: Path, *arguments: str, **given: str) -> subprocess.CompletedProcess[str]:
    """Run a script until it ends."""
    return run([sys.executable, str(script), *arguments], **given)


def told(folder: Path) -> dict[str, list[str]]:
    """The lines that each has told."""
    return {file.name[5:]: file.read_text().splitlines() for file in folder.glob("told-*")}


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.05)
