"""What is in examples/clusters, with the variables that schedulers set: all processes meet."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from phalanx.processes.cluster import Found

CLUSTERS = Path(__file__).parents[3] / "examples" / "clusters"


class Shell:
    """A folder of programs that stand for those which a script calls."""

    def __init__(self, folder):
        self.folder = folder
        self.add("python", f"env -0 >{folder}/env-$(ls {folder} | wc -l); exit ${{STATUS:-0}}")

    def add(self, name, commands):
        """A program: it notes its arguments, and goes on with these commands of a shell."""
        program = self.folder / name
        program.write_text(f'#!/bin/sh\necho "$0 $*" >>{self.folder}/called\n{commands}\n')
        program.chmod(0o755)

    def run(self, script, *arguments, **variables):
        """Run a script; gives its status, and the environments of the programs of Python."""
        known = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PHALANX_"))}
        paths = {"PATH": f"{self.folder}:{known['PATH']}", "HOME": "/home/ada"}
        for file in self.folder.glob("env-*"):
            file.unlink()
        done = subprocess.run(
            ["bash", str(CLUSTERS / script), *arguments],
            env=known | paths | variables, capture_output=True, text=True,
        )  # fmt: skip
        assert done.stderr == ""
        dumped = [file.read_text().split("\0")[:-1] for file in self.folder.glob("env-*")]
        return done.returncode, [dict(one.split("=", 1) for one in each) for each in dumped]

    def called(self, name):
        """With what arguments a program was called."""
        calls = (line.split(" ", 1) for line in (self.folder / "called").read_text().splitlines())
        return [words for program, words in calls if Path(program).name == name]


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


SRUN = """
for task in 0 1 2 3 4 5 6 7; do
    SLURM_JOB_ID=70 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n[3-4] SLURM_NTASKS=8 \\
    SLURM_STEP_NUM_TASKS=8 SLURM_STEP_TASKS_PER_NODE='4(x2)' SLURM_NODEID=$((task / 4)) \\
    SLURM_LOCALID=$((task % 4)) SLURM_PROCID=$task "$@" || status=$?
done
exit ${status:-0}
"""


def check(environments, count, host):
    """All are processes of one program, which have a secret."""
    found = [Found().completed(None, env) for env in environments]
    assert sorted(one.process_id for one in found) == [*range(count)]
    assert {one.num_processes for one in found} == {count}
    (address,) = {one.coordinator_address for one in found}
    assert address.startswith(f"{host}:")
    (token,) = {env["PHALANX_TOKEN"] for env in environments}
    assert len(token) == 32


@pytest.mark.parametrize(
    ("status", "restarts", "requeued"),
    [(0, 0, False), (75, 9, True), (1, 4, True), (1, 5, False)],
)
def test_slurm_requeues_what_is_not_done(shell, status, restarts, requeued):
    shell.add("srun", SRUN)
    shell.add("scontrol", "")
    variables = {"SLURM_JOB_ID": "70", "STATUS": str(status), "SLURM_RESTART_COUNT": str(restarts)}
    ended, environments = shell.run("slurm.sh", **variables)
    check(environments, 8, "n3")
    assert ended == status
    assert {*shell.called("python")} == {"train.py /home/ada/runs/a"}
    assert shell.called("scontrol") == ["requeue 70"] * requeued


def test_slurm_is_asked_for_what_the_script_counts_on():
    asked = [
        line for line in (CLUSTERS / "slurm.sh").read_text().splitlines() if line[:7] == "#SBATCH"
    ]
    assert {"#SBATCH --requeue", "#SBATCH --signal=TERM@120"} <= {*asked}


MPIRUN = """
shift 2
for rank in 0 1 2 3; do
    OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_LOCAL_SIZE=4 \\
    OMPI_COMM_WORLD_LOCAL_RANK=$rank PMIX_NAMESPACE=prterun-host-7@1 "$@" || exit 1
