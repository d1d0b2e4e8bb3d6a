"""Plans that are applied: the numbers of one device, the figures of the plan, and code to copy."""

from collections import Counter
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from benchmarks import transformer
from phalanx import lax, tree
from phalanx.insight.plans import compiled_step
from phalanx.insight.plans.compiled_step import built
from phalanx.insight.plans.performance_model import Parting
from phalanx.insight.systems import machine

pytestmark = pytest.mark.skipif(ph.device_count() < 8, reason="it is divided over 8 devices")
RNG = np.random.default_rng(0)
AXES = "data", "fsdp", "tensor"
MESHES = (8, 1, 1), (1, 8, 1), (2, 2, 2), (1, 2, 4)


def normal(*shape):
    return RNG.normal(0, 0.2, shape).astype(np.float32)


# ---- steps --------------------------------------------------------------------------------------


def perceptron(w, x):
    for matrix in w:
        x = jnp.tanh(x @ matrix)
    return x


def error(w, x, y):
    return jnp.mean((perceptron(w, x) - y) ** 2)


def descended(w, grads):
    return tree.map(lambda p, g: p - 0.1 * g, w, grads)


def plain(w, x, y):
    value, grads = ph.value_and_grad(error)(w, x, y)
    return descended(w, grads), value


def convolved(w, x, y):
    def loss(w):
        h = ph.nn.relu(lax.conv(x, w["first"], (1, 1), "SAME"))
        h = ph.nn.relu(lax.conv(h, w["second"], (2, 2), "SAME"))
        return jnp.mean((h.reshape(len(h), -1) @ w["out"] - y) ** 2)

    value, grads = ph.value_and_grad(loss)(w)
    return descended(w, grads), value


class State(NamedTuple):
    w: list
    moment: list
    count: object


def with_momentum(state, x, y):
    value, grads = ph.value_and_grad(error)(state.w, x, y)
    moment = tree.map(lambda m, g: 0.9 * m + g, state.moment, grads)
    return State(descended(state.w, moment), moment, state.count + 1), value


def accumulated(w, x, y):
    def one(total, rows):
        value, grads = ph.value_and_grad(error)(w, *rows)
        return tree.map(jnp.add, total, grads), value

    rows = tuple([a.reshape(4, -1, a.shape[-1]) for a in (x, y)])
    total, values = lax.scan(one, tree.map(jnp.zeros_like, w), rows)
    return descended(w, tree.map(lambda g: g / 4, total)), jnp.mean(values)


DEEP = [normal(64, 256), normal(256, 64)]
ROWS = normal(96, 64), normal(96, 64)
KERNELS = {"first": normal(16, 3, 3, 3), "second": normal(16, 16, 3, 3), "out": normal(1024, 10)}
WORDS = [RNG.integers(0, transformer.VOCABULARY, (24, 16)) for _ in range(2)]
DECODER = transformer.init(np, layers=1, width=32, length=16)
STEPS = {
    "perceptron": (plain, (DEEP, *ROWS)),
    "convolutions": (convolved, (KERNELS, normal(24, 3, 16, 16), normal(24, 10))),
    "momentum": (with_momentum, (State(DEEP, DEEP, np.int32(0)), *ROWS)),
    "accumulated": (accumulated, (DEEP, *ROWS)),
    "transformer": (
        transformer.mesh_step(ph, partial(transformer.loss, ph)),
        (DECODER, *WORDS),
    ),
}


def agree(found, wanted):
    pairs = zip(tree.leaves(found), tree.leaves(wanted), strict=True)
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in pairs)


def several(step, args, count=3):
    """What so many steps give, of which each takes what the one before gave."""
    results = ()
    for _ in range(count):
        results = step(*args)
        args = (*results[:-1], *args[len(results) - 1 :])
    return results


def planned(step, args, parting=(0, 0, 0), on="v5e:2x4"):
    return ph.plan(step, on=on, **dict(zip(AXES, parting, strict=True)))(*args)


