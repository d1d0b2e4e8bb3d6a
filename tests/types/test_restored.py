"""What type checkers say of restored trees: they have the class that was asked for."""

import subprocess
import sys

import pytest

pytest.importorskip("pyright")

PROGRAM = """\
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_type

import phalanx.numpy as jnp
from phalanx import Array
from phalanx.experimental import checkpoint

class Point(NamedTuple):
    x: Array
    y: Array

@dataclass
class State:
    step: int
    point: Point

def restored(directory: str, state: State, manager: checkpoint.Manager, anything: Any) -> None:
    assert_type(checkpoint.restore(directory, state), State)
    assert_type(checkpoint.restore(directory, state.point, step=3), Point)
    assert_type(checkpoint.restore(directory, jnp.ones(3)), Array)
    assert_type(manager.restore(state), State)
    assert_type(checkpoint.restore(directory), Any)
    assert_type(checkpoint.restore(directory, {"w": ...}), Any)
    assert_type(checkpoint.restore(directory, anything), Any)
"""


def test_a_restored_tree_has_the_class_that_was_asked_for(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "program.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "0 errors" in done.stdout, done.stdout
