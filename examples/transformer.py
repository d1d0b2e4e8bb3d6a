"""A transformer, trained in five ways to the same losses.

On one device; by lanes over data alone, with `pmap`; over data and model on a mesh of 2 x 4
devices, with `pmap`, with `shard_map`, and by `jit` over arrays that lie on the mesh. The model is
written once.

    python examples/transformer.py
    python examples/transformer.py --layers 12
"""

import argparse
import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")  # of a CPU

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P, jit, lax, nn, pmap, shard_map, tree, value_and_grad

WIDTH, HEADS, HIDDEN, LENGTH, VOCABULARY = 32, 4, 64, 16, 64
BATCH, RATE = 16, 0.1


# ---- the model ----------------------------------------------------------------------------------


def init(layers=2, seed=0):
    """Parameters as NumPy arrays."""
    rng = np.random.default_rng(seed)

    def normal(*shape, fan_in):
        return np.float32(rng.normal(0, fan_in**-0.5, shape))

    def layer():
        return {
            "norm_1": np.ones(WIDTH, np.float32),
            "qkv": normal(WIDTH, 3, HEADS, WIDTH // HEADS, fan_in=WIDTH),
            "out": normal(HEADS, WIDTH // HEADS, WIDTH, fan_in=WIDTH),
            "norm_2": np.ones(WIDTH, np.float32),
            "up": normal(WIDTH, HIDDEN, fan_in=WIDTH),
            "down": normal(HIDDEN, WIDTH, fan_in=HIDDEN),
        }

    return {
        "embedding": normal(VOCABULARY, WIDTH, fan_in=WIDTH),
        "positions": normal(LENGTH, WIDTH, fan_in=WIDTH),
        "layers": [layer() for _ in range(layers)],
        "norm": np.ones(WIDTH, np.float32),
    }


def normalize(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale


def attend(layer, x):
    """[..., L, D] to the same; of the heads that are in ``layer``."""
    q, k, v = jnp.einsum("...ld,dchk->c...hlk", x, layer["qkv"])
    scores = jnp.einsum("...hqk,...hlk->...hql", q, k) * q.shape[-1] ** -0.5
    seen = np.tri(scores.shape[-1], dtype=bool)
    weights = nn.softmax(jnp.where(seen, scores, -1e9))
    return jnp.einsum("...hql,...hlk,hkd->...qd", weights, v, layer["out"])


def feed_forward(layer, x):
    """[..., L, D] to the same; of the hidden units that are in ``layer``."""
    return nn.gelu(x @ layer["up"]) @ layer["down"]


def loss(params, tokens, targets, total=lambda part: part):
    """Mean cross-entropy of the next token; tokens and targets are [..., L].

    ``total`` adds up what the holders of some heads and hidden units each have of a layer.
    """
    x = jnp.asarray(params["embedding"])[tokens] + params["positions"]
    for layer in params["layers"]:
        x = x + total(attend(layer, normalize(x, layer["norm_1"])))
        x = x + total(feed_forward(layer, normalize(x, layer["norm_2"])))
    scores = normalize(x, params["norm"]) @ params["embedding"].T
    chosen = nn.log_softmax(scores) * nn.one_hot(targets, VOCABULARY)
    return -jnp.mean(jnp.sum(chosen, axis=-1))


def specs(params):
    """Which dimensions the model axis cuts: those of heads and of hidden units."""
    layer = {
        "norm_1": P(),
        "qkv": P(None, None, "model"),
        "out": P("model"),
        "norm_2": P(),
        "up": P(None, "model"),
        "down": P("model"),
    }
    layers = [layer] * len(params["layers"])
    return {"embedding": P(), "positions": P(), "layers": layers, "norm": P()}


# ---- five ways ----------------------------------------------------------------------------------


def step_of(loss):
    """One step down the gradient of ``loss``, and its value before."""

    def step(params, tokens, targets):
        value, grads = value_and_grad(loss)(params, tokens, targets)
        return tree.map(lambda p, g: p - RATE * g, params, grads), value

    return jit(step)


def on_one_device(params):
    return step_of(loss), params, lambda x: x


def by_pmap(params):
    """A part of the batch for each lane; `pmean` makes one gradient of theirs."""

    def step(params, tokens, targets):
        found = value_and_grad(loss)(params, tokens, targets)
        value, grads = lax.pmean(found, "data")
        return tree.map(lambda p, g: p - RATE * g, params, grads), value

    lanes = pmap(step, axis_name="data", in_axes=(None, 0, 0), out_axes=None)
    return lanes, params, lambda x: x.reshape(8, -1, LENGTH)


def of_one_part(params, tokens, targets):
    """The loss as each device of a mesh computes it: some heads, a part of the batch."""
    value = loss(params, tokens, targets, total=lambda part: lax.psum(part, "model"))
    return lax.pmean(value, "data")


def by_pmap_over_a_mesh(params, mesh):
    """`pmap` takes the dimension away that it maps: every part gets one of its own."""

    def parted(x, spec):
        cut = [dim for dim, axis in enumerate(spec) if axis]
        for dim in cut:
            x = x.reshape(*x.shape[:dim], mesh.shape[spec[dim]], -1, *x.shape[dim + 1 :])
        return x

    over = specs(params)
    mapped = pmap(
        of_one_part,
        axis_name=("data", "model"),
        in_axes=(over, P("data"), P("data")),
        out_axes=None,
        mesh=mesh,
    )
    return step_of(mapped), tree.map(parted, params, over), lambda x: parted(x, P("data"))


def by_shard_map(params, mesh):
    """Every device has its block of the arrays, which keep their shapes."""
    in_specs = specs(params), P("data"), P("data")
    blocks = shard_map(of_one_part, mesh=mesh, in_specs=in_specs, out_specs=P())
    return step_of(blocks), params, lambda x: x


def by_the_compiler(params, mesh):
    """The step of one device, on arrays that lie on a mesh."""
    over = tree.map(lambda spec: NamedSharding(mesh, spec), specs(params))
    rows = NamedSharding(mesh, P("data"))
    return step_of(loss), phalanx.device_put(params, over), lambda x: phalanx.device_put(x, rows)


def ways(params):
    """By name: a step, the parameters and a function of a batch, as the step takes them."""
    mesh = phalanx.make_mesh((2, 4), ("data", "model"))
    return {
        "one device": on_one_device(params),
        "pmap": by_pmap(params),
        "pmap over a mesh": by_pmap_over_a_mesh(params, mesh),
        "shard_map": by_shard_map(params, mesh),
        "jit over a mesh": by_the_compiler(params, mesh),
    }


# ---- training -----------------------------------------------------------------------------------


def batches(count, seed=1):
    """Texts that count upwards from somewhere in steps of one size."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        start, stride = rng.integers(0, VOCABULARY, (2, BATCH, 1))
        text = (start + stride * np.arange(LENGTH + 1)) % VOCABULARY
        yield np.int32(text[:, :-1]), np.int32(text[:, 1:])


def train(step, params, placed, steps=5):
    """The loss before each step, and the parameters after the last."""
    losses = []
    for tokens, targets in batches(steps):
        params, value = step(params, placed(tokens), placed(targets))
        losses.append(float(value))
    return losses, params


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    given = parser.parse_args()
    for name, way in ways(init(given.layers)).items():
        losses, _ = train(*way, given.steps)
        print(f"{name:17}", *(f"{value:.5f}" for value in losses))


if __name__ == "__main__":
    main()
