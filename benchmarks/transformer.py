"""A small transformer and its training step, for whichever module stands in for `api`."""

from __future__ import annotations

import math
from typing import Any

LAYERS, WIDTH, HEADS, LENGTH, VOCABULARY = 12, 64, 4, 32, 256
RATE = 1e-2


def init(np: Any, layers: int = LAYERS, seed: int = 0) -> dict:
    """Parameters as NumPy arrays: 124 leaves for twelve layers."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return rng.normal(0, 1 / math.sqrt(shape[0]), shape).astype(np.float32)

    def layer() -> dict:
        return {
            "norm_1": {"scale": np.ones(WIDTH, np.float32), "shift": np.zeros(WIDTH, np.float32)},
            "qkv": normal(WIDTH, 3 * WIDTH),
            "out": normal(WIDTH, WIDTH),
            "norm_2": {"scale": np.ones(WIDTH, np.float32), "shift": np.zeros(WIDTH, np.float32)},
            "up": {"weights": normal(WIDTH, 4 * WIDTH), "bias": np.zeros(4 * WIDTH, np.float32)},
            "down": {"weights": normal(4 * WIDTH, WIDTH), "bias": np.zeros(WIDTH, np.float32)},
        }

    return {
        "embedding": normal(VOCABULARY, WIDTH),
        "positions": normal(LENGTH, WIDTH),
        "layers": [layer() for _ in range(layers)],
        "norm": {"scale": np.ones(WIDTH, np.float32), "shift": np.zeros(WIDTH, np.float32)},
    }


def normalize(api: Any, x: Any, norm: dict) -> Any:
    jnp = api.numpy
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(x * x, axis=-1, keepdims=True)
    return x * api.lax.rsqrt(variance + 1e-5) * norm["scale"] + norm["shift"]


def attend(api: Any, x: Any, layer: dict) -> Any:
    jnp = api.numpy
    batch = x.shape[0]
    qkv = (x @ layer["qkv"]).reshape(batch, LENGTH, 3, HEADS, WIDTH // HEADS)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(WIDTH // HEADS)
    seen = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = api.nn.softmax(jnp.where(seen, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return mixed.reshape(batch, LENGTH, WIDTH) @ layer["out"]


def feed_forward(api: Any, x: Any, layer: dict) -> Any:
    hidden = api.nn.gelu(x @ layer["up"]["weights"] + layer["up"]["bias"])
    return hidden @ layer["down"]["weights"] + layer["down"]["bias"]


def block(api: Any, x: Any, layer: dict) -> Any:
    """One layer."""
    x = x + attend(api, normalize(api, x, layer["norm_1"]), layer)
    return x + feed_forward(api, normalize(api, x, layer["norm_2"]), layer)


def loss(api: Any, params: dict, tokens: Any, targets: Any) -> Any:
    """Mean cross-entropy of the next token; tokens and targets are [batch, LENGTH].

    The layers are a list, taken one by one, or stacked, and scanned over.
    """
    jnp = api.numpy
    x = params["embedding"][tokens] + params["positions"]
    if isinstance(params["layers"], list):
        for layer in params["layers"]:
            x = block(api, x, layer)
    else:
        x, _ = api.lax.scan(lambda x, layer: (block(api, x, layer), None), x, params["layers"])
    scores = normalize(api, x, params["norm"]) @ params["embedding"].T
    chosen = api.nn.one_hot(targets, VOCABULARY) * api.nn.log_softmax(scores, axis=-1)
    return -jnp.mean(jnp.sum(chosen, axis=-1))


def training_step(api: Any) -> Any:
    """A new function `(params, tokens, targets) -> (params, loss)` for pmap over axis 'batch'."""

    def step(params: dict, tokens: Any, targets: Any) -> tuple[dict, Any]:
        value, grads = api.value_and_grad(lambda p: loss(api, p, tokens, targets))(params)
        value, grads = api.lax.pmean((value, grads), "batch")
        return api.tree.map(lambda p, g: p - RATE * g, params, grads), value

    return step
