"""Actors of Ray compute together; Ray Train starts workers again, which go on."""

import numpy as np

from engines.programs import run_python, told, write
from engines.training import alone, attempts, losses

ACTORS = """
import signal, time
import ray

ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200 * 2**20)


@ray.remote(num_cpus=1)
class Worker:
    def address(self):
        import socket
        with socket.create_server(("127.0.0.1", 0)) as unused:
            return f"127.0.0.1:{unused.getsockname()[1]}"

    def start(self, address, count, index):
        import phalanx
        from phalanx import lax
        phalanx.distributed.initialize(address, count, index)
        self.add = phalanx.pmap(lambda x: x + lax.psum(x, "i"), "i")
        return os.getpid()

    def once(self, value):
        import numpy as np
        return self.add(np.full((1, 2), value, np.float32)).tolist()

    def until_lost(self):
        import numpy as np
        import phalanx
        try:
            while True:
                self.add(np.ones((1, 2), np.float32))
        except phalanx.errors.PeerLost as e:
            return e.process


def group():
    workers = [Worker.remote() for _ in range(2)]
    address = ray.get(workers[0].address.remote())
    pids = ray.get([worker.start.remote(address, 2, i) for i, worker in enumerate(workers)])
    tell("driver", ray.get([worker.once.remote(i + 1.0) for i, worker in enumerate(workers)]))
    return workers, pids


workers, pids = group()
survivor = workers[0].until_lost.remote()
workers[1].until_lost.remote()
time.sleep(1)
os.kill(pids[1], signal.SIGKILL)
tell("driver", ray.get(survivor))
ray.kill(workers[0])
group()
"""
TRAIN = """
import sys
from pathlib import Path
import ray
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from phalanx.experimental.ray import PhalanxConfig

place = Path(__file__).parent


def fit(loop, workers):
    DataParallelTrainer(
        loop,
        backend_config=PhalanxConfig(),
        scaling_config=ScalingConfig(num_workers=workers),
        run_config=RunConfig(
            storage_path=str(place / "ray"), failure_config=FailureConfig(max_failures=1)
        ),
    ).fit()
"""
WORKER = (
    TRAIN
    + """
def loop():
    import phalanx
    from engines.training import train

    def lose(step):
        if step == 7 and phalanx.process_index() == 1 and not (place / "lost").exists():
            (place / "lost").touch()
            os._exit(9)

    train(place, lose)


ray.init(num_cpus=3, include_dashboard=False, object_store_memory=200 * 2**20)
fit(loop, 2)
"""
)
NODE = (
    TRAIN
    + """
import signal, threading, time
from ray.cluster_utils import Cluster


def loop():
    from engines.training import train

    def lose(step):
        if step == 7 and not (place / "lost").exists():
            tell("all", ray.get_runtime_context().get_node_id(), os.getpid())
            while not (place / "lost").exists():
                time.sleep(0.05)

    train(place, lose)


cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
ray.init(cluster.address)  # the driver and what Ray Train decides by are there
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]


def switch_off():
    told = place / "told-all"
    while not told.exists() or told.read_text().count("\\n") < 3:
        time.sleep(0.1)
    cluster.remove_node(nodes[1], allow_graceful=False)
    for node, process in map(str.split, told.read_text().splitlines()):
        if node == nodes[1].node_id:
            os.kill(int(process), signal.SIGKILL)
    (place / "lost").touch()


threading.Thread(target=switch_off).start()
fit(loop, (2, 3))
ray.shutdown()
cluster.shutdown()
"""
)
OPTIONS = {
    "RAY_ADDRESS": "local",  # a cluster of its own, whatever else runs on this machine
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def test_actors_lose_one_and_others_meet_anew(tmp_path):
    done = run_python(write(tmp_path, ACTORS), **OPTIONS)
    assert done.returncode == 0, done.stderr
    sums = str([[[4.0, 4.0]], [[5.0, 5.0]]])
    assert told(tmp_path) == {"driver": [sums, "1", sums]}


def test_workers_that_are_started_again_go_on_from_the_last_checkpoint(tmp_path):
    done = run_python(write(tmp_path, WORKER), **OPTIONS)
    assert done.returncode == 0, done.stderr
    for process in range(2):
        assert attempts(tmp_path, process) == [(2, 0), (2, 6)]
        np.testing.assert_allclose(losses(tmp_path, process), alone(), rtol=1e-5)


def test_a_run_goes_on_when_a_machine_is_lost(tmp_path):
    done = run_python(write(tmp_path, NODE), **OPTIONS)
    assert done.returncode == 0, done.stderr
    for process in range(2):
        assert attempts(tmp_path, process) == [(3, 0), (2, 6)]
        np.testing.assert_allclose(losses(tmp_path, process), alone(), rtol=1e-5)