def applied(*asked, **options):
    return planned(*asked, **options).apply()


def products(run):
    """Operations of products on each device."""
    return sum([k.count * k.products for k in run.compiled.runtime_executable().kernels()])


# ---- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("on", ["v5e:1x1", "v5p:1x1x3", "v5e:2x4"])
@pytest.mark.parametrize("name", STEPS)
def test_the_numbers_are_those_of_one_device(name, on):
    step, args = STEPS[name]
    run = applied(step, args, on=on)
    assert run.mesh.size == machine(on).chips
    assert agree(several(run, args), several(ph.jit(step), args))
    report = ph.verify(run)(*args)
    assert report.agrees, report


@pytest.mark.parametrize("parting", MESHES)
@pytest.mark.parametrize("name", STEPS)
def test_on_every_mesh(name, parting):
    step, args = STEPS[name]
    if name == "convolutions" and parting[2] > 1:
        with pytest.raises(ValueError, match="no mesh of v5e:2x4 has"):
            applied(step, args, parting)
        return
    run = applied(step, args, parting)
    assert run.mesh.shape == dict(zip(AXES, parting, strict=True))
    assert agree(several(run, args), several(ph.jit(step), args))


def test_lanes():
    def lane(w, x, y):
        value, grads = lax.pmean(ph.value_and_grad(error)(w, x, y), "batch")
        return descended(w, grads), value

    args = DEEP, *[a.reshape(8, 12, -1) for a in ROWS]
    mapped = ph.pmap(lane, "batch", in_axes=(None, 0, 0), out_axes=None)
    run = ph.plan(mapped, on="v5e:2x4", data=8)(*args).apply()
    assert run.mesh.shape == {"lanes": 8, "copies": 1}
    assert agree(several(run, args), several(ph.jit(plain), (DEEP, *ROWS)))


# ---- figures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("parting", MESHES)
@pytest.mark.parametrize("name", ["perceptron", "momentum"])
def test_the_figures_of_the_plan_hold(name, parting):
    step, args = STEPS[name]
    report = planned(step, args, parting)
    run, load, (row, *_) = report.apply(), report.step.load, report["best meshes"].rows
    state, *_ = run(*args)
    held = sum([x.addressable_shards[0].data.nbytes for x in tree.leaves(state)])
    parts = parting[1] * parting[2]
    assert load.state / parts <= held <= load.state / parts + 4  # numbers are not divided
    (operations,) = load.operations.values()
    assert products(run) == operations / 8
    sizes = run.compiled.memory_analysis()
    needed = sizes.argument_size_in_bytes + sizes.temp_size_in_bytes
    assert needed < 2 * row[4]


def test_the_bytes_of_the_plan_are_exchanged():
    step, args = STEPS["perceptron"]
    weights = sum([w.nbytes for w in DEEP])
    loss = 4

    def sent(*parting):
        bytes_of = Counter()
        for c in applied(step, args, parting).compiled.collectives():
            bytes_of[c.operation] += c.bytes * c.count
        return bytes_of

    assert sent(8, 1, 1) == {"all-reduce": weights + loss}  # gradients
    assert sent(1, 1, 8) == {"all-reduce": ROWS[1].nbytes}  # what the second product sums up
    parts = sent(1, 8, 1)
    read = weights + DEEP[1].nbytes  # the second again, for its derivative
    assert read <= parts["all-gather"] <= 2 * read


