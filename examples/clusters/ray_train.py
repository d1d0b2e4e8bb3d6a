"""Ray Train starts two to four workers, and starts them again with those that are left.

python ray_train.py
"""

import ray
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

from phalanx.experimental.ray import PhalanxConfig


def worker(config):
    """What each worker runs; the processes have met before."""
    from train import train

    train(config["directory"], steps=1000)


if __name__ == "__main__":
    ray.init(runtime_env={"working_dir": "."})  # which has train.py
    DataParallelTrainer(
        worker,
        train_loop_config={"directory": "/runs/a"},
        backend_config=PhalanxConfig(),
        scaling_config=ScalingConfig(num_workers=(2, 4), use_gpu=True),
        run_config=RunConfig(failure_config=FailureConfig(max_failures=10)),
    ).fit()
