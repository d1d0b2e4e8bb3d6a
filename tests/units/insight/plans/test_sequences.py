"""Plans that divide sequences: what has any, what chips exchange, counted by hand, and applied."""

from collections import Counter

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax, tree
from phalanx.insight.plans import compiled_step
from phalanx.insight.plans.compiled_step import built
from phalanx.insight.plans.performance_model import Parting, fitted_to, load_of, timing
from phalanx.insight.plans.sequences import NO_SEQUENCES
from phalanx.insight.systems import machine

RNG = np.random.default_rng(0)
LAYERS, ROWS, LENGTH, WIDTH, HEADS = 2, 8, 32, 64, 8
ONE = 4 * ROWS * LENGTH * WIDTH  # bytes of queries, keys or values of a layer


def normal(*shape):
    return RNG.normal(0, 0.1, shape).astype(np.float32)


# ---- steps --------------------------------------------------------------------------------------


def descended(loss, w):
    value, grads = ph.value_and_grad(loss)(w)
    return tree.map(lambda p, g: p - 0.1 * g, w, grads), value


def seen_by(q, k, v):
    scores = jnp.einsum("blhk,bmhk->bhlm", q, k)
    return jnp.einsum("bhlm,bmhk->blhk", ph.nn.softmax(scores), v)


def of_layers(attend, again=True):
    """A step of layers that ``attend``, which derivatives compute again, or keep."""

    def layer(x, w):
        h = ph.nn.standardize(x)
        q, k, v = (jnp.einsum("bld,dhk->blhk", h, w[n]) for n in "qkv")
        x = x + jnp.einsum("blhk,hkd->bld", attend(q, k, v), w["out"])
        return x + jnp.tanh(x @ w["up"]) @ w["down"], None

    def step(w, x, y):
        run = ph.checkpoint(layer) if again else layer
        return descended(lambda w: jnp.mean((lax.scan(run, x, w)[0] - y) ** 2), w)

    return step


attending = of_layers(seen_by)


