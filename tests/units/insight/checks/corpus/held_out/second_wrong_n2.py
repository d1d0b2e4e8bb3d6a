# FAULTY (n): arccos of the inner product of unit vectors; where prediction and target agree the
# argument is 1 (or just above) and the derivative is infinite or NaN.
from dataclasses import dataclass

import phalanx as jax
import phalanx.numpy as jnp


@dataclass(frozen=True)
class Config:
    frames: int = 10
    lr: float = 0.05
    smooth: float = 0.1


def unit(q):
    return q * jax.lax.rsqrt(jnp.sum(q * q, axis=-1, keepdims=True) + 1e-12)


def multiply(a, b):
    w1, x1, y1, z1 = jnp.moveaxis(a, -1, 0)
    w2, x2, y2, z2 = jnp.moveaxis(b, -1, 0)
    return jnp.stack(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ],
        axis=-1,
    )


def rotation_angle(a, b):
    c = jnp.abs(jnp.einsum("...i,...i->...", a, b))
    return 2.0 * jnp.arccos(c)


def objective(track, measured, cfg):
    track = unit(track)
    data = jnp.mean(rotation_angle(track, measured) ** 2)
    motion = jnp.mean(rotation_angle(track[1:], track[:-1]) ** 2)
    return data + cfg.smooth * motion


def solve(measured, cfg, n_iter):
    update = jax.jit(jax.value_and_grad(lambda t: objective(t, measured, cfg)))
    track = measured
    history = []
    for _ in range(n_iter):
        value, g = update(track)
        track = unit(track - cfg.lr * g)
        history.append(float(value))
    return track, history


def main():
    cfg = Config()
    key_axis, key_noise = jax.random.split(jax.random.PRNGKey(2))
    half = jnp.linspace(0.0, 0.6, cfg.frames)
    axis = unit(jax.random.normal(key_axis, (3,)))
    path = jnp.concatenate([jnp.cos(half)[:, None], jnp.sin(half)[:, None] * axis], axis=1)
    jitter = jnp.array([1.0, 0.0, 0.0, 0.0]) + 0.05 * jax.random.normal(key_noise, (cfg.frames, 4))
    _, history = solve(multiply(unit(jitter), path), cfg, 4)
    print(history)


if __name__ == "__main__":
    main()
