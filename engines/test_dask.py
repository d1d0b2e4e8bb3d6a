"""The workers of Dask compute together."""

from engines.programs import run_python, told, write

PROGRAM = """
import socket
import numpy as np
from dask.distributed import Client, LocalCluster


def task(address, index, count):
    import phalanx
    from phalanx import lax

    phalanx.distributed.initialize(address, count, index)
    add = phalanx.pmap(lambda x: x + lax.psum(x, "i"), "i")
    found = add(np.ones((1, 2), np.float32) * (index + 1)).tolist()
    phalanx.distributed.shutdown()
    return found


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        workers = list(client.scheduler_info()["workers"])
        tasks = [
            client.submit(task, address, i, 2, workers=[worker], pure=False)
            for i, worker in enumerate(workers)
        ]
        tell("client", client.gather(tasks))
"""


def test_two_workers(tmp_path):
    done = run_python(write(tmp_path, PROGRAM))
    assert done.returncode == 0, done.stderr
    assert told(tmp_path) == {"client": [str([[[4.0, 4.0]], [[5.0, 5.0]]])]}
