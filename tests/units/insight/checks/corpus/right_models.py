"""Correct models, samplers and agents, which were written without a look at what is found."""

import numpy as np

import phalanx.numpy as jnp
from phalanx import custom_vjp, grad, jit, lax, nn, pmap, random, tree, value_and_grad, vjp, vmap
from tests.units.insight.checks.corpus import correct
from tests.units.insight.checks.corpus.wrong_models import KEY, of


@correct
def chains_that_exchange_by_numbers_that_they_share():
    def energy(x):
        return jnp.sum(x**4 - x**2)

    def temper(x, beta, key):
        i = lax.axis_index("chain")

        def step(x, key):
            moving, taking, shared = random.split(key, 3)
            proposed = x + random.normal(random.fold_in(moving, i), x.shape)
            gain = beta * (energy(x) - energy(proposed))
            drawn = random.uniform(random.fold_in(taking, i))
            x = jnp.where(jnp.log(drawn) < gain, proposed, x)
            partner = i ^ 1
            xs, energies, betas = lax.all_gather((x, energy(x), beta), "chain")
            gain = (beta - betas[partner]) * (energy(x) - energies[partner])
            both = random.uniform(shared, (8,))[jnp.minimum(i, partner)]
            return jnp.where(jnp.log(both) < gain, xs[partner], x), energy(x)

        return lax.scan(step, x, random.split(key, 50))

    return pmap(temper, "chain", in_axes=(0, 0, None)), (of(8, 3), of(8), KEY)


@correct
def an_iteration_that_all_parts_end_together():
    def solve(u):
        def step(state):
            u, _ = state
            above = lax.ppermute(u[-1], "part", [(i, i + 1) for i in range(7)])
            new = u.at[1:-1].set(0.5 * (u[:-2] + u[2:])).at[0].set(above)
            return new, lax.pmax(jnp.max(jnp.abs(new - u)), "part")

        return lax.while_loop(lambda state: state[1] > 1e-4, step, (u, jnp.inf))[0]

    return pmap(solve, "part"), (of(8, 32),)


@correct
def forces_of_particles_but_not_of_one_on_itself():
    def energy(x):
        square = jnp.sum((x[:, None] - x[None]) ** 2, -1)
        same = jnp.eye(len(x), dtype=bool)
        inverse = 1 / jnp.where(same, 1.0, square) ** 3
        return jnp.sum(jnp.where(same, 0.0, 4 * (inverse**2 - inverse)))

    return jit(grad(energy)), (of(10, 3),)


@correct
def an_evolution_of_which_each_lane_tries_another_step():
    def evolve(w, key):
        step = random.normal(random.fold_in(key, lax.axis_index("tries")), w.shape)
        gain = jnp.sum((w - 0.1 * step - 3) ** 2) - jnp.sum((w + 0.1 * step - 3) ** 2)
        return w + 0.01 * lax.pmean(gain * step, "tries")

    return pmap(evolve, "tries", in_axes=None, out_axes=None, axis_size=8), (of(10), KEY)


@correct
def experts_of_which_each_takes_a_few():
    def mixed(x, router, weights):
        share, chosen = lax.top_k(nn.softmax(x @ router), 1)
        expert, rows = chosen[:, 0], jnp.arange(len(x))
        place = jnp.cumsum(nn.one_hot(expert, 4, dtype=jnp.int32), 0)[rows, expert] - 1
        sent = jnp.zeros((4, 8, x.shape[1])).at[expert, place].set(x, mode="drop")
        back = jnp.einsum("ecd,edf->ecf", sent, weights)[expert, jnp.minimum(place, 7)]
        return jnp.where((place < 8)[:, None], back, 0) * share

    return jit(mixed), (of(16, 6), of(6, 4), of(4, 6, 6))


@correct
def a_fixed_point_with_a_derivative_of_its_own():
    def once(w, x, z):
        return jnp.tanh(z @ w + x)

    @custom_vjp
    def solve(w, x):
        def step(state):
            z, _, n = state
            new = once(w, x, z)
            return new, jnp.max(jnp.abs(new - z)), n + 1

        start = jnp.zeros_like(x), jnp.inf, 0
        return lax.while_loop(lambda s: (s[1] > 1e-5) & (s[2] < 100), step, start)[0]

    def forwards(w, x):
        z = solve(w, x)
        return z, (w, x, z)

    def backwards(kept, g):
        w, x, z = kept
        _, pull = vjp(lambda z: once(w, x, z), z)
        u = lax.fori_loop(0, 30, lambda _, u: g + pull(u)[0], g)
        return vjp(lambda w, x: once(w, x, z), w, x)[1](u)

    solve.defvjp(forwards, backwards)
    return jit(grad(lambda w, x: solve(w, x).sum())), (of(4, 4), of(3, 4))


