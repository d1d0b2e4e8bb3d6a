"""What schedulers say of the processes of a program."""

import http.server
import os
import socket
import subprocess
import sys
import threading
import zlib
from types import SimpleNamespace

import pytest

from phalanx.api import distributed
from phalanx.base.errors import ConfigError
from phalanx.processes import cluster, hardware
from phalanx.processes.cluster import Found, detected, own
from phalanx.processes.dealing import OfHost
from tests.children import outcomes

SLURM = {
    "SLURM_JOB_ID": "1234567",
    "SLURM_STEP_NODELIST": "gpu[007-010,12]",
    "SLURM_NTASKS": "16",
    "SLURM_PROCID": "5",
    "SLURM_STEP_ID": "2",
}
TORCHRUN = {"MASTER_ADDR": "10.1.2.3", "MASTER_PORT": "29500", "WORLD_SIZE": "8", "RANK": "3"}
OMPI = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "1531576321",
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
}


def port(job):
    """A number from 20000 to 29999 that the name of a job gives, by its CRC-32."""
    return 20_000 + zlib.crc32(job.encode()) % 10_000


KUBERNETES = {"JOB_COMPLETION_INDEX": "3", "PHALANX_POD_NAME": "train-3.train.ml.svc"}
JOBSET = {
    "JOB_COMPLETION_INDEX": "3",
    "JOB_INDEX": "1",
    "PROCESSES_IN_JOB": "4",
    "PHALANX_POD_NAME": "run-workers-1-3.run.ml.svc",
}
TPU = {"TPU_WORKER_HOSTNAMES": "t0,t1,t2", "TPU_WORKER_ID": "1"}
SLICES = {
    "MEGASCALE_COORDINATOR_ADDRESS": "s0:8080",
    "MEGASCALE_NUM_SLICES": "2",
    "MEGASCALE_SLICE_ID": "1",
}


@pytest.mark.parametrize(
    ("env", "found"),
    [
        (SLURM, Found(f"gpu007:{port('slurm 1234567.2')}", 16, 5, job="slurm 1234567.2")),
        (TORCHRUN, Found("10.1.2.3:29500", 8, 3)),
        (
            TORCHRUN
            | {"TORCHELASTIC_USE_AGENT_STORE": "True", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"},
            Found("10.1.2.3:29501", 8, 3, of_host=OfHost(1, 4)),
        ),
        (TORCHRUN | {"MASTER_ADDR": "fd00::1"}, Found("[fd00::1]:29500", 8, 3)),
        (OMPI, Found(f"10.96.0.1:{port('ompi 1531576321')}", 4, 2, job="ompi 1531576321")),
        (OMPI | SLURM, Found(f"10.96.0.1:{port('ompi 1531576321')}", 4, 2, job="ompi 1531576321")),
        (KUBERNETES, Found("train-0.train.ml.svc:8476", None, 3)),
        (KUBERNETES | {"PHALANX_POD_NAME": "laptop"}, Found(None, None, 3)),
        (JOBSET, Found("run-workers-0-0.run.ml.svc:8476", None, 7)),
        (TPU, Found("t0:8476", 3, 1)),
        (TPU | SLICES, Found("s0:8476", 6, 4)),
        ({}, Found()),
    ],
)
def test_what_schedulers_tell(env, found):
    assert detected(None, env) == found


@pytest.mark.parametrize(
    ("env", "left_out", "told"),
    [
        (SLURM, "SLURM_STEP_ID", "srun starts the processes"),
        (TORCHRUN, "MASTER_ADDR", "WORLD_SIZE says 8, and torchrun sets MASTER_ADDR"),
        (TORCHRUN, "RANK", "WORLD_SIZE says 8, and torchrun sets MASTER_ADDR"),
        (OMPI, "PMIX_NAMESPACE", "OMPI_COMM_WORLD_SIZE says 4"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "PMI_RANK", "PMI_SIZE says 2"),
    ],
)
def test_half_of_what_a_scheduler_tells_is_no_process_alone(env, left_out, told, monkeypatch):
    half = {name: env[name] for name in env if name != left_out}
    assert detected(None, half) == Found()
    for name in {"SLURM_JOB_ID", *SLURM, *TORCHRUN, *OMPI, "PMI_RANK", "PMI_SIZE"}:
        monkeypatch.delenv(name, raising=False)
    for name, value in half.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "backend", lambda: SimpleNamespace(started=lambda: False))
    with pytest.raises(ValueError, match=f"should be defined.* {told}"):
        distributed.initialize()


