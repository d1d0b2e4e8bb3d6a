"""Plans: what products exchange, counted by hand; times, by formulas; batches and meshes."""

import numpy as np
import pytest
from msgspec.structs import replace

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.insight.plans.matrix_products import products_in
from phalanx.insight.plans.performance_model import Parting, load_of, timing
from phalanx.insight.plans.plan import partings
from phalanx.insight.systems import machine
from tests.units.insight.plans.published import FITTED

WIDE, NARROW, ROWS = 512, 128, 256


def of(*shape, dtype="bfloat16"):
    return ph.ShapeDtypeStruct(shape, dtype)


def step(w, x):
    def loss(w):
        return jnp.mean(jnp.tanh(x @ w["up"]) @ w["down"])

    return ph.tree.map(lambda p, g: p - g, w, ph.grad(loss)(w))


W = {"up": of(NARROW, WIDE), "down": of(WIDE, NARROW)}
X = of(ROWS, NARROW)


@pytest.fixture(scope="module")
def traced():
    return ph.jit(step).trace(W, X)


def products_of(f, *args):
    """Of a step that takes its state, which is its first argument, and a batch."""
    program = ph.jit(f).trace(*args).program
    count = len(program.inputs)
    return products_in(program, [i < count - 1 for i in range(count)])


def test_products_by_weights():
    found = products_of(step, W, X)
    weights = 2 * WIDE * NARROW  # bytes of each
    assert found.gradients == 2 * weights
    assert found.gathered == 3 * weights  # up, down; down again for the gradient
    # forwards, the sum over the wide side; backwards, over the narrow one: of parts of none
    assert found.reduced == 2 * ROWS * NARROW
    assert found.largest == weights and found.can_be_parted(8) and not found.can_be_parted(3)


def test_products_in_loops_count_for_each_run():
    def layers(w, x):
        def loss(w):
            return jnp.mean(lax.scan(lambda x, w: (x @ w["a"] @ w["b"], None), x, w)[0])

        return ph.tree.map(lambda p, g: p - g, w, ph.grad(loss)(w))

    w = {"a": of(5, NARROW, WIDE), "b": of(5, WIDE, NARROW)}
    found = products_of(layers, w, X)
    assert found.gathered == 5 * 4 * 2 * WIDE * NARROW
    assert found.gradients == 5 * 2 * 2 * WIDE * NARROW


def test_weights_that_all_runs_of_a_loop_share():
    """They are gathered once, and so are their gradients added up over chips."""

    def recurrent(w, xs):
        def loss(w):
            def cell(h, x):
                return jnp.tanh(x @ w["x"] + h @ w["h"]), None

            return jnp.mean(lax.scan(cell, jnp.zeros((ROWS, WIDE), "bfloat16"), xs)[0])

        return ph.tree.map(lambda p, g: p - g, w, ph.grad(loss)(w))

    found = products_of(recurrent, {"x": of(NARROW, WIDE), "h": of(WIDE, WIDE)}, of(7, *X.shape))
    x, h = 2 * NARROW * WIDE, 2 * WIDE * WIDE
    assert found.gradients == x + h
    assert found.gathered == x + 2 * h  # no gradient of xs


def test_experts_are_parted_and_what_they_give_is_summed():
    """Each chip has some experts, and gives all tokens what these make of them."""

    def experts(w, x, share):
        def loss(w):
            h = jnp.tanh(jnp.einsum("td,edf->etf", x, w["up"]))
            y = jnp.einsum("etf,efd->etd", h, w["down"])
            return jnp.mean(jnp.einsum("etd,te->td", y, share))

        return ph.tree.map(lambda p, g: p - g, w, ph.grad(loss)(w))

    w = {"up": of(6, NARROW, WIDE), "down": of(6, WIDE, NARROW)}
    state, args = [True, True, False, False], (w, X, of(ROWS, 6))
    found = products_in(ph.jit(experts).trace(*args).program, state)
    weights = 2 * 6 * WIDE * NARROW
    assert found.gradients == 2 * weights
    assert found.can_be_parted(3) and not found.can_be_parted(4)

    def summed(w, x, share):
        h = jnp.tanh(jnp.einsum("td,edf->etf", x, w["up"]))
        y = jnp.einsum("etf,efd->etd", h, w["down"])
        return jnp.einsum("etd,te->td", y, share), w

    forwards = products_in(ph.jit(summed).trace(*args).program, state)
    assert forwards.reduced == 2 * ROWS * NARROW


