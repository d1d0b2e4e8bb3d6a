"""What schedulers say of the processes of a program."""

import pytest

from phalanx.base.errors import ConfigError
from phalanx.processes.cluster import Found, detected, own

SLURM = {
    "SLURM_JOB_ID": "1234567",
    "SLURM_STEP_NODELIST": "gpu[007-010,12]",
    "SLURM_NTASKS": "16",
    "SLURM_PROCID": "5",
}
TORCHRUN = {"MASTER_ADDR": "10.1.2.3", "MASTER_PORT": "29500", "WORLD_SIZE": "8", "RANK": "3"}
OMPI = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
}
KUBERNETES = {"JOB_COMPLETION_INDEX": "3", "PHALANX_POD_NAME": "train-3.train.ml.svc"}
TPU = {"TPU_WORKER_HOSTNAMES": "t0,t1,t2", "TPU_WORKER_ID": "1"}


@pytest.mark.parametrize(
    ("env", "found"),
    [
        (SLURM, Found("gpu007:24567", 16, 5)),
        (TORCHRUN, Found("10.1.2.3:29500", 8, 3)),
        (
            TORCHRUN | {"TORCHELASTIC_USE_AGENT_STORE": "True", "LOCAL_RANK": "1"},
            Found("10.1.2.3:29501", 8, 3, (1,)),
        ),
        (OMPI, Found("10.96.0.1:26320", 4, 2)),
        (KUBERNETES, Found("train-0.train.ml.svc:8476", None, 3)),
        (TPU, Found("t0:8476", 3, 1)),
        ({}, Found()),
    ],
)
def test_what_schedulers_tell(env, found):
    assert detected(None, env) == found


def test_processes_of_one_machine_meet_there():
    pmi = detected("pmi", {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"})
    assert pmi.coordinator_address.startswith("127.0.0.1:")
    assert (pmi.num_processes, pmi.process_id) == (2, 1)


def test_what_is_given_goes_first_field_by_field():
    given = Found(num_processes=2).or_else(own({"PHALANX_PROCESS_ID": "1"}))
    assert given.or_else(detected(None, SLURM)) == Found("gpu007:24567", 2, 1)


def test_a_method_is_one_that_there_is():
    assert detected("deactivate", SLURM) == Found()
    with pytest.raises(ConfigError, match="Did you mean 'slurm'"):
        detected("slrum", SLURM)
    with pytest.raises(ConfigError, match="not run by 'ompi'"):
        detected("ompi", SLURM)
    with pytest.raises(ConfigError, match="PHALANX_PROCESS_ID must be a number"):
        own({"PHALANX_PROCESS_ID": "one"})