def test_it_is_what_is_compiled_for_chips(monkeypatch):
    monkeypatch.setattr(compiled_step, "devices_of", lambda _: ph.devices()[:8])
    step, args = STEPS["accumulated"]
    report = ph.plan(step, on="v5e:2x4", data=2, fsdp=4)(*args)
    of_chips = built(ph.jit(step).trace(*args), report.step.load, machine("v5e:2x4"),
                     Parting(2, 4, 1))  # fmt: skip
    run = report.apply()
    assert of_chips.operations == products(run)
    lists = of_chips.exchanged, run.compiled.collectives()
    kinds = [Counter([(c.operation, c.axes, c.bytes, c.count) for c in found]) for found in lists]
    assert kinds[0] == kinds[1]
    sizes = run.compiled.memory_analysis()
    needed = (
        sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes
        - sizes.alias_size_in_bytes
    )  # fmt: skip
    assert of_chips.timing.size == needed


# ---- what it does -------------------------------------------------------------------------------


def test_shardings():
    step, args = STEPS["momentum"]
    run = applied(step, args, (1, 4, 2))
    assert [s.spec for s in run.in_shardings[0].w] == [
        ph.P("fsdp", "tensor"), ph.P("tensor", "fsdp"),
    ]  # fmt: skip
    assert run.in_shardings[0].w == run.in_shardings[0].moment
    assert run.in_shardings[0].count.spec == ph.P()
    assert [s.spec for s in run.in_shardings[1:]] == [ph.P(("data", "fsdp"))] * 2
    assert run.out_shardings[0] == run.in_shardings[0]


def test_state_is_donated_and_the_batch_is_not():
    step, args = STEPS["momentum"]
    run = applied(step, args, (2, 4, 1))
    state, *rows = ph.device_put(args, run.in_shardings)
    before = tree.leaves(state)
    after, _ = run(state, *rows)
    assert all([x.is_deleted() for x in before])
    assert not any([x.is_deleted() for x in (*rows, *tree.leaves(after))])


def test_an_argument_of_which_a_part_is_no_state_is_not_donated():
    def step(taken, rows):
        value, grads = ph.value_and_grad(error)(taken["w"], *rows)
        return descended(taken["w"], tree.map(lambda g: jnp.mean(taken["scale"]) * g, grads)), value

    taken = {"w": DEEP, "scale": normal(3)}
    run = applied(step, (taken, ROWS), (1, 8, 1))
    placed = ph.device_put(taken, run.in_shardings[0])
    run(placed, ROWS)
    assert not any([x.is_deleted() for x in tree.leaves(placed)])


def test_arguments_that_lie_elsewhere_are_moved():
    step, args = STEPS["perceptron"]
    there = ph.device_put(args, ph.devices()[7])
    run = applied(step, args, (1, 8, 1))
    assert agree(run(*there), ph.jit(step)(*args))


def test_the_devices_that_are_given():
    step, args = STEPS["perceptron"]
    devices = ph.devices()[3:5]
    run = ph.plan(step, on="v5e:1x2")(*args).apply(devices=devices)
    assert [*run.mesh.devices.flat] == devices and "devices=devices" in run.code
    assert agree(run(*args), ph.jit(step)(*args))


def test_another_step_is_divided_in_the_same_way():
    step, args = STEPS["perceptron"]

    def told(w, x, y):
        after, value = plain(w, x, y)
        return after, value, jnp.max(after[0])

    run = ph.plan(step, on="v5e:2x4", fsdp=8)(*args).apply(told)
    assert agree(run(*args), ph.jit(told)(*args))
    assert run.in_shardings == applied(step, args, (1, 8, 1)).in_shardings


# ---- sides of weights ---------------------------------------------------------------------------


def attending(w, x, y):
    def layer(x, w):
        q, k, v = (jnp.einsum("bld,dhk->bhlk", x, w[n].astype(x.dtype)) for n in "qkv")
        seen = ph.nn.softmax(jnp.einsum("bhlk,bhmk->bhlm", q, k))
        x = x + jnp.einsum("bhlm,bhmk,hkd->bld", seen, v, w["out"])
        return x + jnp.tanh(x @ w["up"]) @ w["down"], None

    def loss(w):
        return jnp.mean((lax.scan(ph.checkpoint(layer), x, w)[0] - y) ** 2)

    value, grads = ph.value_and_grad(loss)(w)
    return descended(w, grads), value


