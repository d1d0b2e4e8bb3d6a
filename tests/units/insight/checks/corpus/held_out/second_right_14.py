# RIGHT (near c1 and e2): both players' gradients go through the same psum/size helper (inside the
# optimiser), and the losses use log_sigmoid of the score.
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random


def distributed_sgd(axis_name, lr, beta):
    def init(params):
        return jax.tree_util.tree_map(jnp.zeros_like, params)

    def apply(grads, trace, params):
        size = lax.psum(jnp.ones(()), axis_name)
        grads = jax.tree_util.tree_map(lambda g: lax.psum(g, axis_name) / size, grads)
        trace = jax.tree_util.tree_map(lambda t, g: beta * t + g, trace, grads)
        params = jax.tree_util.tree_map(lambda p, t: p - lr * t, params, trace)
        return params, trace

    return init, apply


opt_init, opt_apply = distributed_sgd("gpus", lr=0.02, beta=0.5)


def layer_stack(key, sizes):
    out = []
    for n, m in zip(sizes[:-1], sizes[1:]):
        key, sub = random.split(key)
        out.append((random.normal(sub, (n, m)) * (2.0 / n) ** 0.5, jnp.zeros(m)))
    return out


def run_stack(stack, x):
    *body, (w, b) = stack
    for wi, bi in body:
        x = nn.relu(x @ wi + bi)
    return x @ w + b


def judge_loss(judge, real, fake):
    good = nn.log_sigmoid(run_stack(judge, real))
    bad = nn.log_sigmoid(-run_stack(judge, fake))
    return -(good.mean() + bad.mean())


def forge_loss(forger, judge, z):
    return -nn.log_sigmoid(run_stack(judge, run_stack(forger, z))).mean()


def duel(players, traces, real, key):
    k1, k2 = random.split(key)
    z1, z2 = random.normal(k1, (real.shape[0], 3)), random.normal(k2, (real.shape[0], 3))

    fake = run_stack(players["forger"], z1)
    jl, jg = jax.value_and_grad(judge_loss)(players["judge"], real, fake)
    judge, jt = opt_apply(jg, traces["judge"], players["judge"])

    fl, fg = jax.value_and_grad(forge_loss)(players["forger"], judge, z2)
    forger, ft = opt_apply(fg, traces["forger"], players["forger"])
    return {"judge": judge, "forger": forger}, {"judge": jt, "forger": ft}, jnp.stack([jl, fl])


def main():
    k_j, k_f, k_data, k_loop = random.split(random.PRNGKey(101), 4)
    players = {"judge": layer_stack(k_j, (2, 16, 1)), "forger": layer_stack(k_f, (3, 16, 2))}
    traces = opt_init(players)
    players, traces = jax.tree_util.tree_map(
        lambda a: jnp.broadcast_to(a[None], (8, *a.shape)), (players, traces)
    )
    real = random.uniform(k_data, (8, 12, 2), minval=-1.0)
    pduel = jax.pmap(duel, axis_name="gpus")
    for _ in range(4):
        k_loop, k = random.split(k_loop)
        players, traces, losses = pduel(players, traces, real, random.split(k, 8))
        print(losses.mean(axis=0))


if __name__ == "__main__":
    main()
