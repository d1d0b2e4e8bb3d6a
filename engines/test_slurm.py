"""Slurm starts the processes: its daemons on this machine, where they are installed.

On Debian: ``apt-get install slurmctld slurmd slurm-client munge``. They are run as root.
"""

import os
import shutil
import socket
import subprocess
import sys
import time

import pytest

from engines.programs import ROOT, run, wait_for
from phalanx.experimental import checkpoint

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("slurmctld", "slurmd", "sbatch", "munged"))) or os.getuid() != 0,
    reason="Slurm is not installed, or this is not root",
)
SETTINGS = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={first}
SlurmdPort={second}
AuthType=auth/munge
AuthInfo=socket={folder}/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
SlurmUser=root
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs=8
PartitionName=main Nodes=ALL Default=YES
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return unused.getsockname()[1]


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """One machine; gives a folder for jobs."""
    host = socket.gethostname().partition(".")[0]
    settings = tmp_path / "slurm.conf"
    settings.write_text(
        SETTINGS.format(host=host, folder=tmp_path, first=free_port(), second=free_port())
    )
    for name in ("spool", "state", "jobs"):
        (tmp_path / name).mkdir()
    key = tmp_path / "key"
    key.write_bytes(os.urandom(64))
    key.chmod(0o600)
    monkeypatch.setenv("SLURM_CONF", str(settings))
    files = [f"--{name}-file={tmp_path}/munged.{name}" for name in ("pid", "log", "seed")]
    daemons = [
        ["munged", "-F", "-f", f"--key-file={key}", f"--socket={tmp_path}/munge", *files],
        ["slurmctld", "-D", "-f", str(settings)],
        ["slurmd", "-D", "-f", str(settings), "-N", host],
    ]
    started = []
    for command in daemons:
        with open(tmp_path / f"{command[0]}.out", "w") as output:
            started.append(subprocess.Popen(command, stdout=output, stderr=output))
        time.sleep(1)  # each needs the one before
    wait_for(lambda: "idle" in run(["sinfo", "-h", "-o", "%t"]).stdout)
    yield tmp_path / "jobs"
    for daemon in reversed(started):
        daemon.terminate()
        daemon.wait(30)


@pytest.fixture
def submit(cluster):
    """Submits the recipe, for one machine; gives the number of the job."""
    recipe = (ROOT / "examples" / "clusters" / "slurm.sh").read_text()
    asked = "#SBATCH --nodes=2 --ntasks-per-node=4"
    assert asked in recipe
    (cluster / "slurm.sh").write_text(recipe.replace(asked, asked.replace("=2", "=1")))
    shutil.copy(ROOT / "examples" / "clusters" / "train.py", cluster)
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])

    def submitted():
        command = ["sbatch", "--parsable", "slurm.sh"]
        done = run(command, cwd=cluster, PATH=path, HOME=str(cluster))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return submitted


def state(job):
    return run(["squeue", "-h", "-j", job, "-t", "all", "-o", "%T"]).stdout.strip()


def test_a_job_runs_to_its_end(submit, cluster):
    job = submit()
    wait_for(lambda: state(job) not in ("PENDING", "RUNNING", "COMPLETING"))
    output = (cluster / f"slurm-{job}.out").read_text()
    assert state(job) == "COMPLETED", output
    assert "loss 0.000000 after 1000 steps" in output
    assert checkpoint.latest(cluster / "runs" / "a") == 1000


def test_a_job_that_is_asked_to_end_is_queued_again_and_goes_on(submit, cluster):
    job, runs = submit(), cluster / "runs" / "a"
    wait_for(lambda: checkpoint.steps(runs))
    run(["scancel", "--signal=TERM", job])  # to its processes, as when its time is up
    wait_for(lambda: state(job) == "PENDING")  # for two minutes, so that its daemons forget it
    output = (cluster / f"slurm-{job}.out").read_text()
    assert "Exited with exit code 75" in output
    assert 100 <= checkpoint.latest(runs) < 1000
    wait_for(lambda: state(job) not in ("PENDING", "RUNNING", "COMPLETING"))
    output = (cluster / f"slurm-{job}.out").read_text()
    assert state(job) == "COMPLETED", output
    assert checkpoint.latest(runs) == 1000
