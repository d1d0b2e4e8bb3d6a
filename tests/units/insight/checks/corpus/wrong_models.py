"""Mistakes in models, samplers and agents, which were written without a look at what is found."""

from typing import Any, NamedTuple

import phalanx
import phalanx.numpy as jnp
from phalanx import ShapeDtypeStruct, grad, jit, lax, nn, pmap, random, tree, value_and_grad, vmap
from tests.units.insight.checks.corpus import faulty

KEY = random.key(0)


def of(*shape, dtype="float32"):
    return ShapeDtypeStruct(shape, dtype)


@faulty("P106")
def dropout_and_latents_of_an_autoencoder():
    def elbo(p, x, rng):
        kept = jnp.where(random.bernoulli(rng, 0.8, x.shape), x, 0)
        hidden = nn.relu(kept @ p["encoder"])
        mean, log_var = jnp.split(hidden, 2, axis=-1)
        z = mean + jnp.exp(0.5 * log_var) * random.normal(rng, mean.shape)
        divergence = 0.5 * jnp.sum(jnp.exp(log_var) + mean**2 - 1 - log_var, -1)
        return jnp.mean(jnp.sum((z @ p["decoder"] - x) ** 2, -1) + divergence)

    return jit(value_and_grad(elbo)), (
        {"encoder": of(64, 16), "decoder": of(8, 64)},
        of(9, 64),
        KEY,
    )


@faulty("P106")
def times_and_noise_of_a_diffusion():
    def loss(w, x, key):
        t = random.randint(key, (x.shape[0],), 0, 100)
        noise = random.normal(key, x.shape)
        kept = jnp.cos(t / 100 * jnp.pi / 2)[:, None]
        noisy = kept * x + jnp.sqrt(1 - kept**2) * noise
        return jnp.mean((jnp.tanh(noisy @ w) - noise) ** 2)

    return jit(grad(loss)), (of(2, 2), of(128, 2), KEY)


@faulty("P106")
def proposals_and_their_acceptance():
    def step(x, key):
        proposed = x + random.normal(key, x.shape)
        ratio = 0.5 * (jnp.sum(x**2) - jnp.sum(proposed**2))
        return jnp.where(jnp.log(random.uniform(key)) < ratio, proposed, x), x

    return jit(lambda x, key: lax.scan(step, x, random.split(key, 500))), (of(3), KEY)


@faulty("P106")
def actions_and_their_effects_in_an_environment():
    def act(carry, _):
        state, key = carry
        key, sub = random.split(key)
        action = 0.5 * state + random.normal(sub, state.shape)
        state = state + 0.1 * action + 0.01 * random.normal(sub, state.shape)
        return (state, key), -jnp.sum(state**2)

    return jit(lambda s, key: lax.scan(act, (s, key), None, length=64)), (of(8, 4), KEY)


@faulty("P107")
def chains_that_are_one():
    def chain(x, key):
        def step(x, key):
            first, second = random.split(key)
            proposed = x + random.normal(first, x.shape)
            ratio = 0.5 * (jnp.sum(x**2) - jnp.sum(proposed**2))
            return jnp.where(jnp.log(random.uniform(second)) < ratio, proposed, x), x

        return lax.scan(step, x, random.split(key, 100))[1]

    return pmap(chain, "chain", in_axes=(0, None)), (of(8, 4), KEY)


@faulty("P105")
def auxiliary_losses_of_an_agent():
    def update(p, batch):
        def loss(p):
            log_probs = nn.log_softmax(batch["seen"] @ p["policy"])
            entropy = -jnp.mean(jnp.sum(jnp.exp(log_probs) * log_probs, -1))
            error = jnp.mean((batch["seen"] @ p["value"] - batch["gain"]) ** 2)
            return error - 0.01 * entropy, {"entropy": entropy, "error": error}

        grads, told = grad(loss, has_aux=True)(p)
        grads = lax.pmean(grads, "actors")
        return tree.map(lambda p, g: p - 1e-3 * g, p, grads), told

    p = {"policy": of(4, 2), "value": of(4)}
    batch = {"seen": of(8, 32, 4), "gain": of(8, 32)}
    return pmap(update, "actors", in_axes=(None, 0), out_axes=(None, 0)), (p, batch)


class Seen(NamedTuple):
    mean: Any
    var: Any
    count: Any


@faulty("P108")
def observations_that_each_actor_normalizes_by_its_own():
    def combined(seen, x):
        n = seen.count + len(x)
        apart = x.mean(0) - seen.mean
        square = seen.var * seen.count + x.var(0) * len(x)
        square += apart**2 * seen.count * len(x) / n
        return Seen(seen.mean + apart * len(x) / n, square / n, n)

    def update(w, seen, x):
        seen = combined(seen, x)
        normal = (x - seen.mean) / jnp.sqrt(seen.var + 1e-8)
        grads = grad(lambda w: jnp.mean((normal @ w) ** 2))(w)
        return w - 0.1 * lax.pmean(grads, "actors"), seen

    seen = Seen(of(8, 4), of(8, 4), of(8))
    return pmap(update, "actors", in_axes=(None, 0, 0), out_axes=(None, 0)), (
        of(4, 2), seen, of(8, 16, 4),
    )  # fmt: skip


@faulty("P101")
def an_iteration_that_each_part_ends_for_itself():
    def solve(u):
        def step(state):
            u, _ = state
            above = lax.ppermute(u[-1], "part", [(i, i + 1) for i in range(7)])
            new = u.at[1:-1].set(0.5 * (u[:-2] + u[2:])).at[0].set(above)
            return new, jnp.max(jnp.abs(new - u))

        return lax.while_loop(lambda state: state[1] > 1e-4, step, (u, jnp.inf))[0]

    return pmap(solve, "part"), (of(8, 32),)


@faulty("P115")
def experiences_that_overwrite_each_other():
    def insert(memory, new, key):
        places = random.randint(key, (len(new),), 0, len(memory))
        return memory.at[places].set(new)

    return jit(insert), (of(1000, 4), of(64, 4), KEY)


@faulty("P116")
def a_robust_loss_with_a_root():
    def loss(w, x):
        r = jnp.abs(x @ w)
        return jnp.mean(jnp.where(r <= 1, 0.5 * r**2, jnp.sqrt(r - 1) + 0.5))

    return jit(grad(loss)), (of(3), of(10, 3))


@faulty("P117")
def a_penalty_of_gradients():
    def critic(p, x):
        return jnp.sum(jnp.tanh(x @ p["up"]) @ p["down"])

    def penalty(p, real, made, mixed):
        slopes = vmap(grad(critic, 1), (None, 0))(p, mixed * real + (1 - mixed) * made)
        return jnp.mean((jnp.sqrt(jnp.sum(slopes**2, -1)) - 1) ** 2)

    p = {"up": of(8, 16), "down": of(16, 1)}
    return jit(grad(penalty)), (p, of(5, 8), of(5, 8), of(5, 1))


@faulty("P118")
def an_ensemble_of_nine():
    return phalanx.pmap(lambda w, x: jnp.tanh(x @ w)), (of(9, 4, 4), of(9, 10, 4))
