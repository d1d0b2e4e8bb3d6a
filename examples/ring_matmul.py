"""A matrix product that gathers its left side around a ring, while it multiplies.

Every device has a block of the rows of x and a block of the columns of w, and wants x @ w in its
columns. Gathering x first makes every device wait, and hold all of x. In the ring, each device
multiplies the rows that it has while it passes them on to its neighbour.

    python examples/ring_matmul.py
"""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")  # of a CPU

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import P, jit, lax, shard_map

ROWS, INNER, COLUMNS = 64, 32, 48


def gathered(x, w):
    """x [m/n, k] and w [k, c/n] to x @ w [m, c/n], after all of x has come."""
    return lax.all_gather(x, "ring", tiled=True) @ w


def passed_on(x, w):
    """The same; the rows of each device come by, one block after the other."""
    count, me = lax.axis_size("ring"), lax.axis_index("ring")
    neighbours = [(i, (i + 1) % count) for i in range(count)]
    out = []
    for _ in range(count):
        out.append(x @ w)
        x = lax.ppermute(x, "ring", neighbours)
    # what came after i steps started i places before this device
    blocks = jnp.stack(out)[(me - jnp.arange(count)) % count]
    return blocks.reshape(-1, w.shape[1])


def over(mesh, function):
    """A product of blocks as one of whole arrays."""
    specs = {"in_specs": (P("ring"), P(None, "ring")), "out_specs": P(None, "ring")}
    return jit(shard_map(function, mesh=mesh, **specs))


def operands(seed=0):
    """Two matrices."""
    rng = np.random.default_rng(seed)
    shapes = (ROWS, INNER), (INNER, COLUMNS)
    return [np.float32(rng.normal(size=shape)) for shape in shapes]


def main():
    mesh = phalanx.make_mesh((phalanx.device_count(),), ("ring",))
    x, w = operands()
    for name, function in (("gathered", gathered), ("passed on", passed_on)):
        error = np.abs(over(mesh, function)(x, w) - x @ w).max()
        print(f"{name:10} differs from x @ w by {error:.1e}")


if __name__ == "__main__":
    main()
