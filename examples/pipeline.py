"""A pipeline: every device has some of the layers, and parts of a batch go from one to the next.

The stages of a deep network lie along an axis of the mesh. A batch is cut into parts; while one
stage works on a part, the stage before it works on the next. With s stages and m parts, all is
done after m + s - 1 turns, in which each stage waits for s - 1.

    python examples/pipeline.py
"""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")  # of a CPU

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import P, jit, lax, shard_map, value_and_grad

STAGES, LAYERS, WIDTH, PARTS, ROWS = 4, 8, 16, 6, 8


def layers(weights, x):
    """``x`` after all layers of ``weights``."""
    return lax.scan(lambda x, w: (x + jnp.tanh(x @ w), None), x, weights)[0]


def pipeline(weights, parts):
    """Every stage: its layers, and the parts of a batch [m, rows, width] to what comes out of it.

    The first stage takes a new part at each turn, the others what the stage before has sent.
    """
    stage, stages = lax.axis_index("stage"), lax.axis_size("stage")
    onwards = [(i, i + 1) for i in range(stages - 1)]
    turns = jnp.arange(len(parts) + stages - 1)

    def turn(sent, t):
        fresh = parts[jnp.minimum(t, len(parts) - 1)]
        done = layers(weights, jnp.where(stage == 0, fresh, sent))
        return lax.ppermute(done, "stage", onwards), done

    start = lax.pcast(jnp.zeros_like(parts[0]), "stage", to="varying")
    _, done = lax.scan(turn, start, turns)
    # the last stage has finished part i in turn i + stages - 1; the others add nothing
    finished = jnp.where(stage == stages - 1, done[stages - 1 :], 0)
    return lax.psum(finished, "stage")


def over(mesh):
    """The pipeline as a function of whole arrays: layers are cut over stages, parts over data."""
    return shard_map(
        pipeline,
        mesh=mesh,
        in_specs=(P("stage"), P(None, "data")),
        out_specs=P(None, "data"),
    )


def on_one_device(weights, parts):
    """The same, for which parts are no more than rows."""
    return layers(weights, parts)


def loss_of(forward):
    """The distance to the rows turned round, which is what should come out."""
    return lambda weights, parts: jnp.mean((forward(weights, parts) - jnp.flip(parts, -1)) ** 2)


def operands(seed=0):
    """The weights of all layers, and the parts of a batch."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, WIDTH**-0.5, (LAYERS, WIDTH, WIDTH))
    return np.float32(weights), np.float32(rng.normal(size=(PARTS, ROWS, WIDTH)))


def main():
    mesh = phalanx.make_mesh((2, STAGES), ("data", "stage"))
    found = []
    for name, forward in (("one device", on_one_device), ("pipeline", over(mesh))):
        value, slope = jit(value_and_grad(loss_of(forward)))(*operands())
        found.append(slope)
        print(f"{name:10} loss {float(value):.6f}")
    print(f"gradients differ by {np.abs(found[0] - found[1]).max():.1e}")


if __name__ == "__main__":
    main()