def weights(heads=HEADS):
    shapes = {
        "q": (WIDTH, HEADS, WIDTH // HEADS), "k": (WIDTH, heads, WIDTH // HEADS),
        "v": (WIDTH, heads, WIDTH // HEADS), "out": (HEADS, WIDTH // HEADS, WIDTH),
        "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH),
    }  # fmt: skip
    return {name: normal(LAYERS, *shape) for name, shape in shapes.items()}


W = weights()
BATCH = normal(ROWS, LENGTH, WIDTH), normal(ROWS, LENGTH, WIDTH)
TABLE = {"table": normal(256, WIDTH), **{n: w[0] for n, w in W.items()}}
WORDS = tuple([RNG.integers(0, 256, (ROWS, LENGTH)) for _ in range(2)])


def of_words(w, words, wanted):
    """A language model of one layer: no query sees a key behind it."""

    def loss(w):
        x = w["table"][words]
        q, k, v = (jnp.einsum("bld,dhk->blhk", x, w[n]) for n in "qkv")
        scores = jnp.einsum("blhk,bmhk->bhlm", q, k)
        scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
        mixed = jnp.einsum("bhlm,bmhk->blhk", ph.nn.softmax(scores), v)
        x = x + jnp.einsum("blhk,hkd->bld", mixed, w["out"])
        x = x + ph.nn.gelu(x @ w["up"]) @ w["down"]
        logs = ph.nn.log_softmax(x @ w["table"].T)
        return -jnp.mean(jnp.take_along_axis(logs, wanted[..., None], -1))

    return descended(loss, w)


def accumulated(w, x, y):
    def one(total, rows):
        grads = ph.grad(lambda w: jnp.mean((lax.scan(layer, rows[0], w)[0] - rows[1]) ** 2))(w)
        return tree.map(jnp.add, total, grads), None

    def layer(x, w):
        return x + jnp.tanh(x @ w["up"]) @ w["down"], None

    parts = tuple([a.reshape(4, -1, *a.shape[1:]) for a in (x, y)])
    total, _ = lax.scan(one, tree.map(jnp.zeros_like, w), parts)
    return tree.map(lambda p, g: p - 0.1 * g, w, total), None


FORWARD = {n: W[n] for n in ("up", "down")}


def sequences(step, *args):
    return load_of(ph.jit(step).trace(*args)).sequences


# ---- what they are ------------------------------------------------------------------------------


def test_they_are_what_products_by_weights_keep():
    found = sequences(attending, W, *BATCH)
    assert found.length == LENGTH and set(found.along.values()) == {1}
    assert found.text == "dimension 1 of x, dimension 1 of y"
    found = sequences(of_words, TABLE, *WORDS)
    assert found.length == LENGTH and found.text == "dimension 1 of words, dimension 1 of wanted"


def test_where_there_are_none():
    def perceptron(w, x):
        return descended(lambda w: jnp.mean(jnp.tanh(x @ w["up"][0]) @ w["down"][0]), w)

    def recurrent(w, x, y):
        def cell(h, now):
            return h + jnp.tanh(now @ w["up"][0]) @ w["down"][0], None

        def loss(w):
            start = jnp.zeros_like(x[:, 0])
            return jnp.mean((lax.scan(cell, start, jnp.swapaxes(x, 0, 1))[0] - y) ** 2)

        return descended(loss, w)

    def mixing(w, x):  # all of a sequence, by a weight
        return descended(lambda w: jnp.mean(jnp.einsum("bld,lm->bmd", x, w["m"]) @ w["up"][0]), w)

    def convolved(w, x):
        return descended(lambda w: jnp.mean(lax.conv(x, w["k"], (1, 1), "SAME") ** 2), w)

    def stepping(w, x, y):  # one batch after the other
        def one(w, batch):
            return descended(lambda w: jnp.mean((batch[0] @ w["up"][0] - batch[1]) ** 2), w)

        return lax.scan(one, w, (x, y))

    x, y = BATCH
    assert sequences(stepping, FORWARD, x, normal(ROWS, LENGTH, 4 * WIDTH)) == NO_SEQUENCES
    assert sequences(perceptron, FORWARD, x[:, 0]) == NO_SEQUENCES
    assert sequences(recurrent, FORWARD, x, y[:, 0]) == NO_SEQUENCES
    assert sequences(mixing, {"m": normal(LENGTH, LENGTH), **FORWARD}, x) == NO_SEQUENCES
    assert sequences(convolved, {"k": normal(4, 3, 3, 3)}, normal(8, 3, 16, 16)) == NO_SEQUENCES


# ---- what chips exchange ------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [HEADS, 2])
def test_keys_and_values_are_exchanged(heads):
    """Each is gathered for the product, and once more for each derivative; theirs are added up."""

    def attend(q, k, v):
        return seen_by(q, *(jnp.repeat(a, HEADS // heads, 2) for a in (k, v)))

    def grouped(q, k, v):
        q = q.reshape(*q.shape[:2], heads, HEADS // heads, -1)
        scores = jnp.einsum("blghk,bmgk->bghlm", q, k)
        mixed = jnp.einsum("bghlm,bmgk->blghk", ph.nn.softmax(scores), v)
        return mixed.reshape(*mixed.shape[:2], HEADS, -1)

    kept, again = [
        sequences(of_layers(grouped, again), weights(heads), *BATCH) for again in (False, True)
    ]
    assert kept.exchanged == LAYERS * 6 * ONE * heads / HEADS and kept.count == LAYERS * 6
    assert again.exchanged == LAYERS * 8 * ONE * heads / HEADS
    assert kept.largest == ONE * heads / HEADS
    repeated = sequences(of_layers(attend, again=False), weights(heads), *BATCH)
    assert repeated.exchanged == LAYERS * 6 * ONE  # as the products read them


def test_attention_as_one_operation():
    def attend(q, k, v):
        return ph.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")

    def cast(q, k, v):
        return attend(*(a.astype(jnp.bfloat16) for a in (q, k, v))).astype(q.dtype)

    found = sequences(of_layers(cast, again=False), W, *BATCH)
    assert found.exchanged == LAYERS * (2 + 4) * ONE / 2  # keys and values, and derivatives
    assert found.largest == 4 * ONE / 2


def test_sums_over_sequences_are_exchanged():
    def linear(q, k, v):
        return jnp.einsum("blhk,bhkv->blhv", q, jnp.einsum("blhk,blhv->bhkv", k, v))

    found = sequences(of_layers(linear, again=False), W, *BATCH)
    state = 4 * ROWS * HEADS * (WIDTH // HEADS) ** 2
    assert found.exchanged == LAYERS * 2 * 2 * state  # it, and its derivative


def test_layers_without_attention_exchange_nothing():
    def none(q, k, v):
        return q + k + v

    found = sequences(of_layers(none), W, *BATCH)
    assert found.length == LENGTH and found.exchanged == 0


# ---- how long -----------------------------------------------------------------------------------


def test_times_are_those_of_the_formulas():
    load, chips = load_of(ph.jit(attending).trace(W, *BATCH)), machine("h100:16")
    found = timing(load, chips, Parting(2, 1, 2, 4))
    whole, fitted = load.sequences, fitted_to(chips.system)
    latency, time = chips.exchange("all-gather", whole.exchanged / 2 / 2, 4, 2)
    expected = fitted.exchanging * (latency * whole.count + time)
    assert found.sequence == pytest.approx(expected)
    part = load.products.gradients / 2
    added = [chips.exchange("all-reduce", part, n, apart) for n, apart in ((4, 2), (2, 8))]
    assert found.data == pytest.approx(sum([sum(pair) for pair in added]))
    copies = timing(load, chips, Parting(8, 1, 2))
    assert found.arithmetic == copies.arithmetic and found.memory == copies.memory
    assert found.size - copies.size == pytest.approx(whole.largest / 2 / 2)


def test_few_long_sequences_are_divided():
    def of(*shape):
        return ph.ShapeDtypeStruct(shape, "float32")

    few = of(2, 4096, WIDTH), of(2, 4096, WIDTH)
    report = ph.plan(attending, on="v5p:2x2x4")(W, *few)
    first, *_ = report["best meshes"].as_json()["rows"]
    assert first["data"] * first["fsdp"] <= 2
    assert first["sequence"] * first["tensor"] >= 8
    rows = report["best meshes"].as_json()["rows"]
    assert all(4096 % row["sequence"] == 0 for row in rows)
    facts = report["summary"].as_json()["facts"]
    assert facts["sequences are"] == "dimension 1 of x, dimension 1 of y"
    asked = ph.plan(attending, on="v5p:2x2x4", sequence=16)(W, *few)
    assert asked["summary"].as_json()["facts"]["best mesh"] == (
        "data 1 x fsdp 1 x sequence 16 x tensor 1"
    )
    parts = [row["part"] for row in asked["time of a step"].as_json()["rows"]]
    assert "all-gather of sequences (sequence)" in parts


def test_what_is_asked_for_must_fit():
    with pytest.raises(
        ValueError, match="sequence 3 for this step: its sequences have 32 elements"
    ):
        ph.plan(attending, on="h100:3", sequence=3)(W, *BATCH)
    with pytest.raises(ValueError, match="sequence 2 for this step: no dimension"):
        ph.plan(accumulated, on="h100:2", sequence=2)(FORWARD, *(a[:, 0] for a in BATCH))
    with pytest.raises(ValueError, match="data x fsdp x sequence x tensor are all chips, and 16"):
        ph.plan(attending, on="h100:8", sequence=16)(W, *BATCH)
    said = "a batch of 8 rows fits no mesh of h100:8x8 with sequence 2, tensor 1, 64 chips"
    with pytest.raises(ValueError, match=said):
        ph.plan(attending, on="h100:64", sequence=2, tensor=1)(W, *BATCH)


# ---- applied ------------------------------------------------------------------------------------

on_eight = pytest.mark.skipif(ph.device_count() < 8, reason="it is divided over 8 devices")
MESHES = (1, 1, 8, 1), (2, 1, 4, 1), (1, 2, 4, 1), (2, 1, 2, 2), (1, 2, 2, 2)
STEPS = {"layers": (attending, (W, *BATCH)), "words": (of_words, (TABLE, *WORDS))}


def planned(step, args, parting, on="v5e:2x4"):
    asked = dict(zip(("data", "fsdp", "sequence", "tensor"), parting, strict=True))
    return ph.plan(step, on=on, **asked)(*args)


def agree(found, wanted):
    pairs = zip(tree.leaves(found), tree.leaves(wanted), strict=True)
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in pairs)


def products(run):
    return sum([k.count * k.products for k in run.compiled.runtime_executable().kernels()])


def exchanged(run):
    """Bytes of results of collectives, by their axes."""
    found = Counter()
    for c in run.compiled.collectives():
        found[c.axes] += c.bytes * c.count
    return found


@on_eight
@pytest.mark.parametrize("parting", MESHES)
@pytest.mark.parametrize("name", STEPS)
def test_the_numbers_are_those_of_one_device(name, parting):
    step, args = STEPS[name]
    report = planned(step, args, parting)
    run = report.apply()
    assert run.mesh.shape["sequence"] == parting[2]
    assert {s.spec[1] for s in run.in_shardings[1:]} == {"sequence"}
    wanted = ph.jit(step)
    for _ in range(2):
        expected, _ = wanted(*args)
        state, _ = run(*args)
        assert agree(state, expected)
        args = (state, *args[1:])
    (operations,) = report.step.load.operations.values()
    assert operations / 8 <= products(run) < 1.3 * operations / 8
    assert name == "words" or products(run) == operations / 8  # older compilers repeat small ones
    sizes = run.compiled.memory_analysis()
    needed = sizes.argument_size_in_bytes + sizes.temp_size_in_bytes
    assert needed < 2 * report["best meshes"].as_json()["rows"][0]["memory of a chip"]


@on_eight
@pytest.mark.parametrize("parting", MESHES)
def test_the_bytes_of_the_plan_are_exchanged(parting):
    """Or fewer: the compiler gathers keys and values once for the two products by which
    derivatives compute attention again, and go on."""
    report = planned(attending, (W, *BATCH), parting)
    data, fsdp, sequence, tensor = parting
    load = report.step.load
    gradients = load.products.gradients / fsdp / tensor
    found = exchanged(report.apply())[("sequence",)] - gradients
    expected = load.sequences.exchanged / data / fsdp / tensor
    assert sequence > 1 and 0.74 * expected < found < 1.01 * expected


@on_eight
def test_parts_of_a_batch_keep_their_sequences():
    args = FORWARD, *BATCH
    run = planned(accumulated, args, (2, 1, 4, 1)).apply()
    specs = {c.sharding.spec for c in run.constraints}
    assert specs == {ph.P(None, ("data", "fsdp"), "sequence")}
    assert agree(run(*args), ph.jit(accumulated)(*args))


@on_eight
def test_the_code_does_the_same():
    args = W, *BATCH
    run = planned(attending, args, (2, 1, 4, 1)).apply()
    assert "over(('data', 'fsdp'), 'sequence')" in run.code
    names = {"step": attending}
    exec(run.code, names)
    made = names["step"].lower(*args).compile()
    assert made.input_shardings[0] == run.in_shardings
    assert repr(made.collectives()) == repr(run.compiled.collectives())
    assert agree(names["step"](*ph.device_put(args, run.in_shardings)), ph.jit(attending)(*args))


@on_eight
def test_it_is_what_is_compiled_for_chips(monkeypatch):
    monkeypatch.setattr(compiled_step, "devices_of", lambda _: ph.devices()[:8])
    report = planned(attending, (W, *BATCH), (2, 1, 4, 1))
    traced, chips = ph.jit(attending).trace(W, *BATCH), machine("v5e:2x4")
    made = built(traced, report.step.load, chips, Parting(2, 1, 1, 4))
    assert made.operations == products(report.apply())
    assert made.timing.sequence > 0 and made.timing.data > 0
    assert made.timing.tensor == made.timing.fsdp == 0
