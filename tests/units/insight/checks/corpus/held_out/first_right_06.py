# RIGHT: explicit heat equation with halo exchange; time step and residual are global through pmin
# and pmax
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax

P = jax.sharding.PartitionSpec


def halo(u, n):
    right_of_me = [(i, (i - 1) % n) for i in range(n)]
    left_of_me = [(i, (i + 1) % n) for i in range(n)]
    from_left = lax.ppermute(u[-1:], "x", left_of_me)
    from_right = lax.ppermute(u[:1], "x", right_of_me)
    return jnp.concatenate([from_left, u, from_right])


def laplacian(u, n, dx):
    v = halo(u, n)
    return (v[2:] - 2.0 * v[1:-1] + v[:-2]) / dx**2


def make_simulate(mesh, n, dx, inner=10):
    def simulate(u, kappa):
        dt = lax.pmin(0.4 * dx**2 / jnp.max(kappa), "x")

        def advance(u, _):
            du = kappa * laplacian(u, n, dx)
            return u + dt * du, jnp.max(jnp.abs(du))

        u, changes = lax.scan(advance, u, None, length=inner)
        residual = lax.pmax(changes[-1], "x")
        heat = lax.psum(jnp.sum(u) * dx, "x")
        return u, residual, heat, dt

    return jax.jit(
        jax.shard_map(
            simulate, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=(P("x"), P(), P(), P())
        )
    )


def main():
    n = jax.local_device_count()
    cells = 16 * n
    dx = 1.0 / cells
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    step = make_simulate(mesh, n, dx)
    grid = (np.arange(cells) + 0.5) * dx
    u = jnp.asarray(np.exp(-100 * (grid - 0.4) ** 2), jnp.float32)
    kappa = jnp.asarray(0.5 + grid, jnp.float32)
    for it in range(50):
        u, residual, heat, dt = step(u, kappa)
        if it % 10 == 0:
            print(it, "res", float(residual), "heat", float(heat), "dt", float(dt))
        if residual < 1e-3:
            break


if __name__ == "__main__":
    main()
