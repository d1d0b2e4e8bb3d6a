"""Updates of what lanes share: gradients reduced as they should be, otherwise, or not at all."""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import P, grad, jit, lax, nn, pmap, random, shard_map, tree, value_and_grad, vmap
from tests.units.insight.checks.corpus import correct, faulty

X = np.linspace(-1, 1, 8 * 4 * 3, dtype=np.float32).reshape(8, 4, 3)
Y = np.ones((8, 4), np.float32)
PARAMS = {"w": np.ones(3, np.float32), "b": np.float32(0)}
STACKED = tree.map(lambda p: np.stack([p] * 8), PARAMS)


def error(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def moved(params, grads, rate=0.1):
    return tree.map(lambda p, g: p - rate * g, params, grads)


def over_mesh(step, **options):
    mesh = phalanx.make_mesh((8,), ("i",))
    specs = {"in_specs": (P(), P("i"), P("i")), "out_specs": (P(), P())}
    return shard_map(step, mesh=mesh, **specs, **options), (PARAMS, X.reshape(32, 3), Y.ravel())


# ---- P119: lanes that drift apart ---------------------------------------------------------------


@faulty("P119")
def the_loss_alone_is_averaged():
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        return moved(params, grads), lax.pmean(loss, "i")

    return pmap(step, "i"), (STACKED, X, Y)


@faulty("P119")
def one_leaf_is_averaged():
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        grads["w"] = lax.pmean(grads["w"], "i")
        return moved(params, grads), lax.pmean(loss, "i")

    return jit(vmap(step, axis_name="i")), (STACKED, X, Y)


@faulty("P119")
def momentum_of_own_gradients():
    def step(state, x, y):
        loss, grads = value_and_grad(error)(state["params"], x, y)
        momentum = tree.map(lambda m, g: 0.9 * m + g, state["momentum"], grads)
        new = {"params": moved(state["params"], momentum), "momentum": momentum}
        return new, lax.pmean(loss, "i")

    state = {"params": PARAMS, "momentum": tree.map(jnp.zeros_like, PARAMS)}
    return pmap(step, "i", in_axes=(None, 0, 0)), (state, X, Y)


@faulty("P119")
def rate_of_the_own_loss():
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        rate = jnp.where(loss < 1.0, 0.01, 0.1)
        return moved(params, lax.pmean(grads, "i"), rate), lax.pmean(loss, "i")

    return pmap(step, "i"), (STACKED, X, Y)


@faulty("P119")
def update_kept_if_the_own_loss_is_finite():
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        new = moved(params, lax.pmean(grads, "i"))
        return lax.cond(jnp.isfinite(loss), lambda: new, lambda: params), lax.pmean(loss, "i")

    return over_mesh(step, check_vma=False)


@faulty("P119")
def scale_of_losses():
    def step(state, x, y):
        params, scale = state
        loss, grads = value_and_grad(lambda p: scale * error(p, x, y))(params)
        finite = jnp.all(jnp.isfinite(grads["w"]))
        grads = tree.map(lambda g: lax.pmean(g, "i") / scale, grads)
        scale = jnp.where(finite, scale * 2, scale / 2)
        return (moved(params, grads), scale), lax.pmean(loss, "i")

    return pmap(step, "i"), ((STACKED, np.ones(8, np.float32)), X, Y)


@correct
def members_that_start_apart_and_report_together():
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        return moved(params, grads), lax.pmean(loss, "i")

    started = {"w": np.linspace(0, 1, 24, dtype=np.float32).reshape(8, 3), "b": STACKED["b"]}
    return pmap(step, "i"), (started, X, Y)


@correct
def members_that_see_the_same_rows():
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        return moved(params, grads), lax.pmean(loss, "i")

    return pmap(step, "i", in_axes=(0, None, None)), (STACKED, X[0], Y[0])


@correct
def rates_that_are_compared():
    def step(params, rate, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        return moved(params, grads, rate), loss, lax.all_gather(loss, "i").argmin()

    rates = np.float32([0.1 * 2**-i for i in range(8)])
    return vmap(step, in_axes=(0, 0, None, None), axis_name="i"), (STACKED, rates, X[0], Y[0])


@correct
def averaged_every_few_steps():
    def step(params, n, x, y):
        params = moved(params, grad(error)(params, x, y))
        mean = lax.pmean(params, "i")
        together = n % 10 == 0
        return tree.map(lambda m, p: jnp.where(together, m, p), mean, params)

    return pmap(step, "i", in_axes=(0, None, 0, 0)), (STACKED, 3, X, Y)


@correct
def rate_of_the_mean_loss():
    def step(params, x, y):
        loss, grads = lax.pmean(value_and_grad(error)(params, x, y), "i")
        ok = lax.pmin(jnp.isfinite(error(params, x, y)).astype(jnp.int32), "i") > 0
        new = moved(params, grads, jnp.where(loss < 1.0, 0.01, 0.1))
        return tree.map(lambda n, p: jnp.where(ok, n, p), new, params), loss

    return pmap(step, "i"), (STACKED, X, Y)


@correct
def clipped_before_the_mean():
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in tree.leaves(grads)))
        grads = tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), grads)
        return moved(params, lax.pmean(grads, "i")), lax.pmean(loss, "i")

    return pmap(step, "i"), (STACKED, X, Y)


