"""Ahead of time: what the stages know, and that calls share what was compiled."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, stages
from phalanx.run.runtime import backend

X = np.arange(6, dtype=np.float32).reshape(2, 3)
STRUCT = phalanx.ShapeDtypeStruct((2, 3), "float32")


@pytest.fixture
def count(monkeypatch):
    """count(): how many programs of those functions under test have been compiled."""
    names = []
    kind = type(backend())
    compile = kind.compile

    def counting(lowered, options=None):
        names.append(lowered.name)
        return compile(lowered, options)

    monkeypatch.setattr(kind, "compile", staticmethod(counting))
    return lambda: sum("step" in name for name in names)


def make_step():
    """A function that nobody has compiled yet."""

    def step(x):
        return {"z": x * 2 + 1.0}

    return step


@pytest.mark.parametrize("given", [X, STRUCT], ids=["array", "struct"])
def test_calls_use_what_was_compiled_ahead_of_time(count, given):
    f = phalanx.jit(make_step())
    compiled = f.lower(given).compile()
    assert count() == 1
    for g in (compiled, f, f.lower(given).compile(), f.lower(jnp.array(X)).compile()):
        np.testing.assert_array_equal(g(X)["z"], X * 2 + 1)
    f.lower(given).cost_analysis()
    assert count() == 1
    f.lower(given).compile(compiler_options={"xla_embed_ir_in_executable": True})
    assert count() == 2
    f.clear_cache()
    f(X)
    assert count() == 3


def test_what_was_called_is_compiled_ahead_of_time(count):
    def step(x):
        return x - lax.pmean(x, "i")

    f = phalanx.pmap(step, axis_name="i")
    want = f(X)
    np.testing.assert_array_equal(f.lower(X).compile()(X), want)
    np.testing.assert_array_equal(f.lower(want).compile()(X), want)
    assert count() == 1


def test_a_jitted_function_inside_another_is_compiled_by_itself(count):
    f = phalanx.jit(make_step())
    phalanx.jit(lambda x: f(x)["z"] + 1)(X)
    f(X)
    assert count() == 1


def test_donation_and_layout_are_part_of_it(count):
    step = make_step()
    f = phalanx.jit(step, donate_argnums=0)
    g = phalanx.jit(step)
    last = phalanx.devices()[-1]
    x = jnp.array(X)
    assert f.lower(x).compile()(x)["z"].shape == (2, 3) and x.is_deleted()
    x = jnp.array(X)
    g(x)
    assert not x.is_deleted() and count() == 2
    compiled = g.lower(phalanx.device_put(X, last)).compile()
    assert compiled(X)["z"].devices() == {last}
    assert count() == (3 if last != phalanx.devices()[0] else 2)


def test_what_the_stages_know():
    f = phalanx.jit(
        lambda state, n, *, rate: (state["w"] * n - rate, n), static_argnames="n", donate_argnums=0
    )
    traced = f.trace({"w": X}, 2, rate=0.5)
    lowered = traced.lower()
    compiled = lowered.compile()
    weak = phalanx.ShapeDtypeStruct((), "float32", weak_type=True)
    assert repr(phalanx.typeof(weak)) == "f32[]~"
    assert traced.jaxpr is traced.program and len(traced.program.inputs) == 2
    for stage in (traced, lowered, compiled):
        assert stage.fun_name == "<lambda>"
        assert stage.donate_argnums == (0,)
        assert stage.in_avals == (({"w": STRUCT},), {"rate": weak})
        assert stage.out_info == stage.out_avals
        assert stage.out_info[0].update(sharding=None) == STRUCT
        (args, kwargs) = stage.args_info
        assert args[0]["w"] == stages.ArgInfo((2, 3), np.dtype("float32"), True)
        assert not kwargs["rate"].donated
        assert stage.in_tree == traced.in_tree and stage.out_tree.num_leaves == 2
    device = phalanx.devices()[0]
    assert all(s.device_set == {device} for s in compiled.output_shardings)
    assert compiled.input_shardings[1]["rate"].device_set == {device}
    np.testing.assert_array_equal(compiled.call({"w": X}, rate=0.5)[0], X * 2 - 0.5)


@pytest.mark.parametrize(
    "f", [phalanx.jit(make_step()), phalanx.pmap(make_step())], ids=["jit", "pmap"]
)
def test_modules_as_text_and_as_objects(f):
    lowered = f.lower(X)
    assert lowered.as_text() == lowered.as_text("stablehlo")
    assert "stablehlo.multiply" in lowered.as_text() and ".py" not in lowered.as_text()
    assert "test_stages.py" in lowered.as_text(debug_info=True)
    assert lowered.as_text("hlo").startswith("HloModule") and " multiply(" in lowered.as_text("hlo")
    assert str(lowered.compiler_ir()) == lowered.as_text()
    assert " multiply(" in lowered.compiler_ir("hlo").as_hlo_text()
    for ask in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(ValueError, match="dialects are 'stablehlo' and 'hlo', got 'mhlo'"):
            ask("mhlo")


@pytest.mark.spmd
def test_results_have_the_names_of_where_they_are_compiled():
    mesh = phalanx.make_mesh((phalanx.device_count(),), ("i",))
    other = phalanx.make_mesh((phalanx.device_count(),), ("j",))
    rows = phalanx.NamedSharding(mesh, phalanx.P("i"))
    lowered = phalanx.jit(jnp.sum, in_shardings=rows).lower(jnp.zeros(phalanx.device_count()))
    said = lowered.compile().output_shardings
    with phalanx.set_mesh(other):
        lowered.compile()
    assert lowered.compile().output_shardings == said
    again = phalanx.jit(jnp.sum, in_shardings=rows).lower(jnp.zeros(phalanx.device_count()))
    with phalanx.set_mesh(other):
        there = again.compile().output_shardings
    assert again.compile().output_shardings == said != there


def test_a_compiled_function_keeps_what_it_captured():
    w = jnp.array(X)
    compiled = phalanx.jit(lambda x: x * w).lower(STRUCT).compile()
    np.testing.assert_array_equal(compiled(X), X * X)


# ---- for platforms that are not here ------------------------------------------------------------


def of_its_own(x):
    return lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos, tpu=jnp.tanh)


FUNCTIONS = {"cpu": "sine", "cuda": "cosine", "tpu": "tanh"}


def test_a_function_is_lowered_for_a_platform_that_is_not_here():
    traced = phalanx.jit(of_its_own).trace(X)
    for platform, name in FUNCTIONS.items():
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        assert [f"stablehlo.{f} " in text for f in FUNCTIONS.values()] == [
            f == name for f in FUNCTIONS.values()
        ]
    here = traced.lower(lowering_platforms=("cpu",)).compile()
    np.testing.assert_allclose(here(X), np.sin(X), rtol=1e-6)


def test_what_is_lowered_for_several_platforms_takes_the_number_of_one():
    text = phalanx.jit(of_its_own).trace(X).lower(lowering_platforms=("tpu", "cuda")).as_text()
    assert "@main(%arg0: tensor<i32>, %arg1: tensor<2x3xf32>)" in text
    assert all(f"stablehlo.{f}" in text for f in ("case", "tanh", "cosine"))
    assert "stablehlo.sine" not in text


def test_only_operations_that_differ_are_written_for_each_platform():
    def text(draws):
        def f(key, x):
            drawn = [phalanx.random.bits(phalanx.random.fold_in(key, i)) for i in range(draws)]
            ordered = phalanx.jit(lambda x: jnp.sort(jnp.sin(x)))(x)
            return sum(drawn), jnp.tanh(ordered)

        traced = phalanx.jit(f).trace(phalanx.random.key(0), X)
        return traced.lower(lowering_platforms=("tpu", "cuda", "cpu")).as_text()

    once, twice = text(1), text(2)
    counts = [once.count(f"stablehlo.{f} ") for f in ("tanh", "sine")]
    assert counts == [1, 3]  # a function that sorts is one for each
    assert once.count('"stablehlo.sort"') == 3
    assert once.count("func.func") == twice.count("func.func")


@pytest.mark.spmd
def test_lanes_are_lowered_for_one_other_platform():
    count = phalanx.device_count()
    total = phalanx.pmap(lambda x: phalanx.lax.psum(x, "i"), "i").trace(jnp.ones((count, 2)))
    assert "reduce" in total.lower(lowering_platforms=("tpu",)).as_text() or count == 1
    if count > 1:
        with pytest.raises(ValueError, match=r"over \d devices .* one platform at a time, got"):
            total.lower(lowering_platforms=("tpu", "cuda"))


def test_what_is_lowered_for_others_is_not_compiled_for_these_devices():
    traced = phalanx.jit(jnp.sin).trace(1.0)
    for platforms in (("tpu",), ("cpu", "tpu")):
        with pytest.raises(ValueError, match=r"was lowered for platforms .*topologies"):
            traced.lower(lowering_platforms=platforms).compile()
    with pytest.raises(ValueError, match=r"platforms must be some of cpu, .*tpux"):
        traced.lower(lowering_platforms=("tpux",))


@pytest.mark.skipif(phalanx.device_count() < 2, reason="needs two devices")
def test_what_is_compiled_takes_what_it_was_lowered_for():
    devices = np.array(phalanx.devices())
    there, back = [
        phalanx.NamedSharding(phalanx.sharding.Mesh(grid, "x"), phalanx.P("x"))
        for grid in (devices, devices[::-1])
    ]
    x = np.arange(2.0 * len(devices))
    placed = phalanx.device_put(x, back)
    f = phalanx.jit(lambda x: x * 2, in_shardings=there)
    np.testing.assert_array_equal(f.lower(placed).compile()(placed), 2 * x)
    with pytest.raises(ValueError, match="disagree with the shardings"):
        f.lower(x).compile()(placed)