def of_experts(w, x, y):
    def loss(w):
        chosen = ph.nn.softmax(x @ w["gate"])
        hidden = jnp.tanh(jnp.einsum("td,edf->etf", x, w["up"]))
        return jnp.mean((jnp.einsum("etf,efd,te->td", hidden, w["down"], chosen) - y) ** 2)

    value, grads = ph.value_and_grad(loss)(w)
    return descended(w, grads), value


HEADS = {name: normal(2, 64, 8, 8) for name in "qkv"}
HEADS |= {"out": normal(2, 8, 8, 64), "up": normal(2, 64, 256), "down": normal(2, 256, 64)}
EXPERTS = {"gate": normal(64, 8), "up": normal(8, 64, 128), "down": normal(8, 128, 64)}


@pytest.mark.parametrize("parting", [(4, 1, 2), (2, 1, 4), (1, 1, 8)])
def test_heads_are_divided_and_experts(parting):
    """Nothing is computed twice, as it is where other dimensions are divided."""
    batch = normal(16, 16, 64), normal(16, 16, 64)
    for step, args, wanted in (
        (attending, (HEADS, *batch), {
            **dict.fromkeys("qkv", ph.P(None, None, "tensor")), "out": ph.P(None, "tensor"),
            "up": ph.P(None, None, "tensor"), "down": ph.P(None, "tensor"),
        }),
        (of_experts, (EXPERTS, *ROWS), {
            "up": ph.P("tensor"), "down": ph.P("tensor"),
        }),
    ):  # fmt: skip
        report = planned(step, args, parting)
        run, load = report.apply(), report.step.load
        specs = {name: s.spec for name, s in run.in_shardings[0].items()}
        assert {name: specs[name] for name in wanted} == wanted
        (operations,) = load.operations.values()
        assert products(run) == pytest.approx(operations / 8, rel=0.01)
        assert agree(run(*args), ph.jit(step)(*args))


def dispatched(w, x, y):
    """Tokens in groups, of each of which an expert has room for four."""

    def loss(w):
        chances = ph.nn.softmax(jnp.einsum("gtd,de->gte", x, w["gate"]))
        chosen = ph.nn.one_hot(jnp.argmax(chances, -1), 8)
        turn = jnp.sum((jnp.cumsum(chosen, 1) - chosen) * chosen, -1).astype(int)
        place = chosen[..., None] * ph.nn.one_hot(turn, 4)[:, :, None, :]
        sent = jnp.einsum("gtd,gtec->gecd", x, place)
        hidden = jnp.tanh(jnp.einsum("gecd,edf->gecf", sent, w["up"]))
        done = jnp.einsum("gecf,efd->gecd", hidden, w["down"])
        back = jnp.einsum("gecd,gtec,gte->gtd", done, place, chances)
        return jnp.mean((x + back - y) ** 2)

    value, grads = ph.value_and_grad(loss)(w)
    return descended(w, grads), value


@pytest.mark.parametrize("parting", [(4, 1, 2), (1, 1, 8)])
@pytest.mark.parametrize("step", [of_experts, dispatched])
def test_what_experts_give_is_exchanged_as_the_plan_says(step, parting):
    groups = normal(8, 24, 64), normal(8, 24, 64)
    args = EXPERTS, *(ROWS if step is of_experts else groups)
    report = planned(step, args, parting)
    run, load = report.apply(), report.step.load
    assert products(run) == pytest.approx(load.operations[np.dtype("float32")] / 8, rel=0.01)
    sent = sum([c.bytes * c.count for c in run.compiled.collectives() if c.axes == ("tensor",)])
    assert sent == pytest.approx(load.products.reduced / parting[0], rel=0.25)
    assert agree(run(*args), ph.jit(step)(*args))


# ---- constraints --------------------------------------------------------------------------------


