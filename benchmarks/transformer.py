"""A small transformer and its training step, for whichever module stands in for `api`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

LAYERS, WIDTH, HEADS, LENGTH, VOCABULARY = 12, 64, 4, 32, 256
RATE = 1e-2


def init(
    np: Any, layers: int = LAYERS, width: int = WIDTH, length: int = LENGTH, seed: int = 0
) -> dict:
    """Parameters as NumPy arrays: 124 leaves for twelve layers."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return rng.normal(0, 1 / math.sqrt(shape[0]), shape).astype(np.float32)

    def norm() -> dict:
        return {"scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32)}

    def layer() -> dict:
        return {
            "norm_1": norm(),
            "qkv": normal(width, 3 * width),
            "out": normal(width, width),
            "norm_2": norm(),
            "up": {"weights": normal(width, 4 * width), "bias": np.zeros(4 * width, np.float32)},
            "down": {"weights": normal(4 * width, width), "bias": np.zeros(width, np.float32)},
        }

    return {
        "embedding": normal(VOCABULARY, width),
        "positions": normal(length, width),
        "layers": [layer() for _ in range(layers)],
        "norm": norm(),
    }


def normalize(api: Any, x: Any, norm: dict) -> Any:
    jnp = api.numpy
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(x * x, axis=-1, keepdims=True)
    return x * api.lax.rsqrt(variance + 1e-5) * norm["scale"] + norm["shift"]


def attend(api: Any, x: Any, layer: dict, lying: dict) -> Any:
    """What the heads whose weights are in the layer add."""
    jnp = api.numpy
    batch, length, width = x.shape
    qkv = (x @ layer["qkv"]).reshape(batch, length, -1, 3, width // HEADS)
    q, k, v = qkv[..., 0, :], qkv[..., 1, :], qkv[..., 2, :]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(width // HEADS)
    seen = jnp.tril(jnp.ones((length, length), bool))
    weights = api.nn.softmax(jnp.where(seen, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return jnp.matmul(mixed.reshape(batch, length, -1), layer["out"], **lying)


def feed_forward(api: Any, x: Any, layer: dict, lying: dict) -> Any:
    """What the hidden units whose weights are in the layer add."""
    hidden = api.nn.gelu(x @ layer["up"]["weights"] + layer["up"]["bias"])
    return api.numpy.matmul(hidden, layer["down"]["weights"], **lying)


def block(api: Any, x: Any, layer: dict, total: Callable, lying: dict) -> Any:
    """One layer; ``total`` adds up what the parts of it add, or sums are ``lying`` as told."""
    x = x + total(attend(api, normalize(api, x, layer["norm_1"]), layer, lying))
    added = total(feed_forward(api, normalize(api, x, layer["norm_2"]), layer, lying))
    return x + added + layer["down"]["bias"]


def loss(
    api: Any, params: dict, tokens: Any, targets: Any,
    total: Callable = lambda part: part, lying: Any = None,
) -> Any:  # fmt: skip
    """Mean cross-entropy of the next token; tokens and targets are [batch, length].

    The layers are a list, taken one by one, or stacked, and scanned over. Over axes of type
    Explicit, ``lying`` is how what is added up over devices lies.
    """
    jnp, told = api.numpy, {} if lying is None else {"out_sharding": lying}
    table = params["embedding"]
    rows = table[tokens] if lying is None else table.at[tokens].get(**told)
    x = rows + params["positions"]
    if isinstance(params["layers"], list):
        for layer in params["layers"]:
            x = block(api, x, layer, total, told)
    else:
        x, _ = api.lax.scan(
            lambda x, layer: (block(api, x, layer, total, told), None), x, params["layers"]
        )
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


# ---- on a mesh ----------------------------------------------------------------------------------


def specs(api: Any, layers: int = LAYERS) -> dict:
    """Which dimensions the axis 'model' cuts: those of heads and of hidden units."""
    cut, whole = api.P, api.P()
    norm = {"scale": whole, "shift": whole}
    layer = {
        "norm_1": norm,
        "qkv": cut(None, "model"),
        "out": cut("model"),
        "norm_2": norm,
        "up": {"weights": cut(None, "model"), "bias": cut("model")},
        "down": {"weights": cut("model"), "bias": whole},
    }
    return {"embedding": whole, "positions": whole, "layers": [layer] * layers, "norm": norm}


def loss_in_blocks(api: Any, mesh: Any) -> Callable:
    """The loss as a function of whole arrays, of which devices of `mesh` have blocks."""

    def of_a_block(params: dict, tokens: Any, targets: Any) -> Any:
        value = loss(api, params, tokens, targets, lambda part: api.lax.psum(part, "model"))
        return api.lax.pmean(value, "data")

    in_specs = specs(api), api.P("data"), api.P("data")
    return api.shard_map(of_a_block, mesh=mesh, in_specs=in_specs, out_specs=api.P())


def mesh_step(api: Any, loss: Callable) -> Any:
    """A new function `(params, tokens, targets) -> (params, loss)` of arrays on a mesh."""

    def step(params: dict, tokens: Any, targets: Any) -> tuple[dict, Any]:
        value, grads = api.value_and_grad(loss)(params, tokens, targets)
        return api.tree.map(lambda p, g: p - RATE * g, params, grads), value

    return api.jit(step)


def adam_step(api: Any, loss: Callable) -> Any:
    """A new function `(params, moments, tokens, targets) -> (params, moments, loss)`."""
    jnp, tree = api.numpy, api.tree

    def step(params: dict, moments: tuple, tokens: Any, targets: Any) -> tuple:
        value, grads = api.value_and_grad(loss)(params, tokens, targets)
        first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
        second = tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], grads)
        stepped = tree.map(
            lambda p, m, v: p - RATE * m / (jnp.sqrt(v) + 1e-8), params, first, second
        )
        return stepped, (first, second), value

    return api.jit(step)