# ---- P120: sums of gradients of means -----------------------------------------------------------


@faulty("P120")
def gradients_summed_and_loss_averaged():
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        grads, loss = lax.psum(grads, "i"), lax.pmean(loss, "i")
        return moved(params, grads), loss

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (PARAMS, X, Y)


@faulty("P120")
def gradients_of_the_replicated():
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        return moved(params, grads), lax.pmean(loss, "i")

    return over_mesh(step)


@faulty("P120")
def root_of_a_mean_and_a_penalty():
    @jit
    def objective(params, x, y):
        return jnp.sqrt(error(params, x, y) + 1e-6) + 0.01 * jnp.sum(params["w"] ** 2)

    def step(params, x, y):
        loss, grads = value_and_grad(objective)(params, x, y)
        return moved(params, lax.psum(grads, "i"), 1e-2), {"loss": lax.pmean(loss, "i")}

    return jit(vmap(step, axis_name="i")), (STACKED, X, Y)


@correct
def gradients_summed_and_divided():
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        grads = tree.map(lambda g: g / lax.axis_size("i"), lax.psum(grads, "i"))
        return moved(params, grads), lax.pmean(loss, "i")

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (PARAMS, X, Y)


@correct
def rows_counted_over_lanes():
    def step(params, x, y, weight):
        def total(params):
            return jnp.sum(weight * (x @ params["w"] + params["b"] - y) ** 2)

        loss, grads = value_and_grad(total)(params)
        rows = lax.psum(weight.sum(), "i")
        grads = tree.map(lambda g: g / rows, lax.psum(grads, "i"))
        return moved(params, grads), lax.psum(loss, "i") / rows

    return pmap(step, "i", in_axes=(None, 0, 0, 0), out_axes=None), (PARAMS, X, Y, np.abs(Y))


@correct
def part_of_the_loss_that_a_lane_has():
    def step(params, x, y):
        def part(params):
            loss = error(params, x, y)
            return loss / lax.axis_size("i"), loss

        (_, loss), grads = value_and_grad(part, has_aux=True)(params)
        return moved(params, lax.psum(grads, "i")), lax.pmean(loss, "i")

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (PARAMS, X, Y)


# ---- P121: logarithms of exponentials -----------------------------------------------------------

SCORES = np.linspace(-3, 3, 12, dtype=np.float32).reshape(4, 3)
KINDS = np.int32([0, 2, 1, 0])


@faulty("P121")
def logarithm_of_a_softmax():
    def loss(w, x, kinds):
        shares = nn.softmax(x @ w)
        return -jnp.mean(jnp.log(shares[jnp.arange(4), kinds]))

    return jit(grad(loss)), (np.eye(3, dtype=np.float32), SCORES, KINDS)


@faulty("P121")
def logarithm_of_a_sum_of_exponentials():
    def loss(x, kinds):
        picked = jnp.take_along_axis(x, kinds[:, None], 1)[:, 0]
        return jnp.mean(jnp.log(jnp.sum(jnp.exp(x), axis=-1)) - picked)

    return loss, (SCORES, KINDS)


@faulty("P121")
def logarithms_of_sigmoids():
    def loss(w, x, y):
        p = nn.sigmoid(x @ w)
        return -jnp.mean(y * jnp.log(p) + (1 - y) * jnp.log(1 - p))

    return grad(loss), (PARAMS["w"], X[0], Y[0])


@faulty("P121")
def softmax_by_hand_that_is_shifted():
    def loss(x, labels):
        terms = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
        shares = terms / jnp.sum(terms, axis=-1, keepdims=True)
        return -jnp.sum(labels * jnp.log(shares))

    return loss, (SCORES, nn.one_hot(KINDS, 3))


@correct
def sums_of_exponentials_less_the_greatest():
    def f(x):
        top = lax.stop_gradient(jnp.max(x, axis=-1, keepdims=True))
        return jnp.log(jnp.mean(jnp.exp(x - top), axis=-1)) + top[:, 0]

    return grad(lambda x: f(x).sum()), (SCORES,)


@correct
def shares_with_a_small_number():
    def entropy(x):
        shares = nn.softmax(x)
        return -jnp.sum(shares * jnp.log(shares + 1e-8)) + jnp.log(jnp.clip(shares, 1e-6)).sum()

    return grad(entropy), (SCORES,)


@correct
def contrasts_of_vectors_of_length_one():
    def loss(x, z):
        x, z = (v / jnp.linalg.norm(v + 1e-6, axis=-1, keepdims=True) for v in (x, z))
        near = x @ z.T / 0.1
        return jnp.mean(jnp.log(jnp.sum(jnp.exp(near), axis=-1)) - jnp.diag(near))

    return loss, (SCORES, random.normal(random.key(0), (4, 3)))