@pytest.mark.parametrize(
    ("env", "told"),
    [
        (
            TORCHRUN | {"WORLD_SIZE": ""},
            "num_processes should be defined.*; torchrun, which has st",
        ),
        (OMPI | {"OMPI_MCA_orte_hnp_uri": ""}, "coordinator_address should.*; ompi, which has st"),
        (KUBERNETES, "num_processes should be defined.*; k8s, which has started"),
    ],
)
def test_a_scheduler_that_does_not_tell_all_is_named(env, told, monkeypatch):
    for name in {"SLURM_JOB_ID", *SLURM, *TORCHRUN, *OMPI, "PMI_RANK", "PMI_SIZE"}:
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "backend", lambda: SimpleNamespace(started=lambda: False))
    with pytest.raises(ValueError, match=told):
        distributed.initialize()


def test_who_asks_no_scheduler_computes_alone(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1234567")
    monkeypatch.delenv("SLURM_STEP_ID", raising=False)
    monkeypatch.setattr(distributed, "backend", lambda: SimpleNamespace(started=lambda: False))
    distributed.initialize(cluster_detection_method="deactivate")
    assert not distributed.is_initialized()


def test_a_scheduler_that_tells_of_one_process_tells_of_no_others():
    assert not cluster.is_incomplete({"WORLD_SIZE": "1", "PMI_SIZE": ""})


GPUS = {"SLURM_STEP_GPUS": "0,1,2,3", "SLURM_LOCALID": "1"}
SHARED = {"SLURM_GPUS_ON_NODE": "4", "SLURM_LOCALID": "1"}
EVEN = {"SLURM_STEP_TASKS_PER_NODE": "4(x3),2", "SLURM_NODEID": "3"}


@pytest.mark.parametrize(
    ("env", "of_host"),
    [
        (SLURM | {"SLURM_LOCALID": "1"} | EVEN, OfHost(1, 2)),  # Slurm knows of no GPUs
        (SLURM | {"SLURM_LOCALID": "1", "SLURM_NODEID": "3"}, None),
        (SLURM | SHARED | EVEN | {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, OfHost(1, 2)),
        (SLURM | SHARED | EVEN | {"CUDA_VISIBLE_DEVICES": "2,3"}, None),
        (SLURM | GPUS | EVEN | {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, OfHost(1, 2)),
        (SLURM | GPUS | EVEN | {"CUDA_VISIBLE_DEVICES": "1"}, None),  # the task has one of its own
        (OMPI | {"OMPI_COMM_WORLD_LOCAL_RANK": "1"}, OfHost(1, 2)),
        (
            {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"},
            OfHost(1, 4),
        ),
        (
            TORCHRUN
            | {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "PHALANX_DEVICES_PER_PROCESS": "3"},
            OfHost(0, 2, 3),
        ),
    ],
)
def test_which_process_of_its_machine_it_is(env, of_host):
    assert detected(None, env).of_host == of_host


def test_the_launcher_tells_it():
    told = {"PHALANX_LOCAL_PROCESS_ID": "2", "PHALANX_NUM_LOCAL_PROCESSES": "4"}
    assert own(told).of_host == OfHost(2, 4)
    assert own({"PHALANX_LOCAL_DEVICE_IDS": "0,3"} | told).local_device_ids == [0, 3]


def test_processes_of_one_machine_meet_there(tmp_path):
    alone = OMPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
    assert detected("ompi", alone).coordinator_address.startswith("127.0.0.1:")
    hydra = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}
    assert detected("pmi", hydra) == Found(None, 2, 1)  # nobody who started this is of MPICH
    proxy = tmp_path / "hydra_pmi_proxy"
    proxy.symlink_to("/bin/bash")
    told = subprocess.run(
        [proxy, "-c", f"bash -c '{sys.executable} -c \"$ASKING\"; true'; true"],
        env=os.environ | hydra | {"ASKING": ASKING, "PYTHONPATH": os.getcwd()},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    address, job = told.stdout.split(" ", 1)
    assert job.startswith("hydra ")
    assert address == f"127.0.0.1:{port(job.strip())}"


ASKING = """
import os
import socket
from phalanx.processes.cluster import detected
found = detected(None, os.environ)
print(found.coordinator_address, found.job)
"""


@pytest.mark.parametrize("shown", ["/dev/accel0", "/dev/vfio/0"])
def test_the_host_of_a_tpu_is_known_by_its_devices(monkeypatch, tmp_path, shown):
    on_the_bus = "sys/bus/pci/devices/0000:00:04.0"
    told = {shown[1:]: "", f"{on_the_bus}/vendor": "0x1ae0\n", f"{on_the_bus}/device": "0x0063\n"}
    for file, content in told.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    monkeypatch.setattr(hardware, "_ROOT", str(tmp_path))
    told = {"agent-worker-number": "1", "worker-network-endpoints": "a:b:10.0.0.5,a:b:10.0.0.6"}
    monkeypatch.setattr(cluster, "_metadata", told.__getitem__)
    assert detected(None, {}) == Found("10.0.0.5:8476", 2, 1)


def test_a_slice_is_asked_for_where_the_environment_says_nothing(monkeypatch):
    told = {"agent-worker-number": "1", "worker-network-endpoints": "a:b:10.0.0.5,a:b:10.0.0.6"}

    class Metadata(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.rpartition("/")[2]
            known = name in told and self.headers["Metadata-Flavor"] == "Google"
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write(told.get(name, "").encode())

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Metadata) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{server.server_port}")
        env = {"TPU_WORKER_HOSTNAMES": "only"}
        assert detected("tpu", env) == Found("10.0.0.5:8476", 2, 1)
        del told["agent-worker-number"]
        with pytest.raises(ConfigError, match="TPU_WORKER_HOSTNAMES and TPU_WORKER_ID"):
            detected("tpu", env)
        server.shutdown()


def test_what_is_given_goes_first_field_by_field():
    given = Found(num_processes=2).or_else(own({"PHALANX_PROCESS_ID": "1"}))
    assert given.or_else(detected(None, SLURM)) == Found(
        f"gpu007:{port('slurm 1234567.2')}", 2, 1, job="slurm 1234567.2"
    )


def test_a_method_is_one_that_there_is():
    assert detected("deactivate", SLURM) == Found()
    with pytest.raises(ConfigError, match="Did you mean 'slurm'"):
        detected("slrum", SLURM)
    with pytest.raises(ConfigError, match="not run by 'ompi'"):
        detected("ompi", SLURM)
    with pytest.raises(ConfigError, match="SLURM_JOB_NODELIST, and here ','"):
        detected(None, SLURM | {"SLURM_STEP_NODELIST": ","})
    with pytest.raises(ConfigError, match="SLURM_JOB_NODELIST, and here ''"):
        detected(None, {name: SLURM[name] for name in SLURM if "LIST" not in name})
    for listed, node in (("none", "0"), ("4", "1")):
        step = {"SLURM_STEP_TASKS_PER_NODE": listed, "SLURM_NODEID": node}
        with pytest.raises(ConfigError, match=f"and here '{listed}', without that of node {node}"):
            detected(None, SLURM | step)
    with pytest.raises(ConfigError, match="TPU_WORKER_ID must be a number"):
        detected(None, TPU | {"TPU_WORKER_ID": "x"})
    with pytest.raises(ConfigError, match="PHALANX_PROCESS_ID must be a number"):
        own({"PHALANX_PROCESS_ID": "one"})
    with pytest.raises(ConfigError, match="in job 1 of a JobSet; set PROCESSES_IN_JOB"):
        detected(None, {k: v for k, v in JOBSET.items() if k != "PROCESSES_IN_JOB"})


@pytest.mark.parametrize("wrong", ["two", "-1", "1.5", "²"])
def test_a_number_is_one(wrong):
    with pytest.raises(ConfigError, match=f"PHALANX_NUM_PROCESSES must be a number.*{wrong!r}"):
        own({"PHALANX_NUM_PROCESSES": wrong})
    with pytest.raises(ConfigError, match="MASTER_PORT must be a number"):
        detected(None, TORCHRUN | {"MASTER_PORT": wrong})


def test_initialize_where_others_have_the_port():
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        (told,) = outcomes([f"distributed.initialize({address!r}, 2, 0)"])
    here = f"distributed.initialize: the coordinator cannot listen at {address}: "
    assert told.startswith(f"RendezvousError: {here}")
    assert told.endswith("another port, or an address of this machine, as coordinator_bind_address")