def test_what_goes_through_layers_has_rows():
    """What runs of the loop of layers stack, for the derivative, is no part of the batch."""

    def layers(w, x, y):
        def loss(w):
            return jnp.mean(lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w)[0] - y)

        return w - ph.grad(loss)(w)

    x = of(ROWS, NARROW)
    found = load_of(ph.jit(layers).trace(of(5, NARROW, NARROW), x, x)).parted
    assert found.rows == ROWS and found.text == "dimension 0 of x, dimension 0 of y"


def test_convolutions_have_weights_that_are_not_parted():
    def convolved(w, x):
        def loss(w):
            y = jnp.tanh(lax.conv(x, w["a"], (1, 1), "SAME"))
            return jnp.mean(lax.conv(y, w["b"], (1, 1), "SAME") ** 2)

        return ph.tree.map(lambda p, g: p - g, w, ph.grad(loss)(w))

    w = {"a": of(16, 3, 3, 3), "b": of(8, 16, 3, 3)}
    found = products_of(convolved, w, of(32, 3, 10, 10))
    sizes = 2 * 16 * 3 * 9, 2 * 8 * 16 * 9
    assert found.gradients == sum(sizes) and found.gathered == sum(sizes) + sizes[1]
    assert found.reduced == 0 and not found.can_be_parted(2)


def test_sums_of_parts_that_are_added_are_one():
    def both(w, x):
        return x @ w["a"] + x @ w["b"], w

    w = {"a": of(WIDE, NARROW), "b": of(WIDE, NARROW)}
    assert products_of(both, w, of(ROWS, WIDE)).reduced == 2 * ROWS * NARROW


def test_times_are_those_of_the_formulas(traced):
    load, chips = load_of(traced), machine("v5p:2x2x2")
    operations = sum(load.operations.values())
    # up; the gradients of both weights, and that of hidden. Nothing needs what the mean is
    assert operations == 4 * 2 * ROWS * WIDE * NARROW
    found = timing(load, chips, Parting(2, 2, 2))
    assert found.arithmetic == pytest.approx(operations / 8 / 459e12 / FITTED.efficiency)
    latency, time = chips.exchange("all-reduce", load.products.reduced / 4, 2)
    expected = FITTED.exchanging * (latency * load.products.count + time)
    assert found.tensor == pytest.approx(expected)
    assert found.size < timing(load, chips, Parting(8, 1, 1)).size
    twice = timing(load, replace(chips, slices=2), Parting(4, 2, 2))
    assert twice.waiting > 0 and twice.data > 0


def simulation(u, force):
    """2,000 steps of a wave, each of which a compiler makes one operation of."""
    once = lambda u, _: (0.1 * (jnp.roll(u, 1) + jnp.roll(u, -1)) + 0.8 * u + force, None)  # noqa: E731
    return lax.scan(once, u, None, length=2000)[0]


FIELD = of(1024, dtype="float32")


def test_small_operations_take_their_least_time():
    chips = machine("h100:8")
    report = ph.plan(simulation, on="h100:8")(FIELD, FIELD)
    least = 2000 * chips.system.launch
    assert least <= report["summary"].as_json()["facts"]["time"] < 2 * least
    assert "the least time of each operation limits it" in report.verdict
    load = load_of(ph.jit(simulation).trace(*[of(2**30, dtype="float32")] * 2))
    assert timing(load, chips, Parting(1, 8, 1)).launching == 0  # as each takes longer


def test_what_multiplies_by_no_weights_has_no_tensor_parallelism():
    report = ph.plan(simulation, on="h100:8")(FIELD, FIELD)
    assert {row["tensor"] for row in report["best meshes"].as_json()["rows"]} == {1}
    assert "No product multiplies by the state" in report["summary"].note
    with pytest.raises(ValueError, match=r"tensor is one of 1$"):
        ph.plan(simulation, on="h100:8", tensor=2)(FIELD, FIELD)


@pytest.mark.parametrize("lanes", [1, 4])
def test_what_is_computed_again_counts_once_where_nothing_needs_the_first(lanes):
    def gradient(w, x):
        hidden = ph.checkpoint(lambda w, x: jnp.tanh(jnp.tanh(x @ w) @ w))
        return ph.grad(lambda w: jnp.sum(hidden(w, x)))(w)

    w, x = of(16, 16), of(lanes, 8, 16)
    one = ph.jit(lambda w, x: w - gradient(w, x[0]))
    many = ph.pmap(
        lambda w, x: w - lax.pmean(gradient(w, x), "i"), "i", in_axes=(None, 0), out_axes=None
    )
    found = load_of((one if lanes == 1 else many).trace(w, x))
    (operations,) = found.operations.values()
    assert operations == lanes * 5 * 2 * 8 * 16 * 16  # two, again; the gradients of three


