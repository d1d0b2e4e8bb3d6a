"""What the environment says of the processes of a program: variables of ours, and of schedulers.

Each scheduler has one entry in ``SCHEDULERS``, which finds what it can; what it does not tell is
for the user to say, in a call or in the variables ``PHALANX_*``.
"""

from __future__ import annotations

import os
import re
import socket
import zlib
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from phalanx.base.errors import ConfigError, suggest
from phalanx.base.on_demand import OnDemand
from phalanx.processes.dealing import OfHost
from phalanx.processes.hardware import has_hardware
from phalanx.processes.wire import address_of

Env = Mapping[str, str]
_web = OnDemand("urllib.request", "slow, and only TPU slices are asked")
PORT = 8476
_LOWEST, _PORTS = 20_000, 10_000  # below those that systems give to whoever asks for any


class Found(Struct, frozen=True):
    """What is known of the processes, None where nothing is."""

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_device_ids: Sequence[int] | None = None
    of_host: OfHost | None = None
    job: str | None = None  # what the scheduler calls all of them, and nothing else that it runs

    def or_else(self, other: Found) -> Found:
        """The same, with what ``other`` knows where this knows nothing."""
        names = Found.__struct_fields__
        mine = {n: getattr(self, n) for n in names if getattr(self, n) is not None}
        return Found(**({n: getattr(other, n) for n in names} | mine))

    def completed(self, method: str | None, env: Env) -> Found:
        """The same with what variables say, and, where that is not all, or a scheduler is asked for
        by its ``method``, that one.

        Raises:
            ConfigError: a variable makes no sense, or there is no such scheduler.
        """
        known = self.or_else(own(env))
        if method or None in (known.coordinator_address, known.num_processes, known.process_id):
            return known.or_else(detected(method, env))
        return known


def _port_of(job: str) -> int:
    """A port that all processes of a job find alike, from its name."""
    return _LOWEST + zlib.crc32(job.encode()) % _PORTS


def _int(env: Env, *names: str) -> int | None:
    """The first of those variables that is there.

    Raises:
        ConfigError: it is not a number from 0 up.
    """
    for name in names:
        if env.get(name):
            if not _is_number(env[name]):
                raise ConfigError(f"{name} must be a number from 0 up, got {env[name]!r}")
            return int(env[name])
    return None


def restarts(env: Env) -> int:
    """How often the program was started again before."""
    return _int(env, "PHALANX_RESTART") or 0


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _of_host(env: Env, number: str, count: str) -> OfHost | None:
    """Which process of its machine this is, by the variables of those names."""
    which, count_here = _int(env, number), _int(env, count)
    if which is None or count_here is None:
        return None
    each = _int(env, "PHALANX_DEVICES_PER_PROCESS")
    return OfHost(which, count_here, each)


def own(env: Env) -> Found:
    """What the variables ``PHALANX_*`` say."""
    devices = env.get("PHALANX_LOCAL_DEVICE_IDS")
    if devices and not all(_is_number(n.strip()) for n in devices.split(",")):
        raise ConfigError(
            f"PHALANX_LOCAL_DEVICE_IDS must be numbers with commas between, got {devices!r}"
        )
    return Found(
        env.get("PHALANX_COORDINATOR_ADDRESS") or None,
        _int(env, "PHALANX_NUM_PROCESSES"),
        _int(env, "PHALANX_PROCESS_ID"),
        [int(n) for n in devices.split(",")] if devices else None,
        _of_host(env, "PHALANX_LOCAL_PROCESS_ID", "PHALANX_NUM_LOCAL_PROCESSES"),
    )


