"""Open MPI and MPICH start the processes."""

import sys
from pathlib import Path

import pytest

from engines.programs import run, told, write

OPEN_MPI = [
    f"{sys.prefix}/bin/mpirun", "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE",
]  # fmt: skip
MPICH = [f"{sys.prefix}/mpich/bin/mpiexec"]  # elsewhere: both bring an mpirun
PROGRAM = """
import numpy as np
import phalanx
from phalanx import lax

phalanx.distributed.initialize(initialization_timeout=60)
me = phalanx.process_index()
add = phalanx.pmap(lambda x: x + lax.psum(x, "i"), "i")
tell(me, add(np.arange(2.0) + 10 * me).tolist())
"""
LOST = (
    PROGRAM
    + """
if me == 1:
    os._exit(9)
try:
    while True:
        add(np.arange(2.0))
except phalanx.errors.PeerLost as e:
    tell(me, "lost", e.process)
    raise
"""
)


@pytest.mark.parametrize("command", [OPEN_MPI, MPICH], ids=["Open MPI", "MPICH"])
def test_processes_meet(command, tmp_path):
    done = run([*command, "-n", "3", sys.executable, str(write(tmp_path, PROGRAM))])
    assert done.returncode == 0, done.stdout + done.stderr
    total = 3 * (0 + 1) + 2 * (0 + 10 + 20)  # of six rows
    expected = {str(me): [str([10.0 * me + row + total for row in (0, 1)])] for me in range(3)}
    assert told(tmp_path) == expected


@pytest.mark.parametrize("command", [OPEN_MPI, MPICH], ids=["Open MPI", "MPICH"])
def test_a_loss_ends_the_program(command, tmp_path):
    """Both end the others when one fails; who is quicker to learn of it tells so itself."""
    done = run([*command, "-n", "2", sys.executable, str(write(tmp_path, LOST))])
    assert done.returncode != 0
    assert told(tmp_path)["0"][1:] in ([], ["lost 1"]), Path(tmp_path)