def test_each_copy_makes_the_new_state(traced):
    load = load_of(traced)
    weights = 2 * 2 * WIDE * NARROW  # bytes of both
    assert load.state == weights
    assert load.updating == 3 * weights  # reads old weights and gradients, writes new ones
    chips = machine("h100:8")
    copies, parts = (timing(load, chips, Parting(*p)) for p in ((8, 1, 1), (1, 8, 1)))
    apart = load.updating * (1 - 1 / 8) / chips.chip.bandwidth
    assert copies.memory - parts.memory == pytest.approx(apart)


@pytest.mark.parametrize("out_axes", [None, 0])
def test_a_pmap_is_what_its_lanes_do(traced, out_axes):
    def lane(w, x):
        def loss(w):
            return jnp.mean(jnp.tanh(x @ w["up"]) @ w["down"])

        grads = lax.pmean(ph.grad(loss)(w), "batch")
        return ph.tree.map(lambda p, g: p - g, w, grads)

    ins = (None if out_axes is None else 0, 0)
    w = W if out_axes is None else ph.tree.map(lambda t: of(4, *t.shape), W)
    mapped = ph.pmap(lane, "batch", in_axes=ins, out_axes=out_axes)
    found = load_of(mapped.trace(w, of(4, ROWS // 4, NARROW)))
    whole = load_of(traced)
    assert found.operations == whole.operations
    assert (found.state, found.batch) == (whole.state, whole.batch)
    assert found.products.reduced == whole.products.reduced
    assert found.products.gradients == whole.products.gradients


def test_a_batch_has_the_rows_of_most_arrays():
    def noisy(w, key, x, y, weights):
        def loss(w):
            kept = ph.random.bernoulli(key, 0.9, x.shape)
            return jnp.mean((jnp.where(kept, x, 0) @ w - y) ** 2 @ weights)

        return w - ph.grad(loss)(w)

    w, x, y, weights = of(24, 8), of(96, 24), of(96, 8), of(8)
    for key in (ph.random.key(0), ph.random.PRNGKey(0)):  # of which the second is two words
        assert load_of(ph.jit(noisy).trace(w, key, x, y, weights)).batch == 96


def test_lanes_of_one_example_each_are_the_batch():
    def lane(w, x, label):
        def loss(w):
            return -ph.nn.log_softmax(x @ w)[label]

        return w - lax.pmean(ph.grad(loss)(w), "batch")

    mapped = ph.pmap(lane, "batch", in_axes=(None, 0, 0), out_axes=None)
    args = of(24, 8), of(96, 24), ph.ShapeDtypeStruct((96,), "int32")
    facts = ph.plan(mapped, on="h100:8")(*args)["summary"].as_json()["facts"]
    assert facts["batch"] == 96 and "batch is" not in facts
    with pytest.raises(ph.errors.ArgumentError, match=r"batch=192: .* has one example"):
        ph.plan(mapped, on="h100:8", batch=192)(*args)


def recurrent(w, xs, y):
    def loss(w):
        cell = lambda h, x: (jnp.tanh(x @ w["up"] + h), None)  # noqa: E731
        last, _ = lax.scan(cell, jnp.zeros((ROWS, WIDE), "bfloat16"), 2 * xs)
        return jnp.mean((last @ w["down"] - y) ** 2)

    return ph.tree.map(lambda p, g: p - g, w, ph.grad(loss)(w))


TIMES = of(64, ROWS, NARROW), of(ROWS, NARROW)


def test_times_that_a_loop_runs_over_are_no_batch():
    facts, *_ = ph.plan(recurrent, on="v5e:4x4")(W, *TIMES).parts
    told = facts.as_json()["facts"]
    assert (told["batch"], told["batch is"]) == (ROWS, "dimension 1 of xs, dimension 0 of y")
    assert "256 rows are taken for the batch, and xs begins with 64; " in facts.note
    assert "--batch N" in facts.note


def test_who_asks_says_the_batch():
    def of_two(w, x, y):
        return w - ph.grad(lambda w: jnp.sum(jnp.sin(x @ w)) + jnp.sum(jnp.cos(y @ w)))(w)

    args = of(8, 8), of(96, 8), of(64, 8)
    doubted, told = (
        ph.plan(of_two, on="h100:8", **asked)(*args)["summary"] for asked in ({}, {"batch": 64})
    )
    assert doubted.as_json()["facts"]["batch"] == 96 and "y begins with 64" in doubted.note
    facts = told.as_json()["facts"]
    assert (facts["batch"], facts["batch is"], told.note) == (64, "dimension 0 of y", "")


def test_a_loop_over_all_there_is_leaves_a_doubt():
    def one_by_one(w, xs):
        return w - ph.grad(lambda w: jnp.sum(lax.map(lambda x: jnp.tanh(x @ w), xs)))(w)

    facts = ph.plan(one_by_one, on="h100:8")(of(8, 8), of(64, 8))["summary"]
    assert facts.as_json()["facts"]["batch"] == 64
    assert facts.note.startswith(
        "Most products do not keep the 64 rows that are taken for the batch, "
    )


@pytest.mark.parametrize("name", ["data", "fsdp", "tensor", "sequence", "batch"])
def test_numbers_that_are_asked_for_are_numbers(name):
    for n, error in (("2", TypeError), (None, TypeError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match=f"plan: {name}= must be a number of .* got {n!r}"):
            ph.plan(step, on="h100:8", **{name: n})
    with pytest.raises(ph.errors.ArgumentError, match=f"plan: {name}= .* got -2"):
        ph.plan(step, on="h100:8", **{name: -2})
    assert callable(ph.plan(step, on="h100:8", **{name: np.int64(1)}))


def test_meshes(traced):
    load = load_of(traced)
    every = list(partings(load, machine("v5p:2x2x2"), Parting(0, 0, 0)))
    assert len(every) == len(set(every)) == 10 and all(p.chips == 8 for p in every)
    assert [p.tensor for p in partings(load, machine("v5p:2x2x2"), Parting(4, 0, 2))] == [2]
    assert all(p.data % 4 == 0 for p in partings(load, machine("v5e:2x2:4"), Parting(0, 0, 0)))


def test_plans():
    report = ph.plan(step, on="h100:16")(W, X)
    facts = report["summary"].as_json()["facts"]
    meshes = report["best meshes"].as_json()["rows"]
    assert facts["time"] == min(row["step"] for row in meshes if row["fits"] == "yes")
    counts = report["by number of chips"].as_json()["rows"]
    assert [row["chips"] for row in counts] == [1, 2, 4, 8, 16]
    assert ph.plan(step, on="h100:16", tensor=4)(W, X)["summary"] != report["summary"]
    assert "step time by number of chips" in str(report) and "<svg" in report.html()


def test_what_does_not_fit_is_told():
    big = {"up": of(NARROW, 2**30), "down": of(2**30, NARROW)}
    report = ph.plan(step, on="v5e:2x2", data=4)(big, X)
    assert report["best meshes"].as_json()["rows"][0]["fits"] == "no"
    assert "does not fit" in report["summary"].note
    assert report["by number of chips"].note == "It does not fit."
    assert "step time by number of chips" not in str(report)  # of one point


@pytest.mark.parametrize(
    "f, args, on, options, said",
    [
        (step, (W, X), "v5pp:2x2", {}, "Did you mean 'v5p"),
        (step, (W, X), "h100:64", {"tensor": 3}, "tensor 3.* 3 does not divide 64"),
        (step, (W, of(77, NARROW)), "h100:64", {}, "batch of 77 rows.* 8 or more .*72 or 80 rows"),
        (step, (W, X), "v5p:3x3x3", {}, "fits no mesh of v5p:3x3x3, 27 chips: 27 or more"),
        (step, (W, X), "v5p:3x3x3", {"tensor": 3}, "tensor is one of 1$"),
        (step, (W, X), "v5e:2x2:4", {"data": 2}, "data is a multiple of the 4 slices"),
        (step, (W, X), "v5p:2x2x2", {"data": 3}, "has data 3"),
        (step, (W, X), "h100:12", {}, "multiple"),
        (lambda x: jnp.sum(x), (X,), "h100:8", {}, "returns no array of the type"),
        (step, (W, X), "h100:8", {"batch": 7}, r"batch=7: .* none has a dimension of 7 .*x \(256"),
        (recurrent, (W, *TIMES), "h100:8", {"batch": 64}, r"none has a dimension of 64 .*xs \(64"),
    ],
)
def test_what_cannot_be_planned_is_told(f, args, on, options, said):
    with pytest.raises(ValueError, match=said):
        ph.plan(f, on=on, **options)(*args)