def _slurm(env: Env) -> Found:
    hosts = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST", "")
    job = f"slurm {env['SLURM_JOB_ID']}.{env['SLURM_STEP_ID']}"
    return Found(
        f"{first_host(hosts)}:{_port_of(job)}",
        _int(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
        _int(env, "SLURM_PROCID"),
        of_host=_of_slurm(env),
        job=job,
    )


def _of_slurm(env: Env) -> OfHost | None:
    """None where each task has GPUs of its own, and sees no others."""
    gpus = env.get("SLURM_STEP_GPUS")
    count = len(gpus.split(",")) if gpus else _int(env, "SLURM_GPUS_ON_NODE") or 0
    seen = env.get("CUDA_VISIBLE_DEVICES", env.get("ROCR_VISIBLE_DEVICES"))
    if seen is not None and len(seen.split(",")) < count:
        return None
    tasks, node = env.get("SLURM_STEP_TASKS_PER_NODE"), _int(env, "SLURM_NODEID") or 0
    known = {**env, "tasks on this node": str(tasks_on(tasks, node))} if tasks else env
    return _of_host(known, "SLURM_LOCALID", "tasks on this node")


def tasks_on(listed: str, node: int) -> int:
    """How many tasks a node has, of a list as Slurm writes it.

    >>> [tasks_on("4(x2),3", node) for node in range(3)]
    [4, 4, 3]
    """
    repeated = re.findall(r"(\d+)(?:\(x(\d+)\))?", listed)
    counts = [int(count) for count, times in repeated for _ in range(int(times or 1))]
    if node >= len(counts):
        raise ConfigError(
            "Slurm lists how many tasks each node of a step has, SLURM_STEP_TASKS_PER_NODE, and "
            f"here {listed!r}, without that of node {node}"
        )
    return counts[node]


def first_host(hosts: str) -> str:
    """The first of hosts as Slurm lists them.

    >>> first_host("gpu[007-010,12],cpu3"), first_host("a1,a2"), first_host("n[3,5]-eth")
    ('gpu007', 'a1', 'n3-eth')
    """
    found = re.match(r"([^,\[]+)(?:\[(\w+)[^\]]*\]([^,\[]*))?", hosts)
    if found is None:
        raise ConfigError(f"Slurm lists the hosts of a job, SLURM_JOB_NODELIST, and here {hosts!r}")
    return "".join(part or "" for part in found.groups())


def _openmpi(env: Env) -> Found:
    """Up to version 4 it tells the host of its head process; later ones tell it nobody."""
    job = f"ompi {env['PMIX_NAMESPACE']}"
    alone = env.get("OMPI_COMM_WORLD_LOCAL_SIZE") == env["OMPI_COMM_WORLD_SIZE"]
    head = re.match(r"\d+\.\d+;tcp://([\d.]+)", env.get("OMPI_MCA_orte_hnp_uri", ""))
    host = "127.0.0.1" if alone else head and head[1]
    return Found(
        f"{host}:{_port_of(job)}" if host else None,
        _int(env, "OMPI_COMM_WORLD_SIZE"),
        _int(env, "OMPI_COMM_WORLD_RANK"),
        of_host=_of_host(env, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        job=job,
    )


def _hydra(env: Env) -> Found:
    """For MPICH and those like it: only who runs a job tells it from others."""
    alone = env.get("MPI_LOCALNRANKS") == env.get("PMI_SIZE")
    proxy = _ancestor("hydra_pmi_proxy")
    job = f"hydra {proxy}" if alone and proxy else None
    return Found(
        job and f"127.0.0.1:{_port_of(job)}",
        _int(env, "PMI_SIZE"),
        _int(env, "PMI_RANK"),
        of_host=_of_host(env, "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
        job=job,
    )


def _ancestor(name: str) -> int | None:
    """The nearest process called ``name`` that has started this one, or others that did."""
    process = os.getppid()
    while process > 1:
        try:
            with open(f"/proc/{process}/stat") as file:
                called, _, rest = file.read().partition("(")[2].rpartition(") ")
        except OSError:
            return None
        if called == name[:15]:  # of which the system keeps as much
            return process
        process = int(rest.split()[1])
    return None


def _kubernetes(env: Env) -> Found:
    """An indexed job with a headless service, or several that are alike, of a JobSet.

    Pods are called after their job and their index in it, jobs of a set after it and theirs.
    """
    name, dot, domain = (env.get("PHALANX_POD_NAME") or socket.getfqdn()).partition(".")
    index, job, each = (
        _int(env, of) for of in ("JOB_COMPLETION_INDEX", "JOB_INDEX", "PROCESSES_IN_JOB")
    )
    if job is not None and each is None:
        raise ConfigError(
            f"JOB_INDEX says that this is in job {job} of a JobSet; set PROCESSES_IN_JOB, too: how "
            "many processes each of its jobs has"
        )
    ending, first = (f"-{index}", "-0") if job is None else (f"-{job}-{index}", "-0-0")
    jobs = name.removesuffix(ending)
    meeting = f"{jobs}{first}{dot}{domain}:{PORT}" if jobs != name else None
    return Found(meeting, None, (index or 0) + (job or 0) * (each or 0))


def _torchrun(env: Env) -> Found:
    port = _int(env, "MASTER_PORT") or 0
    if env.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        port += 1  # the agent listens at the other
    return Found(
        address_of(env["MASTER_ADDR"], port),
        _int(env, "WORLD_SIZE"),
        _int(env, "RANK"),
        of_host=_of_host(env, "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
        job=f"torchrun {run}" if (run := env.get("TORCHELASTIC_RUN_ID")) else None,
    )


def _tpu(env: Env) -> Found:
    """The hosts of a slice: from the environment, or from the metadata of the machine.

    Of several slices the environment tells how many there are, which this is, and the host where
    all of them meet.
    Metadata: https://cloud.google.com/compute/docs/metadata/querying-metadata
    """
    hosts = env.get("TPU_WORKER_HOSTNAMES")
    if not (hosts and env.get("TPU_WORKER_ID")):
        entries = _metadata("worker-network-endpoints").split(",")
        hosts = ",".join(entry.rpartition(":")[2] for entry in entries)
        env = {**env, "TPU_WORKER_ID": _metadata("agent-worker-number")}
    number = _int(env, "TPU_WORKER_ID") or 0
    names = hosts.split(",")
    meeting = env.get("MEGASCALE_COORDINATOR_ADDRESS", names[0]).partition(":")[0]
    slices, which = _int(env, "MEGASCALE_NUM_SLICES") or 1, _int(env, "MEGASCALE_SLICE_ID") or 0
    return Found(f"{meeting}:{PORT}", slices * len(names), which * len(names) + number)


def _metadata(name: str) -> str:
    server = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
    path = f"http://{server}/computeMetadata/v1/instance/attributes/{name}"
    request = _web.Request(path, headers={"Metadata-Flavor": "Google"})
    try:
        with _web.urlopen(request, timeout=5) as answer:
            return answer.read().decode().strip()
    except OSError as e:
        raise ConfigError(
            f"the hosts of this TPU slice are asked for at {path}: {e}; give them in "
            "TPU_WORKER_HOSTNAMES and TPU_WORKER_ID, or choose cluster_detection_method="
            "'deactivate'"
        ) from None


SCHEDULERS: dict[str, tuple[Callable[[Env], bool], Callable[[Env], Found]]] = {
    "torchrun": (lambda env: {"MASTER_ADDR", "MASTER_PORT", "RANK"} <= env.keys(), _torchrun),
    "ompi": (lambda env: {"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"} <= env.keys(), _openmpi),
    "pmi": (
        lambda env: "PMI_RANK" in env and ("MPI_LOCALNRANKS" in env or "SLURM_STEP_ID" not in env),
        _hydra,
    ),
    "slurm": (lambda env: {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"} <= env.keys(), _slurm),
    "k8s": (lambda env: "JOB_COMPLETION_INDEX" in env, _kubernetes),
    "tpu": (
        lambda env: "TPU_WORKER_HOSTNAMES" in env or has_hardware("tpu"),
        _tpu,
    ),
}


_COUNTS = {  # variables that tell how many processes there are, and who sets what else it takes
    "WORLD_SIZE": "torchrun sets MASTER_ADDR, MASTER_PORT and RANK",
    "OMPI_COMM_WORLD_SIZE": "mpirun of Open MPI sets PMIX_NAMESPACE",
    "PMI_SIZE": "mpirun of MPICH sets PMI_RANK",
}


def is_incomplete(env: Env) -> bool:
    """Whether a scheduler tells of others, and has not started this as one of its processes."""
    return bool(_half(env))


def _half(env: Env) -> str:
    if "SLURM_JOB_ID" in env:
        return "this is in a job of Slurm, but no step of it: srun starts the processes of one"
    for name, setting in _COUNTS.items():
        if env.get(name, "1") not in ("", "1"):
            return f"{name} says {env[name]}, and {setting}, too; to compute alone, unset it"
    return ""


def advice(env: Env) -> str:
    """What to do where something is not found."""
    who = next((name for name, (is_there, _) in SCHEDULERS.items() if is_there(env)), "")
    if who:
        return f"{who}, which has started this process, does not tell it"
    return _half(env) or (
        "no scheduler was found that tells it. On one machine, phalanx launch -n 4 script.py sets "
        "all of them (also -n 1)"
    )


def detected(method: str | None, env: Env) -> Found:
    """What a scheduler says: the one called ``method``, or the first that is there.

    Raises:
        ConfigError: there is no such method, or it finds nothing here.
    """
    if method == "deactivate":
        return Found()
    if method is not None:
        if method not in SCHEDULERS:
            hint = suggest(str(method), SCHEDULERS) or f"There are {', '.join(SCHEDULERS)}."
            raise ConfigError(f"cluster_detection_method: there is no {method!r}. {hint}")
        present, read = SCHEDULERS[method]
        if not present(env):
            raise ConfigError(f"cluster_detection_method: this is not run by {method!r}")
        return read(env)
    return next((read(env) for present, read in SCHEDULERS.values() if present(env)), Found())
