"""A training program that may be ended, and started again, at any time.

The other files of this folder start it, by Slurm, Kubernetes, a JobSet, MPI, torchrun, Ray Train.
It goes on from the newest checkpoint. Where it is to end (SIGTERM), it saves one more, and ends
with status 75, which the shell calls a temporary failure.
"""

import sys

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.experimental import checkpoint
from phalanx.experimental.multihost_utils import reached_preemption_sync_point

LANES, TRY_AGAIN = 64, 75


def loss(w, x, y):
    """The squared error of one example."""
    return (x @ w - y) ** 2


def step(w, x, y):
    """A step of gradient descent, as one example sees it; ``pmean`` is over all of the batch."""
    value, slope = lax.pmean(phalanx.value_and_grad(loss)(w, x, y), "batch")
    return w - 0.05 * slope, value


def train(directory, steps, must_end=reached_preemption_sync_point):
    """Train, or go on; returns the status to end with. ``must_end`` says after which step to save
    and end: after SIGTERM, to which only the main thread of a process can listen."""
    source = np.random.default_rng(0)
    x = source.normal(size=(LANES, 4)).astype(np.float32)
    y = x @ np.float32([1, -2, 3, 0])
    mine = phalanx.process_rows(LANES)  # other ones where there are more or fewer processes
    update = phalanx.pmap(step, "batch", in_axes=(None, 0, 0), out_axes=None)
    state, value = {"w": jnp.zeros(4), "step": 0}, np.nan
    with checkpoint.Manager(directory, keep=2) as manager:
        if manager.latest() is not None:
            state = manager.restore(state)
        while state["step"] < steps:
            w, value = update(state["w"], x[mine], y[mine])
            state = {"w": w, "step": state["step"] + 1}
            ends = must_end(state["step"])
            if ends or state["step"] % 100 == 0 or state["step"] == steps:
                manager.save(state["step"], state)
            if ends:
                return TRY_AGAIN
    if phalanx.process_index() == 0:
        print(f"loss {float(value):.6f} after {state['step']} steps", flush=True)
    return 0


if __name__ == "__main__":
    phalanx.distributed.initialize()
    sys.exit(train(sys.argv[1], steps=1000))