@correct
def state_in_parts_that_are_gathered_where_they_are_used():
    def step(part, x):
        def loss(part):
            return jnp.mean((x @ lax.all_gather(part, "parts", tiled=True)) ** 2)

        value, grads = value_and_grad(loss)(part)  # scattered, and sums
        return part - 0.1 * grads / lax.axis_size("parts"), lax.pmean(value, "parts")

    return pmap(step, "parts"), (of(8, 2, 4), of(8, 10, 16))


@correct
def running_means_that_are_averaged_at_the_end():
    def step(w, seen, x):
        def loss(w):
            hidden = x @ w
            mean, var = hidden.mean(0), hidden.var(0)
            new = tree.map(lambda old, new: 0.9 * old + 0.1 * new, seen, (mean, var))
            return jnp.mean(((hidden - mean) / jnp.sqrt(var + 1e-5)) ** 2), new

        grads, seen = grad(loss, has_aux=True)(w)
        return w - 0.1 * lax.pmean(grads, "data"), lax.pmean(seen, "data")

    step = pmap(step, "data", in_axes=(None, None, 0), out_axes=None)
    return step, (of(4, 6), (of(6), of(6)), of(8, 10, 4))


@correct
def a_memory_that_is_written_around():
    def insert(memory, new, start):
        places = (start + jnp.arange(len(new))) % len(memory)
        return memory.at[places].set(new), start + len(new)

    return jit(insert, donate_argnums=0), (of(1000, 4), of(64, 4), of(dtype="int32"))


@correct
def two_grids_with_the_same_increments():
    def apart(key, x):
        steps = random.normal(key, (64,)) / 8
        fine, _ = lax.scan(lambda x, w: (x - x / 64 + 0.1 * w, None), x, steps)
        coarse = steps.reshape(32, 2).sum(1)
        return fine - lax.scan(lambda x, w: (x - x / 32 + 0.1 * w, None), x, coarse)[0]

    return jit(vmap(apart, (0, None))), (random.split(KEY, 100), of())


@correct
def messages_that_are_added_up():
    senders, receivers = np.array([0, 1, 2, 3, 3, 0]), np.array([1, 2, 3, 1, 0, 2])

    def loss(w, nodes):
        told = jnp.zeros_like(nodes).at[receivers].add(jnp.tanh(nodes[senders] @ w))
        count = jnp.zeros(len(nodes)).at[receivers].add(1.0)
        return jnp.sum((told / jnp.maximum(count, 1)[:, None]) ** 2)

    return jit(grad(loss)), (of(8, 8), of(4, 8))


@correct
def policies_by_what_was_gained():
    def loss(w, state, key):
        def act(state, key):
            choosing, moving = random.split(key)
            log_probs = nn.log_softmax(state @ w)
            action = random.categorical(choosing, log_probs)
            return state + 0.1 * random.normal(moving, state.shape), (log_probs[action], state[0])

        _, (log_probs, gains) = lax.scan(act, state, random.split(key, 50))
        gains = jnp.cumsum(gains[::-1])[::-1]
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        return -jnp.sum(log_probs * lax.stop_gradient(gains))

    def mean(w, states, key):
        return vmap(loss, (None, 0, 0))(w, states, random.split(key, 16)).mean()

    return jit(grad(mean)), (of(4, 3), of(16, 4), KEY)


@correct
def activations_in_half_precision():
    def loss(w, x):
        y = x @ w["kernel"]
        return (y * w["scale"]).sum()

    params = {"kernel": np.ones((8, 4), np.float32), "scale": np.ones(4, np.float32)}
    return jit(grad(loss)), (params, jnp.ones((4, 8), jnp.bfloat16))


@correct
def weights_whose_rule_takes_the_mean():
    @custom_vjp
    def shared(w):
        return w

    def step(w, x):
        value, g = value_and_grad(lambda w: jnp.mean((x @ shared(w)) ** 2))(w)
        return w - 0.1 * g, lax.pmean(value, "d")

    shared.defvjp(lambda w: (w, None), lambda _, ct: (lax.pmean(ct, "d"),))
    lanes = np.ones((8, 3, 4), np.float32)
    return pmap(step, "d", in_axes=(None, 0), out_axes=None), (lanes[0, 0], lanes)
