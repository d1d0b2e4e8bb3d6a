"""State beside parameters, which lanes share or not: counts of steps, schedules, buffers, norms."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax, pmap, random, tree, value_and_grad, vmap
from tests.units.insight.checks.finding import codes

LANES = 8
X = np.linspace(-1, 1, LANES * 4 * 3, dtype=np.float32).reshape(LANES, 4, 3)
Y = np.ones((LANES, 4), np.float32)
PARAMS = {"w": np.ones((3, 2), np.float32), "b": np.float32(0)}
ZEROS = tree.map(np.zeros_like, PARAMS)


def found(fun, *args):
    return phalanx.check(fun)(*args)


def for_all(state):
    return tree.map(lambda leaf: np.stack([leaf] * LANES), state)


def error(params, x, y):
    return jnp.mean(((x @ params["w"] + params["b"]).sum(-1) - y) ** 2)


def averaged(state, x, y):
    return lax.pmean(value_and_grad(error)(state["params"], x, y), "i")


def of_one_lane(state, x, y):
    loss, grads = value_and_grad(error)(state["params"], x, y)
    return lax.pmean(loss, "i"), grads


def moved(params, grads, rate):
    return tree.map(lambda p, g: p - rate * g, params, grads)


def adam(state, grads):
    count = state["count"] + 1
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["first"], grads)
    second = tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["second"], grads)
    ratio = tree.map(
        lambda m, v: m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-8), first, second
    )
    params = moved(state["params"], ratio, 0.1)
    return {"params": params, "first": first, "second": second, "count": count}


def clipped_adam(state, grads):
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in tree.leaves(grads)) + 1e-12)
    return adam(state, tree.map(lambda g: g * jnp.minimum(1, 1 / norm), grads))


def scheduled(state, grads):
    rate = 0.1 * jnp.minimum(1, (state["count"] + 1) / 100)
    smooth = 1 / (state["count"] + 1.0)
    params = moved(state["params"], grads, rate)
    slow = tree.map(lambda s, p: s + smooth * (p - s), state["first"], params)
    return {**state, "params": params, "first": slow, "count": state["count"] + 1}


def now_and_then(state, grads):
    params = moved(state["params"], grads, 0.1)
    copied = state["count"] % 4 == 0
    target = tree.map(lambda t, p: jnp.where(copied, p, t), state["first"], params)
    return {**state, "params": params, "first": target, "count": state["count"] + 1}


def scaled(state, grads):
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in tree.leaves(grads)]))
    count = jnp.where(finite, state["count"] + 1, 0)
    params = tree.map(lambda p, g: jnp.where(finite, p - 0.1 * g, p), state["params"], grads)
    scale = jnp.where(count >= 100, state["second"]["b"] * 2, state["second"]["b"])
    second = {**state["second"], "b": jnp.where(finite, scale, scale / 2)}
    return {**state, "params": params, "second": second, "count": count}


UPDATES = [adam, clipped_adam, scheduled, now_and_then, scaled]
STATE = {"params": PARAMS, "first": ZEROS, "second": ZEROS, "count": np.int32(0)}


def step_of(update, grads_of):
    def step(state, x, y):
        loss, grads = grads_of(state, x, y)
        state = update(state, grads)
        return state, {"loss": loss, "scale": state["second"]["b"]}

    return step


@pytest.mark.parametrize("update", UPDATES)
def test_a_count_that_lanes_share_is_no_number_of_their_own(update):
    step = step_of(update, averaged)
    shapes = tree.map(lambda x: phalanx.ShapeDtypeStruct(x.shape, x.dtype), for_all(STATE))
    assert codes(pmap(step, "i"), for_all(STATE), X, Y) == []
    assert codes(pmap(step, "i"), shapes, X, Y) == []
    assert codes(pmap(step, "i", in_axes=(None, 0, 0)), STATE, X, Y) == []
    assert codes(vmap(step, axis_name="i"), for_all(STATE), X, Y) == []


@pytest.mark.parametrize("update", UPDATES)
def test_gradients_of_one_lane_are_found_beside_a_count(update):
    step = step_of(update, of_one_lane)
    assert "P119" in codes(pmap(step, "i"), for_all(STATE), X, Y)
    assert "P108" not in codes(pmap(step, "i"), for_all(STATE), X, Y)


def of_normalized_rows(params, x, y):
    mean = lax.pmean(x.mean(0), "i")
    return error(params, x - mean, y)


def of_counted_rows(params, x, y):
    count = lax.psum(jnp.float32(len(x)) + 0 * x.sum(), "i")
    return LANES * jnp.sum(((x @ params["w"]).sum(-1) - y) ** 2) / count


@pytest.mark.parametrize("loss_of", [error, of_normalized_rows, of_counted_rows])
@pytest.mark.parametrize("update", UPDATES)
def test_what_lanes_exchange_before_is_no_reduction_of_gradients(loss_of, update):
    """As statistics for the loss, and other parameters, such as those of a discriminator."""

    def step(is_averaged):
        def f(state, x, y):
            (other, _), grads = lax.pmean(value_and_grad(error)(state["other"], x, y), "i"), 0
            before = moved(state["other"], value_and_grad(error)(state["other"], x, y)[1], 0.1)
            before = lax.pmean(before, "i")
            loss, grads = value_and_grad(lambda p: loss_of(p, x * (1 + before["b"].sum()), y))(
                state["params"]
            )
            grads = lax.pmean(grads, "i") if is_averaged else grads
            new = update({k: v for k, v in state.items() if k != "other"}, grads)
            return {**new, "other": before}, lax.pmean(loss, "i") + other

        return pmap(f, "i")

    state = for_all({**STATE, "other": PARAMS})
    assert codes(step(True), state, X, Y) == []
    told = set(codes(step(False), state, X, Y))
    assert "P119" in told and "P108" not in told


def by_pairs(x):
    inner, outer = [[0, 1], [2, 3], [4, 5], [6, 7]], [[0, 2, 4, 6], [1, 3, 5, 7]]
    return lax.pmean(lax.pmean(x, "i", axis_index_groups=inner), "i", axis_index_groups=outer)


def by_butterflies(x):
    for n in (1, 2, 4):
        x = (x + lax.ppermute(x, "i", [(lane, lane ^ n) for lane in range(LANES)])) / 2
    return x


@pytest.mark.parametrize("mean", [by_pairs, by_butterflies])
@pytest.mark.parametrize("update", UPDATES)
def test_gradients_that_lanes_exchange_by_and_by_are_not_their_own(update, mean):
    def step(state, x, y):
        loss, grads = value_and_grad(error)(state["params"], x, y)
        state = update(state, tree.map(mean, grads))
        return state, lax.pmean(loss, "i")

    assert codes(pmap(step, "i"), for_all(STATE), X, Y) == []


@pytest.mark.parametrize("axes", ["i", "j", ("i", "j")])
def test_a_sum_over_one_axis_is_none_over_another(axes):
    """Although it is divided by a count that all lanes share."""

    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        count = lax.psum(jnp.float32(len(x)) + 0 * x.sum(), ("i", "j"))
        grads = tree.map(lambda g: lax.psum(len(x) * g, axes) / count, grads)
        return moved(params, grads, 0.1), lax.pmean(loss, ("i", "j"))

    mesh, rows = phalanx.make_mesh((2, 4), ("i", "j")), P(("i", "j"))
    mapped = phalanx.shard_map(
        step, mesh=mesh, in_specs=(P(), rows, rows), out_specs=(P(), P()), check_vma=False
    )
    told = codes(mapped, PARAMS, X.reshape(-1, 3), Y.reshape(-1))
    assert set(told) == ({"P102"} if isinstance(axes, str) else set())


def test_keys_of_lanes_are_their_own():
    """Although lanes get theirs as state; and so are the running means of what is drawn."""

    def step(state, x, y):
        key, mine = random.split(state["key"])
        loss, grads = averaged(state, x, y)
        noise = x + random.normal(mine, x.shape)
        mean = 0.9 * state["mean"] + 0.1 * noise.mean(0)
        return {"params": moved(state["params"], grads, 0.1), "mean": mean, "key": key}, loss

    keys = random.split(random.PRNGKey(0), LANES)
    state = {"params": PARAMS, "mean": np.zeros(3, np.float32)}
    for given in (keys, random.wrap_key_data(keys)):
        assert codes(pmap(step, "i"), {**for_all(state), "key": given}, X, Y) == ["P108"]


def test_a_buffer_that_each_lane_fills_is_no_running_mean():
    def step(state, x, y):
        loss, grads = averaged(state, x, y)
        buffer = state["buffer"].at[state["count"] % 16].set((x * x).sum(1))
        behind = jnp.concatenate([state["behind"][1:], x.mean(0)[None]])
        params = moved(state["params"], grads, 0.1)
        new = {"params": params, "buffer": buffer, "behind": behind, "count": state["count"] + 1}
        return new, loss

    state = {"params": PARAMS, "buffer": np.zeros((16, 4), np.float32), "count": np.int32(0)}
    state["behind"] = np.zeros((5, 3), np.float32)
    assert codes(pmap(step, "i"), for_all(state), X, Y) == []


@pytest.mark.parametrize(
    "blend",
    [
        lambda old, new, first: 0.9 * old + 0.1 * new,
        lambda old, new, first: old + 0.1 * (new - old),
        lambda old, new, first: old - (old - new) / 10,
        lambda old, new, first: jnp.where(first, new, 0.9 * old + 0.1 * new),
        lambda old, new, first: (9 * old + new) / 10,
        lambda old, new, first: jnp.stack([0.9 * old[0] + 0.1 * new[0], new[1], new[2]]),
    ],
)
def test_however_means_are_blended_they_are_running_ones(blend):
    def step(state, x, y):
        loss, grads = averaged(state, x, y)
        mean = blend(state["mean"], x.mean(0), state["count"] == 0)
        new = {"params": moved(state["params"], grads, 0.1), "mean": mean}
        return {**new, "count": state["count"] + 1}, loss

    state = {"params": PARAMS, "mean": np.zeros(3, np.float32), "count": np.int32(0)}
    assert codes(pmap(step, "i"), for_all(state), X, Y) == ["P108"]


@pytest.mark.parametrize("rate", [0.1, 0.05, 0.02, 0.01, 5e-3, 2.5e-3, 1e-3, 3e-4, 1e-4, 1e-6])
def test_a_rate_is_no_number_of_rows(rate):
    def step(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        grads = lax.psum(grads, "i")
        return moved(params, grads, rate), lax.pmean(loss, "i")

    assert codes(pmap(step, "i"), for_all(PARAMS), X, Y) == ["P120"]


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_a_mean_is_one_of_however_few_rows(rows):
    """Of parts of a batch, whose gradients a loop adds up."""

    def step(params, x, y):
        def add(sums, part):
            new = value_and_grad(error)(params, *part)
            return tree.map(jnp.add, sums, new), None

        parts = x.reshape(-1, rows, 3), y.reshape(-1, rows)
        zero = jnp.zeros(()), tree.map(jnp.zeros_like, params)
        loss, grads = tree.map(lambda s: s / len(parts[0]), lax.scan(add, zero, parts)[0])
        return moved(params, lax.psum(grads, "i"), 0.1), lax.pmean(loss, "i")

    x = np.linspace(-1, 1, LANES * 12 * 3, dtype=np.float32).reshape(LANES, 12, 3)
    y = np.ones((LANES, 12), np.float32)
    assert codes(pmap(step, "i"), for_all(PARAMS), x, y) == ["P120"]


@pytest.mark.parametrize("rows", [8, 16, 32, 1000])
def test_sums_divided_by_lanes_or_rows_are_means(rows):
    def divided(params, x, y):
        loss, grads = value_and_grad(error)(params, x, y)
        grads = tree.map(lambda g: g / rows, lax.psum(grads, "i"))
        return moved(params, grads, 0.1), lax.pmean(loss, "i")

    assert codes(pmap(divided, "i"), for_all(PARAMS), X, Y) == []


def test_lanes_within_that_have_ended_are_not_counted():
    def step(w, x, key):
        g = vmap(lambda row: row * (row @ w))(x).sum(0)
        g = g + random.normal(key, g.shape)
        return w - 0.1 * lax.psum(g, "i") / 32

    [finding] = found(
        pmap(step, "i", in_axes=(None, 0, None), out_axes=None), PARAMS["w"][:, 0], X, random.key(0)
    )
    assert finding.code == "P107" and "all 8 lanes of 'i'," in finding.message
