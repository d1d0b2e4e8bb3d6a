# RIGHT (near e): a mixture of softmaxes is averaged in probability space, so no single log_softmax
# exists for it; the logarithm is guarded by an epsilon.
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import nn, random

TOKENS, EXPERTS, HID = 12, 3, 10
EPS = 1e-8


def setup(key):
    k = random.split(key, 4)
    return {
        "embed": random.normal(k[0], (TOKENS, HID)) * 0.5,
        "latent": random.normal(k[1], (HID, EXPERTS * HID)) * HID**-0.5,
        "gate": random.normal(k[2], (HID, EXPERTS)) * HID**-0.5,
        "decode": random.normal(k[3], (HID, TOKENS)) * HID**-0.5,
    }


def next_token_distribution(w, prev):
    h = w["embed"][prev]
    gate = nn.softmax(h @ w["gate"], axis=-1)
    latent = jnp.tanh(h @ w["latent"]).reshape(h.shape[0], EXPERTS, HID)
    per_expert = nn.softmax(jnp.einsum("nkh,hv->nkv", latent, w["decode"]), axis=-1)
    return jnp.einsum("nk,nkv->nv", gate, per_expert)


def nll(w, prev, nxt):
    p = next_token_distribution(w, prev)
    chosen = p[jnp.arange(nxt.shape[0]), nxt]
    return -jnp.log(chosen + EPS).mean()


def adam(w, g, state, t, lr=2e-2):
    m, v = state
    m = jax.tree_util.tree_map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = jax.tree_util.tree_map(lambda a, b: 0.99 * a + 0.01 * b * b, v, g)
    c1, c2 = 1 - 0.9**t, 1 - 0.99**t

    def move(p, a, b):
        return p - lr * (a / c1) / (jnp.sqrt(b / c2) + 1e-8)

    return jax.tree_util.tree_map(move, w, m, v), (m, v)


@jax.jit
def step(w, state, t, prev, nxt):
    loss, g = jax.value_and_grad(nll)(w, prev, nxt)
    w, state = adam(w, g, state, t)
    return w, state, loss


def main():
    k_w, k_seq = random.split(random.PRNGKey(15))
    w = setup(k_w)
    zeros = jax.tree_util.tree_map(jnp.zeros_like, w)
    state = (zeros, zeros)
    prev = random.randint(k_seq, (80,), 0, TOKENS)
    nxt = (prev * 5 + 1) % TOKENS
    for t in range(1, 6):
        w, state, loss = step(w, state, jnp.float32(t), prev, nxt)
        print(t, float(loss))


if __name__ == "__main__":
    main()
