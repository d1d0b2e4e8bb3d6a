"""Ray Train starts two to four workers, and starts them again with those that are left.

python ray_train.py /runs/a [--gpu]
"""

import argparse

import ray
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

from phalanx.experimental.ray import PhalanxConfig


def worker(config):
    """What each worker runs; the processes have met before."""
    from train import train

    # in a thread of a process that Ray ends as it sees fit
    train(config["directory"], steps=1000, must_end=lambda step: False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", help="for checkpoints: one that all machines share")
    parser.add_argument("--gpu", action="store_true", help="a GPU for each worker")
    options = parser.parse_args()
    ray.init(runtime_env={"working_dir": "."})  # which has train.py
    DataParallelTrainer(
        worker,
        train_loop_config={"directory": options.directory},
        backend_config=PhalanxConfig(),
        scaling_config=ScalingConfig(num_workers=(2, 4), use_gpu=options.gpu),
        run_config=RunConfig(failure_config=FailureConfig(max_failures=10)),
    ).fit()