def in_a_call(w, x, y):
    return ph.jit(accumulated)(w, 2 * x, jnp.swapaxes(y, 0, 1).T)


@pytest.mark.parametrize("step", [accumulated, in_a_call])
@pytest.mark.parametrize("parting", [(8, 1, 1), (4, 2, 1), (2, 2, 2)])
def test_the_parts_of_a_batch_are_divided(step, parting):
    report = planned(step, (DEEP, *ROWS), parting)
    run = report.apply()
    (operations,) = report.step.load.operations.values()
    assert products(run) == operations / 8
    taken = [c for c in run.constraints if c.what == "what the loop runs over"]
    assert [(c.type.shape, c.sharding.spec) for c in taken] == [
        ((4, 24, 64), ph.P(None, ("data", "fsdp")))
    ] * 2
    assert "with_sharding_constraint(x, over(None, ('data', 'fsdp')))" in run.code
    assert str(run.constraints[0].location).startswith("test_applied_step.py:")
    assert agree(run(DEEP, *ROWS), ph.jit(step)(DEEP, *ROWS))


def test_what_needs_no_constraints_has_none():
    def recurrent(w, xs, y):
        def loss(w):
            cell = lambda h, x: (jnp.tanh((h + x) @ w), None)  # noqa: E731
            return jnp.mean((lax.scan(cell, jnp.zeros_like(y), xs)[0] - y) ** 2)

        return w - ph.grad(loss)(w)

    def one_by_one(w, x):
        return w - ph.grad(lambda w: jnp.sum(lax.map(lambda row: jnp.tanh(row @ w), x)))(w)

    w = normal(64, 64)
    assert applied(recurrent, (w, normal(5, 96, 64), ROWS[1])).constraints == ()
    assert applied(one_by_one, (w, ROWS[0])).constraints == ()
    assert applied(accumulated, (DEEP, *ROWS), (1, 1, 8)).constraints == ()


@pytest.mark.parametrize("parting", [(1, 4, 2), (2, 2, 2), (1, 2, 4)])
def test_weights_are_gathered_and_no_sums_of_parts_exchanged(parting):
    """Over both fsdp and tensor: no product is computed twice, and what is exchanged over fsdp is
    weights and gradients, but for numbers of a loss."""
    step, args = STEPS["transformer"]
    report = planned(step, args, parting)
    run, load = report.apply(), report.step.load
    (operations,) = load.operations.values()
    assert products(run) == operations / 8
    sent = Counter()
    for c in run.compiled.collectives():
        sent[bool({"data", "fsdp"} & {*c.axes})] += c.bytes * c.count
    weights = load.products.gathered + load.products.gradients
    assert sent[True] <= weights / parting[2] + 2**15  # and embeddings, which no product reads
    told = {c.what for c in run.constraints}
    assert told == {"the weight"} and "# phalanx.lax.with_sharding_constraint(x, over" in run.code
    assert agree(run(*args), ph.jit(step)(*args))


# ---- code ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["perceptron", "convolutions", "momentum", "transformer"])
def test_the_code_does_the_same(name):
    step, args = STEPS[name]
    run = applied(step, args, (2, 4, 1))
    names = {"state": args[0], step.__name__: step}
    exec(run.code, names)
    copied = names[step.__name__]
    assert agree(copied(*args), run(*args))
    made = copied.lower(*args).compile()
    assert made.input_shardings[0] == run.in_shardings
    assert made.output_shardings == run.out_shardings
    assert made.memory_analysis() == run.compiled.memory_analysis()
    assert repr(made.collectives()) == repr(run.compiled.collectives())
    assert made.donate_argnums == run.compiled.donate_argnums


