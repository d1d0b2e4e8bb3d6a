"""Trees in functions that Python runs at exit."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit
{first}
atexit.register(lambda: print(phalanx.tree.leaves((1, [2, dict(a=3)]))))
{then}
import phalanx
"""


def printed(first="", then=""):
    code = PROGRAM.format(first=first, then=then)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.splitlines()


@pytest.mark.parametrize("first", ["", "import phalanx"])
def test_trees_are_trees_at_exit_whatever_was_imported_first(first):
    assert printed(first) == ["[1, 2, 3]"]


def test_a_program_goes_on_after_its_exit_functions():
    then = """
import phalanx.numpy as jnp
atexit._run_exitfuncs()
print(phalanx.jit(lambda pair: pair[0] + pair[1])((jnp.float32(1), 2)))
"""
    assert printed("import phalanx", then) == ["[1, 2, 3]", "3.0"]


def test_what_others_registered_still_runs():
    assert printed(then="atexit.register(print, 'last')") == ["last", "[1, 2, 3]"]
