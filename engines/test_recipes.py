"""The recipes of examples/clusters, by what they are for."""

import os
import sys

import pytest

from engines.programs import ROOT, run
from phalanx.experimental import checkpoint

CLUSTERS = ROOT / "examples" / "clusters"
AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


@pytest.mark.parametrize("programs", ["bin", "mpich/bin"], ids=["Open MPI", "MPICH"])
def test_mpi(programs, tmp_path):
    path = os.pathsep.join([f"{sys.prefix}/{programs}", f"{sys.prefix}/bin", os.environ["PATH"]])
    done = run(["bash", "mpi.sh"], cwd=CLUSTERS, PATH=path, HOME=str(tmp_path), **AS_ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss 0.000000 after 1000 steps" in done.stdout
    assert checkpoint.latest(tmp_path / "runs" / "a") == 1000


def test_ray_train(tmp_path):
    command = [sys.executable, "ray_train.py", str(tmp_path / "a")]
    done = run(command, cwd=CLUSTERS, HOME=str(tmp_path), RAY_DEDUP_LOGS="0")
    assert done.returncode == 0, done.stderr
    assert "loss 0.000000 after 1000 steps" in done.stdout
    assert checkpoint.latest(tmp_path / "a") == 1000