def test_the_code_of_trees():
    def step(state, x, y):
        w, rest = state["w"], (state["rest"],)
        value, grads = ph.value_and_grad(error)(w, x, y)
        return State(descended(w, grads), [value], None), {"rest": rest}

    def unnamed(w, x):
        return w - x.T @ jnp.tanh(x @ w)

    state = {"w": DEEP, "rest": np.zeros((64, 64), np.float32)}
    run = applied(step, (state, *ROWS), (1, 8, 1))
    names = {"state": state, "x": ROWS[0], "y": ROWS[1], "step": step}
    exec(run.code, names)
    copied = names["step"].lower(state, *ROWS).compile()
    assert copied.output_shardings == run.out_shardings
    code = applied(lambda *args: unnamed(*args), (normal(64, 64), ROWS[0]), (1, 8, 1)).code
    names = {"step": unnamed}
    exec(code, names)
    assert "over('fsdp'),  # args[0]" in code and "out_shardings = over('fsdp')" in code


# ---- refusals -----------------------------------------------------------------------------------


def test_what_cannot_be_applied_is_told():
    def refused(said, step, *args, on="v5e:2x4", apply=None, **options):
        asked = {k: options.pop(k) for k in ("data", "fsdp", "tensor") if k in options}
        report = ph.plan(step, on=on, **asked)(*args, **options)
        with pytest.raises(ValueError, match=said):
            report.apply(apply)

    w, (x, y) = normal(64, 64), ROWS
    refused("planned for the 16 chips of v5e:4x4, and there are 8 cpu devices", plain, DEEP, x, y,
            on="v5e:4x4")  # fmt: skip
    with pytest.raises(ValueError, match="there is 1 cpu device; plan it on a machine of as many"):
        planned(plain, (DEEP, x, y)).apply(devices=ph.devices()[:1])
    refused("plain cannot be applied: .* by position, but y is given by name", plain, DEEP, x, y=y)
    power = ph.jit(lambda w, x, n: w - x.T @ (x @ w) ** n, static_argnums=2)
    refused("static arguments, 2=3; fix them", power, w, x, 3)
    held = ph.new_ref(w)
    held_step = lambda w, x: w - x.T @ jnp.tanh(x @ held[...])  # noqa: E731
    refused("reads or writes a reference, .* take what it holds as an argument", held_step, w, x)

    mesh = ph.make_mesh((2,), ("d",))
    inner = ph.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=ph.P("d"), out_specs=ph.P("d"))
    own = lambda w, x: w - x.T @ jnp.tanh(inner(x) @ w)  # noqa: E731
    refused("says itself over which mesh it runs.* Leave out its shard_map", own, w, x)

    explicit = ph.make_mesh((8,), ("e",), (ph.sharding.AxisType.Explicit,))
    laid_out = ph.device_put(x, ph.NamedSharding(explicit, ph.P("e")))
    refused(
        r"arguments of type f32\[96@e,64\], whose axes are .* Explicit", plain, DEEP, laid_out, y
    )
    with ph.set_mesh(explicit):
        refused("the mesh .* is set, whose axes are of type Explicit", plain, DEEP, x, y)

    lane = lambda w, x: w - lax.pmean(x.T @ jnp.tanh(x @ w), "batch")  # noqa: E731
    mapped = ph.pmap(lane, "batch", in_axes=(None, 0), out_axes=None)
    refused("over data 1 x fsdp 8 x tensor 1: it is a pmap of 8 lanes.* data=8", mapped, w,
            x.reshape(8, 12, 64), fsdp=8)  # fmt: skip
    refused("returns no array of the type", plain, DEEP, x, y, apply=error)
    with pytest.raises(TypeError, match="apply: a function is needed, got str"):
        planned(plain, (DEEP, x, y)).apply("plain")


def test_a_call_with_something_else_is_refused():
    run = applied(plain, (DEEP, *ROWS), (8, 1, 1))
    with pytest.raises(TypeError, match=r"compiled with f32\[96,64\] and called with f32\[95,64\]"):
        run(DEEP, ROWS[0][:-1], ROWS[1])
    with pytest.raises(TypeError, match="does not match the input pytree"):
        run(DEEP, ROWS[0])