done
"""


def test_mpi_starts_again(shell):
    shell.add("mpirun", MPIRUN)
    ended, environments = shell.run("mpi.sh")
    assert ended == 0
    assert {*shell.called("python")} == {"train.py /home/ada/runs/a"}
    check(environments, 4, "127.0.0.1")
    ended, environments = shell.run("mpi.sh", STATUS="1")
    assert ended == 1
    assert len(environments) == 4  # one of each: the first fails
    assert len(shell.called("mpirun")) == 1 + 4


TORCHRUN = """
shift 12
for rank in 0 1 2 3 4 5 6 7; do
    MASTER_ADDR=n3 MASTER_PORT=41000 WORLD_SIZE=8 RANK=$rank LOCAL_WORLD_SIZE=4 \\
    LOCAL_RANK=$((rank % 4)) TORCHELASTIC_RUN_ID=train TORCHELASTIC_USE_AGENT_STORE=True \\
    python "$@"
done
"""


def test_torchrun_is_elastic(shell):
    shell.add("torchrun", TORCHRUN)
    ended, environments = shell.run("torchrun.sh", "n3", PHALANX_TOKEN="s" * 32)
    assert ended == 0
    check(environments, 8, "n3")
    (options,) = shell.called("torchrun")
    assert "--nnodes 2:4 " in options
    assert "--rdzv-endpoint n3:29400" in options


def containers(pod):
    (container,) = pod["spec"]["containers"]
    return container


def environment(container, labels, index, hostname):
    """What Kubernetes sets for a container, of what its manifest asks for."""
    set_by_it = {"JOB_COMPLETION_INDEX": str(index), "PHALANX_POD_NAME": hostname}
    for variable in container["env"]:
        source = variable.get("valueFrom", {})
        if "fieldRef" in source:
            path = source["fieldRef"]["fieldPath"]
            value = labels[path.removeprefix("metadata.labels['").removesuffix("']")]
        else:
            value = "s" * 32 if "secretKeyRef" in source else variable["value"]
        set_by_it[variable["name"]] = value
    return set_by_it


def test_pods_of_an_indexed_job_meet():
    job, service = yaml.safe_load_all((CLUSTERS / "kubernetes.yaml").read_text())
    name, count = job["metadata"]["name"], job["spec"]["completions"]
    pod = job["spec"]["template"]
    assert pod["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": name}
    container = containers(pod)
    assert container["command"][:2] == ["python", "train.py"]
    environments = [
        environment(container, {}, index, f"{name}-{index}.{pod['spec']['subdomain']}.ml.svc")
        for index in range(count)
    ]
    check(environments, count, "train-0.train.ml.svc")


def test_pods_of_all_jobs_of_a_jobset_meet():
    jobset = yaml.safe_load((CLUSTERS / "jobset.yaml").read_text())
    name = jobset["metadata"]["name"]
    (replicated,) = jobset["spec"]["replicatedJobs"]
    spec, environments = replicated["template"]["spec"], []
    for job in range(replicated["replicas"]):
        labels = {
            "jobset.sigs.k8s.io/jobset-name": name,
            "jobset.sigs.k8s.io/replicatedjob-name": replicated["name"],
            "jobset.sigs.k8s.io/job-index": str(job),
            "jobset.sigs.k8s.io/restart-attempt": "0",
        }
        for index in range(spec["completions"]):
            hostname = f"{name}-{replicated['name']}-{job}-{index}.{name}.ml.svc"
            container = containers(spec["template"])
            environments.append(environment(container, labels, index, hostname))
    count = replicated["replicas"] * spec["completions"]
    check(environments, count, "train-workers-0-0.train.ml.svc")


def test_ray_train_is_given_what_there_is():
    """It cannot be run without Ray; what it names of ours and of the program beside it is there."""
    names = compile((CLUSTERS / "ray_train.py").read_text(), "ray_train.py", "exec").co_names
    assert {"PhalanxConfig", "DataParallelTrainer"} <= {*names}
    assert "def train(directory, steps, must_end=" in (CLUSTERS / "train.py").read_text()
